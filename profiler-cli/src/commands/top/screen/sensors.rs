//! What the sensors of the devices said at the last sample.

use profiler_report::SampledGpu;

use super::super::text::printable;

/// Returns a text for each reading of the only device, or for each device.
pub(super) fn texts(gpus: &[SampledGpu], columns: usize) -> Vec<String> {
    match gpus {
        [gpu] => {
            let mut readings = readings(gpu, columns >= 100);
            if let Some(first) = readings.first_mut() {
                *first = format!("{} {first}", gpu.label());
            }
            readings
        }
        gpus => {
            let text = |gpu: &SampledGpu| {
                let readings = readings(gpu, false);
                (!readings.is_empty()).then(|| format!("{} {}", gpu.label(), readings.join(" ")))
            };
            gpus.iter().filter_map(text).collect()
        }
    }
}

/// Returns the readings that there are; with their limits if `is_long`.
fn readings(gpu: &SampledGpu, is_long: bool) -> Vec<String> {
    let of = |value: String, limit: Option<String>, unit: &str| match limit.filter(|_| is_long) {
        Some(limit) => format!("{value} of {limit}{unit}"),
        None => format!("{value}{unit}"),
    };
    let gib = |bytes: f64| format!("{:.1}", bytes / 1_073_741_824.0);
    let memory = |used: f64| {
        let total = gpu.memory_total_bytes.map(|total| gib(total as f64));
        of(gib(used), total, " GiB")
    };
    let power = |watts: f64| {
        let limit = gpu.power_limit_w.map(|limit| format!("{limit:.0}"));
        of(format!("{watts:.0}"), limit, " W")
    };
    let clock = |mhz: f64| {
        let limit = gpu.sm_clock_max_mhz.map(|limit| limit.to_string());
        of(format!("{mhz:.0}"), limit, " MHz")
    };
    let held_back = gpu.held_back.first().filter(|_| is_long);
    let readings = [
        gpu.utilization_last_percent
            .map(|load| format!("load {load:.0} %")),
        gpu.memory_last_bytes.map(memory),
        gpu.power_last_w.map(power),
        gpu.sm_clock_last_mhz.map(clock),
        gpu.temperature_last_c
            .map(|celsius| format!("{celsius:.0} °C")),
        held_back.map(|held| {
            let (held_in, known) = (gpu.held_back_samples, gpu.clock_samples);
            let reason = printable(&held.reason);
            format!("held back in {held_in} of {known} samples: {reason}")
        }),
    ];
    readings.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(ordinal: u32) -> SampledGpu {
        let mut gpu = SampledGpu::default();
        gpu.ordinal = Some(ordinal);
        gpu.utilization_last_percent = Some(71.0);
        gpu.memory_last_bytes = Some(f64::from(1 << 30));
        gpu.memory_total_bytes = Some(80 << 30);
        gpu.power_last_w = Some(412.4);
        gpu.power_limit_w = Some(700.0);
        gpu.sm_clock_last_mhz = Some(1620.0);
        gpu.sm_clock_max_mhz = Some(1980);
        gpu
    }

    #[test]
    fn readings_that_are_missing_take_no_space() {
        assert_eq!(texts(&[], 200), Vec::<String>::new());
        assert_eq!(texts(&[SampledGpu::default()], 200), Vec::<String>::new());
        let short = ["GPU 0 load 71 %", "1.0 GiB", "412 W", "1620 MHz"];
        assert_eq!(texts(&[gpu(0)], 80), short);
        let long = [
            "GPU 0 load 71 %",
            "1.0 of 80.0 GiB",
            "412 of 700 W",
            "1620 of 1980 MHz",
        ];
        assert_eq!(texts(&[gpu(0)], 200), long);
        let two = texts(&[gpu(0), gpu(1)], 200);
        assert_eq!(two[1], "GPU 1 load 71 % 1.0 GiB 412 W 1620 MHz");
    }
}
