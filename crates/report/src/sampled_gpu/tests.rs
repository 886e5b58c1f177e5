use super::*;
use crate::gpu_sample::{DeviceTotals, GpuReadings, GpuSample};

const GIB: f64 = 1_073_741_824.0;

/// Samples at intervals of a second, each with its power in watts, memory in GiB, clock in MHz and reasons.
fn device(samples: &[(f64, f64, f64, u64)]) -> DeviceSamples {
    let samples: Vec<GpuSample> = (0..)
        .zip(samples)
        .map(|(second, (power, memory, clock, reasons))| {
            let mut readings = GpuReadings::NONE;
            readings.set(GpuQuantity::Power, Some(*power));
            readings.set(GpuQuantity::MemoryUsed, Some(memory * GIB));
            readings.set(GpuQuantity::SmClock, Some(*clock));
            GpuSample {
                unix_ns: second * 1_000_000_000,
                readings,
                throttle: Some(ThrottleReasons::from_bits(*reasons)),
                ..GpuSample::default()
            }
        })
        .collect();
    let reasons = ThrottleReasons::NAMED.map(|(reason, _)| {
        let has = |sample: &&GpuSample| {
            let throttle = sample.throttle.unwrap_or_default();
            throttle.intersects(reason)
        };
        samples.iter().filter(has).count() as u64
    });
    DeviceSamples {
        device: GpuDevice {
            ordinal: Some(0),
            name: "H100".to_owned(),
            memory_bytes: Some(80 << 30),
            max_sm_clock_mhz: Some(1980),
            power_limit_w: Some(700.0),
            ..GpuDevice::default()
        },
        totals: DeviceTotals {
            all: samples.iter().cloned().reduce(|all, next| all.merge(&next)),
            reasons,
            with_reasons: samples.len() as u64,
        },
        samples,
        ..DeviceSamples::default()
    }
}

fn sampled(device: &DeviceSamples) -> SampledGpu {
    SampledGpu::of(device).expect("samples")
}

#[test]
fn the_last_sample_stands_beside_mean_and_peak() {
    let mut device = device(&[(100.0, 20.0, 1980.0, 0), (402.0, 41.2, 1620.0, 4)]);
    for (celsius, sample) in [60.0, 55.0].iter().zip(&mut device.samples) {
        sample
            .readings
            .set(GpuQuantity::Temperature, Some(*celsius));
    }
    let gpu = sampled(&device);
    assert_eq!(
        (gpu.sm_clock_last_mhz, gpu.sm_clock_mean_mhz),
        (Some(1620.0), Some(1800.0))
    );
    assert_eq!(gpu.temperature_last_c, Some(55.0));
    let json = gpu.to_json();
    assert!(json.contains("\"temperature_last_c\":55.000"), "{json}");
    assert!(json.contains("\"sm_clock_last_mhz\":1620.000"), "{json}");
}

#[test]
fn the_line_has_power_memory_clocks_and_what_held_them_back() {
    let device = device(&[
        (100.0, 20.0, 1980.0, 0),
        (402.0, 41.2, 1620.0, 4),
        (191.0, 41.0, 1260.0, 1),
    ]);
    assert_eq!(
        sampled(&device).line(),
        "GPU 0 (H100): 231 W mean, 402 W peak of 700 W; 41.2 GiB peak of 80; clocks 1.62 of 1.98 GHz; held back in 33 % of \
         3 samples: power cap"
    );
}

#[test]
fn several_reasons_have_their_shares_and_chosen_clocks_are_none() {
    let mut device = device(&[
        (100.0, 0.5, 1000.0, 0x44),
        (100.0, 0.5, 1000.0, 4),
        (100.0, 0.5, 1000.0, 3),
        (100.0, 0.5, 1000.0, 0),
    ]);
    let line = sampled(&device).line();
    let expected = "512 MiB peak of 80 GiB; clocks 1.00 of 1.98 GHz; held back in 50 % of 4 samples: power cap (50 %), \
                    hardware thermal slowdown (25 %)";
    assert!(line.ends_with(expected), "{line}");
    device.totals.reasons = [0; 11];
    device.totals.with_reasons = 1;
    device.totals.all = Some(device.samples[3].clone());
    let line = sampled(&device).line();
    assert!(line.ends_with("; not held back in 1 sample"), "{line}");
}

