//! Work on streams that no scope names: its functions have that time only while kernels are recorded.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::iter;

use crate::covered::{MAX_DEPTH, is_bound, streams};
use crate::in_order::InOrder as _;
use crate::text::list::first_of;
use crate::text::units;
use crate::timeline::{SliceKind, SliceName, Timeline};
use crate::walk::NONE;

/// The most functions, and the most streams, that are named.
const NAMED: usize = 3;

/// The crates of candle that may have spans.
const CANDLE: [&str; 3] = ["candle_core", "candle_nn", "candle_transformers"];

/// What a function launched on streams that no scope around the launches names.
#[derive(Default)]
struct Unnamed {
    count: u64,
    ns: i64,
    /// The tracks of the streams.
    streams: Vec<u32>,
}

/// Names the functions that launched work on streams which neither they nor a scope around them names, with the remedy.
/// `callers` are the calls that slices belong to, `texts` the number of the text of each name. `covered` are the scopes whose
/// GPU times have the work of each slice.
///
/// Launches inside of an entered handle, and those that the launch hook gave to a scope, are left out: another thread launched
/// them, and a stream that the scope names would not be theirs. So are those inside of calls to which `cuda::bind_stream` bound
/// streams.
pub(super) fn note(
    timeline: &Timeline,
    callers: &[u32],
    texts: &[u32],
    covered: &[u32],
) -> Option<String> {
    let streams = streams(timeline);
    let mut functions: BTreeMap<u32, Unnamed> = BTreeMap::new();
    for ((slice, caller), covered) in timeline.slices.iter().zip(callers).zip(covered) {
        let launch = || timeline.launches.get(slice.launch? as usize);
        if slice.kind != SliceKind::GpuWork
            || *covered != NONE
            || launch().is_none_or(|launch| launch.since_entered_ns.is_some())
        {
            continue;
        }
        let around = iter::successors(Some(*caller), |call| callers.get(*call as usize).copied());
        if around.take(MAX_DEPTH).any(|call| is_bound(timeline, call)) {
            continue;
        }
        let name = timeline.slices.get(*caller as usize).map(|call| call.name);
        let (Some(name), Some(stream)) = (
            name.and_then(|name| texts.get(name as usize)),
            streams.get(slice.track as usize),
        ) else {
            continue;
        };
        let function = functions.entry(*name).or_default();
        function.count += 1;
        function.ns += slice.duration_ns.max(0);
        if !function.streams.contains(stream) {
            function.streams.push(*stream);
        }
    }
    let mut functions: Vec<(u32, Unnamed)> = functions.into_iter().collect();
    functions.order_by_key(|(_, function)| Reverse(function.ns));
    let text = |(name, _): &(u32, Unnamed)| {
        let name = timeline.names.get(*name as usize);
        name.map_or_else(String::new, |name| format!("`{}`", name.text))
    };
    let number = |stream: &u32| {
        let track = timeline.tracks.get(*stream as usize);
        track.map_or_else(String::new, |track| track.id.to_string())
    };
    let (first, others) = functions.split_first()?;
    let Unnamed { count, ns, streams } = &first.1;
    let work = if *count == 1 {
        "a kernel, copy or fill".to_owned()
    } else {
        format!("{count} kernels, copies and fills")
    };
    let plural = if streams.len() == 1 { "" } else { "s" };
    let also = match first_of(others.iter().map(text), NAMED) {
        also if also.is_empty() => also,
        also => format!(", as did {also}"),
    };
    let remedy = match stream_of_a_framework(timeline) {
        Some(stream) => format!("call `cuda::set_default_stream({stream})` once"),
        None => "write `stream = &stream` on the function, or call `cuda::set_default_stream(&stream)` once; the \
                 guide's page on frameworks says where frameworks have theirs"
            .to_owned(),
    };
    Some(format!(
        "{} launched {work} ({}) on stream{plural} {}, which no scope around the launches names{also}: without recorded \
         kernels that time is missing; {remedy}",
        text(first),
        units::time(*ns as f64),
        first_of(streams.iter().map(number), NAMED),
    ))
}

