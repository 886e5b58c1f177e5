//! Averaging a time line.

use std::collections::HashMap;
use std::sync::Arc;

use super::KeyAverages;
use super::group::Groups;
use super::tally::{Call, CallGpuTime, Edges, Tally, ns};
use super::{unlinked, unnamed};
use crate::call_tree::callers;
use crate::covered::{covered, is_bound, streams};
use crate::group_by::GroupBy;
use crate::idle;
use crate::kernels::{AllKernels, of_timeline};
use crate::reported::is_reported;
use crate::row::{MemoryStats, OwnMemory};
use crate::share::{share_cpu, share_cuda};
use crate::sort::SortKey;
use crate::timeline::{Slice, SliceDetails, SliceKind, Timeline};
use crate::walk::{NONE, Visit, Walk};

/// How a time line was measured, as far as it is known.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The note below a table without rows, if no other says why.
    pub when_empty: Option<&'static str>,
    /// Calls on the CPU that are shorter are too short to be timed individually, in nanoseconds.
    pub shortest_ns: f64,
    /// The time that a scope takes to have its GPU time recorded, outside of its time on the CPU, in nanoseconds.
    pub gpu_cost_ns: f64,
    /// `true` if the program can name streams, and link calls on other threads with their callers.
    pub has_handles: bool,
    /// What a reader of the kernels must know: why there are none, or what is missing of them.
    pub kernel_notes: Vec<String>,
}

impl Default for Measured {
    fn default() -> Self {
        Self {
            when_empty: Some("nothing began and ended in the time line"),
            shortest_ns: 0.0,
            gpu_cost_ns: 0.0,
            has_handles: false,
            kernel_notes: Vec::new(),
        }
    }
}

impl Timeline {
    /// Averages the scopes of the time line over all calls of the same name.
    ///
    /// A kernel or copy inside the GPU time of a scope is counted there. Where the profiler recorded kernels
    /// ([`has_kernels`](Self::has_kernels)), a call without such a time has the sum of the kernels and copies that it launched as
    /// its GPU self time. Any other one has a row of its own. The time of both is in the GPU total of all functions around the
    /// launch, as far as these have no GPU time of their own. Ranges on streams are in
    /// no total; [`Row::gpu_ranges`](crate::Row::gpu_ranges) has their length.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_report::{Slice, SliceName, Timeline, Track};
    ///
    /// let mut timeline = Timeline::default();
    /// timeline.tracks.push(Track::default());
    /// let mut name = SliceName::default();
    /// name.text = "forward".into();
    /// timeline.names.push(name);
    /// let mut slice = Slice::default();
    /// (slice.duration_ns, slice.self_ns) = (1_500, 1_500);
    /// timeline.slices.push(slice);
    ///
    /// let averages = timeline.key_averages();
    /// let row = averages.row("forward").expect("it was called");
    /// assert_eq!((row.calls, averages.self_cpu_time_total_ns), (1, Some(1_500.0)));
    /// ```
    #[must_use]
    pub fn key_averages(&self) -> KeyAverages {
        self.key_averages_by(GroupBy::new())
    }

    /// Averages the scopes of the time line, with separate rows for different input shapes or enclosing scopes.
    ///
    /// The shapes are those of [`shapes`](Self::shapes); a text there that is no list of shapes counts as none. Kernels and
    /// copies that have rows have no shapes. The enclosing scopes are those that the call
    /// [recorded](SliceDetails::call_stack), or else those of the time line.
    #[must_use]
    pub fn key_averages_by(&self, by: GroupBy) -> KeyAverages {
        gather(self, by, &Measured::default())
    }
}

/// Averages a time line.
pub fn gather(timeline: &Timeline, by: GroupBy, measured: &Measured) -> KeyAverages {
    let callers = callers(timeline);
    let devices = idle::devices(timeline, &callers);
    of_devices(timeline, by, measured, &callers, &devices)
}

