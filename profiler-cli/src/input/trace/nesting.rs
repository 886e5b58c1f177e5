//! Which span is inside which, on one track.

use std::cmp::Reverse;
use std::collections::HashMap;

use profiler_report::internal::InOrder as _;

use super::collect::MemoryChange;
use super::raw::{Rares, Raw, RawKind};
use crate::lanes::Lanes;

/// No span.
pub(super) const NONE: u32 = u32::MAX;

/// The coarsest times that tools write: whole microseconds.
const MAX_ROUNDING_NS: u64 = 1000;
/// From this time on, floating-point numbers of microseconds are a quarter of one apart: 2⁵⁰ µs.
const SINCE_1970_NS: i64 = (1 << 50) * 1000;

/// The most tracks beside one track, for spans that overlap others.
const MAX_LANES: u32 = 64;

/// The place of a span among the others of its track.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Place {
    /// The span around it on the same track, or the innermost one that contains it; [`NONE`] if there is none.
    pub(super) parent: u32,
    /// The number of the track beside its own, from 1, because it overlaps another span; 0 for its own track;
    /// [`NONE`] if there is no track left.
    pub(super) lane: u32,
    /// The time of the spans directly inside it, in nanoseconds.
    pub(super) inside: i64,
    /// The memory that it used without its children, if it used some: most did not.
    pub(super) memory: Option<Box<MemoryOf>>,
}

/// The memory that a span used without its children.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct MemoryOf {
    /// Bytes allocated on the host.
    pub(super) allocated: Option<u64>,
    /// Bytes allocated on devices less those freed.
    pub(super) device_bytes: Option<i64>,
}

/// Nests the spans of all tracks, and returns their places.
pub(super) fn nest_tracks(raws: &mut [Raw], memory: &mut [MemoryChange]) -> Vec<Place> {
    let none = Place {
        parent: NONE,
        ..Place::default()
    };
    let rounding = rounding(raws);
    let mut places = vec![none; raws.len()];
    let count = u32::try_from(raws.len()).unwrap_or(NONE);
    // A GPU time without length has no place among the work of its stream.
    let is_drawn = |raw: &Raw| raw.kind != RawKind::GpuScope || raw.end > raw.start;
    let mut order: Vec<u32> = (0..count)
        .filter(|index| is_drawn(&raws[*index as usize]))
        .collect();
    order.order_by(|one, other| before(&raws[*one as usize], &raws[*other as usize]));
    memory.order_by_key(|change| (change.track, change.at));
    let mut first = 0;
    while let Some(track) = order.get(first).map(|index| raws[*index as usize].track) {
        let length = order[first..].partition_point(|index| raws[*index as usize].track == track);
        let range = first..first + length;
        let changes = on_track(memory, track);
        let is_future = |index: &u32| raws[*index as usize].kind == RawKind::Future;
        let (futures, others): (Vec<u32>, Vec<u32>) =
            order[range.clone()].iter().copied().partition(is_future);
        nest(raws, &mut places, &others, changes, rounding);
        place_beside(raws, &mut places, &futures);
        first = range.end;
    }
    places
}

fn on_track(memory: &[MemoryChange], track: u32) -> &[MemoryChange] {
    let first = memory.partition_point(|change| change.track < track);
    let length = memory[first..].partition_point(|change| change.track == track);
    &memory[first..first + length]
}

