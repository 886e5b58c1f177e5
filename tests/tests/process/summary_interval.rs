//! While a program runs, the file of its summary is rewritten at intervals, is always whole, and at the end is the last
//! summary.

#![cfg(not(feature = "strip"))]

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// No program takes so long to write a summary.
const PATIENCE: Duration = Duration::from_secs(60);

fn program(mode: &str, stop: &Path, summary: &OsStr, interval: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_measured-program"));
    command
        .args([mode, "10"])
        .arg(stop)
        .env_remove("PROFILER_ENABLED")
        .env_remove("PROFILER_FILTER")
        .env("PROFILER_SUMMARY", summary)
        .env("PROFILER_SUMMARY_INTERVAL", interval)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn calls(summary: &Value, name: &str) -> u64 {
    let mut rows = summary["rows"].as_array().unwrap().iter();
    let row = rows.find(|row| row["name"] == name);
    row.map_or(0, |row| row["calls"].as_u64().unwrap())
}

/// Reads a summary. It is never incomplete.
fn read(file: &Path) -> Option<Value> {
    let text = fs::read_to_string(file).ok()?;
    Some(serde_json::from_str(&text).expect("a whole summary"))
}

/// Waits until the file shows more calls of the steps than `calls_before`.
fn next(file: &Path, calls_before: u64) -> Value {
    let start = Instant::now();
    loop {
        if let Some(summary) = read(file)
            && calls(&summary, "train/step") > calls_before
        {
            return summary;
        }
        assert!(start.elapsed() < PATIENCE, "it is not rewritten");
        sleep(Duration::from_millis(10));
    }
}

fn end(child: Child, stop: &Path) -> Output {
    fs::write(stop, "").unwrap();
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    output
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_file_follows_the_program_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let [file, stop] = ["live.json", "stop"].map(|name| folder.path().join(name));
    let mut command = program("until", &stop, file.as_os_str(), "100ms");
    let child = command.spawn().unwrap();
    let mut seen = 0;
    for _ in 0..4 {
        let summary = next(&file, seen);
        seen = calls(&summary, "train/step");
        assert_eq!(summary["interval_ns"].as_f64(), Some(1e8));
        assert_eq!(summary["is_last"].as_bool(), Some(false));
    }
    let output = end(child, &stop);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(profiler_tests::without_names_of_files(&stderr), "");
    assert_eq!(names(folder.path()), ["live.json", "stop"]);
    let last = read(&file).unwrap();
    assert!(calls(&last, "train/step") >= seen);
    assert_eq!(last["is_last"].as_bool(), Some(true));
}

#[test]
fn the_history_of_a_row_adds_up_to_its_calls() {
    let folder = tempfile::tempdir().unwrap();
    let [file, stop] = ["live.json", "stop"].map(|name| folder.path().join(name));
    let mut command = program("until", &stop, file.as_os_str(), "100ms");
    let child = command.spawn().unwrap();
    let seen = calls(&next(&file, 0), "train/step");
    next(&file, seen);
    end(child, &stop);
    let last = read(&file).unwrap();
    let rows = last["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let history = row["history"].as_array().unwrap();
        assert!(history.len() >= 2, "{row}");
        let sum = |value: usize| -> f64 {
            let values = history.iter().map(|point| point[value].as_f64().unwrap());
            values.sum()
        };
        let (calls, own) = (sum(2), sum(3));
        assert!(
            (calls - row["calls"].as_f64().unwrap()).abs() < 0.5,
            "{row}"
        );
        let own_of_row = row["cpu"]["self_ns"].as_f64().unwrap();
        // Each point is written in whole nanoseconds.
        assert!((own - own_of_row).abs() <= history.len() as f64, "{row}");
        let mut end = 0;
        for point in history {
            let start = point[0].as_u64().unwrap();
            assert!(start >= end, "{row}");
            end = start + point[1].as_u64().unwrap();
        }
        assert!(end as f64 <= last["wall_ns"].as_f64().unwrap() + 1e6);
    }
}

#[test]
fn a_program_that_is_killed_leaves_its_latest_summary() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("live.json");
    let mut command = program("forever", folder.path(), file.as_os_str(), "0.1");
    let mut child = command.spawn().unwrap();
    let seen = calls(&next(&file, 0), "train/step");
    child.kill().unwrap();
    child.wait().unwrap();
    let left = read(&file).unwrap();
    assert!(calls(&left, "train/step") >= seen);
    assert_eq!(left["is_last"].as_bool(), Some(false));
}

#[test]
fn other_formats_are_rewritten_too() {
    let folder = tempfile::tempdir().unwrap();
    let [file, stop] = ["live.txt", "stop"].map(|name| folder.path().join(name));
    let child = program("until", &stop, file.as_os_str(), "100ms").spawn();
    let start = Instant::now();
    while !file.exists() {
        assert!(start.elapsed() < PATIENCE, "it is not written");
        sleep(Duration::from_millis(10));
    }
    let table = fs::read_to_string(&file).unwrap();
    assert!(table.contains("train/step"), "{table}");
    end(child.unwrap(), &stop);
}

#[cfg(unix)]
#[test]
fn a_forked_child_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [file, stop] = ["live.json", "stop"].map(|name| folder.path().join(name));
    let child = program("fork-until", &stop, file.as_os_str(), "100ms").spawn();
    next(&file, 0);
    // The child measures meanwhile, and would have written several times.
    for _ in 0..20 {
        sleep(Duration::from_millis(20));
        let summary = read(&file).unwrap();
        assert_eq!(calls(&summary, "train/step"), 10);
    }
    end(child.unwrap(), &stop);
    let last = read(&file).unwrap();
    assert_eq!(last["is_last"].as_bool(), Some(true));
    assert_eq!(calls(&last, "train/step"), 10);
}

#[test]
fn an_interval_without_effect_is_reported_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("live.json");
    for (summary, interval, warning) in [
        (
            file.as_os_str(),
            "0",
            "PROFILER_SUMMARY_INTERVAL=0 is not understood",
        ),
        (
            OsStr::new("stderr"),
            "1s",
            "PROFILER_SUMMARY_INTERVAL: the summary goes to standard error",
        ),
        (
            OsStr::new("off"),
            "1s",
            "PROFILER_SUMMARY_INTERVAL is set and PROFILER_SUMMARY is `off`",
        ),
    ] {
        let output = program("steps", folder.path(), summary, interval)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let warning = format!("profiler: warning: {warning}");
        assert_eq!(stderr.matches(&warning).count(), 1, "{stderr}");
    }
}
