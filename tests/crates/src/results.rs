//! Runs tests in one mode, and compares their results with those of another.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use wait_timeout::ChildExt;

use crate::cargo::TestBinary;
use crate::error::Error;
use crate::subject::Subject;
use crate::workspace::Workspace;

/// Longer than any of these tests takes: a test that exceeds it hangs.
const PATIENCE: Duration = Duration::from_secs(600);

/// The result of each test, by crate, program and name.
pub(crate) type Results = BTreeMap<(String, String, String), String>;

/// The profiler's settings in the environment of the tests.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Switch<'a> {
    /// On; each program writes its summary to this folder.
    On(&'a Path),
    Off,
}

impl Switch<'_> {
    fn variables(self, test: &TestBinary) -> Vec<(&'static str, OsString)> {
        match self {
            Self::On(folder) => {
                let file = format!("{}.{}.json", test.subject.name, test.target);
                vec![("PROFILER_SUMMARY", folder.join(file).into())]
            }
            Self::Off => vec![("PROFILER_ENABLED", "0".into())],
        }
    }
}

/// Runs all tests.
///
/// # Errors
///
/// Returns an error if a program cannot be started.
pub(crate) fn run(
    tests: &[TestBinary],
    workspace: &Workspace,
    switch: Switch<'_>,
) -> Result<Results, Error> {
    let mut results = Results::new();
    for test in tests {
        let (ending, output) = run_one(test, workspace, &switch.variables(test))?;
        let mut add = |name: &str, result: &str| {
            let key = (
                test.subject.name.clone(),
                test.target.clone(),
                name.to_owned(),
            );
            results.insert(key, result.to_owned());
        };
        for (name, result) in parse(&output) {
            add(name, result);
        }
        add("(the program)", &ending);
    }
    Ok(results)
}

/// Returns how the program ended, and what it printed.
fn run_one(
    test: &TestBinary,
    workspace: &Workspace,
    variables: &[(&str, OsString)],
) -> Result<(String, String), Error> {
    let failed = || Error::io("run", &test.path);
    let mut child = Command::new(&test.path)
        .current_dir(workspace.folder(&test.subject))
        .env_remove("RUST_BACKTRACE")
        .envs(variables.iter().cloned())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed())?;
    let mut pipe = child.stdout.take();
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = &mut pipe {
            // Output that was read before a failure still counts.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    });
    let ending = if let Some(status) = child.wait_timeout(PATIENCE).map_err(failed())? {
        status.to_string()
    } else {
        child.kill().map_err(failed())?;
        child.wait().map_err(failed())?;
        format!("did not end within {} s", PATIENCE.as_secs())
    };
    Ok((ending, reader.join().unwrap_or_default()))
}

/// Parses the lines `test NAME ... RESULT` in the output of a test program.
fn parse(output: &str) -> impl Iterator<Item = (&str, &str)> {
    output.lines().filter_map(|line| {
        let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
        // The result may be followed by a reason: "ignored, reason".
        let result = result.split(',').next()?;
        // The name of a test that should panic is followed by a note.
        Some((name.trim_end_matches(" - should panic"), result))
    })
}

/// Returns a line for each test whose result differs between two runs.
pub(crate) fn differences(bare: &Results, other: &Results) -> Vec<String> {
    let keys: BTreeSet<_> = bare.keys().chain(other.keys()).collect();
    let absent = "absent".to_owned();
    keys.into_iter()
        .filter_map(|key| {
            let (before, after) = (
                bare.get(key).unwrap_or(&absent),
                other.get(key).unwrap_or(&absent),
            );
            let (subject, target, name) = key;
            (before != after).then(|| format!("{subject} {target} {name}: {before}, then {after}"))
        })
        .collect()
}

/// Counts the tests of a crate that ran: not the ignored ones, nor the entries for whole programs.
pub(crate) fn count(results: &Results, subject: &Subject) -> usize {
    results
        .iter()
        .filter(|((of, _, name), result)| {
            *of == subject.name && name != "(the program)" && *result != "ignored"
        })
        .count()
}

/// Returns the number of calls in a crate that the summaries in a folder counted.
///
/// # Errors
///
/// Returns an error if a summary cannot be read.
pub(crate) fn calls(summaries: &Path, subject: &Subject) -> Result<u64, Error> {
    let mut calls = 0;
    for entry in fs::read_dir(summaries).map_err(Error::io("read", summaries))? {
        let entry = entry.map_err(Error::io("read", summaries))?;
        let file = entry.file_name();
        if file
            .to_string_lossy()
            .starts_with(&format!("{}.", subject.name))
        {
            calls += calls_in(&entry.path())?;
        }
    }
    Ok(calls)
}

fn calls_in(summary: &Path) -> Result<u64, Error> {
    let bytes = fs::read(summary).map_err(Error::io("read", summary))?;
    let parsed: Value = serde_json::from_slice(&bytes)
        .map_err(|error| Error::Message(summary.display().to_string(), error))?;
    let rows = parsed["rows"].as_array().map_or(&[][..], Vec::as_slice);
    Ok(rows.iter().filter_map(|row| row["calls"].as_u64()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(pairs: &[(&str, &str)]) -> Results {
        pairs
            .iter()
            .map(|(name, result)| {
                let key = ("slab".to_owned(), "slab".to_owned(), (*name).to_owned());
                (key, (*result).to_owned())
            })
            .collect()
    }

    #[test]
    fn lines_of_results_are_read() {
        let output = "running 3 tests\ntest a::b ... ok\ntest c ... ignored, slow\n\
                      test d - should panic ... FAILED\ntest result: ok. 3 passed\n";
        let read: Vec<_> = parse(output).collect();
        assert_eq!(read, [("a::b", "ok"), ("c", "ignored"), ("d", "FAILED")]);
    }

    #[test]
    fn each_changed_result_is_a_difference_and_a_missing_one_too() {
        let bare = results(&[("a", "ok"), ("b", "ok"), ("c", "FAILED")]);
        assert_eq!(differences(&bare, &bare), Vec::<String>::new());
        let other = results(&[("a", "FAILED"), ("c", "FAILED"), ("d", "ok")]);
        assert_eq!(
            differences(&bare, &other),
            [
                "slab slab a: ok, then FAILED",
                "slab slab b: ok, then absent",
                "slab slab d: absent, then ok",
            ]
        );
    }
}
