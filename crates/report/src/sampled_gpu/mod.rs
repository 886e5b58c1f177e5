//! The samples of a device in numbers.

pub(crate) mod energy;
mod line;

use super::row::Row;
use super::text::json::{array, object};
use super::text::{Field, nanoseconds};
use crate::gpu_sample::{
    DeviceEnergy, DeviceSamples, EnergySource, GpuDevice, GpuQuantity, GpuSamples, ThrottleReasons,
};
use crate::in_order::InOrder as _;

pub use line::label;

/// The power, memory, clocks and energy of a device while it was sampled.
///
/// The values are those of the whole device, with everything that other processes did on it. A value that the device or
/// its driver does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct SampledGpu {
    /// Its number in CUDA; `None` if the program has not initialised CUDA, or cannot see the device there.
    pub ordinal: Option<u32>,
    /// Its number in NVML and `nvidia-smi`, which may differ from that in CUDA.
    pub nvml_index: u32,
    /// Its unique identifier.
    pub uuid: String,
    /// Its product name.
    pub name: String,
    /// The number of samples.
    pub samples: u64,
    /// The time from the first sample to the last, in nanoseconds.
    pub duration_ns: f64,
    /// The power at the last sample, in watts.
    pub power_last_w: Option<f64>,
    /// The mean power in watts.
    pub power_mean_w: Option<f64>,
    /// The highest power of a sample, in watts.
    pub power_peak_w: Option<f64>,
    /// The power limit in force, in watts.
    pub power_limit_w: Option<f64>,
    /// The memory in use at the last sample, in bytes.
    pub memory_last_bytes: Option<f64>,
    /// The mean of the memory in use, in bytes.
    pub memory_mean_bytes: Option<f64>,
    /// The most memory in use, in bytes.
    pub memory_peak_bytes: Option<f64>,
    /// The size of the memory in bytes.
    pub memory_total_bytes: Option<u64>,
    /// The share of time in which at least one kernel ran, at the last sample, in percent.
    pub utilization_last_percent: Option<f64>,
    /// The mean share of time in which at least one kernel ran, in percent.
    pub utilization_mean_percent: Option<f64>,
    /// The temperature at the last sample, in degrees Celsius.
    pub temperature_last_c: Option<f64>,
    /// The highest temperature in degrees Celsius.
    pub temperature_peak_c: Option<f64>,
    /// The clock of the multiprocessors at the last sample, in MHz.
    pub sm_clock_last_mhz: Option<f64>,
    /// The mean clock of the multiprocessors in MHz.
    pub sm_clock_mean_mhz: Option<f64>,
    /// The highest clock that the multiprocessors can have, in MHz.
    pub sm_clock_max_mhz: Option<u32>,
    /// The number of samples in which it was known whether the clocks were held back.
    pub clock_samples: u64,
    /// The number of samples in which the clocks were held back: by power, heat or other devices.
    pub held_back_samples: u64,
    /// The reasons why the clocks were held back, the most frequent first. A sample may have several.
    pub held_back: Vec<HeldBack>,
    /// The energy in joules.
    pub energy_j: Option<f64>,
    /// The part of the energy that no measured scope accounts for, in joules; `None` if the energy is not shared out.
    pub unmeasured_j: Option<f64>,
    /// The time between two steps of the energy counter, or between two readings of the power if the device has no counter,
    /// in nanoseconds.
    pub energy_step_ns: Option<f64>,
    /// `true` if the energy is the sum of power by time, since the device has no energy counter.
    pub is_energy_from_power: bool,
    /// Why the energy is not shared out among the names; `None` if it is, or if there is none.
    pub not_shared: Option<String>,
}

/// A reason for which clocks were held back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
#[non_exhaustive]
pub struct HeldBack {
    /// The reason, such as `power cap`.
    pub reason: String,
    /// The number of samples that had it.
    pub samples: u64,
}

