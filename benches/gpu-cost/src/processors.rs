//! Thread placement. The system moves the resolver between processors, and cache lines that it
//! wrote on another processor take longer to read than those it wrote on the same one. So both
//! placements are measured.

use std::fmt;
use std::fs;
use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// The thread that reads events.
const RESOLVER: &str = "profiler-cuda";

/// The placement of the resolver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Placement {
    /// On another processor than the measured thread, as on most machines.
    Apart,
    /// On the same processor as the measured thread.
    Together,
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Apart => "read on another processor",
            Self::Together => "read on the same processor",
        })
    }
}

/// The processors that this process may use, read before any thread is pinned.
#[derive(Debug)]
pub(crate) struct Processors {
    all: CpuSet,
    numbers: Vec<usize>,
}

impl Processors {
    pub(crate) fn get() -> io::Result<Self> {
        let all = sched_getaffinity(None)?;
        let numbers = (0..CpuSet::MAX_CPU).filter(|&number| all.is_set(number));
        Ok(Self {
            numbers: numbers.collect(),
            all,
        })
    }

    /// Returns the placements that these processors allow.
    pub(crate) fn placements(&self) -> &'static [Placement] {
        match self.numbers.len() {
            ..2 => &[Placement::Together],
            2.. => &[Placement::Apart, Placement::Together],
        }
    }

    /// Returns the processor of the resolver.
    pub(crate) fn reader(&self, placement: Placement) -> Option<usize> {
        let at = match placement {
            Placement::Apart => self.numbers.len().checked_sub(1)?,
            Placement::Together => 0,
        };
        self.numbers.get(at).copied()
    }

    /// Pins this thread to a processor, and the resolver according to the placement.
    pub(crate) fn place(&self, placement: Placement) -> io::Result<()> {
        if let (Some(thread), Some(number)) = (resolver()?, self.reader(placement)) {
            sched_setaffinity(Some(thread), &only(number))?;
        }
        self.numbers.first().map_or(Ok(()), |&first| stay_on(first))
    }

    /// Unpins all threads.
    pub(crate) fn release(&self) -> io::Result<()> {
        if let Some(thread) = resolver()? {
            sched_setaffinity(Some(thread), &self.all)?;
        }
        Ok(sched_setaffinity(None, &self.all)?)
    }
}

/// Pins this thread to a processor.
pub(crate) fn stay_on(number: usize) -> io::Result<()> {
    Ok(sched_setaffinity(None, &only(number))?)
}

fn only(number: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(number);
    set
}

/// Returns the resolver's thread, or `None` if no events are read.
fn resolver() -> io::Result<Option<Pid>> {
    for thread in fs::read_dir("/proc/self/task")? {
        let thread = thread?;
        // A thread that has ended may still be listed.
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        if name.trim_end() == RESOLVER {
            let number = thread.file_name().to_string_lossy().parse();
            return Ok(number.ok().and_then(Pid::from_raw));
        }
    }
    Ok(None)
}
