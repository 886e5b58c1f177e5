//! Averaging a time line.

use std::collections::HashMap;
use std::sync::Arc;

use super::KeyAverages;
use super::group_by::GroupBy;
use super::tally::{Call, Edges, GpuCall, Tally};
use crate::report::call_tree::{callers, is_on_gpu};
use crate::report::covered::{covered, streams};
use crate::report::kernels::of_timeline;
use crate::report::row::Row;
use crate::report::share::{share_cpu, share_cuda};
use crate::report::sort::SortKey;
use crate::report::timeline::{Slice, SliceKind, Timeline};
use crate::report::walk::{NONE, Visit, Walk};

/// Distinguishes streams: the index of the first track of the stream, or [`NONE`] for the sum of all work that a call
/// launched.
type Stream = u32;

impl Timeline {
    /// Averages the scopes of the time line over all calls of the same name.
    ///
    /// A kernel or copy inside the GPU time of a scope is counted there. Any other one has a row of its own, and its time
    /// is in the GPU total of all functions around its launch; their GPU self time does not contain it. The rows have no
    /// shapes and no memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::report::{Slice, SliceName, Timeline, Track};
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
        gather(self)
    }
}

fn gather(timeline: &Timeline) -> KeyAverages {
    let slices = &timeline.slices;
    let callers = callers(timeline);
    let polled = polled(timeline, &callers);
    let texts = numbers(timeline);
    let text_of = |slice: &Slice| texts.get(slice.name as usize).copied().unwrap_or(NONE);
    let covered = covered(timeline, &callers);
    let gpu = gpu_times(timeline, &callers, &covered);
    let is_call = |index: usize| match slices[index].kind {
        SliceKind::Call | SliceKind::AsyncCall => true,
        SliceKind::GpuWork => !covered[index],
        SliceKind::FuturePoll => false,
        // It belongs to the call of its parent.
        SliceKind::GpuScope => callers[index] == NONE,
    };
    let mut rows: Vec<Row> = Vec::new();
    let mut tallies: Vec<Tally<Stream>> = Vec::new();
    let mut row_of: HashMap<u32, usize> = HashMap::new();
    let mut edges = Edges::default();
    for visit in Walk::new(&callers, is_call) {
        let (Visit::Enter(index) | Visit::Leave(index)) = visit;
        let name = text_of(&slices[index]);
        let call = call_of(&slices[index], polled[index], gpu[index]);
        let caller = slices.get(callers[index] as usize).map_or(NONE, text_of);
        let row = *row_of.entry(name).or_insert_with(|| {
            rows.push(row(timeline, name));
            tallies.push(Tally::default());
            rows.len() - 1
        });
        let edge = edges.between(caller, name);
        if visit == Visit::Enter(index) {
            tallies[row].enter(&call, ns);
            edge.enter(&call);
        } else {
            tallies[row].leave(&call);
            edge.leave(&call);
        }
    }
    for replay in &timeline.replays {
        let name = texts.get(replay.name as usize).copied().unwrap_or(NONE);
        let row = *row_of.entry(name).or_insert_with(|| {
            rows.push(row(timeline, name));
            tallies.push(Tally::default());
            rows.len() - 1
        });
        tallies[row].replay(Some((ns(replay.duration_ns), ns(replay.self_ns))));
    }
    let busy: Vec<f64> = tallies.iter().map(|tally| tally.sums.cpu(ns)[1]).collect();
    for (row, tally) in rows.iter_mut().zip(tallies) {
        tally.finish(row, ns, true, 0.0);
    }
    let has_cpu = |name| {
        let row = row_of.get(&name).and_then(|row| rows.get(*row));
        row.is_some_and(|row| row.cpu.is_some())
    };
    let edges = edges.finish(|name| text(timeline, name), ns, has_cpu);
    let kernels = of_timeline(timeline, &callers, &texts, rows.len());
    if let Some(kernels) = &kernels {
        kernels.judge(&mut rows);
    }
    let self_cpu = share_cpu(&mut rows, |index, _| busy[index]);
    let self_cuda = share_cuda(&mut rows);
    let averages = KeyAverages {
        rows,
        self_cpu_time_total_ns: self_cpu,
        self_cuda_time_total_ns: self_cuda,
        by: GroupBy::new(),
        edges: Some(edges.into()),
        gpus: Vec::new(),
        kernels: kernels.map(Arc::new),
        notes: notes(timeline),
    };
    averages.sort_by(if self_cpu.is_some() {
        SortKey::CpuTimeTotal
    } else {
        SortKey::CudaTimeTotal
    })
}