/// Averages a time line, whose calls have the callers `callers`, and whose devices did `devices`.
pub(crate) fn of_devices(
    timeline: &Timeline,
    by: GroupBy,
    measured: &Measured,
    callers: &[u32],
    devices: &idle::Devices<'_>,
) -> KeyAverages {
    let slices = &timeline.slices;
    let polled = polled(timeline, callers);
    let texts = numbers(timeline);
    let text_of = |slice: &Slice| texts.get(slice.name as usize).copied().unwrap_or(NONE);
    let covered = covered(timeline, callers);
    let launched = launched(timeline, callers, &covered);
    let gpu = gpu_times(timeline, callers, &launched, measured.gpu_cost_ns);
    let is_call = |index: usize| match slices[index].kind {
        SliceKind::Call | SliceKind::AsyncCall => true,
        SliceKind::GpuWork => launched[index] == Launched::WithRow,
        SliceKind::FuturePoll | SliceKind::GpuRange => false,
        // It belongs to the call of its parent.
        SliceKind::GpuScope => callers[index] == NONE,
    };
    let mut groups = Groups::new(timeline, callers, &texts, by);
    let row_of = |index: usize| is_call(index).then(|| groups.of_call(index));
    let row_of: Vec<Option<usize>> = (0..slices.len()).map(row_of).collect();
    let ranges = ranges(timeline, callers, &texts, &row_of, &mut groups);
    let replays: Vec<usize> = timeline
        .replays
        .iter()
        .map(|replay| groups.of_replay(replay.name))
        .collect();
    let mut rows = groups.into_rows();
    let mut tallies = vec![Tally::default(); rows.len()];
    let mut edges = Edges::default();
    for visit in Walk::new(callers, is_call) {
        let (Visit::Enter(index) | Visit::Leave(index)) = visit;
        let Some(tally) = row_of[index].and_then(|row| tallies.get_mut(row)) else {
            continue;
        };
        let slice = &slices[index];
        let details = details(timeline, slice);
        let call = call_of(slice, details, polled[index], gpu[index]);
        let caller = slices.get(callers[index] as usize).map_or(NONE, text_of);
        let edge = edges.between(caller, text_of(slice));
        if visit == Visit::Enter(index) {
            tally.enter(&call);
            edge.enter(&call);
        } else {
            let is_outermost = tally.leave(&call);
            if let Some(details) = details {
                count_memory(slice, details, is_outermost, &mut tally.memory);
            }
            edge.leave(&call);
        }
    }
    // As long as the time line each, and what follows takes memory too.
    drop((polled, gpu, launched, row_of));
    for (replay, row) in timeline.replays.iter().zip(replays) {
        tallies[row].replay(ns(replay.duration_ns), ns(replay.self_ns));
    }
    let busy: Vec<f64> = tallies.iter().map(|tally| tally.sums.cpu()[1]).collect();
    for (row, tally) in rows.iter_mut().zip(tallies) {
        tally.finish(row, measured.shortest_ns);
    }
    for (row, ns) in ranges {
        rows[row].gpu_ranges.get_or_insert_default().add(ns);
    }
    let edges = edges.finish(|name| text(timeline, name));
    let kernels = of_timeline(timeline, callers, devices, &texts, &measured.kernel_notes);
    let kernels = kernels.map(|kernels| AllKernels {
        kernels,
        rows: rows.len(),
    });
    if let Some(kernels) = kernels.as_ref().filter(|_| by == GroupBy::new()) {
        kernels.judge(&mut rows);
    }
    if by == GroupBy::new() {
        devices.sums(timeline, callers).fill(&mut rows);
    }
    let self_cpu = share_cpu(&mut rows, |index, _| busy[index]);
    let self_cuda = share_cuda(&mut rows);
    let mut notes = missing(timeline);
    if measured.has_handles {
        notes.extend(unlinked::note(timeline, callers, &texts));
        notes.extend(unnamed::note(timeline, callers, &texts, &covered));
    }
    if rows.is_empty() {
        notes.extend(measured.when_empty.map(str::to_owned));
    }
    let averages = KeyAverages {
        row_limit: None,
        rows,
        self_cpu_time_total_ns: self_cpu,
        self_cuda_time_total_ns: self_cuda,
        by,
        edges: Some(edges.into()),
        gpus: Vec::new(),
        kernels: kernels.map(Arc::new),
        notes,
    };
    averages.sort_by(if self_cpu.is_some() {
        SortKey::CpuTimeTotal
    } else {
        SortKey::CudaTimeTotal
    })
}

