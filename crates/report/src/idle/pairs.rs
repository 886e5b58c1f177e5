//! What event pairs say of a device of which no kernels were recorded.

use std::collections::{BTreeMap, HashMap};

use super::account::{device_key, sums};
use super::charged::Charged;
use super::gaps::Gaps;
use super::segments::{Work, segments, union};
use super::threads::Threads;
use super::{DeviceIdle, IdleCharge};
use crate::call_tree;
use crate::reported::is_reported;
use crate::timeline::{Launch, Slice, SliceKind, Timeline, Track};
use crate::walk::NONE;

/// What the devices of a window without kernels did, as far as the event pairs of its scopes tell: [`Timeline::gpu_pairs`].
///
/// A pair of events does not say how much of the time between them the device worked. So there are three states:
///
/// - *busy*: in a pair of a call that returned before its work ended, and in which no other pair was;
/// - *host-paced*: in other pairs, since the device waited for launches there, or between the pairs inside;
/// - *idle*: in no pair.
///
/// Times that the program reported (`Handle::report_device_time`) are no event pairs, and are left out.
///
/// # Examples
///
/// ```
/// # let timeline = profiler_report::Timeline::default();
/// for device in &timeline.gpu_pairs().devices {
///     println!("{}", device.verdict());
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct GpuPairs {
    /// The devices with event pairs, by rank and ordinal. There are none if kernels were recorded: [`Timeline::gpu_idle`] knows
    /// more then.
    pub devices: Vec<DevicePairs>,
}

/// What one device did in a window without kernels. Times are in nanoseconds; those of the three states are the window.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DevicePairs {
    /// The rank of the process that used it.
    pub rank: Option<u64>,
    /// Its ordinal in that process.
    pub device: Option<u32>,
    /// Its name; empty if it is not known.
    pub device_name: String,
    /// How long it worked.
    pub busy_ns: i64,
    /// How long it worked and waited for the host, in parts that are not known.
    pub host_paced_ns: i64,
    /// How long it was in no pair.
    pub idle_ns: i64,
    /// The function in whose pairs it was host-paced longest, without the pairs inside.
    pub longest_paced: Option<String>,
    /// The GPU times that are left out, because it is not known when they began, or because they are sums of several.
    pub unplaced: u64,
    /// How long it was idle before the first pair, and after the last.
    pub(super) before_first_ns: i64,
    pub(super) after_last_ns: i64,
    /// The account of the times between pairs.
    pub(super) account: DeviceIdle,
}

impl DevicePairs {
    /// Returns how long the window is.
    #[must_use]
    pub fn window_ns(&self) -> i64 {
        self.busy_ns + self.host_paced_ns + self.idle_ns
    }

    /// Returns how long it is from the first pair to the end of the last.
    pub(super) fn working_ns(&self) -> i64 {
        self.window_ns() - self.before_first_ns - self.after_last_ns
    }

    /// Returns the functions that kept the device waiting between its first pair and its last, the longest inclusive time
    /// first. They are those of the threads whose pairs ended the idle times.
    #[must_use]
    pub fn charges(&self) -> &[IdleCharge] {
        &self.account.charges
    }
}

/// The time between the two events of a call.
#[derive(Clone, Copy)]
struct Pair {
    start: i64,
    end: i64,
    /// The slice, and its call; [`NONE`] for no call.
    slice: usize,
    call: u32,
}

