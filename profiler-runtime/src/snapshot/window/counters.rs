//! Counters over the window, with at most 2,048 values each: GPU scopes in flight, memory in use.

use profiler_report::MemoryUse;

use crate::session::{Event, Trace};

const PLACES: u16 = 2048;

/// The window, divided into parts of equal length.
#[derive(Clone, Copy)]
struct Parts {
    length: i64,
}

impl Parts {
    fn new(end: i64) -> Self {
        let places = i64::from(PLACES);
        let length = (end.max(0) + places) / places;
        Self { length }
    }

    fn of(self, at: i64) -> usize {
        let part = (at / self.length).clamp(0, i64::from(PLACES) - 1);
        usize::try_from(part).unwrap_or_default()
    }

    fn end(self, part: i64) -> i64 {
        self.length * (part + 1)
    }
}

/// The number of scopes that had started on the CPU and not ended on the GPU.
pub(crate) struct InFlight {
    parts: Parts,
    changes: Vec<i64>,
}

impl InFlight {
    pub(crate) fn new(end: i64) -> Self {
        Self {
            parts: Parts::new(end),
            changes: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, begin: i64, end: i64) {
        self.changes.resize(PLACES.into(), 0);
        let (begin, end) = (self.parts.of(begin), self.parts.of(end));
        self.changes[begin] += 1;
        self.changes[end] -= 1;
    }

    /// Returns the times at which the number changed, with the number from then on.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (i64, i64)> {
        let mut count = 0;
        let changes = (0..).zip(&self.changes);
        changes
            .filter(|(_, change)| **change != 0)
            .map(move |(part, change)| {
                count += change;
                (self.parts.end(part), count)
            })
    }
}

/// Returns the memory in use that scopes found when they ended, with the times; the last value of each part.
pub(crate) fn memory_samples(
    trace: &Trace,
    end: i64,
    end_of: impl Fn(Event<'_>) -> i64,
) -> Vec<(i64, MemoryUse)> {
    if !trace.meta.options.profile_memory {
        return Vec::new();
    }
    let parts = Parts::new(end);
    let mut last: Vec<Option<(i64, MemoryUse)>> = vec![None; PLACES.into()];
    for event in trace.events() {
        let Some(memory) = event.memory() else {
            continue;
        };
        let at = end_of(event);
        let place = &mut last[parts.of(at)];
        if place.is_none_or(|(known, _)| known <= at) {
            *place = Some((at, memory));
        }
    }
    last.into_iter().flatten().collect()
}
