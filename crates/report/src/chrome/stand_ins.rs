//! Which stretches of a stream stand for kernels, in processes whose kernels were not recorded.
//!
//! There scopes are measured, not kernels, but the tools count kernels: TensorBoard's trace plugin adds up the kernels
//! launched by an operator, HTA the busy time of a stream. So each stretch of a stream in which one scope is the
//! innermost is written as one event of the category `kernel` with the scope's name. Each has a launch of length zero
//! in the scope on the CPU; an arrow leads from the scope to the first of them. Together they are exactly the scope's
//! self time, unless scopes of several threads or futures share a stream: then each instant belongs to one scope here,
//! while the tables count it for every open scope. All of these events have `"scope": true`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashSet};

use crate::in_order::InOrder as _;
use crate::timeline::OnGpu;
use crate::{Slice, SliceKind, Timeline, Track};

/// A part of the GPU time of a scope in which no other one of its stream is open inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SelfTimePiece {
    /// The index of the GPU time.
    pub(super) slice: u32,
    pub(super) start: i64,
    pub(super) end: i64,
    /// On the CPU, the end of the previous scope inside the scope, or else the scope's start; `None` without a scope.
    pub(super) launched: Option<i64>,
    /// `true` for the first piece of its GPU time.
    pub(super) is_first: bool,
}

/// For each track, returns `true` if what is on it stands for kernels: those of its process were not recorded.
pub(super) fn tracks_of_stand_ins(timeline: &Timeline, on_gpu: OnGpu<'_>) -> Vec<bool> {
    let work = on_gpu.iter().map(|(_, slice)| slice);
    let work = work.filter(|slice| slice.kind == SliceKind::GpuWork);
    let tracks = work.filter_map(|slice| timeline.tracks.get(slice.track as usize));
    let with_kernels: HashSet<_> = tracks.map(process).collect();
    let tracks = timeline.tracks.iter();
    tracks
        .map(|track| !timeline.has_kernels && !with_kernels.contains(&process(track)))
        .collect()
}

fn process(track: &Track) -> (Option<u64>, u64) {
    (track.rank, track.process)
}

/// Returns the self times of all scopes on streams, of processes without kernels. The pieces of a stream follow each other.
pub(super) fn pieces(timeline: &Timeline, on_gpu: OnGpu<'_>) -> Vec<SelfTimePiece> {
    let are_stand_ins = tracks_of_stand_ins(timeline, on_gpu);
    let mut streams: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for (index, slice) in on_gpu.iter() {
        if slice.kind == SliceKind::GpuScope
            && slice.duration_ns > 0
            && let Some(track) = timeline.tracks.get(slice.track as usize)
            && are_stand_ins[slice.track as usize]
        {
            let stream = (process(track), track.device, track.id);
            streams.entry(stream).or_default().push(index);
        }
    }
    let mut pieces = Vec::new();
    for (_, mut scopes) in streams {
        scopes.order_by_key(|index| {
            let slice = &timeline.slices[*index as usize];
            (slice.start_ns, Reverse(slice.duration_ns))
        });
        let mut sweep = Sweep {
            slices: &timeline.slices,
            open: Vec::new(),
            by_end: BinaryHeap::new(),
            until: i64::MIN,
            pieces: &mut pieces,
        };
        for index in scopes {
            sweep.open(index);
        }
        while sweep.close_next(i64::MAX) {}
    }
    pieces
}

struct OpenScope {
    slice: u32,
    launched: Option<i64>,
    has_piece: bool,
    is_closed: bool,
}

struct Sweep<'s> {
    slices: &'s [Slice],
    /// In the order of opening. Those that are closed are among them until they are last.
    open: Vec<OpenScope>,
    /// The ends of those that are not closed, with their places; the next one first, of equal ones the last opened.
    by_end: BinaryHeap<(Reverse<i64>, usize)>,
    /// Everything before this time has been handed out.
    until: i64,
    pieces: &'s mut Vec<SelfTimePiece>,
}

