//! Thread placement. The system moves the resolver between processors, and cache lines that it
//! wrote on another processor take longer to read than those it wrote on the same one. So both
//! placements are measured.

use std::fs;
use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The thread that reads events.
const RESOLVER: &str = "profiler-cuda";

/// The processors that this process may use, read before any thread is pinned.
#[derive(Debug)]
pub(crate) struct Processors {
    all: CpuSet,
    first: usize,
    last: usize,
}

impl Processors {
    pub(crate) fn get() -> io::Result<Self> {
        let all = sched_getaffinity(None)?;
        let mut numbers = (0..CpuSet::MAX_CPU).filter(|&number| all.is_set(number));
        let first = numbers.next().unwrap_or(0);
        let last = numbers.next_back().unwrap_or(first);
        Ok(Self { all, first, last })
    }

    /// Returns the placements that these processors allow, each with the processor of the resolver.
    pub(crate) fn places(&self) -> Vec<(&'static str, usize)> {
        let mut places = vec![
            ("on another processor", self.last),
            ("on the same processor", self.first),
        ];
        places.retain(|(place, _)| self.first != self.last || place.contains("same"));
        places
    }

    /// Pins this thread to the first processor, and the resolver to the given one.
    pub(crate) fn place(&self, resolver_on: usize) -> io::Result<()> {
        if let Some(thread) = resolver()? {
            sched_setaffinity(Some(thread), &only(resolver_on))?;
        }
        stay_on(self.first)
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
