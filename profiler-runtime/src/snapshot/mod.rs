//! Snapshots of what was measured: the running statistics as a [`Summary`], and windows of sessions as time lines and files.
//!
//! A window takes this way: `session` sorts what threads recorded into a [`Trace`](crate::session::Trace); `timeline` makes
//! it a [`Timeline`](crate::report::Timeline), with what `window` finds out about its streams, times and names; a writer of
//! `profiler-report` writes that. `trace` has the methods that users call.

mod averages;
pub(crate) mod call_tree;
mod environment;
mod history;
mod memory;
mod own_cost;
mod row;
mod timeline;
pub(crate) mod trace;
mod twice;
mod window;

use std::sync::Arc;

use profiler_host::diagnostics;
use profiler_host::process::host::is_anonymous;
use profiler_report::internal::{
    GpuSamples, Schema, busy, missing_samples, share_cpu, share_cuda, share_energy, sort_rows,
};
use profiler_report::{DropReason, Row, SampledGpu, SortKey, Summary};

use crate::clock::clock;
use crate::collect;
use crate::cuda;
use crate::local;
use crate::losses;
use crate::name;
use crate::switch::{self, with_control};

pub(crate) use history::sample;

/// Takes a snapshot of everything measured so far, on all threads.
///
/// Measured threads continue while the snapshot is taken: a call that ends at that time may be counted in one column
/// and not yet in another. Calls that ended earlier on the same thread, or on threads that were joined, are complete.
///
/// If the system refuses the memory that a row for each name takes, the summary has no rows, and a note says why. What does not
/// depend on the rows is in it all the same.
pub fn summary() -> Summary {
    match memory::missing() {
        None => complete(),
        Some(note) => Summary {
            notes: vec![note],
            ..of_process(None)
        },
    }
}

/// Returns what a summary says of the whole process, without rows. The entries that found a full ring are counted in rows:
/// without these, they are not known and not shown.
fn of_process(ring_full: Option<u64>) -> Summary {
    let dropped = DropReason::ALL
        .into_iter()
        .filter_map(|reason| {
            let in_rows = if reason == DropReason::RingFull {
                ring_full?
            } else {
                0
            };
            Some((reason, losses::dropped(reason) + in_rows))
        })
        .filter(|(_, entries)| *entries > 0)
        .collect();
    let [delivered, unsaved, pending] = collect::outcomes();
    Summary {
        schema: Schema,
        environment: environment::of_process(),
        cuda: cuda::health(),
        wall_ns: clock().nanoseconds(clock().since_origin() as f64),
        percentile_error: profiler_report::internal::RELATIVE_ERROR,
        delivered,
        dropped,
        unsaved,
        pending,
        unmeasured: losses::unmeasured(),
        refused: losses::refused(),
        lost_spans: losses::lost_spans(),
        // Warnings quote values of variables, and name files.
        notices: if is_anonymous() {
            Vec::new()
        } else {
            diagnostics::notices()
        },
        ..Summary::default()
    }
}

fn complete() -> Summary {
    // Before the rows, so that these have everything that the history has.
    let history = history::snapshot();
    let names = name::all().into_iter();
    let (mut rows, numbers): (Vec<Row>, Vec<u32>) = names
        .filter_map(|name| Some((row::of(name)?, name.id)))
        .unzip();
    let mut notes = twice::notes(&rows, &numbers);
    let self_cpu = share_cpu(&mut rows, |_, row| busy(row));
    let self_cuda = share_cuda(&mut rows);
    history.fill(&mut rows, &numbers);
    let samples = cuda::nvml::samples();
    share_energy(&mut rows, &samples.devices, |id| {
        name::by_id(id).map(|name| &*name.text)
    });
    sort_rows(&mut rows, SortKey::CpuTimeTotal);
    let ring_full: u64 = rows
        .iter()
        .map(|row| row.dropped_entries)
        .fold(0, u64::saturating_add);
    notes.extend(notes_of(&samples, !rows.is_empty()));
    let process = of_process(Some(ring_full));
    Summary {
        gpus: SampledGpu::all(&samples),
        gpu_idle: cuda::gpu_idle(self_times(&rows)),
        own_cost: own_cost::of(&rows, process.wall_ns),
        nothing_measured: rows.is_empty().then(why_nothing),
        rows,
        self_cpu_time_total_ns: self_cpu,
        self_cuda_time_total_ns: self_cuda,
        call_tree: call_tree::of_statistics().map(Arc::new),
        notes,
        ..process
    }
}

/// Returns the self times of rows that have just been read.
fn self_times(rows: &[Row]) -> impl Iterator<Item = cuda::SelfTime> {
    let self_time = |row: &Row| {
        Some(cuda::SelfTime {
            name: row.number.0?,
            ns: row.cpu.map_or(0.0, |cpu| cpu.self_ns),
            longest_call_ns: row.cpu.map_or(0.0, |cpu| cpu.max_ns),
            is_open: row.open > 0,
        })
    };
    rows.iter().filter_map(self_time)
}

/// Returns notes on samples and spans that are missing. If there are no rows, `why_nothing` says the latter.
fn notes_of(samples: &GpuSamples, has_rows: bool) -> Vec<String> {
    let mut notes = missing_samples(samples, &diagnostics::notices());
    let is_on = || switch::why_off().is_none();
    let why_no_span = losses::why_no_span().filter(|_| has_rows && is_on());
    notes.extend(why_no_span.map(str::to_owned));
    notes.extend(shared_cells());
    notes
}

/// Says how many names and threads share cells, if any do.
fn shared_cells() -> Option<String> {
    let threads = local::borrowing_threads();
    if threads == 0 {
        return None;
    }
    let names = name::all()
        .into_iter()
        .filter(|name| name.has_lent())
        .count();
    Some(format!(
        "calls of {names} names on {threads} threads share their statistics, which is as exact and takes longer: raise \
         PROFILER_CELL_MEMORY, or measure fewer names"
    ))
}

fn why_nothing() -> String {
    if let Some(reason) = switch::why_off() {
        return reason.to_owned();
    }
    let names = name::all();
    let seen = names.len();
    let (filter, origin) = with_control(|control| {
        let settings = &control.settings;
        let origin = settings.origin("PROFILER_FILTER", "`Builder::filter`");
        (settings.filter.clone(), origin)
    });
    if seen > 0 && !filter.is_empty() {
        let names: Vec<&str> = names.iter().map(|name| &*name.text).collect();
        let mistakes = filter.mistakes(&names);
        let mistakes = mistakes.iter().map(|mistake| format!("; {mistake}"));
        return format!(
            "the filter `{}` leaves nothing of the {seen} names that ran: widen {origin}{}",
            filter.text(),
            mistakes.collect::<String>()
        );
    }
    if seen > 0 && !losses::lost_spans().is_empty() {
        return format!(
            "no span or call of the {seen} names that ran was timed; the reasons are below"
        );
    }
    if seen > 0 {
        return format!(
            "the calls of all {seen} names that ran were left out, by {}",
            switch::ways_to_leave_out()
        );
    }
    if let Some(reason) = losses::why_no_span() {
        return reason.to_owned();
    }
    format!(
        "nothing that is annotated has run, or {} left out all of it: put #[measure_execution_time] on a function that runs",
        switch::ways_to_leave_out()
    )
}
