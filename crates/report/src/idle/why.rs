//! What was so while a device waited: the calls in which threads waited for it, and what other threads ran.

use std::collections::{BTreeMap, HashMap};

use super::account::is_charged;
use super::charged::Charged;
use super::processor::Processors;
use super::segments::{LATE_NS, Piece, union};
use super::threads::Threads;
use super::{DeviceIdle, DeviceState};
use crate::in_order::InOrder as _;
use crate::timeline::{SliceKind, Timeline};
use crate::walk::NONE;
use crate::well_known::is_step_range;

/// A call in which threads waited for a device as it ran out of work.
///
/// An asynchronous copy counts if its call had lasted for 10 µs by then, as it does where the memory is pageable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drained {
    /// The name of the call, such as `cudaStreamSynchronize`.
    pub call: String,
    /// The innermost function around it; `None` if there was none.
    pub scope: Option<String>,
    /// The source location of the function as `file:line`; empty if it is not known.
    pub location: String,
    /// How long the device was idle after that until the next work was launched, in nanoseconds.
    pub idle_ns: i64,
    /// How often that was.
    pub times: u64,
}

/// The times in which one function kept a device waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WaitsOfNamed {
    /// In how many idle times between two works half of its time was, if the longest come first.
    pub half_in: u64,
    /// How many such times the device had, as far as they are charged.
    pub of: u64,
    /// The longest of its times in a call that launched work, in nanoseconds.
    pub longest_call_ns: i64,
    /// How long its thread was on a processor in that time, at least, in nanoseconds: it computed. This and the next two are zero
    /// where it is not known ([`Timeline::processor`]).
    pub running_ns: i64,
    /// How long its thread was ready to run while no processor was free for it, at least, in nanoseconds.
    pub ready_ns: i64,
    /// How long its thread was neither, at least, in nanoseconds: it slept, or waited for a lock, for I/O or for a device.
    pub off_processor_ns: i64,
    /// The functions that other threads of the process ran meanwhile, the longest first: three at most, each for at least a tenth
    /// of that time.
    pub meanwhile: Vec<Meanwhile>,
}

/// A function that other threads ran while one kept a device waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Meanwhile {
    /// The name of the function.
    pub name: String,
    /// The source location as `file:line`; empty if it is not known.
    pub location: String,
    /// How long it was innermost on any of these threads, in nanoseconds.
    pub ns: i64,
}

/// Functions of other threads are listed from this part of the time on, and at most so many.
const MEANWHILE: (f64, usize) = (0.1, 3);

/// So many times of threads are looked at. It bounds what a window of many threads costs.
const MAX_LOOKUPS: usize = 1 << 22;

/// How a function of CUDA or HIP waits for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// It returns when work has finished.
    Always,
    /// It does where memory is pageable, and else returns as fast as a launch.
    IfPageable,
}

fn waiting(name: &str) -> Option<Waiting> {
    let rest = name.strip_prefix("cuda").or(name.strip_prefix("hip"));
    let rest = rest.or(name.strip_prefix("cu"))?;
    let has = |part: &str| rest.contains(part);
    let is_of_it = rest.starts_with(|first: char| first.is_ascii_uppercase());
    match has("Async") {
        _ if !is_of_it => None,
        true => has("Memcpy").then_some(Waiting::IfPageable),
        false => ["Synchronize", "Memcpy", "Free"]
            .into_iter()
            .any(has)
            .then_some(Waiting::Always),
    }
}

/// A call in which a thread waits for a device.
#[derive(Clone, Copy)]
struct WaitCall {
    start: i64,
    end: i64,
    name: u32,
    waiting: Waiting,
    /// The innermost measured call around it, or [`NONE`].
    around: u32,
}

/// The waiting calls of each thread, in the order of their starts.
pub(super) struct WaitCalls<'t> {
    timeline: &'t Timeline,
    of_thread: HashMap<usize, Vec<WaitCall>>,
}

