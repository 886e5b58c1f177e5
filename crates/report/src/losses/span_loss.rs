//! The reasons why spans of `tracing` are not measured.

/// Why a span of `tracing`, or one of its times, is not in the rows.
///
/// # Examples
///
/// ```
/// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
/// for (reason, spans) in summary().lost_spans {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_listed_in_their_order() {
        for (index, reason) in SpanLoss::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, index);
        }
    }
}