/// Returns the lines below a table about devices and energy; `rows` are those that the table shows.
pub(crate) fn notes(gpus: &[SampledGpu], rows: &[Row]) -> Vec<String> {
    let mut notes: Vec<String> = gpus.iter().map(SampledGpu::line).collect();
    notes.extend(gpus.iter().filter_map(SampledGpu::energy_line));
    let mut energies = rows.iter().filter_map(|row| row.energy);
    if energies.any(|energy| energy.joules.is_none()) {
        let is_from_power = gpus.iter().any(|gpu| gpu.is_energy_from_power);
        let too_little = if is_from_power {
            TOO_LITTLE_FOR_POWER
        } else {
            TOO_LITTLE
        };
        notes.push(too_little.to_owned());
    }
    notes
}

/// Returns why samples are missing, except for what a warning has said already.
pub fn missing(samples: &GpuSamples, notices: &[String]) -> Vec<String> {
    let is_new = |note: &&String| !notices.iter().any(|notice| notice.contains(&***note));
    samples.notes.iter().filter(is_new).cloned().collect()
}

/// Explains the mark of rows without a share of the energy.
const TOO_LITTLE: &str = "~ below Energy (J): less GPU time than ten steps of the energy counter, too little for a share";
/// Explains it for devices whose energy is that of their power.
const TOO_LITTLE_FOR_POWER: &str = "~ below Energy (J): less GPU time than ten readings of the power are apart, too little for a share";

impl SampledGpu {
    /// Returns the devices that have samples.
    #[doc(hidden)]
    pub fn all(samples: &GpuSamples) -> Vec<Self> {
        samples.devices.iter().filter_map(Self::of).collect()
    }

    /// Returns what the samples say; `None` if there are none.
    fn of(samples: &DeviceSamples) -> Option<Self> {
        let DeviceSamples {
            device,
            totals,
            energy,
            ..
        } = samples;
        let all = totals.all.as_ref()?;
        let power = [GpuQuantity::Power, GpuQuantity::PowerInstant]
            .into_iter()
            .find(|power| all.get(*power).is_some());
        let last = |quantity| samples.samples.last().and_then(|last| last.get(quantity));
        let mut gpu = Self {
            ordinal: device.ordinal,
            nvml_index: device.nvml_index,
            uuid: device.uuid.clone(),
            name: device.name.clone(),
            samples: all.samples(),
            duration_ns: (all.end_unix_ns() - all.unix_ns) as f64,
            power_last_w: power.and_then(last),
            power_mean_w: power.and_then(|power| all.get(power)),
            power_peak_w: power.and_then(|power| all.max(power)),
            power_limit_w: device.power_limit_w,
            memory_last_bytes: last(GpuQuantity::MemoryUsed),
            memory_mean_bytes: all.get(GpuQuantity::MemoryUsed),
            memory_peak_bytes: all.max(GpuQuantity::MemoryUsed),
            memory_total_bytes: device.memory_bytes,
            utilization_last_percent: last(GpuQuantity::Utilization),
            utilization_mean_percent: all.get(GpuQuantity::Utilization),
            temperature_last_c: last(GpuQuantity::Temperature),
            temperature_peak_c: all.max(GpuQuantity::Temperature),
            sm_clock_last_mhz: last(GpuQuantity::SmClock),
            sm_clock_mean_mhz: all.get(GpuQuantity::SmClock),
            sm_clock_max_mhz: device.max_sm_clock_mhz,
            clock_samples: totals.with_reasons,
            held_back_samples: all.held_back(),
            held_back: held_back(&totals.reasons),
            ..Self::default()
        };
        if energy.source != EnergySource::None {
            gpu.set_energy(energy, why_not_shared(device));
        }
        Some(gpu)
    }

