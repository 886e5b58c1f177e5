//! The streams on which the work of a window ran.

use std::collections::{BTreeMap, BTreeSet};

use profiler_report::internal::StreamKey;

use crate::session::{Trace, WorkRecord};

/// A stream, by the key that the GPU times of scopes have too, or else by CUPTI's numbers of its context and itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum WorkStream {
    Known(StreamKey),
    Numbered { context: u32, stream: u32 },
}

impl WorkStream {
    pub(crate) fn of(work: &WorkRecord) -> Self {
        let details = &work.details;
        match work.stream_key {
            Some(key) => Self::Known(key),
            None => Self::Numbered {
                context: details.context,
                stream: details.stream,
            },
        }
    }
}

/// Returns the numbers of all streams with kernels, copies or fills on their devices. `scopes` are the numbers of the
/// streams with GPU times of scopes, which stay. Other streams get CUPTI's number, or the next one that is free, from 1
/// on: HTA treats work on stream 0 as part of no step.
pub(crate) fn work_stream_numbers(
    trace: &Trace,
    scopes: impl Iterator<Item = (u32, StreamKey, u64)>,
) -> BTreeMap<(u32, WorkStream), u64> {
    let mut numbers = BTreeMap::new();
    let mut taken: BTreeSet<(u32, u64)> = BTreeSet::new();
    for (device, key, number) in scopes {
        numbers.insert((device, WorkStream::Known(key)), number);
        taken.insert((device, number));
    }
    let mut used = BTreeMap::new();
    for work in trace.work.on_streams() {
        let stream = (work.details.device, WorkStream::of(work));
        used.entry(stream)
            .or_insert_with(|| u64::from(work.details.stream).max(1));
    }
    numbers.retain(|stream, _| used.contains_key(stream));
    for ((device, stream), wanted) in used {
        numbers.entry((device, stream)).or_insert_with(|| {
            let mut number = wanted;
            while !taken.insert((device, number)) {
                number += 1;
            }
            number
        });
    }
    numbers
}
