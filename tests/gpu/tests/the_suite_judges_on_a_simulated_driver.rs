//! The suite runs to its end without a GPU, and detects injected errors.

use std::path::Path;
use std::process::Command;

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

/// Runs checks with a driver that runs `script`.
fn run(script: &str, options: &[&str]) -> Run {
    run_with(13_000, script, options, |_, _| {})
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
    let path = folder.path().join("figures.json");
    let mut command = driver.command(SUITE, script);
    command.arg(&path).args(options);
    set_up(&mut command, &driver.library());
    let output = command.output().expect("the suite runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let json = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{error}: {text}"));
    Run {
        code: output.status.code(),
        closing: text.lines().last().unwrap_or_default().to_owned(),
        json: serde_json::from_str(&json).expect("JSON"),
    }
}

impl Run {
    fn checks(&self) -> &Vec<Value> {
        self.json["checks"].as_array().expect("a list")
    }

    /// Returns how many checks passed, failed and were skipped.
    fn counts(&self) -> [u64; 3] {
        ["passed", "failed", "skipped"].map(|outcome| {
            let counted = self.json[outcome].as_u64().expect("a count");
            let ended = self.checks().iter();
            let ended = ended.filter(|check| check["outcome"] == outcome).count();
            assert_eq!(counted, ended as u64, "{outcome}");
            counted
        })
    }