    fn set_energy(&mut self, energy: &DeviceEnergy, not_shared: Option<String>) {
        self.energy_j = Some(energy.joules);
        self.energy_step_ns = Some(energy.step_ns);
        self.is_energy_from_power = energy.source == EnergySource::Power;
        self.unmeasured_j = not_shared.is_none().then_some(energy.unmeasured_joules);
        self.not_shared = not_shared;
    }

    /// Returns `true` if the clocks were held back in any sample.
    #[must_use]
    pub fn is_held_back(&self) -> bool {
        self.held_back_samples > 0
    }

    /// Returns the device as a JSON object. The keys are the names of the fields.
    pub(crate) fn to_json(&self) -> String {
        let value = |value: Option<f64>| value.map(|value| format!("{value:.3}"));
        let held_back = self.held_back.iter().map(|held| {
            object([
                Field::text("reason", &held.reason),
                Field::raw("samples", held.samples),
            ])
        });
        object([
            Field::optional("ordinal", self.ordinal),
            Field::raw("nvml_index", self.nvml_index),
            Field::text("uuid", &self.uuid),
            Field::text("name", &self.name),
            Field::raw("samples", self.samples),
            Field::nanoseconds("duration_ns", self.duration_ns),
            Field::optional("power_last_w", value(self.power_last_w)),
            Field::optional("power_mean_w", value(self.power_mean_w)),
            Field::optional("power_peak_w", value(self.power_peak_w)),
            Field::optional("power_limit_w", value(self.power_limit_w)),
            Field::optional("memory_last_bytes", value(self.memory_last_bytes)),
            Field::optional("memory_mean_bytes", value(self.memory_mean_bytes)),
            Field::optional("memory_peak_bytes", value(self.memory_peak_bytes)),
            Field::optional("memory_total_bytes", self.memory_total_bytes),
            Field::optional(
                "utilization_last_percent",
                value(self.utilization_last_percent),
            ),
            Field::optional(
                "utilization_mean_percent",
                value(self.utilization_mean_percent),
            ),
            Field::optional("temperature_last_c", value(self.temperature_last_c)),
            Field::optional("temperature_peak_c", value(self.temperature_peak_c)),
            Field::optional("sm_clock_last_mhz", value(self.sm_clock_last_mhz)),
            Field::optional("sm_clock_mean_mhz", value(self.sm_clock_mean_mhz)),
            Field::optional("sm_clock_max_mhz", self.sm_clock_max_mhz),
            Field::raw("clock_samples", self.clock_samples),
            Field::raw("held_back_samples", self.held_back_samples),
            Field::raw("held_back", array(held_back)),
            Field::optional("energy_j", value(self.energy_j)),
            Field::optional("unmeasured_j", value(self.unmeasured_j)),
            Field::optional("energy_step_ns", self.energy_step_ns.map(nanoseconds)),
            Field::raw("is_energy_from_power", self.is_energy_from_power),
            Field::optional_text("not_shared", self.not_shared.as_deref()),
        ])
    }
}

/// Returns the reasons that held clocks back, the most frequent first.
fn held_back(reasons: &[u64; ThrottleReasons::NAMED.len()]) -> Vec<HeldBack> {
    let named = ThrottleReasons::NAMED.iter().zip(reasons);
    let mut held: Vec<HeldBack> = named
        .filter(|((reason, _), samples)| reason.holds_back() && **samples > 0)
        .map(|((_, name), samples)| HeldBack {
            reason: (*name).to_owned(),
            samples: *samples,
        })
        .collect();
    held.order_by_key(|held| std::cmp::Reverse(held.samples));
    held
}

/// Returns why the energy of a device cannot be shared out by the times that this process measured.
fn why_not_shared(device: &GpuDevice) -> Option<String> {
    if device.is_mig {
        return Some(
            "the device is divided by MIG, and its energy is that of all parts together".to_owned(),
        );
    }
    let processes = device.compute_processes.filter(|number| *number > 1)?;
    Some(format!(
        "{processes} processes compute on the device, and its energy is that of all of them"
    ))
}

#[cfg(test)]
mod tests;
