//! A whole program with a log by its environment: killed without warning, or with a full disk.

#![cfg(not(feature = "strip"))]

use profiler_tests::{event_files, kept};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

fn program(arguments: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_measured-program"));
    command.args(arguments).env("PROFILER_TENSORBOARD", dir);
    command
        .env("PROFILER_ENABLED", "1")
        .env_remove("PROFILER_FILTER");
    command
}

#[test]
fn what_was_logged_is_written_without_a_flush_and_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = program(&["forever"], dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "running\n");
    // A record that is just being written is not whole yet.
    let read = || {
        event_files::paths(dir.path())
            .into_iter()
            .map(|path| event_files::read(&path))
    };
    let steps_in_file = || -> Vec<i64> {
        let steps = read().flat_map(|file| {
            let steps = file.scalars.into_iter();
            steps.filter(|scalar| kept::without_unit(&scalar.tag) == Some("train/step"))
        });
        let mut steps: Vec<i64> = steps.map(|scalar| scalar.step).collect();
        steps.sort_unstable();
        steps
    };
    // The program never flushes and never ends; each second the profiler writes what was logged. This would hang if it
    // did not, or if it did so only once.
    while steps_in_file().is_empty() {
        sleep(Duration::from_millis(50));
    }
    let first_write = steps_in_file().len();
    while steps_in_file().len() == first_write {
        sleep(Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    assert!(read().all(|file| file.torn == 0), "whole records only");
    let steps = steps_in_file();
    assert!(
        steps
            .iter()
            .zip(0..)
            .all(|(step, expected)| *step == expected),
        "without gaps"
    );
}

#[test]
fn a_disk_that_fills_up_is_said_once_and_the_program_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    // The signal of the limit is ignored, so that writing fails as on a full disk.
    let script = "trap '' XFSZ; ulimit -f 2048; exec \"$0\" \"$@\"";
    let program = program(&["flushed-steps", "60000"], dir.path());
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(program.get_program())
        .args(program.get_args())
        .envs(
            program
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("PROFILER_SUMMARY", "stderr")
        .env("PROFILER_RING", "1048576")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert_eq!(
        text.matches("cannot write the log").count(),
        1,
        "said once: {text}"
    );
    assert!(text.contains("60000"), "all calls are in the table: {text}");

    // Advice follows on the line.
    let count = |what: &str| -> usize {
        let counts = text.lines().filter_map(|line| line.split_once(what));
        let counts = counts.filter_map(|(count, _)| count.parse::<usize>().ok());
        counts.sum()
    };
    let written = event_files::only_file(dir.path()).scalars.len();
    let failed = count(" log entries dropped: logger failed");
    let timeless = count(" log entries dropped: no GPU time");
    let waiting = count(" log entries taken and not written yet");
    assert!(written > 0 && failed > 0 && waiting > 0, "{text}");
    assert_eq!(
        written + failed + waiting + timeless,
        180_000,
        "every entry is accounted for: {text}"
    );
}

#[test]
fn entries_of_threads_that_run_as_the_program_ends_are_each_in_one_number_and_the_delivered_ones_are_in_the_file()
 {
    let dir = tempfile::tempdir().unwrap();
    let (log, file) = (dir.path().join("log"), dir.path().join("summary.json"));
    for _ in 0..3 {
        let _ = std::fs::remove_dir_all(&log);
        let status = program(&["running-threads"], &log)
            .env("PROFILER_SUMMARY", &file)
            .status()
            .unwrap();
        assert!(status.success());
        let text = std::fs::read_to_string(&file).unwrap();
        let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
        let number = |value: &serde_json::Value| value.as_u64().expect("a number");
        let sum = |values: Vec<&serde_json::Value>| values.into_iter().map(number).sum::<u64>();
        let rows = summary["rows"].as_array().unwrap();
        let calls = sum(rows.iter().map(|row| &row["calls"]).collect());
        let dropped = sum(summary["dropped"].as_object().unwrap().values().collect());
        let delivered = number(&summary["delivered"]);
        // The entries of these are made when their GPU times are read.
        let in_flight = number(&summary["cuda"]["in_flight"]);
        let entries = delivered + dropped + number(&summary["pending"]) + in_flight;
        // Each of the four threads may have ended one call between the readings of the two numbers.
        assert!(calls.abs_diff(entries) <= 4, "{calls} {entries}: {text}");
        let written = event_files::only_file(&log).scalars.len() as u64;
        // What was logged while the summary was read may be written after it.
        assert!(
            written >= delivered - number(&summary["unsaved"]),
            "{written} {text}"
        );
    }
}
