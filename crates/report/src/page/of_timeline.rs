//! The rows of a time line that comes without a summary.

use std::sync::Arc;

use crate::averages::KeyAverages;
use crate::call_tree::CallTreeOptions;
use crate::environment::Environment;
use crate::summary::Summary;
use crate::timeline::Timeline;

/// Returns the key averages of a time line, `averages`, as a summary. It says only what the time line says of where it was measured.
pub(super) fn summary(timeline: &Timeline, averages: KeyAverages) -> Summary {
    let devices = timeline.tracks.iter();
    let mut devices: Vec<String> = devices
        .map(|track| track.device_name.clone())
        .filter(|name| !name.is_empty())
        .collect();
    devices.dedup();
    let environment = Environment {
        program: timeline.title.clone(),
        start_unix_ns: timeline.start_unix_ns,
        rank: timeline.tracks.iter().find_map(|track| track.rank),
        devices,
        ..Environment::default()
    };
    let is_empty = averages.rows.is_empty();
    let mut summary = Summary {
        rows: averages.rows,
        self_cpu_time_total_ns: averages.self_cpu_time_total_ns,
        self_cuda_time_total_ns: averages.self_cuda_time_total_ns,
        call_tree: Some(Arc::new(timeline.call_tree(CallTreeOptions::new()))),
        notes: averages.notes,
        wall_ns: timeline.duration_ns as f64,
        nothing_measured: is_empty.then(|| "the time line has no slices".to_owned()),
        environment,
        ..Summary::default()
    };
    "the file has no work on a GPU".clone_into(&mut summary.cuda.status);
    summary.cuda.is_explained = true;
    summary
}