/// Returns where a program has the stream of its framework, if spans of the framework's own crates were measured.
fn stream_of_a_framework(timeline: &Timeline) -> Option<&'static str> {
    let is_candle = |name: &SliceName| {
        let module = name.text.split("::").next();
        module.is_some_and(|module| CANDLE.contains(&module))
    };
    let mut names = timeline.names.iter();
    names
        .any(is_candle)
        .then_some("device.as_cuda_device()?.cuda_stream()")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::covered::covered;
    use crate::timeline::{Launch, Slice, Track, TrackKind};

    /// Work: its function, the track of its stream, its length, and for how long its thread had entered a handle.
    type Work = (u32, u32, i64, Option<i64>);

    /// The note on three functions, of which the last one is measured on stream 7, and on their work.
    fn note(work: &[Work]) -> Option<String> {
        note_on(["forward", "backward", "measured"], work)
    }

    fn note_on(functions: [&str; 3], work: &[Work]) -> Option<String> {
        let stream = |id| Track {
            kind: TrackKind::GpuStream,
            device: Some(0),
            id,
            ..Track::default()
        };
        let mut line = Timeline {
            tracks: vec![Track::default(), stream(7), stream(8), stream(9)],
            ..Timeline::default()
        };
        for (name, text) in (0..).zip(functions) {
            line.names.push(SliceName {
                text: text.into(),
                ..SliceName::default()
            });
            line.slices.push(Slice {
                name,
                ..Slice::default()
            });
        }
        line.slices.push(Slice {
            track: 1,
            name: 2,
            kind: SliceKind::GpuScope,
            parent: Some(2),
            ..Slice::default()
        });
        for (launch, (function, track, duration_ns, since_entered_ns)) in (0..).zip(work) {
            line.launches.push(Launch {
                parent: Some(*function),
                since_entered_ns: *since_entered_ns,
                ..Launch::default()
            });
            line.slices.push(Slice {
                kind: SliceKind::GpuWork,
                track: *track,
                duration_ns: *duration_ns,
                parent: Some(*function),
                launch: Some(launch),
                ..Slice::default()
            });
        }
        let callers = crate::call_tree::callers(&line);
        super::note(&line, &callers, &[0, 1, 2], &covered(&line, &callers))
    }

    #[test]
    fn the_function_with_the_most_work_on_streams_without_a_name_is_named_with_the_remedy() {
        let one = note(&[(0, 1, 2_000, None)]).expect("a note");
        assert!(
            one.starts_with(
                "`forward` launched a kernel, copy or fill (2.00 µs) on stream 7, which no scope"
            ),
            "{one}"
        );
        let three = [
            (0, 1, 2_000, None),
            (1, 1, 2_000, None),
            (1, 2, 2_000, None),
            (2, 3, 1, None),
        ];
        assert_eq!(
            note(&three).expect("a note"),
            "`backward` launched 2 kernels, copies and fills (4.00 µs) on streams 7, 8, which no scope around the launches \
             names, as did `forward`, `measured`: without recorded kernels that time is missing; write `stream = &stream` on \
             the function, or call `cuda::set_default_stream(&stream)` once; the guide's page on frameworks says where \
             frameworks have theirs"
        );
    }

    #[test]
    fn the_line_for_candle_has_its_stream() {
        let remedy = |span| {
            let note = note_on([span, "forward", "measured"], &[(0, 1, 2_000, None)]);
            let note = note.expect("a note");
            note.split_once("missing; ").expect("a remedy").1.to_owned()
        };
        assert_eq!(
            remedy("candle_transformers::models::with_tracing::linear"),
            "call `cuda::set_default_stream(device.as_cuda_device()?.cuda_stream())` once"
        );
        // The program's own.
        assert!(remedy("candle_shop::linear").starts_with("write `stream = &stream`"));
    }

    #[test]
    fn streams_that_a_scope_names_and_launches_for_handles_need_no_note() {
        assert_eq!(note(&[]), None);
        assert_eq!(note(&[(2, 1, 2_000, None)]), None);
        assert_eq!(
            note(&[(0, 1, 2_000, Some(0)), (1, 2, 2_000, Some(500))]),
            None
        );
    }
}
