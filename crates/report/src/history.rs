//! How the calls of a name are distributed over the run.

use std::fmt;

use super::text::json::array;

/// The calls of a row that ended in one span of the run.
///
/// In JSON it is an array of its values.
#[derive(Clone, Copy, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        from = "(u64, u64, u64, f64, u64, f64)",
        into = "(u64, u64, u64, f64, u64, f64)"
    )
)]
pub struct HistoryPoint {
    /// When the span began, in nanoseconds since the profiler was first used.
    pub start_ns: u64,
    /// How long it lasted, in nanoseconds.
    pub duration_ns: u64,
    /// The calls that ended in it.
    pub calls: u64,
    /// Their time on the CPU without their children, in nanoseconds.
    pub cpu_self_ns: f64,
    /// The calls whose GPU time became known in it.
    pub cuda_calls: u64,
    /// The GPU time of these without their children, in nanoseconds.
    pub cuda_self_ns: f64,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
}

type Values = (u64, u64, u64, f64, u64, f64);

impl From<Values> for HistoryPoint {
    fn from(values: Values) -> Self {
        let (start_ns, duration_ns, calls, cpu_self_ns, cuda_calls, cuda_self_ns) = values;
        Self {
            start_ns,
            duration_ns,
            calls,
            cpu_self_ns,
            cuda_calls,
            cuda_self_ns,
            non_exhaustive: (),
        }
    }
}

impl From<HistoryPoint> for Values {
    fn from(point: HistoryPoint) -> Self {
        (
            point.start_ns,
            point.duration_ns,
            point.calls,
            point.cpu_self_ns,
            point.cuda_calls,
            point.cuda_self_ns,
        )
    }
}

impl fmt::Debug for HistoryPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Values::from(*self).fmt(f)
    }
}

/// Returns the points as serde writes them, with whole nanoseconds.
pub(super) fn json(points: &[HistoryPoint]) -> String {
    array(points.iter().map(|point| {
        let (start, duration, calls, cpu, cuda_calls, cuda) = Values::from(*point);
        format!("[{start},{duration},{calls},{cpu:.0},{cuda_calls},{cuda:.0}]")
    }))
}
