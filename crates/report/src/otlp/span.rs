//! One span.

use super::attributes::Attributes;
use super::ids::{Ids, SpanId, TraceId};
use crate::averages::missing;
use crate::text::json::string;
use crate::{GpuWorkKind, Slice, SliceEnding, SliceKind, Timeline, Track, TrackKind};

/// `SPAN_KIND_INTERNAL`
const INTERNAL: u8 = 1;
/// `STATUS_CODE_ERROR`
const ERROR: u8 = 2;

#[derive(Debug)]
pub(super) struct Span {
    name: String,
    trace: TraceId,
    id: SpanId,
    parent: Option<SpanId>,
    link: Option<(TraceId, SpanId)>,
    /// In nanoseconds since the Unix epoch.
    times: [i64; 2],
    attributes: Attributes,
    error: Option<&'static str>,
}

impl Span {
    /// Returns the span of the whole time line, with what is missing in it.
    pub(super) fn of_window(timeline: &Timeline, ids: &Ids) -> Self {
        let mut attributes = Attributes::default();
        attributes.text("profiler.kind", "window");
        attributes.texts("profiler.missing", missing(timeline));
        let name = match &*timeline.title {
            "" => "window",
            title => title,
        };
        Self {
            name: name.to_owned(),
            trace: ids.trace(None),
            id: ids.of_window(),
            parent: None,
            link: None,
            times: times(timeline, 0, timeline.duration_ns),
            attributes,
            error: None,
        }
    }

    /// Returns the span of a step, which is linked to that of the time line.
    pub(super) fn of_step(timeline: &Timeline, ids: &Ids, index: usize) -> Self {
        let step = timeline.steps.get(index).copied().unwrap_or_default();
        let mut attributes = Attributes::default();
        attributes.text("profiler.kind", "step");
        attributes.number("profiler.step", step.number);
        Self {
            name: format!("step {}", step.number),
            trace: ids.trace(Some(index)),
            id: ids.of_step(index),
            parent: None,
            link: Some((ids.trace(None), ids.of_window())),
            times: times(
                timeline,
                step.start_ns,
                step.end_ns.saturating_sub(step.start_ns),
            ),
            attributes,
            error: None,
        }
    }

    pub(super) fn of_slice(timeline: &Timeline, ids: &Ids, index: usize, slice: &Slice) -> Self {
        let name = timeline.names.get(slice.name as usize);
        let name = name.map_or("", |name| &name.text);
        let step = ids.step(index);
        let launched_by = slice
            .parent
            .filter(|by| slice.is_on_gpu() && (*by as usize) < timeline.slices.len());
        // A pipeline may have work of two steps inside each other; a parent is in the same trace.
        let parent = ids.parent(index);
        let parent = parent.filter(|parent| ids.step(*parent as usize) == step);
        let link = launched_by.filter(|by| parent != Some(*by));
        let (root, root_ns) = match step.and_then(|step| Some((step, timeline.steps.get(step)?))) {
            Some((index, step)) => (ids.of_step(index), step.start_ns..=step.end_ns),
            None => (ids.of_window(), 0..=timeline.duration_ns),
        };
        let end_ns = slice.start_ns.saturating_add(slice.duration_ns);
        let is_inside = root_ns.contains(&slice.start_ns) && root_ns.contains(&end_ns);
        let parent_id = parent.map(|parent| ids.of_slice(parent as usize));
        Self {
            name: name.to_owned(),
            trace: ids.trace(step),
            id: ids.of_slice(index),
            parent: parent_id.or(is_inside.then_some(root)),
            link: link.map(|by| (ids.trace(ids.step(by as usize)), ids.of_slice(by as usize))),
            times: times(timeline, slice.start_ns, slice.duration_ns),
            attributes: attributes(timeline, slice),
            error: (slice.ending == SliceEnding::Panicked).then_some("panicked"),
        }
    }