/// Nests spans. All of them are of one track, and so are the changes of memory; `order` is sorted by [`before`], `memory` by time.
///
/// The rule of threads is the rule of PyTorch (`_populate_cpu_children` in `torch/autograd/profiler_util.py`): a span that cannot
/// be inside the open one closes it. A `record_function`, for example, begins inside the Python frame of its own enter call, and
/// ends after it. Nothing is inside a launch that is not counted: its time is the time of the function around. An end may lie
/// `rounding` nanoseconds past the end around it.
///
/// Of two spans that cross on a thread, the shorter is drawn on a track beside; on a stream, the later.
fn nest(
    raws: &mut [Raw],
    places: &mut [Place],
    order: &[u32],
    memory: &[MemoryChange],
    rounding: i64,
) {
    // The ends of these never rise, as each is inside the one before it.
    let mut open: Vec<u32> = Vec::new();
    let mut drawn: Vec<u32> = Vec::new();
    let mut lanes = Lanes::new(MAX_LANES);
    let mut memory = memory.iter().peekable();
    for index in order.iter().copied() {
        let raw = &raws[index as usize];
        let (kind, is_counted) = (raw.kind, !raw.is_not_counted);
        let (start, mut end) = (raw.start, raw.end);
        while let Some(change) = memory.next_if(|change| change.at < start) {
            count_memory(raws, places, &mut open, change);
        }
        close(raws, &mut open, start, end);
        close(raws, &mut drawn, start, end);
        let closes_others = is_counted && !kind.is_on_gpu();
        while closes_others
            && let Some(top) = open.last()
            && !raws[*top as usize].may_enclose(end, rounding)
        {
            open.pop();
        }
        // Only the last may be work.
        let is_work = |index: &u32| raws[*index as usize].kind == RawKind::GpuWork;
        let around = &open[..open.len() - usize::from(open.last().is_some_and(is_work))];
        let around =
            around.partition_point(|around| raws[*around as usize].may_enclose(end, rounding));
        let parent = around.checked_sub(1).map_or(NONE, |at| open[at]);
        places[index as usize].parent = parent;
        if let Some(around) = raws.get(parent as usize) {
            // A range on a stream encloses work, whose time is its own; tables decide which of both they count.
            let is_enclosed = kind == RawKind::GpuWork && around.kind.is_on_gpu();
            let is_innermost = open.last() == Some(&parent);
            if is_innermost {
                end = end.min(around.end);
                raws[index as usize].end = end;
            }
            if is_counted && is_innermost && !is_enclosed {
                let inside = &mut places[parent as usize].inside;
                *inside = inside.saturating_add(end.saturating_sub(start));
            }
        }
        while let Some(top) = drawn.last().copied()
            && !raws[top as usize].may_enclose(end, 0)
        {
            let Raw {
                start: from,
                end: to,
                ..
            } = raws[top as usize];
            let is_longer = to.saturating_sub(from) >= end.saturating_sub(start);
            if is_longer || !closes_others {
                places[index as usize].lane = lanes.take(start, end).unwrap_or(NONE);
                break;
            }
            places[top as usize].lane = lanes.take(from, to).unwrap_or(NONE);
            drawn.pop();
        }
        let is_drawn_here = places[index as usize].lane == 0;
        if is_counted && is_drawn_here {
            drawn.push(index);
        }
        if is_counted && (is_drawn_here || closes_others) {
            open.push(index);
        }
    }
    for change in memory {
        count_memory(raws, places, &mut open, change);
    }
}

impl Raw {
    /// Returns `true` if a span with this end, which begins while this one is open, may be inside it. Work on a stream may
    /// overlap the work before it, and is never a part of it.
    fn may_enclose(&self, end: i64, rounding: i64) -> bool {
        self.kind != RawKind::GpuWork && end.saturating_sub(self.end) <= rounding
    }
}

/// Returns how far an end may lie past the end around it because both were rounded, in nanoseconds: tools that write whole
/// microseconds round all times to a thousand. A floating-point number of microseconds since 1970 is exact to a quarter of one.
fn rounding(raws: &[Raw]) -> i64 {
    let on_threads = raws.iter().filter(|raw| !raw.kind.is_on_gpu());
    let mut times = on_threads.flat_map(|raw| [raw.start, raw.end]);
    let step = times.try_fold(MAX_ROUNDING_NS, |step, time| {
        let step = greatest_common_divisor(step, time.unsigned_abs());
        (step > 1).then_some(step)
    });
    let is_since_1970 = |raw: &Raw| raw.start >= SINCE_1970_NS;
    let least = if raws.iter().any(is_since_1970) {
        250
    } else {
        1
    };
    step.map_or(least, |step| step.cast_signed().max(least))
}

fn greatest_common_divisor(mut one: u64, mut other: u64) -> u64 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

