//! A window as the script reads it.

use std::cmp::Reverse;
use std::collections::HashMap;

use super::numbers::number;
use super::work_details::WorkDetails;
use crate::idle::{DeviceState, Devices};
use crate::in_order::InOrder as _;
use crate::text::Field;
use crate::text::json::{array, lines, object, string};
use crate::timeline::{Counter, Slice, Timeline, Track, TrackKind};

/// How many slices the page holds: some two megabytes. The shortest are left out.
const MAX_SLICES: usize = 200_000;
/// How many values of a counter the page holds.
const MAX_SAMPLES: usize = 1_000;

/// Returns the window as JSON. The slices of each track are columns of numbers; starts are differences.
pub(super) fn json(timeline: &Timeline, devices: &Devices<'_>) -> String {
    let least = least_duration(&timeline.slices);
    let by_track = by_track(timeline, least);
    let kept = by_track.iter().map(Vec::len).sum::<usize>();
    let numbers = numbers(&by_track);
    let details = WorkDetails::of(timeline);
    let tracks = timeline.tracks.iter().zip(&by_track);
    let tracks = tracks
        .filter(|(_, slices)| !slices.is_empty())
        .map(|(track, slices)| track_json(timeline, track, slices, &numbers, &details));
    let names = timeline.names.iter().map(|name| string(&name.text));
    let steps = timeline.steps.iter();
    let steps = steps.map(|step| format!("[{},{},{}]", step.number, step.start_ns, step.end_ns));
    let gaps = timeline.kernel_gaps.iter();
    let gaps = gaps.map(|gap| {
        let end = gap.start_ns.saturating_add(gap.duration_ns);
        let process = gap
            .rank
            .map_or_else(|| "null".to_owned(), |rank| string(&of_rank(rank)));
        format!("[{},{end},{process}]", gap.start_ns)
    });
    object([
        Field::raw("duration_ns", timeline.duration_ns),
        Field::raw("names", array(names)),
        Field::raw("tracks", lines(tracks)),
        Field::raw("work", details.json()),
        Field::raw("steps", array(steps)),
        Field::raw("kernel_gaps", array(gaps)),
        Field::raw("not_recorded", array(not_recorded(devices))),
        Field::raw(
            "counters",
            lines(timeline.counters.iter().map(counter_json)),
        ),
        Field::raw("omitted", timeline.slices.len() - kept),
        Field::raw("omitted_below_ns", least),
    ])
}

/// Returns the times of each device that count as not recorded, as in the account of its window: the beginning of each, and its
/// end, as differences.
fn not_recorded(devices: &Devices<'_>) -> Vec<String> {
    let devices = devices.each().filter_map(|device| {
        let segments = device.segments.iter();
        let spans: Vec<i64> = segments
            .filter(|segment| segment.state == DeviceState::NotRecorded)
            .flat_map(|segment| [segment.start_ns, segment.end_ns])
            .collect();
        (!spans.is_empty()).then(|| {
            object([
                Field::text("process", &process(device.track)),
                Field::optional("device", device.track.device),
                Field::raw("spans", differences(spans.into_iter())),
            ])
        })
    });
    devices.collect()
}

/// Returns the duration from which slices are kept.
fn least_duration(slices: &[Slice]) -> i64 {
    if slices.len() <= MAX_SLICES {
        return 0;
    }
    let mut durations: Vec<i64> = slices.iter().map(|slice| slice.duration_ns).collect();
    let (_, least, _) = durations.select_nth_unstable_by_key(MAX_SLICES, |ns| -ns);
    // Longer than the first one that does not fit.
    *least + 1
}

/// Returns the indices of the slices that are kept, for each track in the order of their starts.
fn by_track(timeline: &Timeline, least: i64) -> Vec<Vec<usize>> {
    let mut tracks = vec![Vec::new(); timeline.tracks.len()];
    for (index, slice) in timeline.slices.iter().enumerate() {
        if slice.duration_ns >= least
            && slice.is_placed()
            && let Some(track) = tracks.get_mut(slice.track as usize)
        {
            track.push(index);
        }
    }
    // A file of another program may have another order. A slice comes after those around it.
    for track in &mut tracks {
        track.order_by_key(|index| {
            let slice = &timeline.slices[*index];
            (slice.start_ns, Reverse(slice.duration_ns))
        });
    }
    tracks
}

/// Returns the number by which the script knows each slice: its place, track after track.
fn numbers(by_track: &[Vec<usize>]) -> HashMap<usize, i64> {
    let indices = by_track.iter().flatten();
    indices.copied().zip(0..).collect()
}

