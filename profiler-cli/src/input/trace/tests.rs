//! Traces written by hand, and what they become.

mod any_timeline;
mod damaged;
mod hostile;
mod memory;
mod nesting;
mod order;
mod round_trip;
mod tools;
mod torch;

use profiler_report::{Slice, Timeline};

use crate::input::{Input, InputError, Limits};

/// Reads a trace with these events.
fn read(events: &str) -> Timeline {
    of_text(&format!(r#"{{"traceEvents": [{events}]}}"#))
}

fn of_text(text: &str) -> Timeline {
    match Input::from_reader(text.as_bytes(), "trace.json", Limits::DEFAULT) {
        Ok(Input::Timeline(timeline)) => *timeline,
        other => panic!("{other:?}"),
    }
}

/// Returns the text of a trace that `profiler-runtime` wrote.
fn own(events: &[String]) -> String {
    let events = events.join(",");
    format!(r#"{{"profiler": {{"name": "profiler-runtime"}}, "traceEvents": [{events}]}}"#)
}

/// Returns the message for a file that cannot be read.
fn refused(text: &[u8], limits: Limits) -> String {
    let error: InputError = Input::from_reader(text, "trace.json", limits).unwrap_err();
    let message = error.to_string();
    assert!(!message.contains('\n'), "{message}");
    message
}

/// Returns a complete event on thread 1, with times in microseconds.
fn complete(category: &str, name: &str, (start, duration): (f64, f64), args: &str) -> String {
    on_track(category, name, (1, 1), (start, duration), args)
}

fn on_track(
    category: &str,
    name: &str,
    (process, thread): (u32, u32),
    (start, duration): (f64, f64),
    args: &str,
) -> String {
    format!(
        r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": {process}, "tid": {thread},
            "ts": {start}, "dur": {duration}, "args": {{{args}}}}}"#
    )
}

fn name<'t>(timeline: &'t Timeline, slice: &Slice) -> &'t str {
    &timeline.names[slice.name as usize].text
}

/// Returns each slice as its name, the name of its parent, and its self time in microseconds.
fn tree(timeline: &Timeline) -> Vec<(&str, &str, f64)> {
    let slices = timeline.slices.iter();
    slices
        .map(|slice| {
            let parent = slice.parent.map(|parent| &timeline.slices[parent as usize]);
            let parent = parent.map_or("-", |parent| name(timeline, parent));
            (name(timeline, slice), parent, slice.self_ns as f64 / 1000.0)
        })
        .collect()
}
