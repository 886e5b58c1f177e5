//! Whole traces, built by hand and written to memory.

mod counters;
mod gpu;
mod recursion;
mod work;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use profiler_report::internal::{StreamKey, write_chrome_trace};
use profiler_report::{LaunchCategory, MemoryUse};
use profiler_trace_validator::{Rule, Violation, validate};
use serde_json::{Value, json};

use crate::clock::clock;
use crate::cuda::CudaLoss;
use crate::session::sample::Sample;
use crate::session::{RecordEnding, RecordKind, ScopeDetails, Step, Trace};

/// Writes a window of rank 3 of 8.
fn written(trace: &Trace, launches: LaunchCategory) -> String {
    let mut timeline = trace.timeline();
    for track in &mut timeline.tracks {
        track.rank = Some(3);
    }
    for device in &mut timeline.devices {
        device.rank = Some(3);
    }
    for wait in &mut timeline.waits {
        wait.rank = Some(3);
    }
    timeline.world_size = Some(8);
    let bytes = write_chrome_trace(&timeline, Vec::new(), launches.as_str()).expect("to memory");
    String::from_utf8(bytes).expect("UTF-8")
}

fn parsed(trace: &Trace) -> Value {
    serde_json::from_str(&written(trace, LaunchCategory::CudaRuntime)).expect("JSON")
}

fn events(trace: &Trace) -> Vec<Value> {
    let mut whole = parsed(trace);
    let events = whole["traceEvents"].take();
    serde_json::from_value(events).expect("a list")
}

fn violations(trace: &Trace) -> Vec<Violation> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Relaxed);
    let name = format!("trace-{}-{number}.json", std::process::id());
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, written(trace, LaunchCategory::CudaRuntime)).expect("room");
    let found = validate(&path).expect("a file");
    std::fs::remove_file(path).expect("a file");
    found
}

fn of_category(events: &[Value], category: &str) -> Vec<Value> {
    let is_it = |event: &&Value| event["cat"] == category;
    events.iter().filter(is_it).cloned().collect()
}

/// Nanoseconds.
fn ns(value: &Value) -> i64 {
    let text = value.to_string();
    let (us, fraction) = text.split_once('.').expect("decimals");
    format!("{us}{fraction:0<3}").parse().expect("digits")
}

fn extent(event: &Value) -> (i64, i64) {
    let start = ns(&event["ts"]);
    (start, start + ns(&event["dur"]))
}

/// Converts microseconds to ticks.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "some seconds at most"
)]
fn us(count: u64) -> u64 {
    (count as f64 * 1000.0 / clock().nanoseconds(1.0)).round() as u64
}

fn long(count: u64) -> i64 {
    us(count).cast_signed()
}

fn stream() -> StreamKey {
    StreamKey {
        context: 0,
        ..StreamKey::NOWHERE
    }
}

fn memory() -> MemoryUse {
    MemoryUse {
        host_net: 1024,
        host_allocated: 4096,
        host_peak: 4096,
        host_total: 1 << 20,
        device_net: Some(512),
        device_total: Some(1 << 24),
        device_reserved: Some(1 << 25),
        non_exhaustive: (),
    }
}

/// Creates scopes of two steps on one thread and one stream; a future, and its poll on another thread.
fn training() -> Sample {
    let mut sample = Sample::new();
    for step in 0..2 {
        let begin = 1000 * step;
        let at = |us: u64| i64::try_from((begin + us) * 1000).expect("small");
        let forward = sample.scope("chrome: forward", 0, us(begin + 100), long(300));
        let shapes = Some(vec![Box::from([32, 64]), Box::from([])]);
        sample.extra(ScopeDetails {
            shapes,
            memory: Some(memory()),
            ..ScopeDetails::default()
        });
        sample.gpu(stream(), at(150), 400_000.0, 150_000.0);
        sample.scope("chrome: matmul", forward, us(begin + 120), long(100));
        sample.gpu(stream(), at(170), 250_000.0, 250_000.0);
        sample.steps.push(Step {
            number: step,
            thread: 0,
            start: sample.origin + us(begin),
            end: sample.origin + us(begin + 1000),
        });
    }
    let poll = sample.on_thread(1, "chrome: load", 0, us(300), long(50));
    sample.last().kind = RecordKind::Poll { future: 77 };
    sample.on_thread(1, "chrome: parse", poll, us(310), long(20));
    sample.on_thread(1, "chrome: load", 0, us(300), long(900));
    let future = sample.last();
    (future.serial, future.kind) = (77, RecordKind::Future { polled: long(50) });
    future.ending = RecordEnding::Dropped;
    sample
}

