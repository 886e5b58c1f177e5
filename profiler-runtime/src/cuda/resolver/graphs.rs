//! Scopes inside captured graphs: their events are recorded again with each replay.
//!
//! Nothing tells of a replay but its events, which stand elsewhere on the time line afterwards. Replays
//! that follow each other faster than the resolver looks are seen as one.
//!
//! A replay records the events of all scopes that were captured together, and those of one line in the order in
//! which they ended. So one question tells for all of them: where the end that a replay comes to first stands now.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::clock::{clock, now};
use crate::cuda::context::measurement::{GpuMeasurement, Pair};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::driver::{Driver, Event};
use crate::diagnostics::user_code;
use crate::stream_key::StreamKey;

/// Captured scopes whose replays are looked for.
static WATCHED: AtomicUsize = AtomicUsize::new(0);

/// Whether a look of the resolver may find replays.
pub(crate) fn are_watched() -> bool {
    WATCHED.load(Relaxed) > 0
}

/// A graph that was replayed this recently is replayed again soon, and each replay writes over the one before.
const LATELY_NS: f64 = 5e8;
/// A graph that has not run is looked at again when its age has grown by this part: the driver answers each question
/// with an error, and there is no other way to ask.
const PART_OF_AGE: f64 = 1.0 / 8.0;
/// A graph that has not run is looked at at least this often.
const LONGEST_GAP_NS: f64 = 1e9;
/// Below this gap the resolver looks each time it comes by.
const SHORTEST_GAP_NS: f64 = 16e6;

/// The scopes of one context that were captured.
#[derive(Default)]
pub(crate) struct Graphs {
    captured: Vec<Graph>,
    groups: Vec<Group>,
    /// When a replay was seen last, in ticks; zero for never.
    seen: u64,
}

/// A scope that was captured.
struct Graph {
    item: Box<GpuMeasurement>,
    pair: Pair,
    /// The places of the scopes directly inside of it.
    children: Vec<usize>,
    /// Where the end stood after the last replay that was seen, from the anchor.
    last: Option<f64>,
    /// What the last replay that was seen took.
    ns: f64,
    /// Whether a replay of its group was seen, and not yet its own.
    is_due: bool,
}

/// Scopes of one line that were captured together.
struct Group {
    /// The driver's number of the capture; zero where it has none.
    capture: u64,
    stream_key: StreamKey,
    /// Their places, in the order in which they ended: the first is asked for all.
    members: Vec<usize>,
    /// Which other one is asked in the next look.
    turn: usize,
    /// When it was captured, in ticks.
    since: u64,
    /// When it was looked at last, in ticks.
    looked: u64,
    has_run: bool,
}

impl Graphs {
    /// How many there can be, the context bounds.
    pub(crate) fn add(&mut self, item: Box<GpuMeasurement>, pair: Pair) {
        WATCHED.fetch_add(1, Relaxed);
        let place = self.captured.len();
        let (key, inside) = (item.scope.key, item.parent);
        let is_child = |graph: &Graph| graph.item.parent.is_some_and(|around| around.get() == key);
        let all = self.captured.iter().enumerate();
        let children = all
            .filter(|(_, graph)| is_child(graph))
            .map(|(place, _)| place);
        let children = children.collect();
        if let Some(around) = inside {
            let mut all = self.captured.iter_mut();
            if let Some(parent) = all.find(|graph| graph.item.scope.key == around.get()) {
                parent.children.push(place);
            }
        }
        let has_run = self.join_group(item.capture, item.scope.stream_key, place);
        self.captured.push(Graph {
            item,
            pair,
            children,
            last: None,
            ns: 0.0,
            // The graph was launched while this scope was on its way here: the replay that was noticed by the first of
            // the group is one of this scope too.
            is_due: has_run,
        });
    }

    /// Returns whether a replay of the group was read before.
    fn join_group(&mut self, capture: u64, stream_key: StreamKey, place: usize) -> bool {
        let is_it = |group: &&mut Group| {
            capture != 0 && (group.capture, group.stream_key) == (capture, stream_key)
        };
        // A capture that goes on is among the last ones.
        if let Some(group) = self.groups.iter_mut().rev().find(is_it) {
            group.members.push(place);
            group.has_run
        } else {
            self.groups.push(Group::new(capture, stream_key, place));
            false
        }
    }

