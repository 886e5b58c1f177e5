//! What the sensors say at one moment.

use std::fmt;
use std::path::Path;

use profiler_host::diagnostics::printable;
use profiler_report::{GpuDevice, GpuQuantity, GpuSample, ThrottleReasons};

use super::SensorError;

/// What the sensors of a device say at one moment.
///
/// `Display` writes it as a block of lines, each with its unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuState {
    /// The device: its number in `nvidia-smi`, name, UUID, size of its memory, power limit and highest clocks.
    pub device: GpuDevice,
    /// The readings, and when they were taken.
    pub sample: GpuSample,
    /// Why readings are missing, a line for each.
    pub missing: Vec<String>,
    #[doc(hidden)]
    pub non_exhaustive: (),
}

impl GpuState {
    /// Returns a reading in the unit of its quantity; `None` if the device has none.
    ///
    /// Quantities that add up between two samples, such as energy, have no reading.
    #[must_use]
    pub fn get(&self, quantity: GpuQuantity) -> Option<f64> {
        self.sample.get(quantity)
    }

    /// Returns `false` if the device cannot be opened: it is lost, or another process owns it. It then has a number and a
    /// reason, and no readings.
    #[must_use]
    pub fn is_opened(&self) -> bool {
        !self.device.uuid.is_empty()
    }

    /// Returns the memory in use by all processes and the system, in bytes.
    #[must_use]
    pub fn memory_used_bytes(&self) -> Option<u64> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it was a whole number from 0"
        )]
        self.get(GpuQuantity::MemoryUsed).map(|bytes| bytes as u64)
    }

    /// Returns the size of the memory in bytes.
    #[must_use]
    pub fn memory_total_bytes(&self) -> Option<u64> {
        self.device.memory_bytes
    }

    /// Returns the share of the last sampling period in which a kernel ran, in percent.
    #[must_use]
    pub fn utilization_percent(&self) -> Option<f64> {
        self.get(GpuQuantity::Utilization)
    }

    /// Returns the power in watts.
    #[must_use]
    pub fn power_w(&self) -> Option<f64> {
        self.get(GpuQuantity::Power)
    }

    /// Returns the power limit in force, in watts.
    #[must_use]
    pub fn power_limit_w(&self) -> Option<f64> {
        self.device.power_limit_w
    }

    /// Returns the temperature of the chip in degrees Celsius.
    #[must_use]
    pub fn temperature_c(&self) -> Option<f64> {
        self.get(GpuQuantity::Temperature)
    }

    /// Returns the clock of the multiprocessors in MHz.
    #[must_use]
    pub fn sm_clock_mhz(&self) -> Option<f64> {
        self.get(GpuQuantity::SmClock)
    }

    /// Returns the clock of the memory in MHz.
    #[must_use]
    pub fn memory_clock_mhz(&self) -> Option<f64> {
        self.get(GpuQuantity::MemoryClock)
    }

    /// Returns the lines of the readings, with their labels.
    fn lines(&self) -> impl Iterator<Item = (&'static str, String)> {
        const MIB: f64 = 1_048_576.0;
        let device = &self.device;
        let of = |quantity, scale: f64, digits: usize| {
            let value = self.get(quantity).filter(|value| value.is_finite());
            value.map_or_else(
                || "-".to_owned(),
                |value| format!("{:.digits$}", value / scale),
            )
        };
        let limit = |limit: Option<f64>, digits: usize| {
            limit.map_or_else(String::new, |limit| format!(" of {limit:.digits$}"))
        };
        let mhz = |clock: Option<u32>| limit(clock.map(f64::from), 0);
        let total = device.memory_bytes.map(|bytes| bytes as f64 / MIB);
        let state = self.get(GpuQuantity::PerformanceState);
        let state = state.map_or_else(String::new, |state| format!(", P{state:.0}"));
        let held_back = self.sample.throttle.filter(|reasons| reasons.holds_back());
        let held_back = held_back.map(|reasons| {
            let held_back = reasons.bits() & ThrottleReasons::HOLD_BACK.bits();
            let names = ThrottleReasons::from_bits(held_back).names();
            names.collect::<Vec<_>>().join(", ")
        });
        let lines = [
            ("UUID", device.uuid.clone()),
            (
                "memory",
                format!(
                    "{}{} MiB",
                    of(GpuQuantity::MemoryUsed, MIB, 0),
                    limit(total, 0)
                ),
            ),
            (
                "utilization",
                format!(
                    "{} %, memory {} %",
                    of(GpuQuantity::Utilization, 1.0, 0),
                    of(GpuQuantity::MemoryUtilization, 1.0, 0)
                ),
            ),
            (
                "power",
                format!(
                    "{}{} W",
                    of(GpuQuantity::Power, 1.0, 1),
                    limit(device.power_limit_w, 0)
                ),
            ),
            (
                "temperature",
                format!("{} °C", of(GpuQuantity::Temperature, 1.0, 0)),
            ),
            (
                "clocks",
                format!(
                    "{}{} MHz, memory {}{} MHz{state}",
                    of(GpuQuantity::SmClock, 1.0, 0),
                    mhz(device.max_sm_clock_mhz),
                    of(GpuQuantity::MemoryClock, 1.0, 0),
                    mhz(device.max_memory_clock_mhz)
                ),
            ),
        ];
        let held_back = held_back.map(|reasons| ("held back", reasons));
        let missing = self
            .missing
            .iter()
            .map(|reason| ("missing", reason.clone()));
        lines.into_iter().chain(held_back).chain(missing)
    }
}

