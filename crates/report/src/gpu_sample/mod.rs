//! Readings of a device's sensors, and the energy that names used, as plain data.

mod quantity;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use self::quantity::{GpuQuantity, GpuReadings, ThrottleReasons};

/// A device whose sensors are read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuDevice {
    /// Its number in CUDA; `None` if the program has not initialised CUDA, or cannot see the device there.
    pub ordinal: Option<u32>,
    /// Its number in NVML and `nvidia-smi`, which may differ from that in CUDA.
    pub nvml_index: u32,
    /// Its unique identifier: `GPU-` and 32 hexadecimal digits in five groups.
    pub uuid: String,
    /// Its product name.
    pub name: String,
    /// The size of its memory in bytes.
    pub memory_bytes: Option<u64>,
    /// The highest clock of its multiprocessors in MHz.
    pub max_sm_clock_mhz: Option<u32>,
    /// The highest clock of its memory in MHz.
    pub max_memory_clock_mhz: Option<u32>,
    /// The power limit in force, in watts.
    pub power_limit_w: Option<f64>,
    /// `true` if it is divided by MIG (Multi-Instance GPU): the sensors are those of the whole device.
    pub is_mig: bool,
    /// The number of processes that compute on it, as of the first sample.
    pub compute_processes: Option<u32>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// The sensors of one device at one time, or a summary of several samples.
///
/// A long run keeps its recent samples as they are. Older ones are merged, two at a time: the readings are then means
/// (sums, for quantities that [add up](GpuQuantity::adds_up)), and the least and the greatest reading are kept beside.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuSample {
    /// The index of the device in the list of devices.
    pub device: u32,
    /// When it was taken, in nanoseconds since the Unix epoch: the middle of the calls that read the sensors. For merged
    /// samples, the time of the first.
    pub unix_ns: i64,
    /// How far from `unix_ns` a sensor may have been read, in nanoseconds.
    pub uncertainty_ns: u64,
    /// The readings of the sensors.
    pub readings: GpuReadings,
    /// The reasons for lower clocks; of merged samples, those that any had.
    pub throttle: Option<ThrottleReasons>,
    /// Least and greatest readings, if it is merged from several samples.
    #[doc(hidden)]
    pub merged: Option<Box<Merged>>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

/// The values that merged samples keep beside their means.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    samples: u64,
    /// How many of them have a reading, for each quantity.
    readings: [u32; GpuQuantity::ALL.len()],
    end_unix_ns: i64,
    min: GpuReadings,
    max: GpuReadings,
    held_back: u64,
    /// How many samples know their reasons.
    with_reasons: u64,
}

impl GpuSample {
    /// Returns the reading of a quantity, or the mean (for quantities that add up, the sum) of merged samples.
    #[must_use]
    pub fn get(&self, quantity: GpuQuantity) -> Option<f64> {
        self.readings.get(quantity)
    }

    /// Returns the least reading among merged samples.
    #[must_use]
    pub fn min(&self, quantity: GpuQuantity) -> Option<f64> {
        let readings = self.merged.as_deref().map(|merged| &merged.min);
        readings.unwrap_or(&self.readings).get(quantity)
    }

    /// Returns the greatest reading among merged samples.
    #[must_use]
    pub fn max(&self, quantity: GpuQuantity) -> Option<f64> {
        let readings = self.merged.as_deref().map(|merged| &merged.max);
        readings.unwrap_or(&self.readings).get(quantity)
    }

