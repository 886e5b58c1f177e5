//! The suite runs to its end without a GPU, and detects injected errors.

use std::path::Path;
use std::process::{Command, Output};

use profiler_simulated_driver::Installation;
use serde_json::Value;
use tempfile::TempDir;

const SUITE: &str = env!("CARGO_BIN_EXE_gpu-suite");

/// A run of the suite with a simulated driver.
struct Run {
    code: Option<i32>,
    /// The closing line of the run.
    closing: String,
    json: Value,
}

fn run(script: &str, options: &[&str]) -> Run {
    run_on(13_000, script, options)
}

fn run_on(version: i32, script: &str, options: &[&str]) -> Run {
    run_with(version, script, options, |_, _| {})
}

/// Runs checks for which the simulated driver is CUPTI and NVML too.
fn run_with_libraries(script: &str, options: &[&str]) -> Run {
    run_with(13_000, script, options, |command, library| {
        for variable in ["PROFILER_CUPTI_LIBRARY", "PROFILER_NVML_LIBRARY"] {
            command.env(variable, library);
        }
    })
}

fn run_with(
    version: i32,
    script: &str,
    options: &[&str],
    set_up: impl FnOnce(&mut Command, &Path),
) -> Run {
    let folder = TempDir::new().expect("a folder");
    let driver = Installation::new(folder.path())
        .driver_version(version)
        .create()
        .expect("a driver was built");
    let json = folder.path().join("figures.json");
    let mut command = driver.command(SUITE, script);
    command.arg(&json).args(options);
    set_up(&mut command, &driver.library());
    read(&command.output().expect("the suite runs"), &json)
}

fn read(output: &Output, json: &Path) -> Run {
    let text = String::from_utf8_lossy(&output.stdout);
    let json = std::fs::read_to_string(json).unwrap_or_else(|error| panic!("{error}: {text}"));
    Run {
        code: output.status.code(),
        closing: text.lines().last().unwrap_or_default().to_owned(),
        json: serde_json::from_str(&json).expect("JSON"),
    }
}

impl Run {
    fn count(&self, outcome: &str) -> u64 {
        self.json[outcome].as_u64().expect("a count")
    }

    fn checks(&self) -> &Vec<Value> {
        self.json["checks"].as_array().expect("a list")
    }

    /// Returns the names of the checks that failed, with the reasons.
    fn failed(&self) -> Vec<String> {
        let failed = self
            .checks()
            .iter()
            .filter(|check| check["outcome"] == "failed");
        failed
            .map(|check| format!("{}: {}", check["name"], check["reasons"]))
            .collect()
    }

    /// Returns the values of the figures of a name.
    fn figures(&self, name: &str) -> Vec<&Value> {
        let checks = self.checks().iter();
        let figures = checks
            .filter_map(|check| check["figures"].as_array())
            .flatten();
        let named = figures.filter(|figure| figure["name"] == name);
        named.map(|figure| &figure["value"]).collect()
    }

    /// Returns the first reason of the first check with this outcome.
    fn reason(&self, outcome: &str) -> &str {
        let mut ended = self.checks().iter();
        let check = ended.find(|check| check["outcome"] == outcome);
        check.expect("a check that ended so")["reasons"][0]
            .as_str()
            .expect("a reason")
    }
}

#[test]
fn the_suite_passes_on_a_simulated_driver() {
    let run = run("", &[]);
    assert_eq!(run.failed(), Vec::<String>::new());
    assert_eq!(run.code, Some(0));
    let (passed, skipped) = (run.count("passed"), run.count("skipped"));
    assert_eq!(
        run.closing,
        format!("{passed} passed, 0 failed, {skipped} skipped")
    );
    assert_eq!(run.checks().len() as u64, passed + skipped);
    assert!(passed > 30, "only {passed} checks passed");
    assert_eq!(run.json["device"]["simulated"], true);
    assert_eq!(run.json["complete"], true);
}

#[test]
fn cupti_and_nvml_are_asked_where_a_variable_names_them() {
    for only in ["launches under CUPTI", "what do NVML's calls cost"] {
        let run = run_with_libraries("", &["--only", only]);
        assert_eq!((run.failed(), run.code), (Vec::new(), Some(0)));
        assert_eq!(run.count("skipped"), 0, "{only}");
    }
}

