//! Where threads run: what the profiler's own thread has touched on another processor takes longer to reach than what
//! it has touched on the same one, and the system puts it now here, now there.

use std::fmt;
use std::fs;
use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::{Deserialize, Serialize};

/// The thread that reads the events.
const RESOLVER: &str = "profiler-cuda";

/// Where what is measured is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Placement {
    /// On another processor than it was measured on, as on machines that have enough of them.
    Apart,
    /// On the same one.
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

/// The processors that this process may use, before anything was moved.
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

    /// The placements that they allow.
    pub(crate) fn placements(&self) -> &'static [Placement] {
        match self.numbers.len() {
            ..2 => &[Placement::Together],
            2.. => &[Placement::Apart, Placement::Together],
        }
    }

    /// The processor on which what was measured is read.
    pub(crate) fn reader(&self, placement: Placement) -> Option<usize> {
        let at = match placement {
            Placement::Apart => self.numbers.len().checked_sub(1)?,
            Placement::Together => 0,
        };
        self.numbers.get(at).copied()
    }

    /// Keeps this thread on one processor, and the profiler's where it is to be.
    pub(crate) fn place(&self, placement: Placement) -> io::Result<()> {
        if let (Some(thread), Some(number)) = (resolver()?, self.reader(placement)) {
            sched_setaffinity(Some(thread), &only(number))?;
        }
        self.numbers.first().map_or(Ok(()), |&first| stay_on(first))
    }

    /// Lets all run anywhere again.
    pub(crate) fn release(&self) -> io::Result<()> {
        if let Some(thread) = resolver()? {
            sched_setaffinity(Some(thread), &self.all)?;
        }
        Ok(sched_setaffinity(None, &self.all)?)
    }
}

/// Keeps this thread on one processor.
pub(crate) fn stay_on(number: usize) -> io::Result<()> {
    Ok(sched_setaffinity(None, &only(number))?)
}

fn only(number: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(number);
    set
}

/// The profiler's thread that reads events; none where nothing is read.
fn resolver() -> io::Result<Option<Pid>> {
    for thread in fs::read_dir("/proc/self/task")? {
        let thread = thread?;
        // One that has ended may stand there still.
        let name = fs::read_to_string(thread.path().join("comm")).unwrap_or_default();
        if name.trim_end() == RESOLVER {
            let number = thread.file_name().to_string_lossy().parse();
            return Ok(number.ok().and_then(Pid::from_raw));
        }
    }
    Ok(None)
}