    /// Returns the number of samples that were merged, 1 for a single one.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.merged.as_deref().map_or(1, |merged| merged.samples)
    }

    /// Returns the number of samples in which the clocks were [held back](ThrottleReasons::holds_back).
    #[must_use]
    pub fn held_back(&self) -> u64 {
        match (&self.merged, self.throttle) {
            (Some(merged), _) => merged.held_back,
            (None, Some(reasons)) => reasons.holds_back().into(),
            (None, None) => 0,
        }
    }

    /// Returns the number of samples that have a reading of a quantity.
    fn readings_of(&self, quantity: GpuQuantity) -> u32 {
        match self.merged.as_deref() {
            Some(merged) => merged.readings.get(quantity as usize).copied().unwrap_or(0),
            None => self.get(quantity).is_some().into(),
        }
    }

    /// Returns the number of samples that know why their clocks are lower.
    fn with_reasons(&self) -> u64 {
        let merged = self.merged.as_deref().map(|merged| merged.with_reasons);
        merged.unwrap_or_else(|| self.throttle.is_some().into())
    }

    /// Returns the time of the last of merged samples, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn end_unix_ns(&self) -> i64 {
        self.merged
            .as_deref()
            .map_or(self.unix_ns, |merged| merged.end_unix_ns)
    }

    /// Returns the readings for logs: tags with the device and the unit, such as `gpu0/power_w`, and the values. Of merged
    /// samples, `clocks_held_back` is the share of those that were.
    #[doc(hidden)]
    pub fn scalars(&self, device: &GpuDevice) -> Vec<(String, f64)> {
        let device = device.ordinal.map_or_else(
            || format!("nvml{}", device.nvml_index),
            |ordinal| format!("gpu{ordinal}"),
        );
        let held_back = self.held_back() as f64 / self.with_reasons().max(1) as f64;
        let held_back = self.throttle.map(|_| ("clocks_held_back", held_back));
        let readings = self.readings.iter();
        readings
            .map(|(quantity, value)| (quantity.key(), value))
            .chain(held_back)
            .map(|(key, value)| (format!("{device}/{key}"), value))
            .collect()
    }

    /// Returns when it was taken.
    #[doc(hidden)]
    pub fn wall_time(&self) -> SystemTime {
        let since = Duration::from_nanos(u64::try_from(self.unix_ns).unwrap_or(0));
        UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
    }

    /// Returns one sample for this one and the next of the same device.
    #[doc(hidden)]
    #[must_use]
    pub fn merge(&self, next: &Self) -> Self {
        let mean = |quantity: GpuQuantity, first: f64, second: f64| {
            if quantity.adds_up() {
                return first + second;
            }
            let [own, others] = [self, next].map(|sample| f64::from(sample.readings_of(quantity)));
            (first * own + second * others) / (own + others)
        };
        let extreme = |sample: &Self| sample.merged.as_deref().cloned();
        let (min, max) =
            extreme(self).map_or((self.readings, self.readings), |own| (own.min, own.max));
        let (other_min, other_max) =
            extreme(next).map_or((next.readings, next.readings), |own| (own.min, own.max));
        let throttle = match (self.throttle, next.throttle) {
            (Some(first), Some(second)) => {
                Some(ThrottleReasons::from_bits(first.bits() | second.bits()))
            }
            (first, second) => first.or(second),
        };
        Self {
            device: self.device,
            unix_ns: self.unix_ns,
            uncertainty_ns: self.uncertainty_ns.max(next.uncertainty_ns),
            readings: self.readings.combine(&next.readings, mean),
            throttle,
            merged: Some(Box::new(Merged {
                samples: self.samples() + next.samples(),
                readings: GpuQuantity::ALL.map(|quantity| {
                    self.readings_of(quantity)
                        .saturating_add(next.readings_of(quantity))
                }),
                end_unix_ns: next.end_unix_ns(),
                min: min.combine(&other_min, |_, first, second| first.min(second)),
                max: max.combine(&other_max, |_, first, second| first.max(second)),
                held_back: self.held_back() + next.held_back(),
                with_reasons: self.with_reasons() + next.with_reasons(),
            })),
            non_exhaustive: (),
        }
    }
}

/// The energy that one name used on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NameEnergy {
    /// The number of the name (`Name::id`).
    pub name: u32,
    /// Its share of the measured energy.
    pub joules: f64,
    /// The GPU self time that the share is for, in nanoseconds.
    pub self_ns: f64,
}

/// Where the energy of a device comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnergySource {
    /// The device has neither counter nor power.
    #[default]
    None,
    /// The device's energy counter.
    Counter,
    /// The power of each sample, multiplied by the time since the sample before.
    Power,
}

/// The energy of one device over the samples, shared out by GPU self time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceEnergy {
    /// Where the energy is known from.
    pub source: EnergySource,
    /// All energy that was measured, in joules.
    pub joules: f64,
    /// The rest, which no measured scope accounts for: `joules` without the sum over `names`.
    pub unmeasured_joules: f64,
    /// The names whose GPU self time grew while samples were taken, by their numbers.
    pub names: Vec<NameEnergy>,
    /// The intervals between samples that were shared out.
    pub intervals: u64,
    /// The time that these intervals cover, in nanoseconds.
    pub covered_ns: f64,
    /// The step of the energy counter, or the mean interval between readings of the power, in nanoseconds: names with less than ten steps of GPU time have no meaningful
    /// share.
    pub step_ns: f64,
}

