//! Counts of spans of `tracing` that a `ProfilerLayer` could not measure.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use profiler_report::SpanLoss;

static LOST: [AtomicU64; SpanLoss::ALL.len()] = [const { AtomicU64::new(0) }; SpanLoss::ALL.len()];

/// Counts spans, or times of spans.
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
#[cold]
pub(crate) fn count_lost_spans(reason: SpanLoss, spans: u64) {
    LOST[reason as usize].fetch_add(spans, Relaxed);
}

/// Returns how many were counted, for each reason that occurred.
pub(crate) fn lost_spans() -> Vec<(SpanLoss, u64)> {
    let all = SpanLoss::ALL.into_iter();
    all.map(|reason| (reason, LOST[reason as usize].load(Relaxed)))
        .filter(|(_, spans)| *spans > 0)
        .collect()
}

/// `true` once the program has created a layer.
static HAS_LAYER: AtomicBool = AtomicBool::new(false);
/// `true` once a layer has seen a span.
static HAS_SPAN: AtomicBool = AtomicBool::new(false);

/// Notes that the program has created a layer.
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) fn note_layer() {
    HAS_LAYER.store(true, Relaxed);
}

/// Notes that a layer has seen a span.
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) fn note_span() {
    HAS_SPAN.store(true, Relaxed);
}

/// Returns why a layer may have seen no span, if there is a layer that has not.
pub(crate) fn why_no_span() -> Option<&'static str> {
    (HAS_LAYER.load(Relaxed) && !HAS_SPAN.load(Relaxed)).then_some(
        "a ProfilerLayer has seen no span: add it to the subscriber that the program sets; a filter of the whole registry \
         (`registry().with(filter)`) hides spans from all layers, so give it to the layer that it is for \
         (`layer.with_filter(filter)`); a feature of `tracing` such as `release_max_level_info` removes spans when the \
         program is built; and `ProfilerLayer::all_spans` adds those that are left out by default",
    )
}
