//! Counts and warnings: the profiler loses nothing silently.

mod drops;
mod span_loss;

pub(crate) use drops::{
    count_dropped, count_refused, count_unmeasured, dropped, note_full_ring, refused, unmeasured,
    warn_of_drops,
};
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) use span_loss::{count_lost_spans, note_layer, note_span};
pub(crate) use span_loss::{lost_spans, why_no_span};