impl<'t> WaitCalls<'t> {
    pub(super) fn of(timeline: &'t Timeline, charged: &Charged<'_>, threads: &Threads) -> Self {
        let names = timeline.names.iter();
        let known: Vec<Option<Waiting>> = names.map(|name| waiting(&name.text)).collect();
        let waiting = |name: u32| known.get(name as usize).copied().flatten();
        // In files of PyTorch, calls of CUDA are calls that tables count.
        let measured = |call: u32| {
            let mut calls = std::iter::successors(Some(call), |call| {
                Some(charged.caller(*call)).filter(|call| *call != NONE)
            });
            let name = |call: &u32| timeline.slices.get(*call as usize).map(|slice| slice.name);
            let outside = calls.find(|call| name(call).is_none_or(|name| waiting(name).is_none()));
            outside.unwrap_or(NONE)
        };
        let mut of_thread: HashMap<usize, Vec<WaitCall>> = HashMap::new();
        let mut add = |track: u32, wait: WaitCall| {
            if let Some(thread) = threads.of_track(track) {
                of_thread.entry(thread).or_default().push(wait);
            }
        };
        for (index, slice) in (0..).zip(&timeline.slices) {
            if slice.kind == SliceKind::Call
                && let Some(waiting) = waiting(slice.name)
            {
                add(
                    slice.track,
                    WaitCall {
                        start: slice.start_ns,
                        end: slice.start_ns.saturating_add(slice.duration_ns.max(0)),
                        name: slice.name,
                        waiting,
                        around: measured(charged.caller(index)),
                    },
                );
            }
        }
        for launch in &timeline.launches {
            if launch.slice.is_none()
                && let Some(waiting) = waiting(launch.name)
            {
                let parent = launch.parent.unwrap_or(NONE);
                let is_poll = timeline
                    .slices
                    .get(parent as usize)
                    .is_some_and(|slice| slice.kind == SliceKind::FuturePoll);
                add(
                    launch.track,
                    WaitCall {
                        start: launch.start_ns,
                        end: launch.start_ns.saturating_add(launch.duration_ns.max(0)),
                        name: launch.name,
                        waiting,
                        around: measured(if is_poll {
                            charged.caller(parent)
                        } else {
                            parent
                        }),
                    },
                );
            }
        }
        for calls in of_thread.values_mut() {
            calls.order_by_key(|call| (call.start, std::cmp::Reverse(call.end)));
        }
        Self {
            timeline,
            of_thread,
        }
    }

    /// Returns the call in which a thread waited as a device ran out of work at the beginning of a piece.
    fn at(&self, piece: &Piece, threads: &Threads) -> Option<&WaitCall> {
        let calls = self.of_thread.get(&threads.of_track(piece.track)?)?;
        let before = calls.partition_point(|call| call.start < piece.start);
        // The call of the driver in one of the runtime may have ended.
        let mut last = calls[..before].iter().rev().take(3);
        let has_waited = |call: &WaitCall| match call.waiting {
            Waiting::Always => true,
            Waiting::IfPageable => piece.start.saturating_sub(call.start) >= LATE_NS,
        };
        // A copy whose own work ends the piece did not wait for what ran before it.
        let is_it = |call: &WaitCall| call.end >= piece.start && call.start != piece.called;
        last.find(|call| is_it(call) && has_waited(call))
    }

    /// Adds up the pieces at whose beginnings the thread was in a waiting call, by this call and the function around it.
    pub(super) fn drained(
        &self,
        pieces: &[Piece],
        charged: &Charged<'_>,
        threads: &Threads,
    ) -> Vec<Drained> {
        let mut sums: BTreeMap<(&str, u32), (i64, u64)> = BTreeMap::new();
        for piece in pieces {
            if let Some(call) = self.at(piece, threads) {
                let name = self.timeline.names.get(call.name as usize);
                let name = name.map_or("(unknown)", |name| &*name.text);
                let (ns, times) = sums
                    .entry((name, charged.text_of(call.around)))
                    .or_default();
                *ns = ns.saturating_add(piece.charged);
                *times += 1;
            }
        }
        let mut drained: Vec<Drained> = sums
            .into_iter()
            .map(|((call, text), (idle_ns, times))| {
                let scope = charged.name(text);
                Drained {
                    call: call.to_owned(),
                    scope: scope.map(|(name, _)| name.to_owned()),
                    location: scope.map_or("", |(_, location)| location).to_owned(),
                    idle_ns,
                    times,
                }
            })
            .collect();
        drained.order_by_key(|drained| std::cmp::Reverse(drained.idle_ns));
        drained
    }
}

