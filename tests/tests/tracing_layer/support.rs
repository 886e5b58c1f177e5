//! Subscribers and counts for the tests.

use profiler_runtime::ProfilerLayer;
use profiler_runtime::report::SpanLoss;
use tracing_subscriber::layer::SubscriberExt;

/// Makes a registry with a profiler's layer the subscriber of all threads.
pub(crate) fn install() {
    let subscriber = tracing_subscriber::registry().with(ProfilerLayer::new());
    tracing::subscriber::set_global_default(subscriber).expect("the first of this process");
}

/// Returns how many spans were not timed for a reason.
pub(crate) fn lost(reason: SpanLoss) -> u64 {
    let lost = profiler_runtime::summary().lost_spans.into_iter();
    lost.filter(|(known, _)| *known == reason)
        .map(|(_, spans)| spans)
        .sum()
}

/// Returns how many spans were not timed.
pub(crate) fn all_lost() -> u64 {
    SpanLoss::ALL.into_iter().map(lost).sum()
}
