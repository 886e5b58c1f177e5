//! Samples of a device are in tables, JSON, files, windows and logs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::support::samples::sampled;
use profiler_runtime::report::{Counter, TableOptions, export_gpu_samples};
use profiler_runtime::{Profile, Summary, Trace, init, scope, set_enabled, summary};
use profiler_tests::event_files;
use profiler_tests::gpu::{Gpu, OnDriver, Ran, finish, simulator};
use profiler_tests::traces::{counters, read_back};

const SECOND: u64 = 1_000_000_000;

/// Returns the number of samples of the only device.
fn samples() -> u64 {
    summary().gpus.first().map_or(0, |gpu| gpu.samples)
}

/// Waits until a sample that begins from now on is stored. The first one may have begun before.
fn wait_for_a_sample() {
    let before = samples();
    while samples() < before + 2 {
        thread::sleep(Duration::from_millis(2));
    }
}

fn logged() -> OnDriver {
    sampled().file("PROFILER_TENSORBOARD", "board")
}

#[test(on = logged().script("nvml device 0 throttle 4").then(|ran| assert_scalars(&ran.file("board"))))]
fn a_sampled_run_is_in_tables_files_windows_and_logs() {
    let _profiler = init().expect("set up");
    // The first samples are taken before CUDA is initialised.
    while samples() == 0 {
        thread::sleep(Duration::from_millis(2));
    }
    let device = Gpu::new(0);
    let stream = device.stream();
    let ((), trace) = Profile::builder().run(|_| {
        for name in ["long", "short"] {
            let _scope = scope!(name, stream = &stream);
            device.spin(&stream, if name == "long" { 3 * SECOND } else { 1_000 });
        }
        finish(&stream);
        simulator().advance(SECOND).expect("the clock is virtual");
        wait_for_a_sample();
    });
    assert_window(&trace.expect("a window"));
    let summary = summary();
    assert_notes(&summary);
    assert_programs_read_the_same(&summary);
    assert_nvidia_smi();
}

fn power_is_logged_once(ran: &Ran) {
    let scalars = event_files::only_file(&ran.file("board")).scalars;
    let powers = scalars
        .iter()
        .filter(|scalar| scalar.tag == "nvml0/power_w");
    let steps: Vec<i64> = powers.map(|power| power.step).collect();
    assert_eq!(steps, [0], "{scalars:?}");
}

#[test(on = logged().env("PROFILER_GPU_SAMPLES", "1h").then(power_is_logged_once))]
fn samples_of_a_run_without_cuda_are_logged_when_it_ends() {
    let profiler = init().expect("set up");
    while samples() == 0 {
        thread::sleep(Duration::from_millis(2));
    }
    // There is no last sample then.
    set_enabled(false);
    drop(profiler);
}

/// The line of the device, the line of the energy, and a mark with its explanation.
fn assert_notes(summary: &Summary) {
    let table = summary.table(TableOptions::new().width(200));
    let line = |beginning: &str| {
        let found = table.lines().find(|line| line.starts_with(beginning));
        found.unwrap_or_else(|| panic!("no `{beginning}` in\n{table}"))
    };
    let gpu = summary.gpus.first().expect("the device is sampled");
    let about = line("GPU 0 (Simulated Device 0): ");
    let held = format!("held back in 100 % of {} samples: power cap", gpu.samples);
    assert!(about.ends_with(&held), "{about}");
    assert!(about.contains("clocks 1.41 of "), "{about}");
    let energy = line("energy of GPU 0: ");
    let end = format!("counter step 100 ms, {} samples", gpu.samples);
    assert!(energy.ends_with(&end), "{energy}");
    line("~ below Energy (J)");
    assert!(table.contains("Energy (J)"), "{table}");
    let rows = summary.clone().sort_by("energy").rows;
    assert_eq!(rows[0].name, "long");
}

fn assert_programs_read_the_same(summary: &Summary) {
    let read: Summary = serde_json::from_str(&summary.to_json()).expect("JSON");
    assert_eq!(read.gpus.len(), 1);
    assert_eq!(read.gpus[0].held_back, summary.gpus[0].held_back);
    let joules = |summary: &Summary| {
        let row = summary.row("long").expect("it ran");
        row.energy
            .and_then(|energy| energy.joules)
            .unwrap_or(f64::NAN)
    };
    assert!((joules(&read) - joules(summary)).abs() < 1e-3);
    assert!(joules(summary) > 0.0);
    let csv = summary.to_csv();
    let header = csv.lines().next().unwrap_or_default();
    assert!(
        header.ends_with("energy_joules,energy_gpu_self_ns,energy_watts"),
        "{header}"
    );
}