#[test]
fn costs_have_other_names_in_sessions_that_record_kernels() {
    let run = run_with_libraries("", &["--only", "cost with CUPTI"]);
    assert_eq!((run.failed(), run.count("passed")), (Vec::new(), 3));
    for state in [
        "before any session",
        "in a session without kernels",
        "in a session with kernels",
        "after the session with kernels",
    ] {
        for cost in [
            "launch of an empty kernel, median",
            "kernels of 10 µs: a step, bare, median",
        ] {
            let name = format!("{state}: {cost}");
            assert_eq!(run.figures(&name).len(), 1, "{name}");
        }
    }
}

#[test]
fn what_the_profiler_says_of_windows_is_judged() {
    let run = run_with_libraries("", &["--only", "of windows"]);
    assert_eq!((run.failed(), run.code), (Vec::new(), Some(0)));
    // No library of NVIDIA computes on a simulated device.
    assert_eq!((run.count("passed"), run.count("skipped")), (6, 2));
}

#[test]
fn the_figures_of_a_run_are_printed_as_tables() {
    let run = run("", &["--only", "beside others"]);
    let folder = TempDir::new().expect("a folder");
    let json = folder.path().join("figures.json");
    std::fs::write(&json, run.json.to_string()).expect("a file");
    let printed = Command::new(SUITE).arg("--table").arg(&json).output();
    let printed = printed.expect("the suite runs").stdout;
    let tables = String::from_utf8(printed).expect("text");
    assert!(
        tables.starts_with("### Simulated Device 0 (sm 8.0), driver for CUDA 13.0, 20"),
        "{tables}"
    );
    let lines = tables.lines().collect::<Vec<_>>();
    assert!(
        lines.contains(&"| | least | median | greatest | |"),
        "{tables}"
    );
    // The value in the JSON, in the column of its ending.
    let name = "profiler minus the kernel's stamps";
    let median = run.figures(&format!("{name}, median"))[0].as_f64();
    let median = median.expect("a number");
    let line = lines
        .iter()
        .find(|line| line.contains(name))
        .expect("a line");
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let shown: f64 = cells[3].parse().expect("a number");
    assert!(
        (shown - median).abs() <= 0.005 * median.abs() + 0.001,
        "{line}: {median}"
    );
}

/// Faults of CUPTI's records, the checks that must fail, and what these must say.
const FAULTS_OF_RECORDS: [(&str, &str, &str); 8] = [
    (
        "cupti record every 7 other-name",
        "each kernel of a window is under its scope",
        "has the name \\\"other_kernel\\\", not \\\"spin_ns\\\"",
    ),
    (
        "cupti record every 7 previous",
        "each kernel of a window is under its scope",
        "calls of `kernel of 20 us` with one kernel",
    ),
    (
        "cupti record every 7 lose",
        "each kernel of a window is under its scope",
        "kernels of the window",
    ),
    (
        "cupti clock-offset 5ms",
        "a kernel lies between the launch and the end",
        "the least distance to when its end",
    ),
    (
        "cupti record every 7 previous",
        "copies, fills and graphs are under the scopes",
        "`copy to the host` has",
    ),
    (
        "cupti record every 4 lose",
        "a window in which only graphs are launched",
        "`graph alone` has",
    ),
    (
        "cupti record every 7 lose",
        "copies of a batch are under",
        "bytes in the scope",
    ),
    (
        "cupti record every 7 previous",
        "each kernel of parallel work",
        "on another stream",
    ),
];

#[test]
fn faults_of_records_fail_the_checks_of_windows() {
    for (script, check, reason) in FAULTS_OF_RECORDS {
        let run = run_with_libraries(script, &["--only", check]);
        let failed = run.failed();
        assert_eq!(
            (failed.len(), run.code),
            (1, Some(1)),
            "{script}, {check}: {failed:?}"
        );
        assert!(failed[0].contains(reason), "{script}, {check}: {failed:?}");
    }
}

#[test]
fn readings_of_sensors_are_judged() {
    let script = "nvml device 0 throttle 68; nvml device 0 links 1 2 3000 4000";
    let run = run_with_libraries(script, &["--only", "readings of sensors"]);
    assert_eq!((run.failed(), run.code), (Vec::new(), Some(0)));
    assert_eq!(run.count("passed"), 2);
}

