//! The names of the program, its threads and streams, as viewers show them.

use std::collections::{BTreeMap, BTreeSet};

use profiler_report::internal::StreamKey;

use crate::cuda::{self, GpuRecord};
use crate::session::ThreadInfo;

/// Kineto's number of the default stream; HTA assigns no iteration to stream 0.
const DEFAULT_STREAM: u64 = 7;

/// Returns the name of a thread. It comes before the id, because viewers cut the end.
pub(crate) fn thread_name(thread: &ThreadInfo) -> String {
    match &thread.name {
        Some(name) => format!("{name} ({})", thread.id),
        None => format!("thread {}", thread.id),
    }
}

pub(crate) fn stream_name(number: u64, stream: StreamKey) -> String {
    format!("stream {number} ({stream})")
}

/// Returns the numbers of the streams on their devices.
pub(crate) fn stream_numbers(gpu: &[GpuRecord]) -> BTreeMap<(Option<u32>, StreamKey), u64> {
    let streams: BTreeSet<(Option<u32>, StreamKey)> = gpu
        .iter()
        .filter(|gpu| gpu.loss.is_none())
        .map(|gpu| (gpu.device, gpu.stream_key))
        .collect();
    let mut last = BTreeMap::new();
    let mut has_default = BTreeSet::new();
    let mut number = |device: Option<u32>, key: StreamKey| {
        if key.stream.is_default() && key.thread == 0 && has_default.insert(device) {
            return DEFAULT_STREAM;
        }
        let last = last.entry(device).or_insert(DEFAULT_STREAM);
        *last += 1;
        *last
    };
    let streams = streams.into_iter();
    streams
        .map(|(device, key)| ((device, key), number(device, key)))
        .collect()
}

/// Returns the names of all devices up to the last one that is used, by ordinal. Asks the driver only if there are GPU
/// times, which show that the program has initialised it.
pub(crate) fn device_names(used: impl Iterator<Item = u64>) -> Vec<String> {
    let Some(last) = used.max() else {
        return Vec::new();
    };
    let mut names = match cuda::status() {
        cuda::Status::Ready { devices, .. } => devices,
        _ => Vec::new(),
    };
    let count = usize::try_from(last).unwrap_or_default() + 1;
    for ordinal in names.len()..count {
        names.push(format!("CUDA device {ordinal}"));
    }
    names
}