fn track_json(
    timeline: &Timeline,
    track: &Track,
    slices: &[usize],
    numbers: &HashMap<usize, i64>,
    details: &WorkDetails,
) -> String {
    let slices = || slices.iter().map(|index| &timeline.slices[*index]);
    let is_stream = track.kind == TrackKind::GpuStream;
    let has_details = slices().any(|slice| details.number(slice) > 0);
    let is_work = |slice: &Slice| timeline.is_work(slice);
    let has_work = slices().any(is_work);
    let others = slices().zip(0..).filter(|(slice, _)| !is_work(slice));
    let others: Vec<String> = others
        .map(|(_, place): (_, usize)| place.to_string())
        .collect();
    let launches = slices().map(|slice| {
        let parent = slice
            .parent
            .and_then(|parent| numbers.get(&(parent as usize)));
        parent.map_or(0, |number| *number + 1)
    });
    object([
        Field::text("name", &track.name),
        Field::text("kind", kind(track.kind)),
        Field::text("process", &process(track)),
        Field::optional("device", track.device),
        Field::optional("stream", is_stream.then_some(track.id)),
        Field::raw("has_work", has_work),
        // A range around work is no work, and a wait neither.
        Field::optional("others", has_work.then(|| array(others))),
        Field::raw("start", differences(slices().map(|slice| slice.start_ns))),
        Field::raw(
            "duration",
            array(slices().map(|slice| slice.duration_ns.max(0).to_string())),
        ),
        Field::raw(
            "name_of",
            array(slices().map(|slice| slice.name.to_string())),
        ),
        Field::optional("launch", is_stream.then(|| differences(launches))),
        Field::optional(
            "work_of",
            has_details.then(|| array(slices().map(|slice| details.number(slice).to_string()))),
        ),
    ])
}

fn kind(kind: TrackKind) -> &'static str {
    match kind {
        TrackKind::HostThread => "thread",
        TrackKind::Futures => "futures",
        TrackKind::GpuStream => "stream",
    }
}

fn of_rank(rank: u64) -> String {
    format!("rank {rank}")
}

/// Returns the rank or the process of a track, as a reader tells processes apart.
fn process(track: &Track) -> String {
    match track.rank {
        Some(rank) => of_rank(rank),
        None => track.process.to_string(),
    }
}

/// Returns the first value and the difference of each further one, as JSON.
fn differences(values: impl Iterator<Item = i64>) -> String {
    let mut before = 0;
    array(values.map(|value| {
        let difference = i128::from(value) - i128::from(before);
        before = value;
        difference.to_string()
    }))
}

fn counter_json(counter: &Counter) -> String {
    let samples = thinned(&counter.samples);
    object([
        Field::text("name", &counter.name),
        Field::text("unit", &counter.unit),
        Field::optional("device", counter.device),
        Field::raw("time", differences(samples.iter().map(|(ns, _)| *ns))),
        Field::raw(
            "value",
            array(samples.iter().map(|(_, value)| number(*value))),
        ),
    ])
}

