//! CPU or GPU: which time the loggers of a name get.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Which time the loggers of a name get.
///
/// It is fixed by the first call that is logged, so that one tag never holds both times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum TimeSource {
    /// No call has been logged.
    #[default]
    Undecided,
    /// The CPU time.
    Cpu,
    /// The GPU time. Calls without one are not logged, and counted as dropped.
    Cuda,
}

impl TimeSource {
    const fn from_u8(number: u8) -> Self {
        match number {
            1 => Self::Cpu,
            2 => Self::Cuda,
            _ => Self::Undecided,
        }
    }

    /// Returns the source as exports spell it: `undecided`, `cpu` or `cuda`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }

    /// Returns the tag for times of this kind: the tag of the name, the clock and the unit, as in
    /// `Trainer/forward/cuda_ms`.
    pub(crate) fn tag(self, name: &str) -> String {
        let unit = match self {
            Self::Cuda => "cuda_ms",
            Self::Cpu | Self::Undecided => "cpu_ms",
        };
        format!("{name}/{unit}")
    }
}

/// A [`TimeSource`] that is decided once. Relaxed ordering suffices: no other data depends on it.
#[derive(Debug)]
pub(super) struct AtomicTimeSource(AtomicU8);

impl AtomicTimeSource {
    pub(super) const fn undecided() -> Self {
        Self(AtomicU8::new(TimeSource::Undecided as u8))
    }

    pub(super) fn get(&self) -> TimeSource {
        TimeSource::from_u8(self.0.load(Relaxed))
    }

    /// Returns the source; decides on `first` if it is undecided.
    pub(super) fn get_or_decide(&self, first: TimeSource) -> TimeSource {
        let undecided = TimeSource::Undecided as u8;
        match self
            .0
            .compare_exchange(undecided, first as u8, Relaxed, Relaxed)
        {
            Ok(_) => first,
            Err(decided) => TimeSource::from_u8(decided),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_says_which_time_it_holds_and_its_unit() {
        assert_eq!(TimeSource::Cpu.tag("model/forward"), "model/forward/cpu_ms");
        assert_eq!(TimeSource::Cuda.tag("epoch"), "epoch/cuda_ms");
    }

    #[test]
    fn the_first_decision_stays() {
        let source = AtomicTimeSource::undecided();
        assert_eq!(source.get(), TimeSource::Undecided);
        assert_eq!(source.get_or_decide(TimeSource::Cuda), TimeSource::Cuda);
        assert_eq!(source.get_or_decide(TimeSource::Cpu), TimeSource::Cuda);
        assert_eq!(source.get(), TimeSource::Cuda);
    }
}