#[test]
fn what_a_device_does_not_have_is_left_out_of_its_line() {
    let mut device = device(&[(100.0, 0.5, 1000.0, 0)]);
    device.device = GpuDevice {
        nvml_index: 3,
        name: "T4".to_owned(),
        ..GpuDevice::default()
    };
    device.totals.with_reasons = 0;
    let expected =
        "GPU 3 of nvidia-smi (T4): 100 W mean, 100 W peak; 512 MiB peak; clocks 1.00 GHz; 1 sample";
    assert_eq!(sampled(&device).line(), expected);
    let nothing = GpuSample::default();
    device.totals.all = Some(nothing.merge(&GpuSample::default()));
    assert_eq!(
        sampled(&device).line(),
        "GPU 3 of nvidia-smi (T4): 2 samples"
    );
    device.totals.all = None;
    assert_eq!(SampledGpu::of(&device), None);
}

#[test]
fn a_share_that_is_neither_none_nor_all_is_not_shown_as_such() {
    let mut gpu = sampled(&device(&[(100.0, 0.5, 1000.0, 4)]));
    gpu.samples = 1000;
    gpu.clock_samples = 1000;
    for (held, expected) in [(1, "1 %"), (999, "99 %"), (1000, "100 %"), (385, "38 %")] {
        gpu.held_back_samples = held;
        let line = gpu.line();
        let end = format!("held back in {expected} of 1000 samples: power cap");
        assert!(line.ends_with(&end), "{line}");
    }
}

/// A device with 812 J, of which no name has 64.3.
fn with_energy(change: impl FnOnce(&mut DeviceSamples)) -> SampledGpu {
    let mut device = device(&[(100.0, 0.5, 1000.0, 0); 412]);
    device.energy = DeviceEnergy {
        source: EnergySource::Counter,
        joules: 812.0,
        unmeasured_joules: 64.3,
        step_ns: 1e8,
        ..DeviceEnergy::default()
    };
    change(&mut device);
    sampled(&device)
}

#[test]
fn the_line_about_energy_says_how_it_is_shared_out() {
    assert_eq!(
        with_energy(|_| ()).energy_line().as_deref(),
        Some(
            "energy of GPU 0: 812 J, 64.3 J of them in (no measured scope); energy is shared out by GPU self time; counter \
             step 100 ms, 412 samples"
        )
    );
    let from_power = with_energy(|device| {
        device.energy.source = EnergySource::Power;
        device.energy.step_ns = 1e9;
    });
    let line = from_power.energy_line().unwrap_or_default();
    assert!(
        line.ends_with("; power read every 1.00 s, 412 samples"),
        "{line}"
    );
    let none = with_energy(|device| device.energy.source = EnergySource::None);
    assert_eq!((none.energy_line(), none.energy_j), (None, None));
}

#[test]
fn energy_that_is_not_shared_out_has_the_reason() {
    let mig = with_energy(|device| device.device.is_mig = true);
    assert_eq!(
        mig.energy_line().as_deref(),
        Some(
            "energy of GPU 0: 812 J, not shared out among the names: the device is divided by MIG, and its energy is that of \
             all parts together"
        )
    );
    assert_eq!(mig.unmeasured_j, None);
    let shared = with_energy(|device| device.device.compute_processes = Some(3));
    let expected = "energy of GPU 0: 812 J, not shared out among the names: 3 processes compute on the device, and its \
                    energy is that of all of them";
    assert_eq!(shared.energy_line().as_deref(), Some(expected));
    let alone = with_energy(|device| device.device.compute_processes = Some(1));
    assert_eq!(alone.not_shared, None);
}

#[test]
fn a_row_with_too_little_time_has_its_mark_explained() {
    use crate::Energy;
    let row = |joules| Row {
        energy: Some(Energy {
            joules,
            gpu_self_ns: 1e8,
        }),
        ..Row::default()
    };
    assert!(notes(&[], &[row(Some(3.0)), Row::default()]).is_empty());
    assert_eq!(notes(&[], &[row(None)]), [TOO_LITTLE]);
}

#[cfg(feature = "serde")]
#[test]
fn json_is_what_serde_reads() {
    let gpu = with_energy(|device| device.device.uuid = "GPU-1".to_owned());
    assert_eq!(
        serde_json::from_str::<SampledGpu>(&gpu.to_json()).ok(),
        Some(gpu)
    );
    let held = sampled(&device(&[(100.0, 0.5, 1000.0, 4)]));
    assert_eq!(held.held_back[0].samples, 1);
    assert_eq!(
        serde_json::from_str::<SampledGpu>(&held.to_json()).ok(),
        Some(held)
    );
}