/// The file has a line for each sample.
fn assert_nvidia_smi() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("gpu.csv");
    let before = samples();
    export_gpu_samples(&path).expect("room");
    let after = samples();
    let text = fs::read_to_string(&path).expect("it is there");
    let lines: Vec<&str> = text.lines().collect();
    let columns = lines[0].split(", ").count();
    assert!(
        lines.iter().all(|line| line.split(", ").count() == columns),
        "{text}"
    );
    let samples = lines.len() as u64 - 1;
    assert!(
        (before..=after).contains(&samples),
        "{samples} lines, {before} to {after} samples"
    );
    assert!(lines[1].contains(", 0, Simulated Device 0, "), "{text}");
    assert!(text.contains(", 1410 MHz, "), "{text}");
}

/// A file of the window has the counters of the devices with their units and values.
fn assert_read_back(trace: &Trace) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    trace.export_chrome_trace(&path).expect("room");
    let (own, read) = (trace.timeline(), read_back(&path));
    assert_eq!(counters(&own), counters(&read));
    for counter in own.counters.iter().filter(|own| own.device.is_some()) {
        let mut others = read.counters.iter();
        let other =
            others.find(|other| (&other.name, other.device) == (&counter.name, counter.device));
        let values = |counter: &Counter| -> Vec<f64> {
            counter.samples.iter().map(|(_, value)| *value).collect()
        };
        let (wanted, found) = (values(counter), values(other.expect("the counter")));
        // The file ends with the last work of the device, and the time line with the window.
        assert_eq!(found.get(..wanted.len()), Some(&wanted[..]), "{counter:?}");
    }
}

fn assert_window(trace: &Trace) {
    let timeline = trace.timeline();
    let counter = |name: &str| -> &Counter {
        let mut counters = timeline.counters.iter();
        let found = counters.find(|counter| counter.name == name && counter.device == Some(0));
        found.unwrap_or_else(|| panic!("no {name}: {:?}", timeline.counters))
    };
    for (name, unit) in [
        ("power", "W"),
        ("utilization", "%"),
        ("memory in use", "bytes"),
        ("SM clock", "MHz"),
        ("memory clock", "MHz"),
        ("temperature", "°C"),
    ] {
        let counter = counter(name);
        assert_eq!(counter.unit, unit);
        assert!(!counter.samples.is_empty(), "{name}");
        let is_inside = |at: i64| (0..=timeline.duration_ns).contains(&at);
        assert!(
            counter.samples.iter().all(|(at, _)| is_inside(*at)),
            "{counter:?}"
        );
        assert!(
            counter.samples.is_sorted_by_key(|(at, _)| *at),
            "{counter:?}"
        );
    }
    assert_eq!(
        counter("clocks held back")
            .samples
            .last()
            .map(|last| last.1),
        Some(1.0)
    );
    assert_read_back(trace);
    let averages = trace.key_averages();
    let row = averages.row("long").expect("it ran");
    assert!(
        row.energy
            .is_some_and(|energy| energy.joules.is_some_and(|joules| joules > 0.0)),
        "{row:?}"
    );
    assert_eq!(averages.gpus.len(), 1);
}

/// All readings of a sample have its number as their step, and no step goes back.
fn assert_scalars(board: &Path) {
    let scalars = event_files::only_file(board).scalars;
    let tags: BTreeSet<&str> = scalars
        .iter()
        .filter(|scalar| scalar.tag.starts_with("gpu0/"))
        .map(|scalar| scalar.tag.as_str())
        .collect();
    for tag in [
        "gpu0/power_w",
        "gpu0/temperature_c",
        "gpu0/sm_clock_mhz",
        "gpu0/clocks_held_back",
    ] {
        assert!(tags.contains(tag), "{tags:?}");
    }
    // A device has one tag in the whole run.
    let is_of_nvml = |tag: &str| tag.starts_with("nvml");
    assert!(!scalars.iter().any(|scalar| is_of_nvml(&scalar.tag)));
    let powers: Vec<_> = scalars
        .iter()
        .filter(|scalar| scalar.tag == "gpu0/power_w")
        .collect();
    assert_eq!(powers[0].step, 0);
    assert!(powers.is_sorted_by(|before, after| {
        before.step < after.step && before.wall_time < after.wall_time
    }));
    assert!(
        powers
            .iter()
            .all(|scalar| (50.0..=250.0).contains(&scalar.value))
    );
}
