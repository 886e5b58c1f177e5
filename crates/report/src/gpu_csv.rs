//! Samples of devices as `nvidia-smi --query-gpu` writes them.

use std::fmt::Write as _;
use std::path::Path;

use super::ExportError;
use super::date;
use super::file;
use crate::gpu_sample::{DeviceSamples, GpuDevice, GpuQuantity, GpuSample};
use crate::in_order::InOrder as _;

/// The first line, as `nvidia-smi` writes it.
const HEADER: &str = "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB], power.draw [W], \
power.draw.instant [W], temperature.gpu, clocks.current.sm [MHz], clocks.current.memory [MHz], pstate";

const MIB: f64 = 1_048_576.0;

/// Writes samples as CSV.
///
/// # Errors
///
/// Returns an error if the file cannot be created or written.
pub fn write(path: &Path, devices: &[DeviceSamples]) -> Result<(), ExportError> {
    file::write(path, csv(devices).as_bytes())
}

/// Returns the lines in the order of the samples' times.
fn csv(devices: &[DeviceSamples]) -> String {
    let mut lines: Vec<(&GpuDevice, &GpuSample)> = devices
        .iter()
        .flat_map(|device| device.samples.iter().map(|sample| (&device.device, sample)))
        .collect();
    lines.order_by_key(|(_, sample)| sample.unix_ns);
    let mut text = format!("{HEADER}\n");
    for (device, sample) in lines {
        push_line(&mut text, device, sample);
    }
    text
}

fn push_line(text: &mut String, device: &GpuDevice, sample: &GpuSample) {
    let reading = |quantity: GpuQuantity, unit: f64, digits: usize, suffix: &str| {
        let value = sample.get(quantity).filter(|value| value.is_finite());
        value.map_or_else(missing, |value| {
            format!("{:.digits$}{suffix}", value / unit)
        })
    };
    let total = device.memory_bytes;
    let cells = [
        date::to_the_millisecond(sample.unix_ns),
        device.nvml_index.to_string(),
        // `nvidia-smi` has no quotes, and the names of devices have no commas.
        device.name.replace([',', '\n', '\r'], " "),
        reading(GpuQuantity::Utilization, 1.0, 0, " %"),
        reading(GpuQuantity::MemoryUtilization, 1.0, 0, " %"),
        reading(GpuQuantity::MemoryUsed, MIB, 0, " MiB"),
        total.map_or_else(missing, |bytes| format!("{:.0} MiB", bytes as f64 / MIB)),
        reading(GpuQuantity::Power, 1.0, 2, " W"),
        reading(GpuQuantity::PowerInstant, 1.0, 2, " W"),
        reading(GpuQuantity::Temperature, 1.0, 0, ""),
        reading(GpuQuantity::SmClock, 1.0, 0, " MHz"),
        reading(GpuQuantity::MemoryClock, 1.0, 0, " MHz"),
        sample
            .get(GpuQuantity::PerformanceState)
            .map_or_else(missing, |state| format!("P{state:.0}")),
    ];
    let _ = writeln!(text, "{}", cells.join(", "));
}

/// Returns what `nvidia-smi` writes for a reading that a device does not have.
fn missing() -> String {
    "[N/A]".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu_sample::GpuReadings;

    fn device(
        nvml_index: u32,
        name: &str,
        samples: &[(i64, &[(GpuQuantity, f64)])],
    ) -> DeviceSamples {
        let samples = samples.iter().map(|(unix_ns, readings)| {
            let mut all = GpuReadings::NONE;
            for (quantity, value) in *readings {
                all.set(*quantity, Some(*value));
            }
            GpuSample {
                unix_ns: *unix_ns,
                readings: all,
                ..GpuSample::default()
            }
        });
        DeviceSamples {
            device: GpuDevice {
                nvml_index,
                name: name.to_owned(),
                memory_bytes: (nvml_index == 0).then_some(80 << 30),
                ..GpuDevice::default()
            },
            samples: samples.collect(),
            ..DeviceSamples::default()
        }
    }

    #[test]
    fn lines_are_those_of_nvidia_smi_in_the_order_of_time() {
        use GpuQuantity as Q;
        let all = [
            (Q::Utilization, 97.0),
            (Q::MemoryUtilization, 41.0),
            (Q::MemoryUsed, 41.5 * 1024.0 * MIB),
            (Q::Power, 402.125),
            (Q::PowerInstant, 398.5),
            (Q::Temperature, 61.0),
            (Q::SmClock, 1620.0),
            (Q::MemoryClock, 2619.0),
            (Q::PerformanceState, 0.0),
        ];
        let second = 1_000_000_000;
        let start = 1_795_323_884 * second;
        let devices = [
            device(0, "NVIDIA H100 80GB HBM3", &[(start + 123_456_789, &all)]),
            device(
                1,
                "Tesla, T4",
                &[(start, &[]), (start + second, &[(Q::Power, 70.0)])],
            ),
        ];
        let expected = format!(
            "{HEADER}\n\
             2026/11/22 05:04:44.000, 1, Tesla  T4, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A]\n\
             2026/11/22 05:04:44.123, 0, NVIDIA H100 80GB HBM3, 97 %, 41 %, 42496 MiB, 81920 MiB, 402.12 W, 398.50 W, 61, 1620 MHz, 2619 MHz, P0\n\
             2026/11/22 05:04:45.000, 1, Tesla  T4, [N/A], [N/A], [N/A], [N/A], 70.00 W, [N/A], [N/A], [N/A], [N/A], [N/A]\n"
        );
        assert_eq!(csv(&devices), expected);
        assert_eq!(csv(&[]), format!("{HEADER}\n"));
    }
}
