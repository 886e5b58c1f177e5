//! The energy of rows.

use super::text::Field;

/// The energy of the calls of a row: a share of what its devices took while samples were taken.
///
/// The energy between two samples is shared out by GPU self time. It is not measured for single calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct Energy {
    /// Joules. `None` if [`gpu_self_ns`](Self::gpu_self_ns) is less than ten steps of the devices' energy counters: a
    /// share of so little says nothing.
    pub joules: Option<f64>,
    /// The GPU self time between the first sample and the last, in nanoseconds, by which the energy was shared out.
    pub gpu_self_ns: f64,
}

impl Energy {
    /// Returns the power while the calls ran, in watts: the energy by the GPU self time. `None` without an energy.
    #[must_use]
    pub fn watts(&self) -> Option<f64> {
        let watts = self.joules? / (self.gpu_self_ns / 1e9);
        watts.is_finite().then_some(watts)
    }

    pub(super) fn fields(&self) -> Vec<Field> {
        let number = |value: Option<f64>| value.map(|value| format!("{value:.3}"));
        vec![
            Field::optional("joules", number(self.joules)),
            Field::nanoseconds("gpu_self_ns", self.gpu_self_ns),
            Field::optional("watts", number(self.watts())),
        ]
    }
}
