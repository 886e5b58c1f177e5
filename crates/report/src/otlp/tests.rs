use serde_json::Value;

use super::*;
use crate::{Slice, SliceEnding, SliceKind, SliceName, Step, TrackKind};

/// A slice on a track, with its parent: from its start to its end.
fn slice(track: u32, kind: SliceKind, ns: [i64; 2], parent: Option<u32>) -> Slice {
    Slice {
        track,
        kind,
        start_ns: ns[0],
        duration_ns: ns[1] - ns[0],
        parent,
        ..Slice::default()
    }
}

/// Two steps on a thread and a stream, in nanoseconds from one million on.
fn timeline() -> Timeline {
    let track = |kind, name: &str, id| Track {
        kind,
        name: name.to_owned(),
        id,
        process: 7,
        process_name: "app".to_owned(),
        device: (kind == TrackKind::GpuStream).then_some(1),
        ..Track::default()
    };
    let call = |ns, parent| slice(0, SliceKind::Call, ns, parent);
    let gpu = |ns, parent| slice(1, SliceKind::GpuScope, ns, Some(parent));
    let mut slices = vec![
        call([100, 190], None),
        call([110, 150], Some(0)),
        // The launch of this one is in the second step, and its end outside of both.
        call([280, 320], None),
        // It outlives its scope.
        gpu([120, 195], 0),
        // Its scope had ended; the GPU time around it has not.
        gpu([160, 170], 1),
        // It lies within its scope.
        gpu([285, 300], 2),
    ];
    slices[1].ending = SliceEnding::Panicked;
    Timeline {
        title: "run".to_owned(),
        start_unix_ns: 1_000_000,
        duration_ns: 400,
        names: vec![SliceName {
            text: "a\"b\n".into(),
            location: "src/main.rs:12".into(),
            ..SliceName::default()
        }],
        tracks: vec![
            track(TrackKind::HostThread, "main", 42),
            track(TrackKind::GpuStream, "stream 7", 7),
        ],
        slices,
        steps: [(5, [100, 200]), (6, [200, 300])]
            .map(|(number, [start_ns, end_ns])| Step {
                number,
                start_ns,
                end_ns,
                track: None,
                slice: None,
                non_exhaustive: (),
            })
            .to_vec(),
        missing: vec![("scopes came late".to_owned(), 3)],
        ..Timeline::default()
    }
}

/// Writes a time line, and returns its spans.
fn spans(timeline: &Timeline) -> Vec<Value> {
    let mut text = Vec::new();
    write(timeline, &mut text).expect("memory");
    let text = String::from_utf8(text).expect("JSON");
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
    lines
        .flat_map(|line| {
            let spans = &line["resourceSpans"][0]["scopeSpans"][0]["spans"];
            spans.as_array().expect("spans").clone()
        })
        .collect()
}

#[test]
fn parents_contain_their_children_and_links_lead_to_launches() {
    let spans = spans(&timeline());
    let [
        window,
        first,
        second,
        outer,
        inner,
        late,
        long,
        short,
        inside,
    ] = &spans[..]
    else {
        panic!("{spans:#?}");
    };
    let id = |span: &Value| span["spanId"].as_str().map(str::to_owned);
    let parent = |span: &Value| span["parentSpanId"].as_str().map(str::to_owned);
    let link = |span: &Value| span["links"][0]["spanId"].as_str().map(str::to_owned);
    assert_eq!(parent(window), None);
    assert_eq!((parent(first), link(first)), (None, id(window)));
    assert_eq!((parent(outer), link(outer)), (id(first), None));
    assert_eq!(parent(inner), id(outer));
    assert_eq!(parent(late), None, "it ends after its step");
    assert_eq!((parent(long), link(long)), (id(first), id(outer)));
    assert_eq!((parent(short), link(short)), (id(long), id(inner)));
    assert_eq!((parent(inside), link(inside)), (id(late), None));
    let of_second = [second, late, inside].map(|span| &span["traceId"]);
    assert!(of_second.iter().all(|trace| *trace == of_second[0]));
    let traces = [window, first, second].map(|span| span["traceId"].to_string());
    assert!(traces[0] != traces[1] && traces[1] != traces[2] && traces[0] != traces[2]);
}