/// The sums over all samples of a device since sampling began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceTotals {
    /// All samples merged into one; `None` before the first.
    pub all: Option<GpuSample>,
    /// How many samples had each reason of [`ThrottleReasons::NAMED`].
    pub reasons: [u64; ThrottleReasons::NAMED.len()],
    /// How many samples know their reasons, including those without any: shares of held-back samples refer to these.
    pub with_reasons: u64,
}

/// One device with its samples and its energy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceSamples {
    /// The device.
    pub device: GpuDevice,
    /// In the order of their times. A window has those between its ends and one on each side.
    pub samples: Vec<GpuSample>,
    /// What all samples say, the merged ones included.
    pub totals: DeviceTotals,
    /// The energy of the device, and how it is shared out.
    pub energy: DeviceEnergy,
}

/// The samples of all devices, of a run or a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuSamples {
    /// The devices, in the order of [`GpuSample::device`].
    pub devices: Vec<DeviceSamples>,
    /// The time between samples in nanoseconds; 0 if none were asked for.
    pub interval_ns: u64,
    /// Why samples or readings are missing, a sentence for each reason.
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: i64, power: f64, energy: f64, reasons: u64) -> GpuSample {
        let mut readings = GpuReadings::NONE;
        readings.set(GpuQuantity::Power, Some(power));
        readings.set(GpuQuantity::Energy, Some(energy));
        GpuSample {
            unix_ns: second * 1_000_000_000,
            readings,
            throttle: Some(ThrottleReasons::from_bits(reasons)),
            ..GpuSample::default()
        }
    }

    #[test]
    fn merged_samples_keep_least_mean_and_greatest_and_add_up_energy() {
        let power = GpuQuantity::Power;
        let pair = sample(1, 100.0, 7.0, 4).merge(&sample(2, 200.0, 3.0, 1));
        let three = pair.merge(&sample(3, 300.0, 5.0, 0x40));
        assert_eq!(
            (three.min(power), three.max(power)),
            (Some(100.0), Some(300.0))
        );
        assert_eq!(three.get(power), Some(200.0));
        assert_eq!(three.get(GpuQuantity::Energy), Some(15.0));
        assert_eq!((three.samples(), three.held_back()), (3, 2));
        assert_eq!(
            (three.unix_ns, three.end_unix_ns()),
            (1_000_000_000, 3_000_000_000)
        );
        assert_eq!(three.throttle.map(ThrottleReasons::bits), Some(0x45));
        assert_eq!(three.get(GpuQuantity::Temperature), None);
    }

    #[test]
    fn samples_without_a_reading_do_not_count_in_its_mean() {
        let power = GpuQuantity::Power;
        let mut missing = sample(2, 0.0, 3.0, 0);
        missing.readings.set(power, None);
        missing.throttle = None;
        let pair = sample(1, 100.0, 7.0, 4).merge(&missing);
        let three = pair.merge(&sample(3, 300.0, 5.0, 0));
        assert_eq!((three.samples(), three.get(power)), (3, Some(200.0)));
        let scalars = three.scalars(&GpuDevice::default());
        let held_back = scalars.iter().find(|(key, _)| key.ends_with("held_back"));
        assert_eq!(held_back.map(|(_, share)| *share), Some(0.5));
    }

    #[test]
    fn scalars_have_the_device_and_the_unit_in_their_tags() {
        let mut device = GpuDevice {
            nvml_index: 3,
            ..GpuDevice::default()
        };
        let one = sample(1, 100.0, 7.0, 4);
        let tags = |device: &GpuDevice| one.scalars(device);
        let named = |name: &str| {
            let scalars = [
                ("power_w", 100.0),
                ("energy_j", 7.0),
                ("clocks_held_back", 1.0),
            ];
            scalars.map(|(key, value)| (format!("{name}/{key}"), value))
        };
        assert_eq!(tags(&device), named("nvml3"));
        device.ordinal = Some(0);
        assert_eq!(tags(&device), named("gpu0"));
        let none = GpuSample::default();
        assert!(none.scalars(&device).is_empty());
        let since = one.wall_time().duration_since(UNIX_EPOCH);
        assert_eq!(since.ok(), Some(Duration::from_secs(1)));
    }
}
