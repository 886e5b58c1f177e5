//! CPU or GPU: which time the loggers of a name get.

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
    /// Returns the source as exports spell it: `undecided`, `cpu` or `cuda`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }

    /// Returns the tag for times of this kind: the tag of the name, the clock and the unit, as in `Trainer/forward/cuda_ms`.
    #[doc(hidden)]
    #[must_use]
    pub fn tag(self, name: &str) -> String {
        let unit = match self {
            Self::Cuda => "cuda_ms",
            Self::Cpu | Self::Undecided => "cpu_ms",
        };
        format!("{name}/{unit}")
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
}
