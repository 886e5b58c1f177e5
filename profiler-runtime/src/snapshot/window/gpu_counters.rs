//! The samples of devices as counters.

use profiler_report::internal::{DeviceSamples, device_label};
use profiler_report::{Counter, GpuQuantity, GpuSample};

use crate::session::Trace;

/// The quantities that are shown, with their names and units.
const SHOWN: [(GpuQuantity, &str, &str); 6] = [
    (GpuQuantity::Power, "power", "W"),
    (GpuQuantity::Utilization, "utilization", "%"),
    (GpuQuantity::MemoryUsed, "memory in use", "bytes"),
    (GpuQuantity::SmClock, "SM clock", "MHz"),
    (GpuQuantity::MemoryClock, "memory clock", "MHz"),
    (GpuQuantity::Temperature, "temperature", "°C"),
];

/// Returns the counters of all devices. Their times are those that `time_of` makes of nanoseconds since the Unix epoch,
/// from zero to `end`: the last sample before zero holds from there on.
pub(crate) fn gpu_counters(
    trace: &Trace,
    end: i64,
    time_of: impl Fn(i64) -> i64 + Copy,
) -> Vec<Counter> {
    let devices = trace.gpu_samples.devices.iter();
    let counters = devices.flat_map(|device| {
        let counter = move |name: &str, unit: &str, value: &dyn Fn(&GpuSample) -> Option<f64>| {
            let samples = device.samples.iter();
            let values =
                samples.filter_map(|sample| Some((time_of(sample.unix_ns), value(sample)?)));
            counter(device, name, unit, changes(values, end))
        };
        let of_quantity = SHOWN
            .map(|(quantity, name, unit)| counter(name, unit, &|sample| reading(sample, quantity)));
        let held_back = counter("clocks held back", "", &|sample| {
            let reasons = sample.throttle?;
            Some(f64::from(u8::from(reasons.holds_back())))
        });
        of_quantity.into_iter().chain([held_back])
    });
    counters
        .filter(|counter| !counter.samples.is_empty())
        .collect()
}

/// Returns a reading; the power of the moment stands in for a mean that the device does not have.
fn reading(sample: &GpuSample, quantity: GpuQuantity) -> Option<f64> {
    let instant = || {
        let is_power = quantity == GpuQuantity::Power;
        sample.get(GpuQuantity::PowerInstant).filter(|_| is_power)
    };
    sample.get(quantity).or_else(instant)
}

fn counter(device: &DeviceSamples, name: &str, unit: &str, samples: Vec<(i64, f64)>) -> Counter {
    let ordinal = device.device.ordinal;
    Counter {
        name: if ordinal.is_some() {
            name.to_owned()
        } else {
            format!("{} {name}", device_label(&device.device))
        },
        unit: unit.to_owned(),
        device: ordinal,
        samples,
        non_exhaustive: (),
    }
}

/// Returns the values inside the window that differ from the one before.
fn changes(values: impl Iterator<Item = (i64, f64)>, end: i64) -> Vec<(i64, f64)> {
    let mut changes: Vec<(i64, f64)> = Vec::new();
    for (at, value) in values.filter(|(at, _)| *at <= end) {
        let at = at.max(0);
        match changes.last_mut() {
            Some((last, before)) if *last == at => *before = value,
            Some((_, before)) if before.to_bits() == value.to_bits() => {}
            _ => changes.push((at, value)),
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::sample::Sample;
    use profiler_report::{GpuDevice, GpuReadings, ThrottleReasons};

    /// A name, a unit and values.
    type Shown<'c> = (&'c str, &'c str, &'c [(i64, f64)]);

    fn sample(at: i64, readings: &[(GpuQuantity, f64)], reasons: Option<u64>) -> GpuSample {
        let mut all = GpuReadings::NONE;
        for (quantity, value) in readings {
            all.set(*quantity, Some(*value));
        }
        GpuSample {
            unix_ns: at,
            readings: all,
            throttle: reasons.map(ThrottleReasons::from_bits),
            ..GpuSample::default()
        }
    }

    fn counters(ordinal: Option<u32>, samples: Vec<GpuSample>) -> Vec<Counter> {
        let mut window = Sample::new();
        window.gpu_samples.devices = vec![DeviceSamples {
            device: GpuDevice {
                ordinal,
                nvml_index: 2,
                ..GpuDevice::default()
            },
            samples,
            ..DeviceSamples::default()
        }];
        // Times are from 1,000 on.
        gpu_counters(&window.trace(), 100, |at| at - 1_000)
    }

    #[test]
    fn values_that_change_are_written_from_the_start_of_the_window_to_its_end() {
        let power = |at, watts| sample(at, &[(GpuQuantity::Power, watts)], None);
        let samples = [
            power(970, 100.0),
            power(1010, 100.0),
            power(1020, 200.0),
            power(1100, 300.0),
            power(1110, 400.0),
        ];
        let counters = counters(Some(1), samples.into());
        let [power] = &counters[..] else {
            panic!("one counter: {counters:?}")
        };
        assert_eq!(
            (&*power.name, &*power.unit, power.device),
            ("power", "W", Some(1))
        );
        assert_eq!(power.samples, [(0, 100.0), (20, 200.0), (100, 300.0)]);
    }

    #[test]
    fn every_quantity_has_its_unit_and_missing_readings_are_left_out() {
        let readings = [
            (GpuQuantity::PowerInstant, 99.0),
            (GpuQuantity::MemoryUsed, 1e9),
            (GpuQuantity::SmClock, 1980.0),
            (GpuQuantity::PcieSent, 7.0),
        ];
        let samples = vec![
            sample(1000, &readings, Some(4)),
            sample(1010, &readings[1..2], Some(1)),
        ];
        let found = counters(None, samples);
        let found: Vec<Shown> = found
            .iter()
            .map(|counter| (&*counter.name, &*counter.unit, &*counter.samples))
            .collect();
        let expected: [Shown; 4] = [
            ("GPU 2 of nvidia-smi power", "W", &[(0, 99.0)]),
            ("GPU 2 of nvidia-smi memory in use", "bytes", &[(0, 1e9)]),
            ("GPU 2 of nvidia-smi SM clock", "MHz", &[(0, 1980.0)]),
            (
                "GPU 2 of nvidia-smi clocks held back",
                "",
                &[(0, 1.0), (10, 0.0)],
            ),
        ];
        assert_eq!(found, expected);
    }
}