/// Gives spans on threads the parents that the file says they have: those on other threads, and those of scopes whose guards
/// were dropped out of order.
pub(super) fn apply_parents(raws: &[Raw], rares: &Rares, places: &mut [Place]) {
    if raws.iter().all(|raw| rares.of(raw).parent.is_none()) {
        return;
    }
    let id = |raw: &Raw| rares.of(raw).id.unwrap_or(raw.external_id);
    // A launch that is not counted has the external id of the operator around it.
    let is_call = |raw: &Raw| !raw.kind.is_on_gpu() && !raw.is_not_counted && id(raw) != 0;
    let calls = (0..).zip(raws).filter(|(_, raw)| is_call(raw));
    let by_id: HashMap<u64, u32> = calls.map(|(index, raw)| (id(raw), index)).collect();
    for (raw, place) in raws.iter().zip(places) {
        if let Some(parent) = rares.of(raw).parent.filter(|_| !raw.kind.is_on_gpu()) {
            place.parent = by_id.get(&parent).copied().unwrap_or(NONE);
        }
    }
}

/// For each span, returns the innermost one for which `is_wanted` holds, among itself and those around it; [`NONE`] if there
/// is none. A file may say that spans are around each other in a circle: then there is none for those in it.
pub(super) fn innermost(places: &[Place], is_wanted: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut innermost: Vec<Option<u32>> = vec![None; places.len()];
    let mut path = Vec::new();
    let count = u32::try_from(places.len()).unwrap_or(NONE);
    for first in 0..count {
        let mut at = first;
        let found = loop {
            let Some(known) = innermost.get_mut(at as usize) else {
                break NONE;
            };
            match *known {
                Some(found) => break found,
                None if is_wanted(at) => {
                    *known = Some(at);
                    break at;
                }
                None => {
                    *known = Some(NONE);
                    path.push(at);
                    at = places[at as usize].parent;
                }
            }
        };
        for passed in path.drain(..) {
            innermost[passed as usize] = Some(found);
        }
    }
    innermost
        .into_iter()
        .map(|found| found.unwrap_or(NONE))
        .collect()
}

/// Places spans that do not nest, such as futures: those that overlap get tracks beside.
fn place_beside(raws: &[Raw], places: &mut [Place], order: &[u32]) {
    let mut lanes = Lanes::new(MAX_LANES);
    let mut own_end = i64::MIN;
    for index in order.iter().copied() {
        let (start, end) = (raws[index as usize].start, raws[index as usize].end);
        if start >= own_end {
            own_end = end;
        } else {
            places[index as usize].lane = lanes.take(start, end).unwrap_or(NONE);
        }
    }
}

/// Orders spans of a track: those around others come first.
fn before(one: &Raw, other: &Raw) -> std::cmp::Ordering {
    // Identifiers rise with the beginnings of calls, and tell which of two equal spans is the outer one.
    let by_id = || {
        if one.external_id == 0 || other.external_id == 0 {
            std::cmp::Ordering::Equal
        } else {
            one.external_id.cmp(&other.external_id)
        }
    };
    let key = |raw: &Raw| (raw.track, raw.start, Reverse(raw.end));
    key(one).cmp(&key(other)).then_with(by_id)
}

/// Closes what has ended at a time. Something that begins at the end of another is not inside it, unless both are empty.
fn close(raws: &[Raw], open: &mut Vec<u32>, start: i64, end: i64) {
    while let Some(top) = open.last() {
        let top = &raws[*top as usize];
        let is_over = top.end < start || (top.end == start && (end > start || top.start < start));
        if !is_over {
            break;
        }
        open.pop();
    }
}

/// Counts a change of memory for the innermost span at its time.
fn count_memory(raws: &[Raw], places: &mut [Place], open: &mut Vec<u32>, change: &MemoryChange) {
    while open
        .last()
        .is_some_and(|top| raws[*top as usize].end < change.at)
    {
        open.pop();
    }
    let Some(place) = open.last().map(|top| &mut places[*top as usize]) else {
        return;
    };
    if change.device.is_some() {
        let memory = place.memory.get_or_insert_default();
        let bytes = memory.device_bytes.get_or_insert_default();
        *bytes = bytes.saturating_add(change.bytes);
    } else if let Ok(allocated) = u64::try_from(change.bytes) {
        let memory = place.memory.get_or_insert_default();
        let bytes = memory.allocated.get_or_insert_default();
        *bytes = bytes.saturating_add(allocated);
    }
}