/// Times of a time line are in nanoseconds already.
fn ns(ns: i64) -> f64 {
    ns.max(0) as f64
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

fn row(timeline: &Timeline, name: u32) -> Row {
    let location = timeline.names.get(name as usize);
    Row {
        name: text(timeline, name),
        location: location.map_or_else(String::new, |name| name.location.to_string()),
        ..Row::default()
    }
}

/// Returns the GPU time of each call: that of its scope, or else the sum of the work that it and the calls inside launched.
fn gpu_times(
    timeline: &Timeline,
    callers: &[u32],
    covered: &[bool],
) -> Vec<Option<GpuCall<Stream>>> {
    let slices = &timeline.slices;
    let streams = streams(timeline);
    let mut measured: Vec<Option<GpuCall<Stream>>> = vec![None; slices.len()];
    let mut launched: Vec<Option<f64>> = vec![None; slices.len()];
    for ((index, slice), caller) in slices.iter().enumerate().zip(callers) {
        let belongs_to = match slice.kind {
            SliceKind::GpuWork if covered[index] => continue,
            SliceKind::GpuWork => index,
            SliceKind::GpuScope if *caller == NONE => index,
            SliceKind::GpuScope => *caller as usize,
            _ => continue,
        };
        let is_launch_bound = (slice.kind == SliceKind::GpuScope && *caller != NONE).then(|| {
            let launching = slices[belongs_to].duration_ns;
            launching >= slice.total_ns()
        });
        let time = measured[belongs_to].get_or_insert(GpuCall {
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
        });
        time.ns += ns(slice.total_ns());
        time.own += ns(slice.self_ns);
        if let Some(around) = launched.get_mut(*caller as usize)
            && slice.kind == SliceKind::GpuWork
        {
            *around.get_or_insert_default() += ns(slice.duration_ns);
        }
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
    let sums = launched.into_iter().map(|launched| {
        launched.map(|ns| GpuCall {
            ns,
            own: 0.0,
            stream: NONE,
            is_launch_bound: None,
        })
    });
    measured
        .into_iter()
        .zip(sums)
        .map(|(measured, sum)| measured.or(sum))
        .collect()
}

/// Returns the time of the polls of each future.
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
fn call_of(slice: &Slice, polled: i64, gpu: Option<GpuCall<Stream>>) -> Call<Stream> {
    let is_on_gpu = is_on_gpu(slice);
    let elapsed = (!is_on_gpu).then(|| slice.duration_ns.max(0));
    let own = if is_on_gpu { 0 } else { slice.self_ns.max(0) };
    let is_future = slice.kind == SliceKind::AsyncCall;
    Call {
        elapsed,
        busy: if is_future {
            polled
        } else {
            elapsed.unwrap_or_default()
        },
        own,
        is_future,
        ending: slice.ending,
        lacks_cuda: false,
        gpu,
    }
}

/// Describes what the time line lacks.
fn notes(timeline: &Timeline) -> Vec<String> {
    let missing = timeline.missing.iter().map(|(reason, count)| match count {
        0 => reason.clone(),
        count => format!("{count} {reason}"),
    });
    let mut notes: Vec<String> = missing.collect();
    if timeline.slices.is_empty() && timeline.replays.is_empty() {
        notes.push("nothing began and ended in the time line".to_owned());
    }
    notes
}
