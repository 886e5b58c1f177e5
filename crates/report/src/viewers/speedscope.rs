//! Profiles for speedscope.

use std::fmt::Write;
use std::path::Path;

use super::frames::{Frame, Frames};
use super::lanes::{self, Span};
use crate::in_order::InOrder as _;
use crate::stack_metric::StackMetric;
use crate::text::json::string;
use crate::{CallTree, CallTreeOptions, Timeline, Track, TrackKind};
use crate::{ExportError, file};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// The values by which all calls are shown, in the order of the profiles; the first one is shown first.
const WEIGHTS: [(StackMetric, &str, &str); 4] = [
    (
        StackMetric::SelfCudaTimeTotal,
        "all, by CUDA time",
        "nanoseconds",
    ),
    (
        StackMetric::SelfCpuTimeTotal,
        "all, by CPU time",
        "nanoseconds",
    ),
    (
        StackMetric::SelfCpuAllocated,
        "all, by host bytes allocated",
        "bytes",
    ),
    (
        StackMetric::SelfCudaMemoryUsage,
        "all, by device bytes taken",
        "bytes",
    ),
];

impl CallTree {
    /// Writes profiles for speedscope (<https://www.speedscope.app>): all calls by CUDA time, CPU time and memory, as far
    /// as they were recorded.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// let path = std::env::temp_dir().join(format!("calltree-{}.speedscope.json", std::process::id()));
    /// summary().call_tree().export_speedscope(&path)?;
    /// // Then open it in https://www.speedscope.app.
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_speedscope(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        let path = path.as_ref();
        let mut document = Document::default();
        document.add_tree(self);
        file::write(path, document.finish(&title(path)).as_bytes())
    }
}

impl Timeline {
    /// Writes profiles for speedscope (<https://www.speedscope.app>): those of the [call tree](CallTree::export_speedscope),
    /// then each thread and each stream over time. Futures are shown where they were polled.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// # let timeline = profiler_report::Timeline::default();
    /// let path = std::env::temp_dir().join(format!("timeline-{}.speedscope.json", std::process::id()));
    /// timeline.export_speedscope(&path)?;
    /// // Then open it in https://www.speedscope.app.
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_speedscope(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        let path = path.as_ref();
        let tree = self.call_tree(CallTreeOptions::new());
        let mut document = Document::default();
        document.add_tree(&tree);
        document.add_timeline(self);
        let title = if self.title.is_empty() {
            title(path)
        } else {
            self.title.clone()
        };
        file::write(path, document.finish(&title).as_bytes())
    }
}

/// Returns the name of the file without its ending.
fn title(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.trim_end_matches(".json")
        .trim_end_matches(".speedscope")
        .to_owned()
}

/// A file being written.
#[derive(Default)]
pub(super) struct Document<'t> {
    frames: Frames<'t>,
    /// Each profile as JSON.
    profiles: Vec<String>,
}

impl<'t> Document<'t> {
    /// Adds the profiles of all calls.
    pub(super) fn add_tree(&mut self, tree: &'t CallTree) {
        let nodes = tree.nodes.iter();
        let frames: Vec<usize> = nodes
            .map(|node| self.frames.number(&node.name, &node.location))
            .collect();
        let is_recorded =
            |metric: StackMetric| tree.nodes.iter().any(|node| metric.of(node).is_some());
        for (metric, name, unit) in WEIGHTS {
            if is_recorded(metric) {
                let flat = if tree.is_flat {
                    " (callers were not counted)"
                } else {
                    ""
                };
                let name = format!("{name}{flat}");
                self.profiles
                    .push(sampled(tree, &frames, metric, &name, unit));
            }
        }
    }

    /// Adds a profile for each thread and stream.
    pub(super) fn add_timeline(&mut self, timeline: &'t Timeline) {
        let mut spans: Vec<Vec<Span>> = vec![Vec::new(); timeline.tracks.len()];
        for slice in &timeline.slices {
            let name = timeline.names.get(slice.name as usize);
            if let (Some(spans), Some(name)) = (spans.get_mut(slice.track as usize), name) {
                spans.push(Span {
                    start: slice.start_ns,
                    end: slice.start_ns.saturating_add(slice.duration_ns.max(0)),
                    frame: self.frames.number(&name.text, &name.location),
                });
            }
        }
        let mut tracks: Vec<(&Track, Vec<Span>)> = timeline.tracks.iter().zip(spans).collect();
        // The main thread has the lowest id on most systems.
        tracks.order_by_key(|(track, _)| (track.rank, track.process, track.device, track.id));
        for kind in [TrackKind::HostThread, TrackKind::GpuStream] {
            for (track, spans) in tracks.iter().filter(|(track, _)| track.kind == kind) {
                for (lane, number) in lanes::divide(spans.clone()).iter().zip(1..) {
                    let name = lane_name(track, number);
                    self.profiles
                        .push(evented(lane, &name, timeline.duration_ns));
                }
            }
        }
    }

