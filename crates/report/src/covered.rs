//! The kernels and copies whose time is in the GPU time of a scope.

use std::collections::HashMap;

use super::timeline::{SliceKind, Timeline};
use super::walk::NONE;

/// The most GPU times around a launch that are looked at.
pub(super) const MAX_DEPTH: usize = 512;

/// Stands for all streams.
const ALL: u32 = NONE;

/// For each slice that is work inside the GPU time of a scope, on the stream of that, returns the innermost call with such
/// a time; [`NONE`] for all others. A call to which streams were bound has the work on all streams. Tables and trees count the time
/// for the scope, and leave such work out: each nanosecond is counted once. `callers` are the calls that slices belong to.
pub(super) fn covered(timeline: &Timeline, callers: &[u32]) -> Vec<u32> {
    let slices = &timeline.slices;
    let mut covered = vec![NONE; slices.len()];
    let streams = streams(timeline);
    let stream_of = |track: u32| streams.get(track as usize).copied();
    // The streams of the GPU times of each call.
    let mut measured: HashMap<u32, Vec<u32>> = HashMap::new();
    for (slice, caller) in slices.iter().zip(callers) {
        if slice.kind == SliceKind::GpuScope
            && *caller != NONE
            && let Some(stream) = stream_of(slice.track)
        {
            let stream = if is_bound(timeline, *caller) {
                ALL
            } else {
                stream
            };
            measured.entry(*caller).or_default().push(stream);
        }
    }
    if measured.is_empty() {
        return covered;
    }
    // The innermost call with a GPU time around each call, or the call itself.
    let mut nearest: Vec<u32> = Vec::with_capacity(slices.len());
    for (index, caller) in (0..).zip(callers) {
        let around = nearest.get(*caller as usize).copied().unwrap_or(NONE);
        let is_measured = measured.contains_key(&index);
        nearest.push(if is_measured { index } else { around });
    }
    for (index, slice) in slices.iter().enumerate() {
        if slice.kind != SliceKind::GpuWork {
            continue;
        }
        let nearest_of = |call: u32| {
            let around = nearest.get(call as usize).copied();
            around.filter(|call| *call != NONE)
        };
        let mut calls = std::iter::successors(nearest_of(callers[index]), |call| {
            nearest_of(callers[*call as usize])
        });
        let stream = stream_of(slice.track);
        let around = calls.by_ref().take(MAX_DEPTH).find(|call| {
            let streams = measured.get(call);
            let is_on = |other: &u32| *other == ALL || Some(*other) == stream;
            streams.is_some_and(|streams| streams.iter().any(is_on))
        });
        covered[index] = around.unwrap_or(NONE);
    }
    covered
}

/// Returns `true` if streams were bound to a call.
pub(super) fn is_bound(timeline: &Timeline, call: u32) -> bool {
    let slice = timeline.slices.get(call as usize);
    let details = slice.and_then(|slice| timeline.details.get(slice.details? as usize));
    details.is_some_and(|details| details.is_bound)
}

/// Returns a number for each track that all tracks of one stream share: the index of the first of them.
pub(super) fn streams(timeline: &Timeline) -> Vec<u32> {
    let mut known = HashMap::new();
    let tracks = (0..).zip(&timeline.tracks);
    tracks
        .map(|(index, track)| {
            let stream = (track.process, track.device, track.rank, track.id);
            *known.entry(stream).or_insert(index)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{Slice, Track, TrackKind};

    fn slice(track: u32, kind: SliceKind, parent: Option<u32>, self_ns: i64) -> Slice {
        Slice {
            track,
            self_ns,
            kind,
            parent,
            ..Slice::default()
        }
    }

    /// A call with a GPU time, another one inside, and work of both.
    fn timeline(kind: SliceKind) -> Timeline {
        use SliceKind::{Call, GpuWork};

        let stream = |id| Track {
            kind: TrackKind::GpuStream,
            device: Some(0),
            id,
            ..Track::default()
        };
        Timeline {
            tracks: vec![Track::default(), stream(7), stream(7), stream(8)],
            slices: vec![
                slice(0, Call, None, 10),
                slice(0, Call, Some(0), 10),
                slice(1, kind, Some(0), 20),
                slice(2, GpuWork, Some(0), 5),
                slice(2, GpuWork, Some(1), 5),
                slice(3, GpuWork, Some(1), 5),
                slice(2, GpuWork, None, 5),
            ],
            ..Timeline::default()
        }
    }

    fn covered_of(timeline: &Timeline) -> Vec<u32> {
        let callers = crate::call_tree::callers(timeline);
        covered(timeline, &callers)
    }

    #[test]
    fn work_is_in_a_gpu_time_around_its_launch_on_the_same_stream() {
        assert_eq!(
            covered_of(&timeline(SliceKind::GpuScope)),
            [NONE, NONE, NONE, 0, 0, NONE, NONE]
        );
    }

    #[test]
    fn a_range_covers_nothing() {
        let covered = covered_of(&timeline(SliceKind::GpuRange));
        assert!(covered.iter().all(|call| *call == NONE));
    }
}