/// Returns the row and the length of each range on a stream. It is in the row of the call that it is of, if the time line has
/// that, or else in one of its own.
fn ranges(
    timeline: &Timeline,
    callers: &[u32],
    texts: &[u32],
    row_of: &[Option<usize>],
    groups: &mut Groups<'_>,
) -> Vec<(usize, f64)> {
    let text_of = |slice: &Slice| texts.get(slice.name as usize);
    let slices = timeline.slices.iter().enumerate();
    let ranges = slices.filter(|(_, slice)| slice.kind == SliceKind::GpuRange);
    let ranges = ranges.map(|(index, slice)| {
        let call = callers[index] as usize;
        let has_its_name = |call: &&Slice| text_of(call) == text_of(slice);
        let of_call = timeline.slices.get(call).filter(has_its_name);
        let row = of_call.and_then(|_| row_of[call]);
        let row = row.unwrap_or_else(|| groups.of_call(index));
        (row, ns(slice.duration_ns))
    });
    ranges.collect()
}

/// Returns the number of the text of each name: several names may have one text.
fn numbers(timeline: &Timeline) -> Vec<u32> {
    let mut known: HashMap<&str, u32> = HashMap::new();
    let names = (0..).zip(&timeline.names);
    names
        .map(|(index, name)| *known.entry(&name.text).or_insert(index))
        .collect()
}

fn text(timeline: &Timeline, name: u32) -> String {
    let name = timeline.names.get(name as usize);
    name.map_or_else(String::new, |name| name.text.to_string())
}

fn details<'t>(timeline: &'t Timeline, slice: &Slice) -> Option<&'t SliceDetails> {
    timeline.details.get(slice.details? as usize)
}

/// Where the time of a slice counts, if it is work on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Launched {
    /// In the GPU time of a scope, or nowhere: it is no work.
    Covered,
    /// In the GPU self time of the call that launched it.
    InCall,
    /// In a row of its own.
    WithRow,
}

/// Returns where the time of each slice counts. In files of other profilers, all work has rows, as they show it.
fn launched(timeline: &Timeline, callers: &[u32], covered: &[u32]) -> Vec<Launched> {
    let slices = &timeline.slices;
    let mut is_measured = vec![false; slices.len()];
    for (slice, caller) in slices.iter().zip(callers) {
        if slice.kind == SliceKind::GpuScope
            && let Some(is_measured) = is_measured.get_mut(*caller as usize)
        {
            *is_measured = true;
        }
    }
    let of = |(index, slice): (usize, &Slice)| {
        if slice.kind != SliceKind::GpuWork || covered[index] != NONE {
            return Launched::Covered;
        }
        let has_time = is_measured.get(callers[index] as usize);
        // That of its own stream does not contain work on others.
        match has_time {
            Some(false) if timeline.has_kernels => Launched::InCall,
            _ => Launched::WithRow,
        }
    };
    slices.iter().enumerate().map(of).collect()
}