impl fmt::Display for GpuState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = &self.device;
        write!(f, "GPU {}", device.nvml_index)?;
        if !device.name.is_empty() {
            write!(f, " {}", printable(&device.name))?;
        }
        if !self.is_opened() {
            for reason in &self.missing {
                write!(f, "\n  {:<12} {}", "missing", printable(reason))?;
            }
            return Ok(());
        }
        for (label, text) in self.lines() {
            write!(f, "\n  {label:<12} {}", printable(&text))?;
        }
        Ok(())
    }
}

/// Reads the sensors of all devices of the system once, as `nvidia-smi` does: also of devices that the program does not use.
///
/// `library` is the path of NVML; `None` stands for the system's.
///
/// The calls of NVML are made on the calling thread. They take milliseconds, the first time up to a second, hold a lock of
/// the driver for which launches wait, and may not return if a device is lost.
///
/// # Errors
///
/// Returns an error if NVML cannot be loaded or refuses to work, if there is no device, or if the crate was built without the
/// feature `load`. A reading that a device does not have is no error, nor is a device that cannot be opened beside others:
/// [`GpuState::missing`] says why.
///
/// # Examples
///
/// ```no_run
/// for gpu in profiler_sensors::sample_gpus(None)? {
///     if let (Some(used), Some(total)) = (gpu.memory_used_bytes(), gpu.memory_total_bytes()) {
///         println!("{}: {used} of {total} bytes", gpu.device.name);
///     }
/// }
/// # Ok::<(), profiler_sensors::SensorError>(())
/// ```
pub fn sample_gpus(library: Option<&Path>) -> Result<Vec<GpuState>, SensorError> {
    read_all(library)
}

#[cfg(not(all(feature = "load", not(target_family = "wasm"))))]
fn read_all(_library: Option<&Path>) -> Result<Vec<GpuState>, SensorError> {
    Err(SensorError::NotBuilt)
}

#[cfg(all(feature = "load", not(target_family = "wasm")))]
fn read_all(library: Option<&Path>) -> Result<Vec<GpuState>, SensorError> {
    use crate::call::Unobserved;
    use crate::sensors::Note;

    let table = crate::open(library)?;
    let (sensors, refused) = crate::devices(&table)?;
    let states = sensors.into_iter().map(|mut sensors| {
        let (sampled, unix_ns, uncertainty_ns) = sensors.read_at_a_time(&table, &Unobserved);
        let missing = sensors.notes.drain(..);
        let missing = missing.map(|(Note::Known(text) | Note::Warning(text))| text);
        GpuState {
            missing: missing.collect(),
            sample: GpuSample {
                unix_ns,
                uncertainty_ns,
                readings: sampled.readings,
                throttle: sampled.throttle,
                ..GpuSample::default()
            },
            device: sensors.device,
            non_exhaustive: (),
        }
    });
    let refused = refused.into_iter().map(|refused| GpuState {
        device: GpuDevice {
            nvml_index: refused.nvml_index,
            ..GpuDevice::default()
        },
        missing: vec![refused.to_string()],
        ..GpuState::default()
    });
    let mut states: Vec<GpuState> = states.chain(refused).collect();
    states.sort_by_key(|state| state.device.nvml_index);
    Ok(states)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_a_block_of_lines_with_units() {
        let mut state = GpuState {
            device: GpuDevice {
                nvml_index: 1,
                uuid: "GPU-1".to_owned(),
                name: "NVIDIA H100\n80GB".to_owned(),
                memory_bytes: Some(80 << 30),
                max_sm_clock_mhz: Some(1_980),
                power_limit_w: Some(700.0),
                ..GpuDevice::default()
            },
            ..GpuState::default()
        };
        let readings = &mut state.sample.readings;
        readings.set(GpuQuantity::MemoryUsed, Some(1.5 * 1_073_741_824.0));
        readings.set(GpuQuantity::Utilization, Some(97.0));
        readings.set(GpuQuantity::Power, Some(402.125));
        readings.set(GpuQuantity::Temperature, Some(61.0));
        readings.set(GpuQuantity::SmClock, Some(1_620.0));
        readings.set(GpuQuantity::PerformanceState, Some(0.0));
        state.sample.throttle = Some(ThrottleReasons::from_bits(1 | 4));
        state.missing.push("no memory clock".to_owned());
        let expected = "GPU 1 NVIDIA H100�80GB
  UUID         GPU-1
  memory       1536 of 81920 MiB
  utilization  97 %, memory - %
  power        402.1 of 700 W
  temperature  61 °C
  clocks       1620 of 1980 MHz, memory - MHz, P0
  held back    power cap
  missing      no memory clock";
        assert_eq!(state.to_string(), expected);
        assert_eq!(state.memory_used_bytes(), Some(1_610_612_736));
        assert_eq!(state.power_w(), Some(402.125));
        assert_eq!(state.memory_clock_mhz(), None);
    }
}