    pub(super) fn to_json(&self) -> String {
        let Self {
            name,
            trace,
            id,
            parent,
            link,
            times: [start, end],
            attributes,
            error,
        } = self;
        let parent = parent.map_or_else(String::new, |parent| {
            format!("\"parentSpanId\":\"{parent}\",")
        });
        let link = link.map_or_else(String::new, |(trace, span)| {
            format!(",\"links\":[{{\"traceId\":\"{trace}\",\"spanId\":\"{span}\"}}]")
        });
        let status = error.map_or_else(String::new, |message| {
            format!(
                ",\"status\":{{\"message\":{},\"code\":{ERROR}}}",
                string(message)
            )
        });
        format!(
            "{{\"traceId\":\"{trace}\",\"spanId\":\"{id}\",{parent}\"name\":{},\"kind\":{INTERNAL},\
             \"startTimeUnixNano\":\"{start}\",\"endTimeUnixNano\":\"{end}\",\"attributes\":{}{link}{status}}}",
            string(name),
            attributes.to_json()
        )
    }
}

fn times(timeline: &Timeline, start_ns: i64, duration_ns: i64) -> [i64; 2] {
    let start = timeline.start_unix_ns.saturating_add(start_ns).max(0);
    [start, start.saturating_add(duration_ns.max(0))]
}

fn attributes(timeline: &Timeline, slice: &Slice) -> Attributes {
    let mut attributes = Attributes::default();
    let kind = match slice.kind {
        SliceKind::Call => "call",
        SliceKind::FuturePoll => "poll",
        SliceKind::AsyncCall => "future",
        SliceKind::GpuScope => "gpu_scope",
        SliceKind::GpuWork => "gpu_work",
        SliceKind::GpuRange => "gpu_range",
    };
    attributes.text("profiler.kind", kind);
    let name = timeline.names.get(slice.name as usize);
    if let Some((file, line)) = name.and_then(|name| name.location.rsplit_once(':')) {
        attributes.text("code.file.path", file);
        if line.parse::<u64>().is_ok() {
            attributes.number("code.line.number", line);
        }
    }
    if let Some(track) = timeline.tracks.get(slice.track as usize) {
        add_track(&mut attributes, track);
    }
    attributes.number("profiler.self_ns", slice.self_ns);
    let shapes = slice
        .shapes
        .and_then(|shapes| timeline.shapes.get(shapes as usize));
    if let Some(shapes) = shapes {
        attributes.text("profiler.shapes", shapes);
    }
    attributes.optional("profiler.allocated_bytes", slice.allocated_bytes);
    attributes.optional("profiler.device_bytes", slice.device_bytes);
    if slice.ending == SliceEnding::Dropped {
        attributes.text("profiler.ending", "dropped");
    }
    let work = slice.work.and_then(|work| timeline.work.get(work as usize));
    if let Some(work) = work {
        add_work(&mut attributes, &work.kind);
    }
    attributes
}

fn add_track(attributes: &mut Attributes, track: &Track) {
    if track.kind == TrackKind::GpuStream {
        attributes.text("gpu.stream", &track.name);
        attributes.optional("gpu.device", track.device);
        return;
    }
    // Futures have no thread.
    if track.kind == TrackKind::HostThread {
        attributes.number("thread.id", track.id);
    }
    attributes.text("thread.name", &track.name);
}

fn add_work(attributes: &mut Attributes, work: &GpuWorkKind) {
    match work {
        GpuWorkKind::Kernel(kernel) => {
            let size = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
            attributes.text("gpu.kernel.grid", &size(kernel.grid));
            attributes.text("gpu.kernel.block", &size(kernel.block));
        }
        GpuWorkKind::Memcpy(copy) => attributes.number("gpu.copy.bytes", copy.bytes),
        GpuWorkKind::Memset(fill) => attributes.number("gpu.fill.bytes", fill.bytes),
        GpuWorkKind::Synchronization(_) => {}
    }
}
