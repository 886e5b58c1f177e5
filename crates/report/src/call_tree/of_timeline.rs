//! The call tree of a time line.

use std::collections::HashMap;
use std::sync::Arc;

use super::paths::{MAX_DEPTH, MAX_PATHS, Paths};
use super::{CallLabels, CallNode, CallTree, CallTreeOptions};
use crate::callers::OTHER_CALLERS;
use crate::covered::covered;
use crate::reported::is_reported;
use crate::timeline::{Replay, Slice, SliceKind, Timeline};
use crate::walk::{NONE, Visit, Walk};

impl Timeline {
    /// Returns the call tree: the calls of each path added up, divided as `by` says.
    ///
    /// The GPU time of a scope belongs to the node of the scope. A kernel or copy inside such a time is in it; any other one
    /// is a node below the function that launched it. A replay of a graph has no caller, and is no call. From a depth of
    /// 512 on, a recursive call is counted on the node of the open call that has the same caller and callee, and any other one
    /// by caller and callee alone, as those on paths beyond the bounds of [`CallTree`] are.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_report::{CallTreeOptions, Slice, SliceName, Timeline, Track};
    ///
    /// let mut timeline = Timeline::default();
    /// timeline.tracks.push(Track::default());
    /// for name in ["train", "forward"] {
    ///     let mut named = SliceName::default();
    ///     named.text = name.into();
    ///     timeline.names.push(named);
    /// }
    /// for (name, parent, duration_ns, self_ns) in [(0, None, 100, 40), (1, Some(0), 60, 60)] {
    ///     let mut slice = Slice::default();
    ///     (slice.name, slice.parent) = (name, parent);
    ///     (slice.duration_ns, slice.self_ns) = (duration_ns, self_ns);
    ///     timeline.slices.push(slice);
    /// }
    /// let tree = timeline.call_tree(CallTreeOptions::new());
    /// assert_eq!(tree.path(1), [0, 1]);
    /// assert_eq!(tree.nodes[1].cpu.map(|cpu| cpu.self_ns), Some(60.0));
    /// ```
    #[must_use]
    pub fn call_tree(&self, by: CallTreeOptions) -> CallTree {
        self.tree(by, false)
    }

    /// Returns a call tree in which kernels, copies and fills inside the GPU time of a scope are nodes too, below the
    /// functions that launched them. Their times are not in the self time of the scope.
    #[cfg(any(test, feature = "export"))]
    pub(crate) fn call_tree_with_work(&self) -> CallTree {
        self.tree(CallTreeOptions::new(), true)
    }

    fn tree(&self, by: CallTreeOptions, with_work: bool) -> CallTree {
        let callers = callers(self);
        let covered = covered(self, &callers);
        let gpu = scopes_on_gpu(self, &callers);
        let is_call = |index: usize| {
            let slice = &self.slices[index];
            match slice.kind {
                SliceKind::Call | SliceKind::AsyncCall => true,
                SliceKind::GpuWork => with_work || covered[index] == NONE,
                // The time of a range is that of the work inside.
                SliceKind::FuturePoll | SliceKind::GpuRange => false,
                // It belongs to its parent's call.
                SliceKind::GpuScope => callers[index] == NONE,
            }
        };
        let mut tree = TreeBuilder::new(self, by);
        for visit in Walk::new(&callers, is_call) {
            match visit {
                Visit::Enter(index) => {
                    tree.enter(index, gpu.get(&index));
                    tree.take_from(covered[index], index);
                }
                Visit::Leave(_) => tree.leave(),
            }
        }
        for replay in &self.replays {
            tree.replay(replay);
        }
        tree.finish()
    }
}

/// Returns the call that each slice is in or belongs to, or [`NONE`].
pub(crate) fn callers(timeline: &Timeline) -> Vec<u32> {
    let slices = &timeline.slices;
    // The call of a slice on the CPU: of a poll, that is its future.
    let mut calls: Vec<u32> = Vec::with_capacity(slices.len());
    let mut callers: Vec<u32> = Vec::with_capacity(slices.len());
    for (index, slice) in (0..).zip(slices) {
        let caller = if slice.is_on_gpu() {
            NONE
        } else {
            // A parent that comes later is none, so that the calls of any file are a forest.
            let parent = slice.parent.unwrap_or(NONE);
            calls.get(parent as usize).copied().unwrap_or(NONE)
        };
        callers.push(caller);
        calls.push(match slice.kind {
            SliceKind::Call | SliceKind::AsyncCall => index,
            SliceKind::FuturePoll => caller,
            SliceKind::GpuScope | SliceKind::GpuWork | SliceKind::GpuRange => NONE,
        });
    }
    for (caller, slice) in callers.iter_mut().zip(slices) {
        if slice.is_on_gpu() {
            let parent = slice.parent.unwrap_or(NONE);
            *caller = calls.get(parent as usize).copied().unwrap_or(NONE);
        }
    }
    callers
}

