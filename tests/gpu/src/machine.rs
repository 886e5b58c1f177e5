//! The host of a run, without which the host costs mean nothing.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The processor and the system.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Machine {
    processor: String,
    cores: usize,
    kernel: String,
    /// The line in `/proc/driver/nvidia/version`.
    driver: String,
}

impl Machine {
    pub(crate) fn this() -> Self {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let info = read("/proc/cpuinfo");
        let processor = info
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or(std::env::consts::ARCH, |(_, name)| name.trim());
        let driver = read("/proc/driver/nvidia/version");
        Self {
            processor: processor.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            driver: driver.lines().next().unwrap_or("unknown").to_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            processor,
            cores,
            kernel,
            driver,
        } = self;
        write!(f, "{processor}, {cores} cores; Linux {kernel}; {driver}")
    }
}
