//! The names of the program, its threads and streams, as viewers show them.

use std::collections::{BTreeMap, BTreeSet};

use super::has_start;
use crate::cuda::{self, GpuRecord};
use crate::session::ThreadInfo;
use crate::stream_key::StreamKey;

/// Kineto's number of the default stream; HTA assigns no iteration to stream 0.
const DEFAULT_STREAM: u64 = 7;

/// Returns the name of a thread. It comes before the id, because viewers cut the end.
pub(super) fn thread_name(thread: &ThreadInfo) -> String {
    match &thread.name {
        Some(name) => format!("{name} ({})", thread.id),
        None => format!("thread {}", thread.id),
    }
}

pub(super) fn stream_name(number: u64, stream: StreamKey) -> String {
    format!("stream {number} ({stream})")
}

/// Returns the numbers of the streams on their devices. `device` returns the device of a GPU time.
pub(super) fn stream_numbers<D: Copy + Ord>(
    gpu: &[GpuRecord],
    device: impl Fn(&GpuRecord) -> D,
) -> BTreeMap<(D, StreamKey), u64> {
    let streams: BTreeSet<(D, StreamKey)> = gpu
        .iter()
        .filter(|gpu| has_start(gpu))
        .map(|gpu| (device(gpu), gpu.stream_key))
        .collect();
    let mut last = BTreeMap::new();
    let mut has_default = BTreeSet::new();
    let mut number = |device: D, key: StreamKey| {
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
pub(super) fn device_names(used: impl Iterator<Item = u64>) -> Vec<String> {
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