/// Keeps the lowest and the highest value of each of equal parts, so that no peak is lost.
fn thinned(samples: &[(i64, f64)]) -> Vec<(i64, f64)> {
    if samples.len() <= MAX_SAMPLES {
        return samples.to_vec();
    }
    let size = samples.len().div_ceil(MAX_SAMPLES / 2);
    let extremes = samples.chunks(size).flat_map(|part| {
        let low = part.iter().min_by(|left, right| left.1.total_cmp(&right.1));
        let high = part.iter().max_by(|left, right| left.1.total_cmp(&right.1));
        let mut both: Vec<(i64, f64)> = low.into_iter().chain(high).copied().collect();
        both.order_by_key(|(ns, _)| *ns);
        both.dedup();
        both
    });
    extremes.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::timeline::{SliceKind, SliceName};
    use crate::{GpuWork, GpuWorkKind, KernelGap, KernelLaunch, MemoryCopy, WaitKind};

    fn slice(track: u32, start_ns: i64, duration_ns: i64, parent: Option<u32>) -> Slice {
        Slice {
            track,
            start_ns,
            duration_ns,
            parent,
            kind: if track == 1 {
                SliceKind::GpuScope
            } else {
                SliceKind::Call
            },
            ..Slice::default()
        }
    }

    fn timeline(slices: Vec<Slice>) -> Timeline {
        let stream = Track {
            kind: TrackKind::GpuStream,
            ..Track::default()
        };
        Timeline {
            names: vec![SliceName::default()],
            tracks: vec![Track::default(), stream],
            slices,
            ..Timeline::default()
        }
    }

    fn read(timeline: &Timeline) -> Value {
        let devices = crate::idle::devices(timeline, &crate::call_tree::callers(timeline));
        serde_json::from_str(&super::json(timeline, &devices)).expect("JSON")
    }

    #[test]
    fn times_without_kernels_are_those_of_their_process() {
        let mut timeline = timeline(vec![slice(0, 0, 10, None)]);
        for rank in [None, Some(3)] {
            timeline.kernel_gaps.push(KernelGap {
                rank,
                start_ns: 2,
                duration_ns: 5,
                ..KernelGap::default()
            });
        }
        timeline.tracks[0].rank = Some(3);
        let read = read(&timeline);
        assert_eq!(read["kernel_gaps"], json!([[2, 7, null], [2, 7, "rank 3"]]));
        assert_eq!(read["tracks"][0]["process"], "rank 3");
    }

    #[test]
    fn what_is_not_recorded_is_what_the_account_says() {
        let mut line = timeline(vec![slice(1, 10, 5, None), slice(1, 40, 5, None)]);
        for slice in &mut line.slices {
            slice.kind = SliceKind::GpuWork;
        }
        line.has_kernels = true;
        line.duration_ns = 60;
        line.kernel_gaps.push(KernelGap {
            start_ns: 50,
            duration_ns: 4,
            ..KernelGap::default()
        });
        let read = read(&line);
        // Neither launch is known, so both pieces before the works count too.
        assert_eq!(
            read["not_recorded"],
            json!([{ "process": "0", "device": null, "spans": [0, 10, 5, 25, 10, 4] }])
        );
        let device = &line.gpu_idle().devices[0];
        assert_eq!((device.not_recorded_ns, device.busy_ns), (39, 10));
    }

    #[test]
    fn slices_are_ordered_and_know_their_launches() {
        let json = read(&timeline(vec![
            slice(0, 50, 10, None),
            slice(0, 10, 20, None),
            slice(1, 60, 5, Some(0)),
            slice(1, 61, 5, None),
        ]));
        let [thread, stream] = [&json["tracks"][0], &json["tracks"][1]];
        assert_eq!(thread["start"], json!([10, 40]));
        assert_eq!(thread["duration"], json!([20, 10]));
        assert_eq!(thread["launch"], Value::Null);
        // The second slice of the thread launched the first of the stream.
        assert_eq!(stream["launch"], json!([2, -2]));
    }

    #[test]
    fn ranges_around_work_and_waits_are_no_work() {
        let mut line = timeline(vec![
            slice(0, 0, 9, None),
            slice(1, 1, 8, None),
            slice(1, 2, 4, None),
        ]);
        line.slices[1].kind = SliceKind::GpuRange;
        let [thread, stream] = [0, 1].map(|track| read(&line)["tracks"][track].clone());
        assert_eq!(
            (&thread["has_work"], &thread["others"]),
            (&json!(false), &Value::Null)
        );
        assert_eq!(
            (&stream["has_work"], &stream["others"]),
            (&json!(false), &Value::Null)
        );
        line.slices[2].kind = SliceKind::GpuWork;
        line.work.push(GpuWork {
            kind: GpuWorkKind::Synchronization(WaitKind::StreamWaitEvent),
            ..GpuWork::default()
        });
        line.slices[2].work = Some(0);
        assert_eq!(read(&line)["tracks"][1]["has_work"], false);
        line.slices[2].work = None;
        let stream = &read(&line)["tracks"][1];
        assert_eq!(
            (&stream["has_work"], &stream["others"]),
            (&json!(true), &json!([0]))
        );
    }

    #[test]
    fn kernels_and_copies_have_their_details() {
        let mut line = timeline(vec![slice(1, 60, 5, None), slice(1, 70, 5, None)]);
        let kernel = KernelLaunch {
            grid: [64, 2, 1],
            block: [256, 1, 1],
            registers: 32,
            dynamic_shared_bytes: 1024,
            ..KernelLaunch::default()
        };
        let copy = MemoryCopy {
            bytes: 4096,
            ..MemoryCopy::default()
        };
        for kind in [GpuWorkKind::Memcpy(copy), GpuWorkKind::Kernel(kernel)] {
            line.work.push(GpuWork {
                kind,
                ..GpuWork::default()
            });
        }
        line.slices[0].work = Some(1);
        let json = read(&line);
        assert_eq!(
            json["work"],
            json!([[4096], [64, 2, 1, 256, 1, 1, 32, 1024]])
        );
        assert_eq!(json["tracks"][0]["work_of"], json!([2, 0]));
    }

    #[test]
    fn of_many_slices_the_longest_are_kept() {
        let many = (0..300_000).map(|at| slice(0, at * 10, at % 100, None));
        let json = read(&timeline(many.collect()));
        let kept = json["tracks"][0]["start"].as_array().expect("starts").len();
        assert!((190_000..=MAX_SLICES).contains(&kept), "{kept}");
        assert_eq!(json["omitted"], 300_000 - kept);
        let durations = json["tracks"][0]["duration"].as_array().expect("durations");
        let least = json["omitted_below_ns"].as_i64();
        assert!(durations.iter().all(|ns| ns.as_i64() >= least));
    }

    #[test]
    fn thinned_counters_keep_their_peaks() {
        let mut samples: Vec<(i64, f64)> = (0..10_000).map(|at| (at, 1.0)).collect();
        samples[5_001].1 = 9.0;
        let thinned = thinned(&samples);
        assert!(thinned.len() <= MAX_SAMPLES, "{}", thinned.len());
        assert!(thinned.contains(&(5_001, 9.0)));
        assert!(thinned.is_sorted_by_key(|(ns, _)| *ns));
    }
}