    /// Looks at none of them any more.
    pub(crate) fn forget(&mut self) {
        // The destructors of their loggers are foreign code.
        let captured = std::mem::take(&mut self.captured);
        for graph in &captured {
            graph.pair.context.retire(&graph.pair);
        }
        self.groups.clear();
        WATCHED.fetch_sub(captured.len(), Relaxed);
        user_code::drop_value(captured);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.captured.is_empty()
    }

    /// Whether replays are to be expected at once.
    pub(crate) fn are_replayed(&self) -> bool {
        self.seen != 0 && age(self.seen) < LATELY_NS
    }

    /// Whether any is to be looked at now.
    pub(crate) fn are_due(&self, is_asked: bool) -> bool {
        self.groups.iter().any(|group| group.is_due(is_asked))
    }

    /// Whether the resolver is to come by at its usual pace.
    pub(crate) fn are_followed(&self) -> bool {
        self.groups.iter().any(Group::is_followed)
    }

    /// Hands each replay since the last time to `seen`. Where somebody has asked for all there is, looks at those too
    /// whose turn has not come.
    pub(crate) fn poll(
        &mut self,
        driver: &Driver,
        anchor: Event,
        is_asked: bool,
        mut seen: impl FnMut(&GpuMeasurement, f64, f64),
    ) {
        for group in 0..self.groups.len() {
            if self.groups[group].is_due(is_asked) {
                self.notice(group, driver, anchor);
                self.read(group, driver, anchor, &mut seen);
            }
        }
    }

    /// Finds out whether there was a replay.
    fn notice(&mut self, place: usize, driver: &Driver, anchor: Event) {
        let group = &mut self.groups[place];
        group.looked = now();
        let first = group.members[0];
        let other = group.next_other();
        let has_moved = |place: usize| self.captured[place].has_moved(driver, anchor);
        if has_moved(first) {
            for member in &self.groups[place].members {
                self.captured[*member].is_due = true;
            }
        // In this order: a replay may come between two questions.
        } else if let Some(other) = other
            && !self.captured[other].is_due
            && has_moved(other)
            && !has_moved(first)
        {
            // What was captured together need not run together: nodes of a graph can be switched off, and depend on
            // conditions.
            self.set_apart(place, other);
        }
    }

    fn set_apart(&mut self, place: usize, member: usize) {
        let group = &mut self.groups[place];
        group.members.retain(|other| *other != member);
        let (capture, stream_key) = (0, group.stream_key);
        self.groups.push(Group {
            looked: now(),
            ..Group::new(capture, stream_key, member)
        });
        self.captured[member].is_due = true;
    }

    /// Reads the replays that are due, as far as the device has come.
    fn read(
        &mut self,
        group: usize,
        driver: &Driver,
        anchor: Event,
        seen: &mut impl FnMut(&GpuMeasurement, f64, f64),
    ) {
        let mut goes_on = None;
        for member in 0..self.groups[group].members.len() {
            let place = self.groups[group].members[member];
            if !self.captured[place].is_due {
                continue;
            }
            let Some(ns) = self.captured[place].replayed(driver, anchor) else {
                if *goes_on.get_or_insert_with(|| self.has_gone_on(group, driver, anchor)) {
                    continue;
                }
                // The device has not come to it, nor to those that follow.
                return;
            };
            self.seen = now();
            self.groups[group].has_run = true;
            let graph = &self.captured[place];
            // Those were read before: they ended before.
            let inside: f64 = graph
                .children
                .iter()
                .map(|child| self.captured[*child].ns)
                .sum();
            seen(&graph.item, ns, (ns - inside).max(0.0));
        }
    }

    /// Whether the device has passed scopes that may follow one that it has not: that one takes no part in this replay.
    fn has_gone_on(&mut self, group: usize, driver: &Driver, anchor: Event) -> bool {
        let group = &mut self.groups[group];
        let probes = [group.members.last().copied(), group.next_other()];
        probes.into_iter().flatten().any(|place| {
            let graph = &self.captured[place];
            graph.is_due && graph.has_moved(driver, anchor)
        })
    }

    /// Has places counted from another anchor.
    pub(crate) fn move_to(&mut self, driver: &Driver, before: Event, after: Option<Event>) {
        for graph in &mut self.captured {
            let end = graph.pair.end;
            // Where it was replayed meanwhile, it stands where no replay was seen.
            let known = graph
                .last
                .filter(|last| driver.distance(before, end) == Some(*last));
            graph.last = known.and_then(|_| driver.distance(after?, end));
        }
    }
}

