//! Averages of the running statistics.

use super::gather::{share_cpu, share_cuda};
use super::group_by::GroupBy;
use super::row::AverageRow;
use super::times::AverageTimes;
use super::{KeyAverages, SortKey};
use crate::report::summary::{CudaTimes, Row, Summary};
use crate::report::times::TimeStats;

pub(super) fn of_summary(summary: &Summary) -> KeyAverages {
    let counted = |row: &&Row| row.calls > 0 || row.cuda.is_some();
    let counted: Vec<&Row> = summary.rows.iter().filter(counted).collect();
    let mut rows: Vec<AverageRow> = counted.iter().map(|row| average(row)).collect();
    let busy: Vec<f64> = counted.iter().map(|row| busy(row)).collect();
    let self_cpu = share_cpu(&mut rows, &busy);
    let self_cuda = share_cuda(&mut rows);
    let averages = KeyAverages {
        rows,
        self_cpu_time_total_ns: Some(self_cpu),
        self_cuda_time_total_ns: self_cuda,
        by: GroupBy::new(),
        edges: None,
        notes: notes(summary),
    };
    averages.sort_by(SortKey::CpuTimeTotal)
}

fn average(row: &Row) -> AverageRow {
    AverageRow {
        name: row.name.clone(),
        location: row.location.clone(),
        calls: row.calls,
        primitive_calls: row.primitive_calls,
        cpu: (row.calls > 0).then(|| AverageTimes {
            calls: row.calls,
            ..TimeStats::from(row).into()
        }),
        cuda: row.cuda.as_ref().map(cuda),
        launch_bound: row.cuda.as_ref().map(|cuda| cuda.launch_bound),
        without_cuda: row.without_cuda,
        futures: row.futures,
        polled_ns: row.polled_ns,
        panicked: row.panicked,
        dropped_futures: row.dropped_futures,
        too_short: row.too_short,
        ..AverageRow::default()
    }
}

fn cuda(times: &CudaTimes) -> AverageTimes {
    AverageTimes {
        calls: times.calls,
        ..TimeStats::from(times).into()
    }
}

/// Returns the processor time of the calls. For a name with futures and other calls, the statistics do not separate the
/// two; the time of the polls is the better bound.
fn busy(row: &Row) -> f64 {
    if row.futures == 0 {
        row.total_ns
    } else {
        row.polled_ns.max(row.self_ns).min(row.total_ns)
    }
}

fn notes(summary: &Summary) -> Vec<String> {
    let nothing = summary.nothing_measured.iter();
    let mut notes: Vec<String> = nothing
        .map(|reason| format!("nothing was measured: {reason}"))
        .collect();
    let out_of_order = summary.rows.iter().filter(|row| row.out_of_order > 0);
    notes.extend(out_of_order.map(|row| {
        format!(
            "{}: {} ended out of order, so that self is an upper bound",
            row.name, row.out_of_order
        )
    }));
    notes
}