    pub(super) fn finish(mut self, name: &str) -> String {
        if self.profiles.is_empty() {
            // The page refuses a file without profiles.
            self.profiles.push(evented(&[], "nothing was measured", 0));
        }
        let frames: Vec<String> = self.frames.all().iter().map(|frame| json(*frame)).collect();
        format!(
            "{{\"$schema\":\"{SCHEMA}\",\"name\":{},\"exporter\":\"profiler-runtime {}\",\"activeProfileIndex\":0,\n\
             \"shared\":{{\"frames\":[{}]}},\n\"profiles\":[{}]}}\n",
            string(name),
            env!("CARGO_PKG_VERSION"),
            frames.join(",\n"),
            self.profiles.join(",\n")
        )
    }
}

fn json(frame: Frame<'_>) -> String {
    let name = if frame.name.is_empty() {
        "?"
    } else {
        frame.name
    };
    let name = string(name);
    match frame.file_and_line() {
        Some((file, line)) => format!(
            "{{\"name\":{name},\"file\":{},\"line\":{line}}}",
            string(file)
        ),
        None => format!("{{\"name\":{name}}}"),
    }
}

/// Returns the name of a track, with the number of the lane if it has several.
fn lane_name(track: &Track, lane: usize) -> String {
    let mut name = match track.rank {
        Some(rank) => format!("rank {rank}, {}", track.name),
        None => track.name.clone(),
    };
    if lane > 1 {
        let _ = write!(name, " ({lane})");
    }
    name
}

/// Returns the nodes from callers to callees, those with the largest sums first: the page draws them in this order.
fn heaviest_first(tree: &CallTree, metric: StackMetric) -> Vec<u32> {
    let sums = tree.sums(|node| metric.of(node).unwrap_or_default());
    let sum = |node: &u32| sums.get(*node as usize).copied().unwrap_or_default();
    let children = tree.children();
    let mut next: Vec<u32> = tree.roots().collect();
    next.order_by(|left, right| sum(left).total_cmp(&sum(right)));
    let mut order = Vec::with_capacity(tree.nodes.len());
    while let Some(node) = next.pop() {
        order.push(node);
        let mut called = children.get(node as usize).cloned().unwrap_or_default();
        called.order_by(|left, right| sum(left).total_cmp(&sum(right)));
        next.extend(called);
    }
    order
}

/// Returns a profile of calls by a value.
fn sampled(
    tree: &CallTree,
    frames: &[usize],
    metric: StackMetric,
    name: &str,
    unit: &str,
) -> String {
    let mut stacks = Vec::new();
    let mut weights = Vec::new();
    let mut sum = 0.0;
    for index in heaviest_first(tree, metric) {
        let node = tree.nodes.get(index as usize);
        let value = node.and_then(|node| metric.of(node));
        let value = value.unwrap_or_default().round();
        if value > 0.0 {
            let path = tree.path(index);
            let path = path.iter().filter_map(|at| frames.get(*at as usize));
            let path: Vec<String> = path.map(usize::to_string).collect();
            stacks.push(format!("[{}]", path.join(",")));
            weights.push(format!("{value:.0}"));
            sum += value;
        }
    }
    format!(
        "{{\"type\":\"sampled\",\"name\":\"{name}\",\"unit\":\"{unit}\",\"startValue\":0,\"endValue\":{sum:.0},\n\
         \"samples\":[{}],\n\"weights\":[{}]}}",
        stacks.join(","),
        weights.join(",")
    )
}

/// Returns a profile of slices that nest, over time.
fn evented(spans: &[Span], name: &str, duration_ns: i64) -> String {
    let first = spans.first().map_or(0, |span| span.start.min(0));
    let last = spans
        .iter()
        .map(|span| span.end)
        .fold(duration_ns, i64::max);
    let mut events = String::new();
    let mut event = |kind: char, frame: usize, at: i64| {
        let comma = if events.is_empty() { "" } else { "," };
        let _ = write!(
            events,
            "{comma}{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{at}}}"
        );
    };
    let mut open: Vec<Span> = Vec::new();
    for span in spans {
        while let Some(ended) = open.pop_if(|open| open.end <= span.start) {
            event('C', ended.frame, ended.end);
        }
        event('O', span.frame, span.start);
        open.push(*span);
    }
    while let Some(ended) = open.pop() {
        event('C', ended.frame, ended.end);
    }
    format!(
        "{{\"type\":\"evented\",\"name\":{},\"unit\":\"nanoseconds\",\"startValue\":{first},\"endValue\":{last},\n\
         \"events\":[{events}]}}",
        string(name)
    )
}