#[test]
fn events_come_last_and_the_rank_is_found() {
    let mut trace = training().trace();
    trace.meta.metadata = vec![
        ("traceEvents".into(), "[]]".into()),
        ("run".into(), "first".into()),
        ("run".into(), "a \"quoted\"\nline".into()),
    ];
    let text = written(&trace, LaunchCategory::CudaRuntime);
    let whole: Value = serde_json::from_str(&text).expect("JSON");
    let last = text.rfind(']').expect("a bracket");
    assert_eq!(
        text[last..].trim(),
        "]}",
        "what is put before the last bracket is an event"
    );
    assert!(text.contains("\"rank\": 3"), "as HTA looks for it");
    assert_eq!(whole["distributedInfo"]["world_size"], 8);
    assert_eq!(whole["run"], "a \"quoted\"\nline");
    assert_eq!(whole["metadata.traceEvents"], "[]]");
    assert_eq!(whole["profiler"]["complete"], true);
}

#[test]
fn times_count_from_the_base_that_all_ranks_share() {
    let trace = training().trace();
    let whole = parsed(&trace);
    let base = whole["baseTimeNanoseconds"].as_i64().expect("a number");
    assert_eq!(base % (7_889_238 / 2 * 1_000_000_000), 0);
    let first = of_category(&events(&trace), "cpu_op").remove(0);
    let event = trace.events().next().expect("a scope");
    assert_eq!(base + ns(&first["ts"]), event.start_ns());
    assert!(first["ts"].as_f64().expect("a number") < 2_f64.powi(42));
}

#[test]
fn operators_have_ids_of_their_own_and_shapes() {
    let events = events(&training().trace());
    let operators = of_category(&events, "cpu_op");
    let mut ids: Vec<u64> = operators
        .iter()
        .filter_map(|event| event["args"]["External id"].as_u64())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), operators.len());
    assert!(ids[0] > 0);
    let forward = &operators[0];
    assert_eq!(forward["args"]["Input Dims"], json!([[32, 64], []]));
    assert_eq!(forward["args"]["Input type"], json!(["", ""]));
    let stack = operators[1]["args"]["Call stack"]
        .as_str()
        .expect("a stack");
    let frames: Vec<&str> = stack.split(';').collect();
    assert_eq!(frames.len(), 2, "{stack}");
    assert!(
        frames[0].contains("mod.rs(") && frames[0].ends_with("): chrome: matmul"),
        "{stack}"
    );
    assert!(frames[1].ends_with("): chrome: forward"), "{stack}");
}

#[test]
fn steps_are_on_the_host_only() {
    let events = events(&training().trace());
    let steps: Vec<&Value> = events
        .iter()
        .filter(|event| {
            event["name"]
                .as_str()
                .is_some_and(|name| name.starts_with("ProfilerStep"))
        })
        .collect();
    let names: Vec<&Value> = steps.iter().map(|step| &step["name"]).collect();
    assert_eq!(names, ["ProfilerStep#0", "ProfilerStep#1"]);
    assert!(
        steps
            .iter()
            .all(|step| step["cat"] == "user_annotation" && step["pid"] != 0)
    );
    assert!(extent(steps[0]).1 <= extent(steps[1]).0);
}

#[test]
fn no_scope_has_the_name_of_a_step() {
    let mut sample = Sample::new();
    sample.scope("ProfilerStep#x", 0, 0, long(10));
    sample.gpu(stream(), 0, 1000.0, 1000.0);
    let events = events(&sample.trace());
    assert!(events.iter().all(|event| {
        !event["name"]
            .as_str()
            .is_some_and(|name| name.contains("ProfilerStep"))
    }));
    assert_eq!(of_category(&events, "cpu_op")[0]["name"], "Profiler Step#x");
}

#[test]
fn memory_is_written_inside_the_scope_that_used_it() {
    let mut sample = Sample::new();
    let outer = sample.scope("chrome: outer", 0, us(0), long(100));
    sample.extra(ScopeDetails {
        memory: Some(MemoryUse {
            host_net: 3000,
            host_allocated: 5000,
            ..memory()
        }),
        ..ScopeDetails::default()
    });
    sample.scope("chrome: inner", outer, us(10), long(50));
    sample.extra(ScopeDetails {
        memory: Some(memory()),
        ..ScopeDetails::default()
    });
    let events = events(&sample.trace());
    let operators = of_category(&events, "cpu_op");
    let mut told: Vec<(i64, i64)> = events
        .iter()
        .filter(|event| event["name"] == "[memory]" && event["args"]["Device Type"] == 0)
        .map(|event| {
            (
                ns(&event["ts"]),
                event["args"]["Bytes"].as_i64().expect("a number"),
            )
        })
        .collect();
    told.sort_by_key(|(at, _)| *at);
    let bytes: Vec<i64> = told.iter().map(|(_, bytes)| *bytes).collect();
    assert_eq!(
        bytes,
        [4096, -3072, 904, 1072],
        "inner, then what outer took itself"
    );
    let (inner, outer) = (extent(&operators[1]), extent(&operators[0]));
    assert!(
        told[..2]
            .iter()
            .all(|(at, _)| inner.0 <= *at && *at < inner.1)
    );
    assert!(
        told[2..]
            .iter()
            .all(|(at, _)| inner.1 <= *at && *at < outer.1)
    );
}

#[test]
fn an_empty_window_is_a_trace_too() {
    let trace = Sample::new().trace();
    assert!(events(&trace).iter().all(|event| event["ph"] == "M"));
}
