//! The scopes, GPU times and kernels that a window lacks.

use profiler_report::KernelGap;

use crate::cuda::CudaLoss;
use crate::session::{CUT_SHORT, GapReason, Trace};

/// Returns why the window has no scopes, if the reason is that measuring was off.
pub(in crate::snapshot) fn why_empty(trace: &Trace) -> Option<String> {
    let reason = trace.meta.why_off?;
    Some(format!("no scope began and ended in the window: {reason}"))
}

/// Returns what the window lacks, of which these are the times without kernels, as [`Timeline::missing`](crate::report::Timeline::missing) holds it.
pub(super) fn missing(trace: &Trace, gaps: &[KernelGap]) -> Vec<(String, u64)> {
    let truncation = trace.truncation();
    let scopes = truncation.counted();
    let scopes = scopes.map(|(count, what)| (what.to_owned(), count));
    let lost = CudaLoss::ALL.map(|loss| {
        let is_lost = trace.gpu.iter().filter(|gpu| gpu.loss == Some(loss));
        let what = format!(
            "GPU times are missing: {}; {}",
            loss.as_str(),
            loss.advice()
        );
        (what, is_lost.count() as u64)
    });
    let unplaced = |is_bound: bool| {
        let times = trace.nodes.iter().map(|node| node.gpu as usize);
        let times = times.filter_map(|gpu| trace.gpu.get(gpu));
        let unplaced = times.filter(|gpu| gpu.loss.is_none() && gpu.start.is_none());
        unplaced.filter(|gpu| gpu.is_bound == is_bound).count() as u64
    };
    let unplaced = [
        (false, "since it is not known when they began"),
        (
            true,
            "since they are sums: `cuda::bind_stream` bound streams",
        ),
    ]
    .map(|(is_bound, why)| {
        (
            format!("GPU times are in tables only, {why}"),
            unplaced(is_bound),
        )
    });
    let work = trace.lost_work().counted();
    let work = work.map(|(count, what)| (what.to_owned(), count));
    let counted = scopes.into_iter().chain(lost).chain(unplaced).chain(work);
    let mut missing: Vec<(String, u64)> = counted.filter(|(_, count)| *count > 0).collect();
    if truncation.cut_short {
        missing.push((CUT_SHORT.to_owned(), 0));
    }
    missing.extend(why_empty(trace).map(|why| (why, 0)));
    if let Some(reason) = trace.no_cuda_reason() {
        missing.push((format!("no GPU times: {reason}"), 0));
    }
    if let Some(reason) = trace.no_kernels_reason() {
        missing.push((format!("no kernels: {reason}"), 0));
    }
    // Where the program turned the collection off, nothing is missing.
    let gaps = trace.work.gaps.iter().zip(gaps);
    let gaps = gaps.filter(|(gap, _)| gap.reason != GapReason::Off);
    missing.extend(gaps.map(|(_, gap)| (gap.to_string(), 0)));
    missing
}
