//! The machine and the compiler, without which the numbers mean nothing.

use std::fmt;
use std::process::Command;

use serde::Serialize;

/// The machine and the compiler of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    /// The model name of the processor.
    pub processor: String,
    /// The number of hardware threads.
    pub cores: usize,
    /// The version of the first `rustc` in the path, which is normally the one that built the
    /// bench.
    pub rustc: String,
}

impl Machine {
    /// Reads the properties of this machine.
    pub fn this() -> Self {
        Self {
            processor: processor().unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            rustc: rustc().unwrap_or_else(|| "rustc not found".to_owned()),
        }
    }
}

fn processor() -> Option<String> {
    let table = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = table.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn rustc() -> Option<String> {
    let output = Command::new("rustc").arg("--version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            processor,
            cores,
            rustc,
        } = self;
        write!(f, "{processor}, {cores} cores; {rustc}")
    }
}
