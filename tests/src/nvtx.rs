//! Programs under an NVTX tool that writes each call down.

use std::collections::BTreeMap;
use std::process::Command;

use profiler_nvtx_recorder::{Call, FAULTS, FILE, INJECTION, Line, built};

use crate::isolated;

const CHILD: &str = "PROFILER_TESTS_UNDER_NVTX";

/// The results of a program.
#[derive(Debug)]
pub struct Recorded {
    pub lines: Vec<Line>,
    pub stderr: String,
}

/// Runs `work` in another process under the tool, and returns what the tool got. That process ends here.
pub fn record(faults: &str, work: impl FnOnce()) -> Recorded {
    record_with(|command| _ = command.env(FAULTS, faults), work)
}

/// Like [`record`], with a set-up for the process.
pub fn record_with(set_up: impl FnOnce(&mut Command), work: impl FnOnce()) -> Recorded {
    if std::env::var_os(CHILD).is_some() {
        work();
        std::process::exit(0);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("calls");
    let mut command = isolated::again();
    command
        .env(CHILD, "1")
        .env(INJECTION, built())
        .env(FILE, &file);
    set_up(&mut command);
    let output = command.output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}\n{stderr}", output.status);
    let lines = Call::read_all(&file);
    Recorded { lines, stderr }
}

impl Recorded {
    /// Returns the calls in short: `+name` for a push, `-` for a pop, `>name` and `<name` for both ends of a future.
    /// The names are without their module path. Threads are separated: by their number, if there are several.
    ///
    /// # Panics
    ///
    /// Panics if a call breaks the rules of NVTX.
    pub fn ranges(&self) -> Vec<String> {
        let mut futures = BTreeMap::new();
        let mut short = Vec::new();
        let is_one = self.lines.iter().all(|line| line.thread == 0);
        for Line { thread, call, .. } in &self.lines {
            let text = match call {
                Call::Push(range) => format!("+{}", last(&range.name)),
                Call::Pop => "-".to_owned(),
                Call::Start(id, range) => {
                    let name = last(&range.name);
                    futures.insert(*id, name);
                    format!(">{name}")
                }
                Call::End(id) => format!("<{}", futures.remove(id).expect("started")),
                Call::Wrong(what) => panic!("{what}: {self:#?}"),
                _ => continue,
            };
            short.push(if is_one {
                text
            } else {
                format!("{thread}{text}")
            });
        }
        short
    }

    /// Returns the values that `pick` finds in the calls.
    pub fn all<T>(&self, pick: impl Fn(&Call) -> Option<T>) -> Vec<T> {
        self.lines
            .iter()
            .filter_map(|line| pick(&line.call))
            .collect()
    }

    /// Returns the warnings of the profiler.
    pub fn warnings(&self) -> Vec<&str> {
        let lines = self.stderr.lines();
        lines
            .filter_map(|line| line.strip_prefix("profiler: warning: "))
            .collect()
    }
}

fn last(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}