    /// Returns the name and the reasons of each check that did not pass.
    fn reasons(&self) -> String {
        let checks = self.checks().iter();
        let others = checks.filter(|check| check["outcome"] != "passed");
        let said = others.map(|check| format!("{}: {}\n", check["name"], check["reasons"]));
        said.collect()
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

    /// Checks how many checks passed, failed and were skipped, what the others say, and how the run ends.
    fn ends(&self, case: &str, counts: [u64; 3], reason: &str) {
        let reasons = self.reasons();
        assert_eq!(self.counts(), counts, "{case}: {reasons}");
        assert_eq!(self.code, Some(i32::from(counts[1] > 0)), "{case}");
        assert!(reasons.contains(reason), "{case}: {reasons}");
        let [passed, failed, skipped] = counts;
        let skipped = match skipped {
            0 => String::new(),
            skipped => format!(", {skipped} skipped"),
        };
        let closing = format!("{passed} passed, {failed} failed{skipped}");
        assert_eq!(self.closing, closing, "{case}");
    }
}

#[test]
fn the_suite_passes_on_the_oldest_and_the_newest_driver() {
    for version in [11_040, 13_000] {
        let run = run_with(version, "", &[], |_, _| {});
        let [passed, failed, skipped] = run.counts();
        assert_eq!((failed, run.code), (0, Some(0)), "{}", run.reasons());
        assert_eq!(run.checks().len() as u64, passed + skipped);
        assert!(passed > 30, "only {passed} checks passed");
        let device = &run.json["device"];
        assert_eq!(device["simulated"], true);
        assert_eq!(device["cuda_version_of_the_driver"], version);
        assert_eq!(run.json["complete"], true);
    }
}

/// In each line: what a driver does, the checks that run, how many pass, fail and are skipped, and what those that do not pass say.
const DRIVERS: &str = r#"
devices 2 | two devices | 1 0 0 |
clock-drift-ppm 20000 | a kernel of known length, queued | 0 1 0 | known length, queued, is measured with that length":
fault cuEventRecord from 40 return 400 | threads | 0 5 0 |
shutdown at-exit | ends | 6 0 0 |
synchronise abort-from gpu_suite::driver::Driver::cuCtxDestroy_v2 | destroyed with times unread | 0 1 0 | signal: 6 (SIGABRT)
fault cuDevicePrimaryCtxReset_v2 from 1 return 999 | flushed and reset | 0 0 1 | with the profiler off
device 0 attribute 20 3 | processes | 0 0 3 | exclusive mode
fault cuStreamSynchronize nth 1 delay 3050ms | beside others --limit 4 | 1 0 2 | raise `--limit`
"#;

/// The same, where the simulated driver is CUPTI and NVML too. No library of NVIDIA computes on a simulated device.
const LIBRARIES: &str = r#"
| launches under CUPTI | 1 0 0 |
| what do NVML's calls cost | 1 0 0 |
| of windows | 6 0 2 |
cupti record every 7 other-name | each kernel of a window is under its scope | 0 1 0 | \"other_kernel\", not \"spin_ns\"
cupti record every 7 previous | each kernel of a window is under its scope | 0 1 0 | calls of `kernel of 20 us` with one kernel
cupti record every 7 lose | each kernel of a window is under its scope | 0 1 0 | kernels of the window
cupti clock-offset 5ms | a kernel lies between the launch and the end | 0 1 0 | the least distance to when its end
cupti record every 7 previous | copies, fills and graphs are under the scopes | 0 1 0 | `copy to the host` has
cupti record every 4 lose | a window in which only graphs are launched | 0 1 0 | `graph alone` has
cupti record every 7 lose | copies of a batch are under | 0 1 0 | bytes in the scope
cupti record every 7 previous | each kernel of parallel work | 0 1 0 | on another stream
nvml device 0 throttle 68; nvml device 0 links 1 2 3000 4000 | readings of sensors | 2 0 0 |
nvml field 83 times 1000 | readings of sensors | 0 2 0 |
nvml field 185 times 1000 | each reading of a device | 0 1 0 | power_w: 0 % of the readings
"#;

/// Runs each case.
fn judge(cases: &str, run: fn(&str, &[&str]) -> Run) {
    for case in cases.trim().lines() {
        let cells: Vec<&str> = case.split('|').map(str::trim).collect();
        let [script, options, counts, reason] = cells[..] else {
            panic!("{case}");
        };
        let (only, limit) = options.split_once(" --limit ").unwrap_or((options, "450"));
        let counts: Vec<u64> = counts
            .split(' ')
            .map(|count| count.parse().expect("a number"))
            .collect();
        let counts = counts.try_into().expect("passed, failed and skipped");
        run(script, &["--only", only, "--limit", limit]).ends(case, counts, reason);
    }
}

#[test]
fn each_fault_of_a_driver_fails_or_skips_its_checks_and_no_others() {
    judge(DRIVERS, run);
}

#[test]
fn each_fault_of_cupti_and_nvml_fails_its_checks_and_no_others() {
    judge(LIBRARIES, run_with_libraries);
}

#[test]
fn a_call_that_hangs_ends_the_run_with_what_is_known() {
    let run = run(
        "fault cuStreamSynchronize nth 3 hang",
        &["--only", "beside others", "--limit", "3"],
    );
    assert_eq!((run.counts()[1], run.code), (1, Some(1)));
    let reasons = run.reasons();
    assert!(
        reasons.contains("[\"it had not ended 3 s after the suite began\"]"),
        "{reasons}"
    );
    assert_eq!(run.json["complete"], false);
}

#[test]
fn a_device_is_not_reset_beside_other_processes() {
    let run = run_with_libraries("nvml device 0 processes 2", &["--only", "reset"]);
    run.ends("beside two", [0, 0, 2], "[\"2 other processes compute");
    assert_eq!(run.json["neighbours"]["processes"], 2);
    let run = run_with_libraries("nvml device 0 processes 0", &["--only", "reset"]);
    run.ends("alone", [2, 0, 0], "");
}

#[test]
fn costs_have_other_names_in_sessions_that_record_kernels() {
    let run = run_with_libraries("", &["--only", "cost with CUPTI"]);
    run.ends("costs", [3, 0, 0], "");
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

/// Runs the check of the tool that writes ranges down, and lacks something.
fn run_with_ranges(faults: &str) -> Run {
    let only = ["--only", "reach an NVTX tool"];
    run_with(13_000, "", &only, |command, _| {
        command.env(profiler_nvtx_recorder::FAULTS, faults);
    })
}

#[test]
fn ranges_of_nvtx_are_judged() {
    // One range of a thread is missing, or all of futures.
    for (faults, counts) in [
        ("", [1, 0, 0]),
        ("push=7", [0, 1, 0]),
        ("function=5.2", [0, 1, 0]),
    ] {
        run_with_ranges(faults).ends(faults, counts, "");
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
    run_beside_nsight_systems(20).ends("all", [1, 0, 0], "");
    run_beside_nsight_systems(19).ends("one is missing", [0, 1, 0], "");
}

#[test]
fn clients_of_mps_are_not_disturbed() {
    let pipes = TempDir::new().expect("a folder");
    std::fs::write(pipes.path().join("control"), "").expect("a file");
    // An illegal address, and processes that end with work on the device.
    for (only, left_out) in [
        ("sticky error", 1_u64),
        ("a program that", 4),
        ("inside a host function", 1),
    ] {
        let run = run_with(13_000, "", &["--only", only], |command, _| {
            command.env("CUDA_MPS_PIPE_DIRECTORY", pipes.path());
        });
        let [_, failed, skipped] = run.counts();
        assert_eq!((failed, skipped), (0, left_out), "{only}");
        assert_eq!(run.code, Some(0));
        let reasons = run.reasons();
        assert_eq!(
            reasons.matches("[\"MPS runs").count() as u64,
            left_out,
            "{reasons}"
        );
    }
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
    let [passed, failed, skipped] = run.counts();
    assert_eq!((passed, failed, run.code), (0, 0, Some(77)));
    assert_eq!(
        run.closing,
        format!("0 passed, 0 failed, {skipped} skipped")
    );
    assert!(skipped > 30 && run.json["device"].is_null());
}