#[test]
fn an_energy_in_another_unit_fails_the_checks_of_readings() {
    let run = run_with_libraries(
        "nvml field 83 times 1000",
        &["--only", "readings of sensors"],
    );
    assert_eq!((run.failed().len(), run.code), (2, Some(1)));
}

#[test]
fn a_power_in_another_unit_fails_the_check_of_readings() {
    let only = ["--only", "each reading of a device"];
    let run = run_with_libraries("nvml field 185 times 1000", &only);
    let failed = run.failed();
    assert_eq!((failed.len(), run.code), (1, Some(1)));
    assert!(
        failed[0].contains("power_w: 0 % of the readings"),
        "{failed:?}"
    );
}

/// Runs the check of the tool that writes ranges down, and lacks something.
fn run_with_ranges(faults: &str) -> Run {
    let only = ["--only", "reach an NVTX tool"];
    run_with(13_000, "", &only, |command, _| {
        command.env(profiler_nvtx_recorder::FAULTS, faults);
    })
}

#[test]
fn ranges_of_nvtx_are_judged() {
    let run = run_with_ranges("");
    assert_eq!((run.failed(), run.code), (Vec::new(), Some(0)));
    assert_eq!(run.count("passed"), 1);
    // One range of a thread is missing, and all of futures.
    for faults in ["push=7", "function=5.2"] {
        let run = run_with_ranges(faults);
        assert_eq!((run.failed().len(), run.code), (1, Some(1)), "{faults}");
    }
}

/// Runs the check of Nsight Systems with a program in its place, which counts this many inner ranges.
fn run_beside_nsight_systems(inner: u32) -> Run {
    let folder = TempDir::new().expect("a folder");
    let table = format!(
        "Time (%),Total Time (ns),Instances,Style,Range\n50.0,9,10,PushPop,profiler:outer range\n\
         30.0,5,{inner},PushPop,profiler:inner range\n20.0,3,20,PushPop,profiler:a::function_with_a_range\n"
    );
    let nsys = folder.path().join("nsys");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = profile ] || printf '{}'\n",
        table.replace('%', "%%")
    );
    std::fs::write(&nsys, script).expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&nsys, mode).expect("its mode");
    run_with(13_000, "", &["--only", "Nsight Systems"], |command, _| {
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", folder.path().display()));
    })
}

#[test]
fn the_counts_of_nsight_systems_are_judged() {
    let run = run_beside_nsight_systems(20);
    assert_eq!((run.failed(), run.count("passed")), (Vec::new(), 1));
    let run = run_beside_nsight_systems(19);
    assert_eq!((run.failed().len(), run.code), (1, Some(1)));
}

#[test]
fn a_device_is_not_reset_beside_other_processes() {
    let run = run_with_libraries("nvml device 0 processes 2", &["--only", "reset"]);
    assert_eq!((run.count("skipped"), run.code), (2, Some(0)));
    let reason = run.reason("skipped");
    assert!(reason.starts_with("2 other processes compute"), "{reason}");
    assert_eq!(run.json["neighbours"]["processes"], 2);
    let run = run_with_libraries("nvml device 0 processes 0", &["--only", "reset"]);
    assert_eq!((run.failed(), run.count("passed")), (Vec::new(), 2));
}

#[test]
fn clients_of_mps_are_not_disturbed() {
    let pipes = TempDir::new().expect("a folder");
    std::fs::write(pipes.path().join("control"), "").expect("a file");
    // An illegal address, and processes that end with work on the device.
    for (only, left_out) in [
        ("sticky error", 1),
        ("a program that", 4),
        ("inside a host function", 1),
    ] {
        let run = run_with(13_000, "", &["--only", only], |command, _| {
            command.env("CUDA_MPS_PIPE_DIRECTORY", pipes.path());
        });
        assert_eq!(
            (run.count("skipped"), run.code),
            (left_out, Some(0)),
            "{only}"
        );
        let reason = run.reason("skipped");
        assert!(reason.starts_with("MPS runs"), "{reason}");
    }
}

#[test]
fn checks_in_other_processes_are_left_out_on_a_device_for_one() {
    let run = run("device 0 attribute 20 3", &["--only", "processes"]);
    assert_eq!((run.count("skipped"), run.code), (3, Some(0)));
    let reason = run.reason("skipped");
    assert!(reason.contains("exclusive mode"), "{reason}");
}

