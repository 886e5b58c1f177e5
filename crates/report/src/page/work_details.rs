//! The launch parameters of kernels and the bytes of copies, for the script.

use std::collections::HashMap;

use crate::text::json::array;
use crate::timeline::{Slice, Timeline};
use crate::{GpuWork, GpuWorkKind};

/// The details of work, each once: programs launch a kernel many times in one way.
pub(super) struct WorkDetails {
    texts: Vec<String>,
    /// For each entry of [`Timeline::work`], the number of its text, from 1 on; 0 for none.
    numbers: Vec<usize>,
}

impl WorkDetails {
    pub(super) fn of(timeline: &Timeline) -> Self {
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut details = Self {
            texts: Vec::new(),
            numbers: Vec::with_capacity(timeline.work.len()),
        };
        for work in &timeline.work {
            let number = text_of(work).map_or(0, |text| {
                let next = details.texts.len() + 1;
                let number = *known.entry(text.clone()).or_insert(next);
                if number == next {
                    details.texts.push(text);
                }
                number
            });
            details.numbers.push(number);
        }
        details
    }

    /// Returns the number of the details of a slice, from 1 on; 0 for none.
    pub(super) fn number(&self, slice: &Slice) -> usize {
        let work = slice.work.and_then(|work| self.numbers.get(work as usize));
        work.copied().unwrap_or_default()
    }

    /// Returns all details as JSON.
    pub(super) fn json(&self) -> String {
        array(self.texts.iter().cloned())
    }
}

/// Returns numbers as a JSON array: for a kernel the extents of its grid and of a block, the registers of a thread and the
/// bytes of shared memory of a block; for a copy or a fill its bytes.
fn text_of(work: &GpuWork) -> Option<String> {
    match work.kind {
        GpuWorkKind::Kernel(launch) => {
            let shared =
                u64::from(launch.static_shared_bytes) + u64::from(launch.dynamic_shared_bytes);
            let extents = launch.grid.into_iter().chain(launch.block).map(u64::from);
            let others = [u64::from(launch.registers), shared];
            Some(array(
                extents.chain(others).map(|number| number.to_string()),
            ))
        }
        GpuWorkKind::Memcpy(copy) => Some(array([copy.bytes.to_string()])),
        GpuWorkKind::Memset(fill) => Some(array([fill.bytes.to_string()])),
        GpuWorkKind::Synchronization(_) => None,
    }
}