/// The GPU time of one call.
#[derive(Clone, Copy)]
struct OnGpu {
    total_ns: f64,
    self_ns: f64,
    /// The part of the total that the program reported.
    reported_ns: f64,
    /// That of what was measured, if anything was.
    track: u32,
}

/// Returns the GPU times of calls.
fn scopes_on_gpu(timeline: &Timeline, callers: &[u32]) -> HashMap<usize, OnGpu> {
    let mut of_call: HashMap<usize, OnGpu> = HashMap::new();
    for (slice, caller) in timeline.slices.iter().zip(callers) {
        if slice.kind == SliceKind::GpuScope && *caller != NONE {
            let is_reported = is_reported(timeline, slice, *caller);
            let times = of_call.entry(*caller as usize).or_insert(OnGpu {
                total_ns: 0.0,
                self_ns: 0.0,
                reported_ns: 0.0,
                track: slice.track,
            });
            if is_reported {
                times.reported_ns += ns(slice.total_ns());
            } else if times.reported_ns >= times.total_ns {
                times.track = slice.track;
            }
            times.total_ns += ns(slice.total_ns());
            times.self_ns += ns(slice.self_ns);
        }
    }
    of_call
}

/// A time of a file may be negative; one of a call is not.
fn ns(ns: i64) -> f64 {
    ns.max(0) as f64
}

/// In place of the number of a text: [`OTHER_CALLERS`].
const OTHER: u32 = NONE - 1;

/// Nodes with the same parent differ in their keys.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    parent: u32,
    name: u32,
    thread: u32,
    stream: u32,
    step: Option<u64>,
}

/// An open call.
struct OpenSlice {
    index: usize,
    node: u32,
    edge: (u32, u32),
    /// The track of its GPU time.
    gpu_track: Option<u32>,
    /// `true` if the path of the node lacks some of the open calls.
    is_folded: bool,
}

/// Which other calls have a GPU time that a call's GPU time is inside of.
#[derive(Clone, Copy, Default)]
struct InsideOnGpu {
    /// One of its function.
    function: bool,
    /// One of its caller and callee.
    pair: bool,
}

/// A node while the tree is built.
struct About {
    /// The number of its text.
    text: u32,
    depth: u32,
    /// The bytes of all names on its path.
    path_bytes: usize,
    /// It is below [`OTHER_CALLERS`].
    is_beyond: bool,
    /// The GPU time of work on and below it.
    work_ns: f64,
    /// `true` if its text is also further up on the path; `None` until that is asked for.
    shows_recursion: Option<bool>,
}

struct TreeBuilder<'t> {
    timeline: &'t Timeline,
    by: CallTreeOptions,
    /// The number of the text of each name, and of each name of a track.
    texts: Vec<u32>,
    track_names: Vec<u32>,
    nodes: Vec<CallNode>,
    about: Vec<About>,
    by_key: HashMap<Key, u32>,
    paths: Paths,
    open: Vec<OpenSlice>,
    /// By the number of the text: how many calls are open.
    open_texts: Vec<u32>,
    /// How many calls with a GPU time on a track are open of each function, and of each caller and callee.
    open_on_gpu: HashMap<(u32, Option<u32>, u32), u32>,
    /// The first open call of each pair of caller and callee: its node, and how many are open.
    open_edges: HashMap<(u32, u32), (u32, u32)>,
}

/// Numbers texts in the order in which they first occur.
fn numbers<'t>(texts: impl Iterator<Item = &'t str>) -> Vec<u32> {
    let mut known: HashMap<&str, u32> = HashMap::new();
    (0..)
        .zip(texts)
        .map(|(index, text)| *known.entry(text).or_insert(index))
        .collect()
}

impl<'t> TreeBuilder<'t> {
    fn new(timeline: &'t Timeline, by: CallTreeOptions) -> Self {
        Self {
            timeline,
            by,
            texts: numbers(timeline.names.iter().map(|name| &*name.text)),
            track_names: numbers(timeline.tracks.iter().map(|track| track.name.as_str())),
            nodes: Vec::new(),
            about: Vec::new(),
            by_key: HashMap::new(),
            paths: Paths::default(),
            open: Vec::new(),
            open_texts: vec![0; timeline.names.len()],
            open_on_gpu: HashMap::new(),
            open_edges: HashMap::new(),
        }
    }

