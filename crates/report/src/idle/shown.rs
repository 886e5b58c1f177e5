//! Which functions a strip shows apart: those with much of the busy and idle time, the most specific first.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::charged::{Forest, PathTimes, Times};
use super::{DeviceFunction, DeviceSegment, DeviceState};
use crate::in_order::InOrder as _;
use crate::walk::Visit;

/// The most functions that are shown: as many as a reader tells apart.
pub(super) const MOST: usize = 8;

/// A function is shown if its part of the charged time is at least one of so many. The first that gives few enough
/// functions counts.
const PARTS: [i64; 3] = [20, 12, 8];

/// What the choice is made from.
pub(super) struct Calls<'c> {
    /// The paths of the calls that time is charged to, and those around them.
    pub(super) forest: &'c Forest<'c>,
    /// A walk through the paths, by their places in the forest.
    pub(super) visits: &'c [Visit],
    /// For each path, the number of its last function.
    pub(super) functions: &'c [u32],
    /// The names and locations of functions. An empty name is never shown.
    pub(super) names: &'c [(&'c str, &'c str)],
}

/// Returns `true` for a time that belongs to a function, or to no function: work ran, or idle time between the first work and the
/// last is charged.
pub(super) fn is_of_function(segment: &DeviceSegment) -> bool {
    let is_known = matches!(
        segment.state,
        DeviceState::Busy | DeviceState::Host | DeviceState::LaunchCall
    );
    is_known && !segment.is_before_first
}

/// Chooses the functions, those with the longest idle time first, and notes at each segment which of them it belongs to: the
/// innermost around its call. `times` are those of the segments.
pub(super) fn choose(
    segments: &mut [DeviceSegment],
    calls: &Calls<'_>,
    times: &Times,
) -> Vec<DeviceFunction> {
    let length = |path: &PathTimes| path.busy.saturating_add(path.idle.all);
    let own: Vec<i64> = times.of_paths.iter().map(length).collect();
    let outside = length(&times.outside);
    let all = own.iter().fold(outside, |sum, ns| sum.saturating_add(*ns));
    let mut chosen = Vec::new();
    for parts in PARTS {
        chosen = calls.chosen(&own, all, parts);
        if chosen.len() <= MOST {
            break;
        }
    }
    chosen.truncate(MOST);
    let mut shown = calls.shown(&chosen);
    let functions = chosen.iter().map(|function| {
        let names = calls.names.get(*function as usize);
        let (name, location) = names.copied().unwrap_or_default();
        DeviceFunction {
            name: name.to_owned(),
            location: location.to_owned(),
            ..DeviceFunction::default()
        }
    });
    let mut functions: Vec<DeviceFunction> = functions.collect();
    for (path, shown) in times.of_paths.iter().zip(&shown) {
        let function = shown.and_then(|function| functions.get_mut(function as usize));
        if let Some(function) = function {
            function.busy_ns = function.busy_ns.saturating_add(path.busy);
            function.idle_ns = function.idle_ns.saturating_add(path.idle.all);
        }
    }
    let functions = in_order(functions, &mut shown);
    for segment in segments
        .iter_mut()
        .filter(|segment| is_of_function(segment))
    {
        segment.function = calls.forest.place(segment).and_then(|place| shown[place]);
    }
    functions
}

/// Sorts the functions, and leaves out those whose time all belongs to others inside of them. `shown` has the number of the
/// function of each path.
fn in_order(functions: Vec<DeviceFunction>, shown: &mut [Option<u32>]) -> Vec<DeviceFunction> {
    let functions = (0_u32..).zip(functions);
    let mut functions: Vec<(u32, DeviceFunction)> = functions
        .filter(|(_, function)| function.idle_ns > 0 || function.busy_ns > 0)
        .collect();
    functions.order_by(|(_, one), (_, other)| {
        let longest = (other.idle_ns, other.busy_ns).cmp(&(one.idle_ns, one.busy_ns));
        longest.then_with(|| one.name.cmp(&other.name))
    });
    let places = (0_u32..).zip(&functions);
    let places: HashMap<u32, u32> = places
        .map(|(place, (before, _))| (*before, place))
        .collect();
    for function in shown {
        *function = function.and_then(|before| places.get(&before).copied());
    }
    functions
        .into_iter()
        .map(|(_, function)| function)
        .collect()
}

/// The time of a function, without that of the chosen functions inside of it, and how deep it was called.
#[derive(Clone, Copy, Default)]
struct Time {
    ns: i64,
    depth: usize,
}

/// A path that the walk is in.
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
    fn chosen(&self, own: &[i64], charged: i64, parts: i64) -> Vec<u32> {
        let mut chosen = Vec::new();
        while chosen.len() <= MOST {
            let times = self.times(own, &chosen);
            let large = (0_u32..).zip(times).zip(self.names);
            let large = large.filter(|((function, time), (name, _))| {
                let is_large = time.ns > 0 && time.ns >= charged / parts;
                is_large && !name.is_empty() && !chosen.contains(function)
            });
            let next = large.min_by_key(|((_, time), name)| (time.ns, Reverse(time.depth), **name));
            match next {
                Some(((function, _), _)) => chosen.push(function),
                None => break,
            }
        }
        chosen
    }

    /// Returns the time of each function: where it is open, and no chosen function inside of it.
    fn times(&self, own: &[i64], chosen: &[u32]) -> Vec<Time> {
        let mut times = vec![Time::default(); self.names.len()];
        // The depth of the innermost open call of each function.
        let mut open: Vec<Option<usize>> = vec![None; self.names.len()];
        let mut frames: Vec<Frame> = Vec::new();
        let mut free_from = 0;
        for visit in self.visits {
            match *visit {
                Visit::Enter(place) => {
                    let function = self.functions[place];
                    let depth = frames.len();
                    frames.push(Frame {
                        function,
                        sum: own[place],
                        outer: open[function as usize].replace(depth),
                        free_from,
                    });
                    if chosen.contains(&function) {
                        free_from = depth + 1;
                    }
                }
                Visit::Leave(_) => {
                    let Some(frame) = frames.pop() else { continue };
                    open[frame.function as usize] = frame.outer;
                    free_from = frame.free_from;
                    let is_chosen = chosen.contains(&frame.function);
                    // A call inside of one of the same function is in the time of that.
                    let is_inside = frame.outer.is_some_and(|outer| outer >= free_from);
                    if is_chosen || !is_inside {
                        let time = &mut times[frame.function as usize];
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

    /// Returns for each path which of the chosen functions it belongs to.
    fn shown(&self, chosen: &[u32]) -> Vec<Option<u32>> {
        let mut shown = vec![None; self.functions.len()];
        let mut around: Vec<Option<u32>> = Vec::new();
        for visit in self.visits {
            match *visit {
                Visit::Enter(place) => {
                    let own = chosen.iter().position(|it| *it == self.functions[place]);
                    let own = own.and_then(|own| u32::try_from(own).ok());
                    shown[place] = own.or_else(|| around.last().copied().flatten());
                    around.push(shown[place]);
                }
                Visit::Leave(_) => {
                    around.pop();
                }
            }
        }
        shown
    }
}