impl Sweep<'_> {
    fn open(&mut self, index: u32) {
        let slice = &self.slices[index as usize];
        while self.close_next(slice.start_ns) {}
        self.hand_out(slice.start_ns);
        self.by_end.push((Reverse(end(slice)), self.open.len()));
        self.open.push(OpenScope {
            slice: index,
            launched: self.scope_of(index).map(|scope| scope.start_ns),
            has_piece: false,
            is_closed: false,
        });
    }

    /// Returns the scope on the CPU.
    fn scope_of(&self, index: u32) -> Option<&Slice> {
        let parent = self.slices[index as usize].parent?;
        self.slices.get(parent as usize)
    }

    /// Closes the first one that ends up to a time. Returns `false` if there is none.
    fn close_next(&mut self, time: i64) -> bool {
        let next = self.by_end.peek().copied();
        let Some((Reverse(end_of_next), place)) = next.filter(|(end, _)| end.0 <= time) else {
            return false;
        };
        self.by_end.pop();
        let is_innermost = place + 1 == self.open.len();
        if is_innermost {
            self.hand_out(end_of_next);
        }
        let closed = self.open[place].slice;
        self.open[place].is_closed = true;
        while self.open.pop_if(|last| last.is_closed).is_some() {}
        let ended = self.scope_of(closed).map(end).filter(|_| is_innermost);
        if let Some(top) = self.open.last()
            && let (Some(around), Some(ended)) = (self.scope_of(top.slice), ended)
            && (around.start_ns..=end(around)).contains(&ended)
            && let Some(top) = self.open.last_mut()
        {
            top.launched = top.launched.max(Some(ended));
        }
        true
    }

    /// Hands out the time up to `end`, to the scope that was opened last.
    fn hand_out(&mut self, end: i64) {
        let start = self.until;
        self.until = end.max(start);
        let Some(top) = self.open.last_mut().filter(|_| end > start) else {
            return;
        };
        self.pieces.push(SelfTimePiece {
            slice: top.slice,
            start,
            end,
            launched: top.launched,
            is_first: !std::mem::replace(&mut top.has_piece, true),
        });
    }
}

fn end(slice: &Slice) -> i64 {
    slice.start_ns.saturating_add(slice.duration_ns.max(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Extent = (i64, i64);

    /// Creates scopes with their GPU times.
    fn timeline(times: &[(Extent, Extent)]) -> Timeline {
        let slice = |(start, end): Extent, kind, track, parent| Slice {
            track,
            start_ns: start,
            duration_ns: end - start,
            kind,
            parent,
            ..Slice::default()
        };
        let scopes = times.iter();
        let scopes = scopes.map(|(scope, _)| slice(*scope, SliceKind::Call, 0, None));
        let gpu = (0..).zip(times);
        let gpu = gpu.map(|(scope, (_, gpu))| slice(*gpu, SliceKind::GpuScope, 1, Some(scope)));
        Timeline {
            tracks: vec![Track::default(), Track::default()],
            slices: scopes.chain(gpu).collect(),
            ..Timeline::default()
        }
    }

    /// Returns the GPU time, the extent and the launch of each piece.
    fn pieces_of(times: &[(Extent, Extent)]) -> Vec<(usize, Extent, Option<i64>)> {
        let timeline = timeline(times);
        let pieces = pieces(&timeline, timeline.on_gpu());
        let piece = |piece: &SelfTimePiece| {
            let gpu = piece.slice as usize - times.len();
            (gpu, (piece.start, piece.end), piece.launched)
        };
        pieces.iter().map(piece).collect()
    }

    #[test]
    fn a_piece_after_a_child_was_launched_after_the_child() {
        let times = [((0, 90), (100, 50_100)), ((20, 40), (10_000, 20_000))];
        assert_eq!(
            pieces_of(&times),
            [
                (0, (100, 10_000), Some(0)),
                (1, (10_000, 20_000), Some(20)),
                (0, (20_000, 50_100), Some(40)),
            ]
        );
    }

    #[test]
    fn time_without_an_open_scope_belongs_to_none() {
        let times = [((0, 1), (10, 30)), ((2, 3), (50, 55)), ((4, 5), (55, 55))];
        assert_eq!(
            pieces_of(&times),
            [(0, (10, 30), Some(0)), (1, (50, 55), Some(2))]
        );
    }

    #[test]
    fn each_instant_of_scopes_that_overlap_is_handed_out_once() {
        let times = [((0, 1), (0, 100)), ((0, 1), (50, 150))];
        assert_eq!(
            pieces_of(&times),
            [(0, (0, 50), Some(0)), (1, (50, 150), Some(0))]
        );
    }

    #[test]
    fn processes_with_kernels_need_none() {
        let mut timeline = timeline(&[((0, 1), (0, 100))]);
        timeline.tracks.push(Track {
            process: 1,
            ..Track::default()
        });
        let kernel = |track| Slice {
            track,
            kind: SliceKind::GpuWork,
            ..Slice::default()
        };
        timeline.slices.push(kernel(2));
        assert_eq!(
            pieces(&timeline, timeline.on_gpu()).len(),
            1,
            "it is of another process"
        );
        timeline.slices.push(kernel(0));
        assert_eq!(pieces(&timeline, timeline.on_gpu()), []);
        timeline.slices.truncate(2);
        timeline.has_kernels = true;
        assert_eq!(pieces(&timeline, timeline.on_gpu()), [], "none ran");
    }
}