    fn enter(&mut self, index: usize, gpu: Option<&OnGpu>) {
        let slice = &self.timeline.slices[index];
        let name = self.texts.get(slice.name as usize).copied().unwrap_or(NONE);
        let (parent, is_folded) = self
            .open
            .last()
            .map_or((NONE, false), |frame| (frame.node, frame.is_folded));
        let (caller, depth) = self
            .about
            .get(parent as usize)
            .map_or((NONE, 0), |about| (about.text, about.depth));
        let edge = (caller, name);
        // Below a folded call, a path may lack an open call of this pair.
        let first = self.open_edges.get(&edge).copied();
        let first = first.filter(|_| is_folded || depth >= MAX_DEPTH);
        let node = match first {
            Some((node, _)) => node,
            None => self.node(parent, name, (slice, gpu)),
        };
        let is_recursive = first.is_some();
        let is_beyond = !is_recursive && self.parent_of(node) != parent;
        let open = self.open_texts.get(name as usize);
        let is_hidden = (is_folded || is_beyond)
            && !is_recursive
            && open.is_some_and(|open| *open > 0)
            && !self.shows_recursion(node);
        let gpu = gpu.map(|gpu| (gpu, self.inside_on_gpu(edge, gpu.track)));
        if let Some(open) = self.open_texts.get_mut(name as usize) {
            *open += 1;
        }
        self.open_edges.entry(edge).or_insert((node, 0)).1 += 1;
        let gpu_track = gpu
            .filter(|(gpu, _)| gpu.total_ns > gpu.reported_ns)
            .map(|(gpu, _)| gpu.track);
        if let Some(track) = gpu_track {
            for caller in [None, Some(edge.0)] {
                *self.open_on_gpu.entry((track, caller, edge.1)).or_default() += 1;
            }
        }
        self.open.push(OpenSlice {
            index,
            node,
            edge,
            gpu_track,
            is_folded: is_folded || is_recursive || is_beyond,
        });
        self.count(node, slice, gpu, is_recursive);
        if is_hidden {
            self.count_hidden(node, slice);
        }
    }

    /// Finds out which open calls with GPU times on a track a call of this pair is inside of.
    fn inside_on_gpu(&self, edge: (u32, u32), track: u32) -> InsideOnGpu {
        let open = self.open_texts.get(edge.1 as usize);
        if open.is_none_or(|open| *open == 0) {
            return InsideOnGpu::default();
        }
        InsideOnGpu {
            function: self.open_on_gpu.contains_key(&(track, None, edge.1)),
            pair: self
                .open_on_gpu
                .contains_key(&(track, Some(edge.0), edge.1)),
        }
    }

    /// Takes the time of work from the self time of the open call around it in whose GPU time it is.
    fn take_from(&mut self, call: u32, work: usize) {
        if call == NONE {
            return;
        }
        // The last one is the work. Of calls, a caller comes before what it calls.
        let Some((_, calls)) = self.open.split_last() else {
            return;
        };
        let place = calls.binary_search_by_key(&(call as usize), |open| open.index);
        let Some(open) = place.ok().and_then(|place| calls.get(place)) else {
            return;
        };
        if let Some(cuda) = &mut self.nodes[open.node as usize].cuda {
            cuda.self_ns -= ns(self.timeline.slices[work].self_ns);
        }
    }

    /// Returns `true` if the function of a node is also further up on its path.
    fn shows_recursion(&mut self, node: u32) -> bool {
        let about = &self.about[node as usize];
        if let Some(shows) = about.shows_recursion {
            return shows;
        }
        let text = about.text;
        let parent = |at: &u32| self.nodes[*at as usize].parent;
        let mut callers = std::iter::successors(Some(node), parent).skip(1);
        let shows = callers.any(|caller| self.about[caller as usize].text == text);
        self.about[node as usize].shows_recursion = Some(shows);
        shows
    }

    fn leave(&mut self) {
        let Some(frame) = self.open.pop() else { return };
        if let Some(track) = frame.gpu_track {
            for caller in [None, Some(frame.edge.0)] {
                let key = (track, caller, frame.edge.1);
                if let Some(open) = self.open_on_gpu.get_mut(&key) {
                    *open -= 1;
                    if *open == 0 {
                        self.open_on_gpu.remove(&key);
                    }
                }
            }
        }
        if let Some(open) = self.open_texts.get_mut(frame.edge.1 as usize) {
            *open -= 1;
        }
        if let Some((_, open)) = self.open_edges.get_mut(&frame.edge) {
            *open -= 1;
            if *open == 0 {
                self.open_edges.remove(&frame.edge);
            }
        }
    }