#[test]
fn a_span_has_times_attributes_and_a_status() {
    let spans = spans(&timeline());
    let inner = &spans[4];
    assert_eq!(inner["name"], "a\"b\n");
    assert_eq!(inner["startTimeUnixNano"], "1000110");
    assert_eq!(inner["endTimeUnixNano"], "1000150");
    assert_eq!(inner["status"]["code"], 2);
    let of = |span: &Value, key: &str| {
        let attributes = span["attributes"].as_array().expect("attributes");
        let found = attributes.iter().find(|attribute| attribute["key"] == key);
        found.map(|attribute| attribute["value"].clone())
    };
    let text = |text: &str| Some(serde_json::json!({ "stringValue": text }));
    assert_eq!(of(inner, "code.file.path"), text("src/main.rs"));
    let number = |number: &str| Some(serde_json::json!({ "intValue": number }));
    assert_eq!(of(inner, "code.line.number"), number("12"));
    assert_eq!(of(inner, "thread.id"), number("42"));
    assert_eq!(of(&spans[6], "gpu.device"), number("1"));
    assert_eq!(of(&spans[6], "profiler.kind"), text("gpu_scope"));
    let missing = of(&spans[0], "profiler.missing").expect("a list");
    assert_eq!(
        missing["arrayValue"]["values"][0]["stringValue"],
        "3 scopes came late"
    );
}

#[test]
fn ids_are_those_of_the_time_line_and_are_there_once() {
    let all = |timeline: &Timeline| {
        let spans = spans(timeline);
        let ids = spans.iter().map(|span| span["spanId"].to_string());
        ids.collect::<Vec<_>>()
    };
    let first = all(&timeline());
    let mut once = first.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), first.len());
    assert!(
        first
            .iter()
            .all(|id| id.len() == 18 && id != "\"0000000000000000\"")
    );
    assert_eq!(all(&timeline()), first);
    let other = Timeline {
        start_unix_ns: 1_000_001,
        ..timeline()
    };
    assert!(all(&other).iter().all(|id| !first.contains(id)));
}

#[test]
fn lines_hold_few_spans_of_one_process_each() {
    let mut timeline = timeline();
    let other = Track {
        process: 8,
        process_name: String::new(),
        ..Track::default()
    };
    timeline.tracks.push(other);
    let more = (0..2_000).map(|at| slice(2, SliceKind::Call, [at, at + 1], None));
    timeline.slices.extend(more);
    let mut text = Vec::new();
    write(&timeline, &mut text).expect("memory");
    let text = String::from_utf8(text).expect("JSON");
    let mut spans = 0;
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let of_line = &line["resourceSpans"][0]["scopeSpans"][0]["spans"];
        let of_line = of_line.as_array().expect("spans").len();
        assert!((1..=SPANS_OF_LINE).contains(&of_line), "{of_line}");
        spans += of_line;
        let attributes = line["resourceSpans"][0]["resource"]["attributes"].to_string();
        let services = [r#""stringValue":"app""#, r#""stringValue":"run""#];
        assert_eq!(
            services
                .map(|name| attributes.contains(name))
                .iter()
                .filter(|has| **has)
                .count(),
            1
        );
    }
    assert_eq!(spans, 2_009);
}

#[test]
fn anything_that_a_time_line_may_hold_is_written() {
    let mut hostile = timeline();
    for slice in &mut hostile.slices {
        *slice = Slice {
            track: 99,
            name: 99,
            start_ns: i64::MIN,
            duration_ns: i64::MAX,
            parent: Some(u32::MAX),
            shapes: Some(9),
            work: Some(9),
            ..*slice
        };
    }
    hostile.start_unix_ns = i64::MIN;
    hostile.steps[0].end_ns = i64::MIN;
    hostile.steps[0].number = u64::MAX;
    hostile.slices[3].parent = Some(1_000);
    let written = spans(&hostile);
    assert_eq!(written.len(), 9);
    let step = written[1]["attributes"].to_string();
    assert!(
        step.contains(r#""stringValue":"18446744073709551615""#),
        "{step}"
    );
    let links = written.iter().filter(|span| span.get("links").is_some());
    assert_eq!(links.count(), 2, "those of the steps");
    assert_eq!(spans(&Timeline::default()).len(), 1);
}
