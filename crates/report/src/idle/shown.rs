//! Which functions a strip shows apart: those in which much of the idle time passed, the most specific first.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::{DeviceSegment, DeviceState, IdleFunction};
use crate::walk::Visit;

/// The most functions that are shown: as many as a reader tells apart.
pub(super) const MOST: usize = 8;

/// A function is shown if its part of the charged idle time is at least one of so many. The first that gives few enough
/// functions counts.
const PARTS: [i64; 3] = [20, 12, 8];

/// What the choice is made from.
pub(super) struct Calls<'c> {
    /// A walk through the calls that idle time is charged to, and those around them.
    pub(super) visits: &'c [Visit],
    /// For each slice, the number of its function.
    pub(super) functions: &'c [u32],
    /// The names and locations of functions. An empty name is never shown.
    pub(super) names: &'c [(&'c str, &'c str)],
}

/// Chooses the functions, the longest first, and notes at each segment which of them it belongs to: the innermost around its
/// call.
pub(super) fn choose(segments: &mut [DeviceSegment], calls: &Calls<'_>) -> Vec<IdleFunction> {
    let is_charged = |segment: &DeviceSegment| {
        let is_host = matches!(segment.state, DeviceState::Host | DeviceState::LaunchCall);
        is_host && !segment.is_before_first
    };
    let mut own: HashMap<u32, i64> = HashMap::new();
    let mut charged = 0_i64;
    for segment in segments.iter().filter(|segment| is_charged(segment)) {
        let length = segment.end_ns.saturating_sub(segment.start_ns);
        charged = charged.saturating_add(length);
        if let Some(call) = segment.call {
            let own = own.entry(call).or_default();
            *own = own.saturating_add(length);
        }
    }
    let mut chosen = Vec::new();
    for parts in PARTS {
        chosen = calls.chosen(&own, charged, parts);
        if chosen.len() <= MOST {
            break;
        }
    }
    chosen.truncate(MOST);
    let times = calls.times(&own, &chosen);
    let time = |function: u32| times.get(&function).map_or(0, |time| time.ns);
    let name = |function: u32| calls.names.get(function as usize).copied();
    chosen.retain(|function| time(*function) > 0);
    chosen.sort_by_key(|function| (Reverse(time(*function)), name(*function)));
    let shown = calls.shown(&chosen);
    for segment in segments.iter_mut().filter(|segment| is_charged(segment)) {
        segment.function = segment.call.and_then(|call| shown.get(&call).copied());
    }
    let functions = chosen.iter().map(|function| {
        let (name, location) = name(*function).unwrap_or_default();
        IdleFunction {
            name: name.to_owned(),
            location: location.to_owned(),
            idle_ns: time(*function),
        }
    });
    functions.collect()
}

/// The idle time of a function, without that of the chosen functions inside of it, and how deep it was called.
#[derive(Clone, Copy, Default)]
struct Time {
    ns: i64,
    depth: usize,
}

/// A call that the walk is in.
struct Frame {
    function: u32,
    sum: i64,
    /// The depth of the call of the same function around it.
    outer: Option<usize>,
    /// The calls from this depth on belong to no chosen function yet.
    free_from: usize,
}

impl Calls<'_> {
    /// Chooses functions until none is left that has one of `parts` parts of the charged time: always the one with the
    /// shortest time, which is the most specific.
    fn chosen(&self, own: &HashMap<u32, i64>, charged: i64, parts: i64) -> Vec<u32> {
        let mut chosen = Vec::new();
        while chosen.len() <= MOST {
            let times = self.times(own, &chosen);
            let name = |function: u32| self.names.get(function as usize).copied();
            let large = times.into_iter().filter(|(function, time)| {
                let is_large = time.ns > 0 && time.ns >= charged / parts;
                let is_named = name(*function).is_some_and(|(name, _)| !name.is_empty());
                is_large && is_named && !chosen.contains(function)
            });
            let next = large
                .min_by_key(|(function, time)| (time.ns, Reverse(time.depth), name(*function)));
            match next {
                Some((function, _)) => chosen.push(function),
                None => break,
            }
        }
        chosen
    }

    /// Returns the idle time of each function: where it is open, and no chosen function inside of it.
    fn times(&self, own: &HashMap<u32, i64>, chosen: &[u32]) -> HashMap<u32, Time> {
        let mut times: HashMap<u32, Time> = HashMap::new();
        let mut open: HashMap<u32, usize> = HashMap::new();
        let mut frames: Vec<Frame> = Vec::new();
        let mut free_from = 0;
        for visit in self.visits {
            match *visit {
                Visit::Enter(index) => {
                    let function = self.functions[index];
                    let call = u32::try_from(index).unwrap_or(u32::MAX);
                    let depth = frames.len();
                    frames.push(Frame {
                        function,
                        sum: own.get(&call).copied().unwrap_or_default(),
                        outer: open.insert(function, depth),
                        free_from,
                    });
                    if chosen.contains(&function) {
                        free_from = depth + 1;
                    }
                }
                Visit::Leave(_) => {
                    let Some(frame) = frames.pop() else { continue };
                    match frame.outer {
                        Some(outer) => open.insert(frame.function, outer),
                        None => open.remove(&frame.function),
                    };
                    free_from = frame.free_from;
                    let is_chosen = chosen.contains(&frame.function);
                    // A call inside of one of the same function is in the time of that.
                    let is_inside = frame.outer.is_some_and(|outer| outer >= free_from);
                    if is_chosen || !is_inside {
                        let time = times.entry(frame.function).or_default();
                        time.ns = time.ns.saturating_add(frame.sum);
                        time.depth = time.depth.max(frames.len());
                    }
                    if let Some(around) = frames.last_mut().filter(|_| !is_chosen) {
                        around.sum = around.sum.saturating_add(frame.sum);
                    }
                }
            }
        }
        times
    }

    /// Returns for each call which of the chosen functions it belongs to.
    fn shown(&self, chosen: &[u32]) -> HashMap<u32, u32> {
        let mut shown = HashMap::new();
        let mut around: Vec<Option<u32>> = Vec::new();
        for visit in self.visits {
            match *visit {
                Visit::Enter(index) => {
                    let place = chosen.iter().position(|it| *it == self.functions[index]);
                    let place = place.and_then(|place| u32::try_from(place).ok());
                    let place = place.or_else(|| around.last().copied().flatten());
                    around.push(place);
                    if let (Some(place), Ok(call)) = (place, u32::try_from(index)) {
                        shown.insert(call, place);
                    }
                }
                Visit::Leave(_) => {
                    around.pop();
                }
            }
        }
        shown
    }
}