    /// Adds the GPU time of a graph that was replayed.
    fn replay(&mut self, replay: &Replay) {
        let slice = Slice {
            track: replay.track.unwrap_or(NONE),
            start_ns: replay.noticed_ns,
            kind: SliceKind::GpuScope,
            ..Slice::default()
        };
        let name = self
            .texts
            .get(replay.name as usize)
            .copied()
            .unwrap_or(NONE);
        let node = self.node(NONE, name, (&slice, None));
        if let Some(node) = self.nodes.get_mut(node as usize) {
            let cuda = node.cuda.get_or_insert_default();
            cuda.total_ns += ns(replay.duration_ns);
            cuda.self_ns += ns(replay.self_ns);
        }
    }

    /// Returns the node of a call.
    fn node(&mut self, parent: u32, name: u32, (slice, gpu): (&Slice, Option<&OnGpu>)) -> u32 {
        let (thread, stream) = if slice.is_on_gpu() {
            (NONE, slice.track)
        } else {
            (slice.track, gpu.map_or(NONE, |gpu| gpu.track))
        };
        let track = |is_wanted: bool, track: u32| {
            let number = self.track_names.get(track as usize).copied();
            number.filter(|_| is_wanted).unwrap_or(NONE)
        };
        let inherited = self.nodes.get(parent as usize);
        let inherited = inherited.and_then(|parent| parent.labels.step);
        let step = || {
            inherited
                .filter(|_| slice.is_on_gpu())
                .or_else(|| self.step(slice.start_ns))
        };
        let mut key = Key {
            parent,
            name,
            thread: track(self.by.thread, thread),
            stream: track(self.by.stream, stream),
            step: self.by.step.then(step).flatten(),
        };
        if let Some(node) = self.by_key.get(&key) {
            return *node;
        }
        let named = self.timeline.names.get(name as usize);
        let bytes = named.map_or(0, |name| name.text.len()) + 1;
        let around = self.about.get(parent as usize);
        let (depth, path_bytes) = around.map_or((1, bytes), |around| {
            (around.depth + 1, around.path_bytes + bytes)
        });
        let is_beyond = around.is_some_and(|around| around.is_beyond);
        let is_beyond = is_beyond || (!self.paths.admit(depth, path_bytes) && around.is_some());
        if is_beyond {
            key.parent = self.caller_beyond(parent);
            // Threads and steps would make many nodes of one.
            (key.thread, key.stream, key.step) = (NONE, NONE, None);
            if let Some(node) = self.by_key.get(&key) {
                return *node;
            }
        }
        let label = |track: u32| {
            let track = self.timeline.tracks.get(track as usize);
            track.map(|track| Arc::from(track.name.as_str()))
        };
        let index = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        self.nodes.push(CallNode {
            parent: (key.parent != NONE).then_some(key.parent),
            name: named.map_or_else(|| "".into(), |name| Arc::clone(&name.text)),
            location: named.map_or_else(|| "".into(), |name| Arc::clone(&name.location)),
            labels: CallLabels {
                thread: label(key.thread),
                stream: label(key.stream),
                step: key.step,
            },
            ..CallNode::default()
        });
        self.about.push(About {
            text: name,
            depth,
            path_bytes,
            is_beyond,
            work_ns: 0.0,
            shows_recursion: None,
        });
        self.by_key.insert(key, index);
        index
    }

    /// Returns the node below [`OTHER_CALLERS`] that stands for the caller of others. Of too many pairs, the rest has none.
    fn caller_beyond(&mut self, of: u32) -> u32 {
        self.nodes[of as usize].is_cut = true;
        let text = self.about[of as usize].text;
        let root = self.beyond(NONE, OTHER);
        if self.nodes.len() < 2 * MAX_PATHS {
            self.beyond(root, text)
        } else {
            root
        }
    }

    fn beyond(&mut self, parent: u32, text: u32) -> u32 {
        let key = Key {
            parent,
            name: text,
            thread: NONE,
            stream: NONE,
            step: None,
        };
        if let Some(node) = self.by_key.get(&key) {
            return *node;
        }
        let index = u32::try_from(self.nodes.len()).unwrap_or(NONE);
        let named = self.timeline.names.get(text as usize);
        let other = || Arc::from(if text == OTHER { OTHER_CALLERS } else { "" });
        self.nodes.push(CallNode {
            parent: (parent != NONE).then_some(parent),
            name: named.map_or_else(other, |name| Arc::clone(&name.text)),
            location: named.map_or_else(|| "".into(), |name| Arc::clone(&name.location)),
            is_caller_only: parent != NONE,
            ..CallNode::default()
        });
        self.about.push(About {
            text,
            depth: 0,
            path_bytes: 0,
            is_beyond: true,
            work_ns: 0.0,
            shows_recursion: None,
        });
        self.by_key.insert(key, index);
        index
    }

