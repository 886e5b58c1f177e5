//! Counts and warnings: the profiler loses nothing silently.

mod drops;
mod own_panic;
mod printable;
#[cfg(feature = "serde")]
pub(crate) mod reason;
mod span_loss;
pub(crate) mod user_code;
mod warnings;

pub use drops::DropReason;
pub(crate) use drops::{
    count_dropped, count_unmeasured, dropped, note_full_ring, unmeasured, warn_of_drops,
};
pub(crate) use own_panic::{catch_own_panic, warn_of_own_panic};
pub(crate) use printable::printable;
pub use span_loss::SpanLoss;
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) use span_loss::{count_lost_spans, note_layer, note_span};
pub(crate) use span_loss::{lost_spans, why_no_span};
pub(crate) use warnings::{is_on_stderr, notices, warn_once};
