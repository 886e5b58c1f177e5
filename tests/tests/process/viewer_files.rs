//! `PROFILER_SUMMARY` writes files for viewers, which show what called what.

#![cfg(all(unix, not(feature = "strip")))]

use std::fs;
use std::path::Path;

use profiler_runtime::{SummaryTarget, builder, measure};
use profiler_tests::child;

/// A variable that makes the program ask for the file itself, with callers or without.
const CALLERS: &str = "PROFILER_TESTS_CALLERS";

fn train() {
    measure!("train", {
        for _ in 0..3 {
            measure!("forward", {
                std::hint::black_box(fs::metadata("/").is_ok())
            });
        }
    });
}

/// Runs this test again with variables, and returns its folder. `DIR` in their values is the folder.
fn run(variables: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = child::again(folder.path());
    for variable in ["PROFILER_ENABLED", "PROFILER_CALLERS", "PROFILER_SUMMARY"] {
        command.env_remove(variable);
    }
    let text = folder.path().display().to_string();
    for (name, value) in variables {
        command.env(name, value.replace("DIR", &text));
    }
    let output = command.output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    folder
}

/// Returns the stacks of a file, without their values.
fn stacks(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("written");
    let stack = |line: &str| line.rsplit_once(' ').expect("a value").0.to_owned();
    text.lines().map(stack).collect()
}

#[test]
fn a_file_for_viewers_has_callers_unless_they_are_turned_off() {
    if let Some(folder) = child::dir() {
        let callers = std::env::var(CALLERS).ok();
        let _profiler = callers.map(|callers| {
            let target = SummaryTarget::File(folder.join("run.folded"));
            let builder = builder().summary(target);
            let builder = match callers.as_str() {
                "off" => builder.callers(false),
                _ => builder,
            };
            builder.init().expect("set up")
        });
        return train();
    }
    let nested = ["train", "train;forward"];
    let flat = ["forward", "train"];
    let file = ("PROFILER_SUMMARY", "DIR/run.folded");
    for (variables, expected) in [
        (vec![file], nested),
        (vec![file, ("PROFILER_CALLERS", "0")], flat),
        (vec![(CALLERS, "unset")], nested),
        (vec![(CALLERS, "off")], flat),
        (vec![(CALLERS, "unset"), ("PROFILER_CALLERS", "0")], flat),
    ] {
        let folder = run(&variables);
        let found = stacks(&folder.path().join("run.folded"));
        assert_eq!(found, expected, "{variables:?}");
    }
}

#[test]
fn the_ending_selects_the_format() {
    if child::dir().is_some() {
        return train();
    }
    for (ending, beginning) in [
        // A dictionary of tuples.
        ("prof", &b"{(\x03\0\0\0u"[..]),
        ("pb.gz", &b"\x1f\x8b"[..]),
        ("folded", &b"train"[..]),
        ("html", &b"<!"[..]),
    ] {
        let name = format!("run.{ending}");
        let folder = run(&[("PROFILER_SUMMARY", &format!("DIR/{name}"))]);
        let bytes = fs::read(folder.path().join(&name)).expect("written");
        let begins = String::from_utf8_lossy(&bytes[..bytes.len().min(20)]);
        assert!(bytes.starts_with(beginning), "{name}: {begins}");
        // GPU times may have a file of their own; the temporary name of a file begins with a dot.
        for file in fs::read_dir(folder.path()).expect("a folder") {
            let file = file.expect("an entry").file_name();
            let file = file.to_string_lossy();
            assert!(file.starts_with("run."), "{file} is left beside {name}");
        }
    }
}