fn age(since: u64) -> f64 {
    clock().nanoseconds(now().saturating_sub(since) as f64)
}

impl Group {
    fn new(capture: u64, stream_key: StreamKey, member: usize) -> Self {
        Self {
            capture,
            stream_key,
            members: vec![member],
            turn: 0,
            since: now(),
            looked: 0,
            has_run: false,
        }
    }

    /// How long it is left alone, in nanoseconds.
    fn gap(&self) -> f64 {
        if self.has_run {
            return 0.0;
        }
        (PART_OF_AGE * age(self.since)).min(LONGEST_GAP_NS)
    }

    fn is_followed(&self) -> bool {
        self.gap() <= SHORTEST_GAP_NS
    }

    fn is_due(&self, is_asked: bool) -> bool {
        is_asked || self.is_followed() || age(self.looked) >= self.gap()
    }

    /// Each of those that are not asked for all, in turn.
    fn next_other(&mut self) -> Option<usize> {
        let others = self.members.get(1..).filter(|others| !others.is_empty())?;
        self.turn = (self.turn + 1) % others.len();
        others.get(self.turn).copied()
    }
}

impl Drop for Graphs {
    /// Where the thread panicked, nobody looks at them any more.
    fn drop(&mut self) {
        self.forget();
    }
}

impl Graph {
    /// Whether its end stands elsewhere than after the last replay that was seen.
    fn has_moved(&self, driver: &Driver, anchor: Event) -> bool {
        let place = driver.distance(anchor, self.pair.end);
        place.is_some() && place != self.last
    }

