//! The state of GPU measurement.

use crate::losses::CudaLoss;

/// The state of GPU measurement, as part of a [`Summary`](crate::Summary).
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct CudaHealth {
    /// The state of CUDA in one line: see `Status` of `profiler_runtime::cuda`.
    pub status: String,
    /// `true` if GPU times can be measured.
    pub ready: bool,
    /// Scopes whose events have not been read yet. No GPU column includes them.
    pub in_flight: usize,
    /// Event pairs that exist, over all contexts.
    pub pairs: usize,
    /// The most scopes that were seen waiting for a device at once.
    pub high_water: usize,
    /// Scopes that should have a GPU time and have none: their number for each reason that occurred.
    #[cfg_attr(feature = "serde", serde(with = "crate::losses::reason::counts"))]
    pub lost: Vec<(CudaLoss, u64)>,
    /// The uncertainty of where GPU times begin on the host's time line, in nanoseconds; `None` if that was not
    /// determined. The lengths of GPU times do not depend on it.
    pub uncertainty_ns: Option<f64>,
    /// Impossible times between two events that the driver reported: infinite, not a number, negative although the
    /// first event was recorded first, or longer than a year. The value they were needed for is left out: the length of
    /// a scope, which [`lost`](Self::lost) counts too, its place on the time line, or its share of a future around it.
    pub rejected_times: u64,
    /// How long recording events took.
    pub records: RecordTimes,
    /// `true` if the user knows why GPU times cannot be measured, so that no further note is needed.
    #[doc(hidden)]
    pub is_explained: bool,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
}

/// How long records of events took. One GPU scope in 64 is timed, on each thread.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct RecordTimes {
    /// How many records were timed.
    pub timed: u64,
    /// How many of these took longer than 100 µs. Either the driver's launch queue was full, and the record waited for
    /// a slot as the program's launches do; or the system suspended the thread during the call.
    pub long: u64,
    /// The duration of the longest, in nanoseconds.
    pub longest_ns: f64,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
}