/// Returns in how many pieces the function that the verdict names kept the device waiting, and what other threads ran in that
/// time.
pub(super) fn of_named(
    device: &DeviceIdle,
    pieces: &[Piece],
    charged: &Charged<'_>,
    threads: &Threads,
    processors: &Processors,
) -> Option<WaitsOfNamed> {
    let subject = device.subject()?;
    let text = match &subject.charge.name {
        Some(name) => charged.number(name)?,
        None => NONE,
    };
    let inside = charged.calls_of(text, subject.is_inclusive);
    let belongs = |call: Option<u32>| match call {
        None => text == NONE,
        Some(call) => text != NONE && inside.get(call as usize) == Some(&true),
    };
    let mut found = WaitsOfNamed {
        of: pieces.len() as u64,
        ..WaitsOfNamed::default()
    };
    let mut spans: HashMap<u32, Vec<(u32, i64, i64)>> = HashMap::new();
    // How long each piece was, and the part of it in the launch call.
    let mut times: Vec<(i64, i64)> = Vec::new();
    // The times of each thread.
    let mut of_threads: BTreeMap<usize, Vec<(i64, i64)>> = BTreeMap::new();
    let mut lookups = 0_usize;
    let mut last = None;
    let segments = device.segments.iter().filter(|segment| is_charged(segment));
    for segment in segments.filter(|segment| belongs(segment.call)) {
        let place = pieces.partition_point(|piece| piece.end <= segment.start_ns);
        let Some(piece) = pieces.get(place) else {
            continue;
        };
        if last != Some(place) {
            times.push((0, 0));
        }
        last = Some(place);
        if let Some((all, in_call)) = times.last_mut() {
            let length = segment.end_ns.saturating_sub(segment.start_ns);
            *all += length;
            *in_call += i64::from(segment.state == DeviceState::LaunchCall) * length;
        }
        let span = (segment.start_ns, segment.end_ns);
        if let Some(thread) = threads.of_track(piece.track) {
            of_threads.entry(thread).or_default().push(span);
        }
        lookups = lookups.saturating_add(threads.count());
        if lookups > MAX_LOOKUPS {
            spans.clear();
            continue;
        }
        threads.others_during(piece.track, span, |from, to, call| {
            let spans = spans.entry(charged.text_of(call)).or_default();
            spans.push((0, from, to));
        });
    }
    let in_calls = times.iter().map(|(_, in_call)| *in_call);
    found.longest_call_ns = in_calls.max().unwrap_or_default();
    times.order_by_key(|(all, _)| std::cmp::Reverse(*all));
    let mut sum = 0;
    for (all, _) in &times {
        if sum >= subject.ns - sum {
            break;
        }
        sum += all;
        found.half_in += 1;
    }
    for (thread, times) in of_threads {
        let did = processors.at_least(thread, &times);
        found.running_ns = found.running_ns.saturating_add(did.running);
        found.ready_ns = found.ready_ns.saturating_add(did.ready);
        found.off_processor_ns = found.off_processor_ns.saturating_add(did.off);
    }
    let all = subject.ns.max(1) as f64;
    let mut meanwhile: Vec<Meanwhile> = spans
        .into_iter()
        .filter_map(|(text, spans)| {
            let (name, location) = charged
                .name(text)
                .filter(|(name, _)| !is_step_range(name))?;
            Some(Meanwhile {
                name: name.to_owned(),
                location: location.to_owned(),
                ns: union(spans),
            })
        })
        .filter(|meanwhile| meanwhile.ns as f64 >= MEANWHILE.0 * all)
        .collect();
    meanwhile.order_by(|one, other| (other.ns, &one.name).cmp(&(one.ns, &other.name)));
    meanwhile.truncate(MEANWHILE.1);
    found.meanwhile = meanwhile;
    Some(found)
}