/// Returns the GPU time of each call: that of its scope, or else the sum of the work that it and the calls inside launched.
fn gpu_times(
    timeline: &Timeline,
    callers: &[u32],
    launched_as: &[Launched],
    cost_ns: f64,
) -> Vec<Option<CallGpuTime>> {
    let slices = &timeline.slices;
    let streams = streams(timeline);
    let mut measured: Vec<Option<CallGpuTime>> = vec![None; slices.len()];
    // The sums of all work of each call, and of that which counts in the call itself.
    let mut launched: Vec<Option<f64>> = vec![None; slices.len()];
    let mut own = vec![0.0; slices.len()];
    for ((index, slice), caller) in slices.iter().enumerate().zip(callers) {
        let belongs_to = match slice.kind {
            SliceKind::GpuWork => {
                let ns = ns(slice.duration_ns);
                let caller = *caller as usize;
                if launched_as[index] == Launched::Covered {
                    continue;
                }
                if let Some(around) = launched.get_mut(caller) {
                    *around.get_or_insert_default() += ns;
                }
                if launched_as[index] == Launched::InCall {
                    own[caller] += ns;
                    continue;
                }
                index
            }
            SliceKind::GpuScope if *caller == NONE => index,
            SliceKind::GpuScope => *caller as usize,
            _ => continue,
        };
        let is_reported = is_reported(timeline, slice, *caller);
        let is_of_call = slice.kind == SliceKind::GpuScope && *caller != NONE && !is_reported;
        // Before a stream was bound, the call may have done anything.
        let is_judged = is_of_call && !is_bound(timeline, *caller);
        let is_launch_bound = is_judged.then(|| {
            // Events are recorded outside the two clock readings: that adds to the launch time, as in the statistics.
            let launching = ns(slices[belongs_to].duration_ns) + cost_ns;
            launching >= ns(slice.total_ns())
        });
        let before = measured[belongs_to].filter(|time| time.is_measured || is_reported);
        let reported = measured[belongs_to].map_or(0.0, |time| time.reported);
        let mut time = before.unwrap_or(CallGpuTime {
            ns: 0.0,
            own: 0.0,
            // A function may have the name of the kernel that it launches, whose time is then in its own.
            stream: if slice.kind == SliceKind::GpuWork {
                NONE
            } else {
                streams
                    .get(slice.track as usize)
                    .copied()
                    .unwrap_or(slice.track)
            },
            is_launch_bound,
            is_measured: !is_reported,
            reported,
        });
        if is_reported {
            time.reported += ns(slice.total_ns());
        } else {
            time.ns += ns(slice.total_ns());
            time.own += ns(slice.self_ns);
        }
        measured[belongs_to] = Some(time);
    }
    // A call comes after its caller.
    for index in (0..slices.len()).rev() {
        let caller = callers[index] as usize;
        if let Some(time) = launched[index]
            && caller < index
        {
            *launched[caller].get_or_insert_default() += time;
        }
    }
    let sums = launched.into_iter().zip(own).map(|(launched, own)| {
        launched.map(|ns| CallGpuTime {
            ns,
            own,
            stream: NONE,
            is_launch_bound: None,
            is_measured: true,
            reported: 0.0,
        })
    });
    measured
        .into_iter()
        .zip(sums)
        .map(|(measured, sum)| measured.or(sum))
        .collect()
}

/// Returns the time of the polls of each future that the time line has.
fn polled(timeline: &Timeline, callers: &[u32]) -> Vec<i64> {
    let mut polled = vec![0_i64; timeline.slices.len()];
    for (slice, caller) in timeline.slices.iter().zip(callers) {
        if slice.kind == SliceKind::FuturePoll
            && let Some(sum) = polled.get_mut(*caller as usize)
        {
            *sum = sum.saturating_add(slice.duration_ns.max(0));
        }
    }
    polled
}

/// Returns one call of the walk.
fn call_of(
    slice: &Slice,
    details: Option<&SliceDetails>,
    polled: i64,
    gpu: Option<CallGpuTime>,
) -> Call {
    let is_untimed = details.is_some_and(|details| details.is_untimed);
    let is_timed = !slice.is_on_gpu() && !is_untimed;
    let is_future = slice.kind == SliceKind::AsyncCall;
    let elapsed = is_timed.then(|| slice.duration_ns.max(0));
    let busy = match elapsed {
        Some(_) if is_future => details
            .and_then(|details| details.polled_ns)
            .unwrap_or(polled),
        elapsed => elapsed.unwrap_or_default(),
    };
    Call {
        elapsed,
        busy,
        own: if is_timed { slice.self_ns.max(0) } else { 0 },
        is_future,
        ending: slice.ending,
        lacks_cuda: details.is_some_and(|details| details.no_gpu_time.is_some()),
        gpu,
    }
}

/// Counts the memory of a call, if it was recorded with that of its children.
fn count_memory(
    slice: &Slice,
    details: &SliceDetails,
    is_outermost: bool,
    row: &mut Option<MemoryStats>,
) {
    if let Some(memory) = &details.memory {
        let own = OwnMemory {
            host_net: details.own_host_net,
            allocated: slice.allocated_bytes.unwrap_or_default(),
            device_net: slice.device_bytes.unwrap_or_default(),
        };
        row.get_or_insert_default().count(memory, own, is_outermost);
    }
}

/// Describes what the time line lacks, a line for each reason.
pub fn missing(timeline: &Timeline) -> Vec<String> {
    let missing = timeline.missing.iter().map(|(reason, count)| match count {
        0 => reason.clone(),
        count => format!("{count} {reason}"),
    });
    missing.collect()
}