pub(super) fn of_timeline(timeline: &Timeline) -> GpuPairs {
    let slices = &timeline.slices;
    let is = |kind| slices.iter().any(|slice| slice.kind == kind);
    if timeline.has_kernels || is(SliceKind::GpuWork) || !is(SliceKind::GpuScope) {
        return GpuPairs::default();
    }
    let callers = call_tree::callers(timeline);
    let text = |slice: &Slice| {
        let name = timeline.names.get(slice.name as usize);
        name.map(|name| &*name.text)
    };
    let mut has_inner = vec![false; slices.len()];
    let mut devices: BTreeMap<_, (&Track, Vec<Pair>, u64)> = BTreeMap::new();
    for (index, slice) in slices.iter().enumerate() {
        let track = timeline.tracks.get(slice.track as usize);
        let Some(track) = track.filter(|_| slice.kind == SliceKind::GpuScope) else {
            continue;
        };
        let call = callers[index];
        if is_reported(timeline, slice, call) {
            continue;
        }
        let around = |call: u32| callers.get(call as usize).copied().unwrap_or(NONE);
        let mut outer = around(call);
        while let Some(known @ false) = has_inner.get_mut(outer as usize) {
            *known = true;
            outer = around(outer);
        }
        let device = devices.entry(device_key(track));
        let (_, pairs, unplaced) = device.or_insert_with(|| (track, Vec::new(), 0));
        if slice.is_placed() {
            pairs.push(Pair {
                start: slice.start_ns,
                end: slice.start_ns.saturating_add(slice.duration_ns.max(0)),
                slice: index,
                call,
            });
        } else {
            *unplaced += 1;
        }
    }
    let threads = Threads::of(timeline, &callers);
    let gaps = Gaps::default();
    let charged = Charged::of(timeline, &callers);
    let mut seen = Vec::new();
    let devices = devices.into_values().map(|(track, mut pairs, unplaced)| {
        pairs.retain(|pair| pair.start < pair.end);
        let all = || pairs.iter();
        let first = all().map(|pair| pair.start).min().unwrap_or(0);
        let end = all().map(|pair| pair.end).max().unwrap_or(0);
        let window = (first.min(0), end.max(timeline.duration_ns));
        // The work of a call that returned earlier than its pair ended kept the device busy, unless other pairs were inside.
        let is_busy = |pair: &&Pair| {
            let call = slices.get(pair.call as usize);
            call.is_some_and(|call| call.duration_ns < slices[pair.slice].total_ns())
                && !has_inner[pair.call as usize]
        };
        let span = |pair: &Pair| (0, pair.start, pair.end);
        let busy_ns = union(all().filter(is_busy).map(span).collect());
        let in_pairs = union(all().map(span).collect());
        let paced = all().filter(|pair| !is_busy(pair));
        let paced = paced.map(|pair| &slices[pair.slice]);
        let paced = paced.map(|slice| (text(slice).unwrap_or("(unknown)"), slice.self_ns));
        // An event is recorded as its call begins.
        let launches: Vec<Option<Launch>> = all()
            .map(|pair| {
                let call = slices.get(pair.call as usize)?;
                Some(Launch {
                    track: call.track,
                    start_ns: call.start_ns,
                    ..Launch::default()
                })
            })
            .collect();
        let works = all().zip(&launches).map(|(pair, launch)| Work {
            start: pair.start,
            end: pair.end,
            launch: launch.as_ref(),
            call: None,
            is_kernel: true,
        });
        let cut = segments(works.collect(), window, gaps.of_rank(None), &threads);
        let forest = charged.forest(&cut.segments, &mut seen);
        DevicePairs {
            rank: track.rank,
            device: track.device,
            device_name: track.device_name.clone(),
            busy_ns,
            host_paced_ns: in_pairs.saturating_sub(busy_ns),
            idle_ns: window.1.saturating_sub(window.0).saturating_sub(in_pairs),
            longest_paced: longest(paced),
            unplaced,
            before_first_ns: first.saturating_sub(window.0),
            after_last_ns: window.1.saturating_sub(end),
            account: sums(&cut.segments, &charged, &forest).0,
        }
    });
    GpuPairs {
        devices: devices.collect(),
    }
}

/// Returns the name with the longest sum of times; `None` if it has none.
fn longest<'n>(times: impl Iterator<Item = (&'n str, i64)>) -> Option<String> {
    let mut sums: HashMap<&str, i64> = HashMap::new();
    for (name, ns) in times {
        let sum = sums.entry(name).or_default();
        *sum = sum.saturating_add(ns.max(0));
    }
    let sums = sums.into_iter().filter(|(_, ns)| *ns > 0);
    let longest = sums.max_by_key(|(name, ns)| (*ns, std::cmp::Reverse(*name)));
    longest.map(|(name, _)| name.to_owned())
}
