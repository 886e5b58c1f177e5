//! The text for Prometheus has the GPU times of names, and the sensors of devices.

use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, thread};

use crate::support::samples::sampled;
use profiler_runtime::{scope, summary};
use profiler_tests::gpu::{finish, simulator, started};

const SECOND: u64 = 1_000_000_000;

#[test(on = sampled())]
fn names_have_gpu_times_and_energy_and_devices_their_sensors() {
    let (_profiler, device, stream) = started();
    for _ in 0..2 {
        {
            let _scope = scope!("prometheus: spin", stream = &stream);
            device.spin(&stream, 2 * SECOND);
        }
        finish(&stream);
        simulator().advance(SECOND).expect("the clock is virtual");
    }
    let samples = || summary().gpus.first().map_or(0, |gpu| gpu.samples);
    let before = samples();
    while samples() < before + 2 {
        thread::sleep(Duration::from_millis(2));
    }
    let summary = summary();
    let text = summary.to_prometheus();
    let value = |series: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        let value = line.unwrap_or_else(|| panic!("{series} is missing: {text}"));
        value.trim().parse().expect("a number")
    };
    let labels = "{name=\"prometheus: spin\",clock=\"cuda\"";
    assert!((value(&format!("profiler_self_seconds_total{labels}}}")) - 4.0).abs() < 1e-3);
    let bucket = |limit| {
        value(&format!(
            "profiler_call_seconds_bucket{labels},le=\"{limit}\"}}"
        ))
    };
    assert!((bucket("1"), bucket("3")) == (0.0, 2.0));
    assert!(value("profiler_energy_joules{name=\"prometheus: spin\"}") > 0.0);
    let gpu = summary.gpus.first().expect("it was sampled");
    let of_device = format!("{{gpu=\"0\",uuid=\"{}\"}}", gpu.uuid);
    let sensor = |metric: &str| value(&format!("profiler_gpu_{metric}{of_device}"));
    let near =
        |value: f64, exact: Option<f64>| exact.is_some_and(|exact| (value - exact).abs() < 1e-6);
    assert!(near(sensor("power_watts"), gpu.power_last_w));
    assert!(near(sensor("memory_used_bytes"), gpu.memory_last_bytes));
    assert!(near(sensor("energy_joules_total"), gpu.energy_j));
    assert!((0.0..=1.0).contains(&sensor("utilization_ratio")));
    if let Some(folder) = env::var_os("PROFILER_TESTS_METRICS") {
        let folder = PathBuf::from(folder);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("gpu.prom"), &text).expect("room");
    }
}
