//! What the GPUs did for a row, and waited for.

use super::text::Field;

/// How long the GPUs were busy with the work of a row's calls, and how long these kept them waiting, with all calls inside; added
/// up over the GPUs of a window. [`GpuIdle`](crate::GpuIdle) has the rules, and each GPU by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct GpuUse {
    /// How long the GPUs were busy with work that the calls launched, in nanoseconds. Where works ran at once, the one that began
    /// first counts.
    pub busy_ns: f64,
    /// The part of `busy_ns` that no call inside launched. The sum over all rows is the busy time of the GPUs, but for work that
    /// no measured scope launched.
    pub self_busy_ns: f64,
    /// `busy_ns` as a percentage of the time between the first work and the last, as far as it was recorded.
    pub busy_percent: f64,
    /// How long GPUs waited while the thread that launched their next work was in one of the calls, until that work was launched,
    /// in nanoseconds: idle time between the first work and the last.
    pub idle_caused_ns: f64,
    /// The part of `idle_caused_ns` that passed in no call inside.
    pub self_idle_caused_ns: f64,
    /// `idle_caused_ns` as a percentage of the time between the first work and the last, as far as it was recorded.
    pub idle_caused_percent: f64,
}

impl GpuUse {
    pub(super) fn fields(&self) -> Vec<Field> {
        let percent = |key, value: f64| Field::raw(key, format!("{value:.2}"));
        vec![
            Field::nanoseconds("busy_ns", self.busy_ns),
            Field::nanoseconds("self_busy_ns", self.self_busy_ns),
            percent("busy_percent", self.busy_percent),
            Field::nanoseconds("idle_caused_ns", self.idle_caused_ns),
            Field::nanoseconds("self_idle_caused_ns", self.self_idle_caused_ns),
            percent("idle_caused_percent", self.idle_caused_percent),
        ]
    }
}
