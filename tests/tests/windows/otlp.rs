//! Windows as OpenTelemetry's spans are what OpenTelemetry's own types read.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::{Span, TracesData};
use profiler_runtime::{MeasureFuture, Profile, Schedule, scope};
use profiler_tests::poll;

fn read(path: &Path) -> Vec<Span> {
    let text = fs::read_to_string(path).expect("a file");
    let lines = text.lines();
    let lines = lines.map(|line| serde_json::from_str::<TracesData>(line).expect("OTLP"));
    lines
        .flat_map(|data| data.resource_spans)
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans)
        .collect()
}

fn text(span: &Span, key: &str) -> Option<String> {
    let attribute = span
        .attributes
        .iter()
        .find(|attribute| attribute.key == key)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test(measuring)]
fn spans_are_the_scopes_of_the_window() {
    let schedule = Schedule::new().active(2).repeat(1);
    let ((), trace) = Profile::builder().schedule(schedule).run(|session| {
        for _ in 0..2 {
            {
                let _outer = scope!("otlp: outer \"quoted\"\n");
                let _inner = scope!("otlp: inner");
                poll::run(poll::yields(2).measure_execution_time("otlp: future"));
            }
            session.step();
        }
    });
    let trace = trace.expect("a window");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("window.otlp.jsonl");
    trace.export_otlp(&path).expect("room");
    let spans = read(&path);
    let timeline = trace.timeline();
    let of_slices: Vec<&Span> = spans
        .iter()
        .filter(|span| {
            !["window", "step"].contains(&&*text(span, "profiler.kind").expect("a kind"))
        })
        .collect();
    assert_eq!(of_slices.len(), timeline.slices.len());
    let by_id: HashMap<&[u8], &Span> = spans.iter().map(|span| (&*span.span_id, span)).collect();
    assert_eq!(by_id.len(), spans.len(), "ids are there once");
    for (slice, span) in timeline.slices.iter().zip(of_slices) {
        assert_eq!(span.name, *timeline.names[slice.name as usize].text);
        let start = u64::try_from(timeline.start_unix_ns + slice.start_ns).expect("after 1970");
        assert_eq!(span.start_time_unix_nano, start);
        let length = u64::try_from(slice.duration_ns).expect("forwards");
        assert_eq!(span.end_time_unix_nano, start + length);
        assert_eq!((span.trace_id.len(), span.span_id.len()), (16, 8));
        if let Some(parent) = slice.parent {
            let parent = &timeline.slices[parent as usize];
            // A GPU time that outlives its scope is linked to it.
            let launched_by = span.links.first().map(|link| &*link.span_id);
            let found = by_id[launched_by.unwrap_or(&span.parent_span_id)];
            assert_eq!(found.name, *timeline.names[parent.name as usize].text);
            assert_eq!(found.trace_id, span.trace_id);
        }
    }
    let polls = spans
        .iter()
        .filter(|span| text(span, "profiler.kind").as_deref() == Some("poll"));
    assert_eq!(polls.count(), 6);
    let steps = spans
        .iter()
        .filter(|span| text(span, "profiler.step").is_some());
    assert_eq!(steps.count(), timeline.steps.len());
    assert_eq!(timeline.steps.len(), 2);
}