#[test]
fn no_check_begins_when_the_time_is_almost_up() {
    let run = run(
        "fault cuStreamSynchronize nth 1 delay 3050ms",
        &["--only", "beside others", "--limit", "4"],
    );
    assert_eq!((run.count("skipped"), run.code), (2, Some(0)));
    let reason = run.reason("skipped");
    assert!(reason.contains("raise `--limit`"), "{reason}");
}

#[test]
fn the_suite_passes_on_the_oldest_supported_driver() {
    let run = run_on(11_040, "", &[]);
    assert_eq!((run.failed(), run.code), (Vec::new(), Some(0)));
    assert_eq!(run.json["device"]["cuda_version_of_the_driver"], 11_040);
}

#[test]
fn two_devices_are_tested_where_there_are_two() {
    let run = run("devices 2", &["--only", "two devices"]);
    assert_eq!(
        (run.code, run.closing.as_str()),
        (Some(0), "1 passed, 0 failed")
    );
}

#[test]
fn a_clock_of_events_that_is_off_by_two_per_cent_fails_a_check() {
    let run = run(
        "clock-drift-ppm 20000",
        &["--only", "a kernel of known length, queued"],
    );
    let failed = run.failed();
    assert_eq!(failed.len(), 1, "{failed:?}");
    let name = "\"a kernel of known length, queued, is measured with that length\": ";
    assert!(failed[0].starts_with(name), "{failed:?}");
    assert_eq!(
        (run.code, run.closing.as_str()),
        (Some(1), "0 passed, 1 failed")
    );
}

#[test]
fn a_driver_that_refuses_to_record_events_fails_all_checks() {
    let run = run(
        "fault cuEventRecord from 40 return 400",
        &["--only", "threads"],
    );
    assert_eq!(run.failed().len(), run.checks().len());
    assert_eq!(run.code, Some(1));
}

#[test]
fn outputs_are_complete_if_the_driver_shuts_down_before_the_first_exit_handler() {
    let run = run("shutdown at-exit", &["--only", "ends"]);
    assert_eq!((run.failed(), run.code), (Vec::new(), Some(0)));
}

#[test]
fn a_child_that_crashes_fails_its_check_with_the_signal() {
    let run = run(
        "synchronise abort-from gpu_suite::driver::Driver::cuCtxDestroy_v2",
        &["--only", "destroyed with times unread"],
    );
    assert_eq!(run.code, Some(1));
    let reason = run.reason("failed");
    assert!(reason.contains("signal: 6 (SIGABRT)"), "{reason}");
}

#[test]
fn a_failure_that_occurs_without_the_profiler_too_skips_the_check() {
    let run = run(
        "fault cuDevicePrimaryCtxReset_v2 from 1 return 999",
        &["--only", "flushed and reset"],
    );
    assert_eq!((run.failed(), run.code), (Vec::new(), Some(0)));
    let reason = run.reason("skipped");
    assert!(reason.contains("with the profiler off"), "{reason}");
}

#[test]
fn a_call_that_hangs_ends_the_run_with_what_is_known() {
    let run = run(
        "fault cuStreamSynchronize nth 3 hang",
        &["--only", "beside others", "--limit", "3"],
    );
    assert_eq!(run.code, Some(1));
    assert_eq!(
        run.reason("failed"),
        "it had not ended 3 s after the suite began"
    );
    assert_eq!(run.json["complete"], false);
}

#[test]
fn a_driver_that_hangs_before_the_first_check_ends_the_run() {
    let folder = TempDir::new().expect("a folder");
    let driver = Installation::new(folder.path()).create();
    let driver = driver.expect("a driver was built");
    let mut command = driver.command(SUITE, "fault cuInit always hang");
    let output = command.args(["--limit", "1"]).output();
    let output = output.expect("the suite runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        (output.status.code(), &*text),
        (Some(1), "the process had not ended after 2 s\n")
    );
}

#[test]
fn without_a_device_nothing_passes_and_nothing_fails() {
    let run = run("devices 0", &[]);
    assert_eq!(run.code, Some(77));
    let skipped = run.count("skipped");
    assert_eq!(
        run.closing,
        format!("0 passed, 0 failed, {skipped} skipped")
    );
    assert!(skipped > 30 && run.json["device"].is_null());
}
