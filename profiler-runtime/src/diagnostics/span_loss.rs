//! Counts of spans of `tracing` that a `ProfilerLayer` could not measure.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Why a span of `tracing`, or one of its times, is not in the rows.
///
/// # Examples
///
/// ```
/// for (reason, spans) in profiler_runtime::summary().lost_spans {
///     println!("{spans} spans: {}; {}", reason.as_str(), reason.advice());
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SpanLoss {
    /// The span was closed and had never been entered.
    NeverEntered,
    /// The span was closed, and one time that it was entered had no exit on the thread that entered it.
    NeverExited,
    /// The span was created when too many others were open.
    TooManyOpen,
    /// The span comes from a call site beyond the number of those that a layer distinguishes.
    TooManyCallSites,
    /// The span was entered while its thread ended, after the destructors of most thread-locals.
    ThreadEnded,
}

impl SpanLoss {
    /// All reasons, in the order in which the summary shows them.
    pub const ALL: [Self; 5] = [
        Self::NeverEntered,
        Self::NeverExited,
        Self::TooManyOpen,
        Self::TooManyCallSites,
        Self::ThreadEnded,
    ];

    /// Returns the reason in words, as the summary shows it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NeverEntered => "never entered",
            Self::NeverExited => "entered and not exited on that thread",
            Self::TooManyOpen => "too many spans were open",
            Self::TooManyCallSites => "more than 4096 call sites have spans",
            Self::ThreadEnded => "the thread was ending",
        }
    }

    /// Returns what to do about it, as the summary shows it.
    #[must_use]
    pub const fn advice(self) -> &'static str {
        match self {
            Self::NeverEntered => {
                "a span is timed while it is entered: use `in_scope`, `entered` or `Instrument`"
            }
            Self::NeverExited => {
                "do not forget the guard of `Span::enter`, and do not hold it across an `.await`: use `Instrument`"
            }
            Self::TooManyOpen => "close spans, or filter out those that stay open",
            Self::TooManyCallSites => "leave out targets with a filter of the layer",
            Self::ThreadEnded => "enter no spans in destructors of thread-locals",
        }
    }

    /// Returns the reason as a key in JSON.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::NeverEntered => "never_entered",
            Self::NeverExited => "never_exited",
            Self::TooManyOpen => "too_many_open",
            Self::TooManyCallSites => "too_many_call_sites",
            Self::ThreadEnded => "thread_ended",
        }
    }
}

#[cfg(feature = "serde")]
impl super::reason::Reason for SpanLoss {
    const ALL: &'static [Self] = &Self::ALL;

    fn key(self) -> &'static str {
        self.key()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_counter_of_its_own() {
        for (index, reason) in SpanLoss::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