    fn parent_of(&self, node: u32) -> u32 {
        let node = self.nodes.get(node as usize);
        node.and_then(|node| node.parent).unwrap_or(NONE)
    }

    /// Returns the step at this time.
    fn step(&self, at_ns: i64) -> Option<u64> {
        let steps = &self.timeline.steps;
        let after = steps.partition_point(|step| step.start_ns <= at_ns);
        let step = steps[..after].last()?;
        (at_ns < step.end_ns).then_some(step.number)
    }

    fn count(
        &mut self,
        node: u32,
        slice: &Slice,
        gpu: Option<(&OnGpu, InsideOnGpu)>,
        is_recursive: bool,
    ) {
        let Some(counted) = self.nodes.get_mut(node as usize) else {
            return;
        };
        let total = |ns: f64| if is_recursive { 0.0 } else { ns };
        counted.calls += 1;
        counted.recursive_calls += u64::from(is_recursive);
        let (duration, own) = (ns(slice.total_ns()), ns(slice.self_ns));
        if slice.is_on_gpu() {
            CallNode::add(&mut counted.cuda, total(duration), own);
            if slice.kind == SliceKind::GpuWork {
                self.about[node as usize].work_ns += own;
            }
        } else {
            CallNode::add(&mut counted.cpu, total(duration), own);
        }
        if let Some((gpu, inside)) = gpu {
            // The call that it is inside of is on this node too.
            let is_part = is_recursive && inside.pair;
            let measured_ns = gpu.total_ns - gpu.reported_ns;
            let total_ns = if is_part { 0.0 } else { measured_ns };
            let with_reported = total_ns + gpu.reported_ns;
            CallNode::add(&mut counted.cuda, with_reported, gpu.self_ns);
            let part = |is_inside: bool| if is_inside { total_ns } else { 0.0 };
            counted.hidden.cuda_ns += part(inside.function);
            counted.hidden.pair_cuda_ns += part(inside.pair);
        }
        if let Some(bytes) = slice.allocated_bytes {
            let sum = counted.allocated_bytes.get_or_insert_default();
            *sum = sum.saturating_add(bytes);
        }
        if let Some(bytes) = slice.device_bytes {
            let sum = counted.device_bytes.get_or_insert_default();
            *sum = sum.saturating_add(bytes);
        }
    }

    fn count_hidden(&mut self, node: u32, slice: &Slice) {
        let hidden = &mut self.nodes[node as usize].hidden;
        hidden.calls += 1;
        if !slice.is_on_gpu() {
            hidden.cpu_ns += ns(slice.duration_ns);
        }
    }

    /// Finds out which nodes around one that has only the work below it will have that work too.
    fn inside_work(&self, node: usize) -> InsideOnGpu {
        let parent = |at: &usize| self.nodes[*at].parent.map(|parent| parent as usize);
        let text = |at: usize| self.about[at].text;
        let caller = |at: usize| parent(&at).map(text);
        let mut inside = InsideOnGpu::default();
        for around in std::iter::successors(Some(node), parent).skip(1) {
            if text(around) == text(node) && self.nodes[around].cuda.is_none() {
                inside.function = true;
                inside.pair |= caller(around) == caller(node);
            }
        }
        inside
    }

    fn finish(mut self) -> CallTree {
        // A node comes after its parent.
        for index in (0..self.nodes.len()).rev() {
            let work_ns = self.about[index].work_ns;
            let is_of_work = work_ns > 0.0 && self.nodes[index].cuda.is_none();
            let inside = if is_of_work {
                self.inside_work(index)
            } else {
                InsideOnGpu::default()
            };
            let node = &mut self.nodes[index];
            if let Some(cuda) = &mut node.cuda {
                // The clocks of kernels and of events differ a little.
                cuda.self_ns = cuda.self_ns.max(0.0);
            }
            if is_of_work {
                CallNode::add(&mut node.cuda, work_ns, 0.0);
                let part = |is_inside: bool| if is_inside { work_ns } else { 0.0 };
                node.hidden.cuda_ns += part(inside.function);
                node.hidden.pair_cuda_ns += part(inside.pair);
            }
            if let Some(parent) = node.parent {
                self.about[parent as usize].work_ns += work_ns;
            }
        }
        CallTree {
            nodes: self.nodes,
            start_unix_ns: self.timeline.start_unix_ns,
            duration_ns: self.timeline.duration_ns,
            is_flat: false,
            non_exhaustive: (),
        }
    }
}
