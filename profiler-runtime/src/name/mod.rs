//! Names: calls are counted, logged and shown by name. Several call sites can share one.

mod circuit_breaker;
mod counts;
mod location;
mod path;
mod registry;
mod sampling;
mod short;
mod time_source;

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use profiler_host::sync::RaceCell;
use profiler_report::TimeSource;

use crate::stats::GpuTotals;
use counts::Counts;
use time_source::AtomicTimeSource;

pub(crate) use circuit_breaker::CircuitBreaker;
pub(crate) use counts::{maintain, settle_moved};
pub use location::SourceLocation;
pub(crate) use profiler_report::internal::{Buffer, MAX_LENGTH, truncate, truncate_into};
#[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
pub(crate) use registry::of_span;
pub(crate) use registry::{
    OVERFLOW_NAME, all, by_id, count, declared, is_frozen, make_room, of_function, run_time,
};
pub(crate) use sampling::Sampling;
pub(crate) use short::short_forms;

/// The largest number of names. Ids are smaller, so that a thread finds its cell by two indices.
pub(crate) const MAX_NAMES: usize = 1 << 16;

/// Where the text of a name comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It is the path of a function.
    Function,
    /// The program chose it.
    Given,
}

/// One name. Names are never freed.
#[derive(Debug)]
pub(crate) struct Name {
    /// Counted up from 0 in the order of registration.
    pub(crate) id: u32,
    /// The text in summaries: at most [`MAX_LENGTH`] bytes.
    pub(crate) text: String,
    pub(crate) origin: Origin,
    /// The beginning of the tags that loggers get. No two names have the same tag.
    pub(crate) tag: String,
    /// The tag of logged calls, created by the first one.
    log_tag: RaceCell<String>,
    /// The position of the first call site in the source.
    pub(crate) location: SourceLocation,
    /// The name that was registered before this one.
    previous: Option<&'static Self>,
    counts: Counts,
    /// The step of the next logged call. Who makes the entry of a call takes it: the collector, the resolver, or the thread
    /// of a call with `sync`. Threads that end add the calls that they could not report.
    pub(crate) next_step: AtomicU64,
    pub(crate) sampling: Sampling,
    /// The circuit breaker of the loggers that calls of this name bring. Default loggers have their own.
    pub(crate) breaker: CircuitBreaker,
    /// The GPU times.
    pub(crate) cuda: GpuTotals,
    /// The time of its calls, in ticks, that is not their self time because scopes on other threads covered it.
    pub(crate) covered: AtomicI64,
    /// Spans of `tracing` whose times are held back: they count as open.
    open_spans: AtomicI64,
    time_source: AtomicTimeSource,
}

/// Counts time of a call of this name that scopes on other threads covered, in ticks.
pub(crate) fn count_covered(id: u32, ticks: i64) {
    if ticks > 0
        && let Some(name) = by_id(id)
    {
        name.covered.fetch_add(ticks, Relaxed);
    }
}

impl Name {
    fn new(
        id: u32,
        (text, origin): (String, Origin),
        tag: String,
        location: SourceLocation,
        previous: Option<&'static Self>,
    ) -> Self {
        Self {
            id,
            text,
            origin,
            tag,
            log_tag: RaceCell::new(),
            location,
            previous,
            counts: Counts::new(),
            next_step: AtomicU64::new(0),
            sampling: Sampling::new(),
            breaker: CircuitBreaker::new(),
            cuda: GpuTotals::new(),
            covered: AtomicI64::new(0),
            open_spans: AtomicI64::new(0),
            time_source: AtomicTimeSource::undecided(),
        }
    }

    /// Adds to the number of spans whose times are held back.
    #[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
    pub(crate) fn note_open_spans(&self, more: i64) {
        self.open_spans.fetch_add(more, Relaxed);
    }

    /// Returns the tag under which calls are logged: it ends with the time that loggers get and its unit.
    pub(crate) fn log_tag(&self) -> &str {
        let make = || self.decide_time_source(TimeSource::Cpu).tag(&self.tag);
        self.log_tag.get_or_init(make)
    }

    /// Returns which time loggers get.
    pub(crate) fn time_source(&self) -> TimeSource {
        self.time_source.get()
    }

    /// Returns which time loggers get; decides on `first` if no call has been logged.
    pub(crate) fn decide_time_source(&self, first: TimeSource) -> TimeSource {
        self.time_source.get_or_decide(first)
    }
}