    /// The time of a replay that was not seen before, if there is a whole one.
    fn replayed(&mut self, driver: &Driver, anchor: Event) -> Option<f64> {
        let pair = &self.pair;
        // The driver has no answer as long as the device has not passed both.
        let place = || driver.distance(anchor, pair.end);
        let before = place()?;
        if self.last == Some(before) {
            return None;
        }
        let ns = driver.distance(pair.begin, pair.end)?;
        // Another replay may have begun in between.
        if ns < 0.0 || place() != Some(before) {
            return None;
        }
        self.last = Some(before);
        self.ns = ns;
        self.is_due = false;
        Some(ns)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeMap;
    use std::ffi::{CStr, c_void};
    use std::num::NonZero;

    use super::*;
    use crate::cuda::context::Context;

    const ANCHOR: usize = 1;

    thread_local! {
        /// Where the events stand, in milliseconds.
        static TIMES: RefCell<BTreeMap<usize, f32>> = const { RefCell::new(BTreeMap::new()) };
        static QUESTIONS: Cell<u32> = const { Cell::new(0) };
    }

    extern "system" fn elapsed(ms: *mut f32, from: usize, to: usize) -> u32 {
        QUESTIONS.set(QUESTIONS.get() + 1);
        TIMES.with_borrow(|times| match (times.get(&from), times.get(&to)) {
            (Some(from), Some(to)) => {
                // SAFETY: who asks has room for the answer.
                unsafe { *ms = to - from };
                0
            }
            _ => 400,
        })
    }

    extern "system" fn refuses() -> u32 {
        801
    }

    fn driver() -> Driver {
        let find = |name: &CStr| {
            let function = match name.to_bytes() {
                b"cuEventElapsedTime" => elapsed as *const () as *mut c_void,
                _ => refuses as *const () as *mut c_void,
            };
            Some(function)
        };
        // SAFETY: nothing but elapsed times is asked for.
        unsafe { Driver::read(find) }.expect("it has all functions")
    }

    /// The two events of a scope.
    fn events(key: u64) -> [usize; 2] {
        let key = usize::try_from(key).expect("it is small");
        [10 * key, 10 * key + 1]
    }

    /// A scope that was captured in a capture, inside of another one or of none.
    fn captured(graphs: &mut Graphs, context: &'static Context, key: u64, inside: u64) {
        let [begin, end] = events(key).map(Event::for_test);
        let pair = Pair::for_test(context, begin, end);
        let mut item = GpuMeasurement::new(None);
        item.scope.key = key;
        item.parent = NonZero::new(inside);
        item.capture = 7;
        graphs.add(item, pair);
    }

    fn replay(key: u64, times: [f32; 2]) {
        TIMES.with_borrow_mut(|all| all.extend(events(key).into_iter().zip(times)));
    }

    /// The keys, times and self times in microseconds of what was seen.
    fn seen(graphs: &mut Graphs) -> Vec<(u64, u32, u32)> {
        let mut seen = Vec::new();
        graphs.poll(&driver(), Event::for_test(ANCHOR), true, |item, ns, own| {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "they are small"
            )]
            seen.push((
                item.scope.key,
                (ns / 1e3).round() as u32,
                (own / 1e3).round() as u32,
            ));
        });
        seen
    }

    #[test]
    fn one_is_asked_for_all_and_those_inside_are_no_time_of_its_own() {
        let (mut graphs, context) = (Graphs::default(), Context::for_test());
        captured(&mut graphs, context, 2, 1);
        captured(&mut graphs, context, 3, 1);
        captured(&mut graphs, context, 1, 0);
        TIMES.with_borrow_mut(|times| times.insert(ANCHOR, 0.0));
        assert_eq!(seen(&mut graphs), []);
        for again in 0..2_u8 {
            let at = 10.0 * f32::from(again);
            replay(1, [at + 1.0, at + 8.0]);
            replay(2, [at + 1.0, at + 3.0]);
            replay(3, [at + 4.0, at + 5.0]);
            let all = [(2, 2_000, 2_000), (3, 1_000, 1_000), (1, 7_000, 4_000)];
            assert_eq!(seen(&mut graphs), all);
            QUESTIONS.set(0);
            assert_eq!(seen(&mut graphs), []);
            assert_eq!(QUESTIONS.get(), 2, "the first, and another one");
        }
    }

    #[test]
    fn the_device_may_be_at_work_on_the_rest() {
        let (mut graphs, context) = (Graphs::default(), Context::for_test());
        (1..=9).for_each(|key| captured(&mut graphs, context, key, 0));
        TIMES.with_borrow_mut(|times| times.insert(ANCHOR, 0.0));
        replay(1, [1.0, 2.0]);
        replay(2, [2.0, 3.0]);
        assert_eq!(seen(&mut graphs), [(1, 1_000, 1_000), (2, 1_000, 1_000)]);
        QUESTIONS.set(0);
        assert_eq!(seen(&mut graphs), []);
        assert!(QUESTIONS.get() <= 6, "asked {} times", QUESTIONS.get());
        (3..=9).for_each(|key| replay(key, [3.0, 4.0]));
        assert_eq!(seen(&mut graphs).len(), 7);
    }

    #[test]
    fn those_that_arrive_after_their_replay_was_noticed_are_seen() {
        let (mut graphs, context) = (Graphs::default(), Context::for_test());
        (1..=2).for_each(|key| captured(&mut graphs, context, key, 0));
        TIMES.with_borrow_mut(|times| times.insert(ANCHOR, 0.0));
        (1..=5).for_each(|key| replay(key, [1.0, 2.0]));
        assert_eq!(seen(&mut graphs).len(), 2);
        (3..=5).for_each(|key| captured(&mut graphs, context, key, 0));
        let late = [3, 4, 5].map(|key| (key, 1_000, 1_000));
        assert_eq!(seen(&mut graphs), late);
        assert_eq!(seen(&mut graphs), []);
    }

    #[test]
    fn what_runs_apart_from_what_it_was_captured_with_is_seen() {
        let (mut graphs, context) = (Graphs::default(), Context::for_test());
        (1..=4).for_each(|key| captured(&mut graphs, context, key, 0));
        TIMES.with_borrow_mut(|times| times.insert(ANCHOR, 0.0));
        // The first is switched off.
        let runs = |graphs: &mut Graphs, at: f32| -> Vec<u64> {
            (2..=4).for_each(|key| replay(key, [at, at + 0.5]));
            let mut keys: Vec<_> = (0..4)
                .flat_map(|_| seen(graphs))
                .map(|(key, ..)| key)
                .collect();
            keys.sort_unstable();
            keys
        };
        assert_eq!(runs(&mut graphs, 1.0), [2, 3, 4]);
        assert_eq!(runs(&mut graphs, 2.0), [2, 3, 4]);
        // One in the middle is.
        replay(1, [3.0, 4.0]);
        replay(2, [3.0, 4.0]);
        replay(4, [3.0, 4.0]);
        let keys: Vec<_> = (0..4)
            .flat_map(|_| seen(&mut graphs))
            .map(|(key, ..)| key)
            .collect();
        assert_eq!(keys.len(), 3, "{keys:?}");
    }
}
