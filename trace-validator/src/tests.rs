//! A good trace keeps every rule, and violates exactly one after a single change.

mod reading;

use serde_json::{Value, json};

use super::*;

/// A step with an operator inside another one, which launches a kernel, a copy and a memory set, and waits for
/// them.
fn good() -> Value {
    let slice = |cat: &str, name: &str, track: (i64, i64), ts: f64, dur: f64, args: Value| json!({"ph": "X", "cat": cat, "name": name, "pid": track.0, "tid": track.1, "ts": ts, "dur": dur, "args": args});
    let (host, stream) = ((1000, 1001), (0, 7));
    let on_device = |cat, name, ts, correlation| {
        let args = json!({"External id": 2, "device": 0, "stream": 7, "correlation": correlation});
        slice(cat, name, stream, ts, 10.0, args)
    };
    let launch = |name, ts, correlation| {
        slice(
            "cuda_runtime",
            name,
            host,
            ts,
            2.0,
            json!({"External id": 2, "correlation": correlation}),
        )
    };
    let arrow = |ph, (pid, tid): (i64, i64), ts| json!({"ph": ph, "cat": "ac2g", "name": "ac2g", "id": 1, "pid": pid, "tid": tid, "ts": ts, "bp": "e"});
    json!({
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "H200"}],
        "distributedInfo": {"rank": 3, "world_size": 8},
        "traceEvents": [
            {"ph": "M", "name": "process_name", "pid": 1000, "tid": 0, "ts": 0, "args": {"name": "train"}},
            slice("user_annotation", "ProfilerStep#4", host, 100.0, 900.0, json!({})),
            slice("cpu_op", "forward", host, 110.0, 300.0, json!({"External id": 1})),
            slice("cpu_op", "matmul", host, 120.5, 100.25, json!({"External id": 2})),
            launch("cudaLaunchKernel", 130.0, 1),
            launch("cudaMemcpyAsync", 140.0, 2),
            launch("cudaMemsetAsync", 150.0, 3),
            slice("gpu_user_annotation", "matmul", stream, 160.0, 40.0, json!({"External id": 2})),
            on_device("kernel", "gemm", 161.0, 1),
            on_device("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 171.0, 2),
            on_device("gpu_memset", "Memset (Device)", 181.0, 3),
            slice("cuda_sync", "Stream Sync", (0, 8), 140.0, 60.0, json!({"device": 0})),
            arrow("s", host, 130.0),
            arrow("f", stream, 161.0),
            {
                "ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1000, "tid": 1001,
                "ts": 125.0, "args": {
                    "Device Type": 1, "Device Id": 0, "Addr": 64, "Bytes": 16, "Total Allocated": 16,
                    "Total Reserved": 32,
                },
            },
        ],
    })
}

/// The rank as Python writes it, with the space that HTA needs.
fn text(trace: &Value) -> String {
    trace.to_string().replace("\"rank\":", "\"rank\": ")
}

fn rules(trace: &Value) -> Vec<Rule> {
    let violations = validate_bytes(text(trace).as_bytes());
    violations.iter().map(|violation| violation.rule).collect()
}

/// Returns the violations after a change to the event with this category and name.
#[track_caller]
fn found_in(category: &str, name: &str, change: impl FnOnce(&mut Value)) -> Vec<Rule> {
    let mut trace = good();
    let events = trace["traceEvents"].as_array_mut().expect("a list");
    let is_it = |event: &&mut Value| event["cat"] == category && event["name"] == name;
    change(events.iter_mut().find(is_it).expect("the event"));
    rules(&trace)
}

#[test]
fn a_good_trace_violates_nothing() {
    assert_eq!(rules(&good()), []);
}

#[test]
fn json_that_is_cut_off_or_has_no_events_is_found() {
    let text = text(&good());
    for broken in [
        &text[..text.len() / 2],
        "[]",
        "{}",
        r#"{"traceEvents": 5}"#,
        r#"{"traceEvents": [1]}"#,
        "",
    ] {
        let found = validate_bytes(broken.as_bytes());
        assert_eq!(
            found.iter().map(|found| found.rule).collect::<Vec<_>>(),
            [Rule::Json],
            "{broken}"
        );
    }
}

#[test]
fn brackets_after_the_events_are_found() {
    let text = text(&good());
    let whole = text.strip_suffix('}').expect("an object");
    let after = |addition: &str| validate_bytes(format!("{whole},{addition}}}").as_bytes());
    assert_eq!(after(r#""traceName": "a.json""#), []);
    assert_eq!(after(r#""more": [1]"#)[0].rule, Rule::EventsLast);
    assert_eq!(after(r#""more": "]""#)[0].rule, Rule::EventsLast);
}

#[test]
fn a_rank_that_hta_does_not_find_is_found() {
    let found = validate_bytes(good().to_string().as_bytes());
    assert_eq!(found[0].rule, Rule::Rank);
    assert!(
        found[0].to_string().contains("write `\"rank\": 3`"),
        "{}",
        found[0]
    );
}

#[test]
fn devices_that_are_not_in_their_places_are_found() {
    let mut trace = good();
    trace["deviceProperties"][0]["id"] = json!(1);
    assert_eq!(rules(&trace), [Rule::Devices]);
    let further = |event: &mut Value| event["args"]["Device Id"] = json!(1);
    assert_eq!(
        found_in("cpu_instant_event", "[memory]", further),
        [Rule::Devices]
    );
}

#[test]
fn events_without_names_are_found() {
    let found = found_in("cuda_runtime", "cudaMemsetAsync", |event| {
        event["name"] = json!(5);
    });
    assert!(found.contains(&Rule::Name));
}

#[test]
fn slices_without_category_or_length_are_found() {
    for (key, value) in [
        ("cat", json!(1)),
        ("dur", json!(-1.0)),
        ("dur", json!("1")),
        ("ts", Value::Null),
    ] {
        let found = found_in("cpu_op", "forward", |event| event[key] = value.clone());
        assert_eq!(found, [Rule::Slice], "{key} {value}");
    }
}

#[test]
fn times_that_lose_nanoseconds_are_found() {
    let late = 2_f64.powi(43) + 0.5;
    assert_eq!(
        found_in("cpu_op", "forward", |event| event["ts"] = json!(late)),
        [Rule::Time]
    );
}

#[test]
fn threads_without_numbers_are_found() {
    assert_eq!(
        found_in("cpu_op", "forward", |event| event["tid"] = json!("main")),
        [Rule::Track]
    );
    assert_eq!(
        found_in("cpu_op", "forward", |event| event["pid"] = json!("Spans")),
        [Rule::Track]
    );
    assert_eq!(
        found_in("cpu_instant_event", "[memory]", |event| event["tid"] =
            json!("main")),
        [Rule::Track]
    );
}

#[test]
fn slices_that_cross_are_found() {
    assert_eq!(
        found_in("cpu_op", "matmul", |event| event["dur"] = json!(500.0)),
        [Rule::Nesting]
    );
    assert_eq!(
        found_in("gpu_user_annotation", "matmul", |event| event["ts"] =
            json!(165.0)),
        [Rule::Nesting]
    );
}

#[test]
fn operators_that_cross_only_when_read_are_found() {
    let mut trace = good();
    let events = trace["traceEvents"].as_array_mut().expect("a list");
    // Both end at 0.3, and 0.1 + 0.2 is greater than that.
    for (place, ts, dur) in [(2, 0.0, 0.3), (3, 0.1, 0.2)] {
        (events[place]["ts"], events[place]["dur"]) = (json!(ts), json!(dur));
    }
    assert_eq!(rules(&trace), [Rule::Nesting]);
}

#[test]
fn operators_that_share_a_number_are_found() {
    for id in [json!(1), json!(0), json!(-2), Value::Null] {
        let found = found_in("cpu_op", "matmul", |event| {
            event["args"]["External id"] = id.clone();
        });
        assert!(found.contains(&Rule::ExternalId), "{id}");
    }
}

#[test]
fn an_operator_alone_in_one_of_its_name_is_found() {
    assert_eq!(
        found_in("cpu_op", "matmul", |event| event["name"] = json!("forward")),
        [Rule::Recursion]
    );
}

#[test]
fn other_events_with_the_name_of_a_step_are_found() {
    let named =
        |category, name: &str| found_in(category, "matmul", |event| event["name"] = json!(name));
    assert_eq!(named("gpu_user_annotation", "ProfilerStep#4"), [Rule::Step]);
    assert_eq!(named("cpu_op", "ProfilerStep#last"), [Rule::Step]);
    assert_eq!(named("cpu_op", "my::ProfilerStep"), [Rule::Step]);
}

#[test]
fn kernels_without_a_device_or_stream_are_found() {
    for value in [json!(1), Value::Null] {
        assert_eq!(
            found_in("kernel", "gemm", |event| event["args"]["device"] = value),
            [Rule::Device]
        );
    }
    for value in [json!(0), json!("7"), Value::Null] {
        assert_eq!(
            found_in("kernel", "gemm", |event| event["args"]["stream"] = value),
            [Rule::Stream]
        );
    }
}

#[test]
fn kernels_without_a_launch_of_their_own_are_found() {
    for value in [json!(0), json!(9), json!(2), Value::Null] {
        let found = found_in("kernel", "gemm", |event| {
            event["args"]["correlation"] = value.clone();
        });
        let wanted: &[Rule] = if value == json!(2) {
            &[]
        } else {
            &[Rule::Correlation]
        };
        assert_eq!(found, wanted, "{value}");
    }
    let twice = found_in("cuda_runtime", "cudaMemsetAsync", |event| {
        event["args"]["correlation"] = json!(2);
    });
    assert_eq!(
        twice,
        [Rule::Correlation, Rule::Correlation],
        "one has two, one has none"
    );
    let other = found_in("kernel", "gemm", |event| {
        event["args"]["External id"] = json!(1);
    });
    assert_eq!(other, [Rule::Correlation]);
}

#[test]
fn correlations_that_make_hta_stop_are_found() {
    let mut trace = good();
    let events = trace["traceEvents"].as_array_mut().expect("a list");
    let about = events[0].clone();
    events.extend((0..32_767).map(|_| about.clone()));
    assert_eq!(rules(&trace), [Rule::Correlation]);
}

#[test]
fn launches_without_an_operator_are_found() {
    let found = found_in("cuda_runtime", "cudaLaunchKernel", |event| {
        event["args"]["External id"] = Value::Null;
    });
    assert_eq!(found, [Rule::Correlation, Rule::Launch]);
}

#[test]
fn copies_with_other_names_are_found() {
    let copy = "Memcpy DtoH (Device -> Pinned)";
    assert_eq!(
        found_in("gpu_memcpy", copy, |event| event["name"] = json!("copy")),
        [Rule::Copy]
    );
    assert_eq!(
        found_in("gpu_memset", "Memset (Device)", |event| event["name"] =
            json!("zero")),
        [Rule::Copy]
    );
}

#[test]
fn annotations_that_pass_for_kernels_are_found() {
    let found = found_in("gpu_user_annotation", "matmul", |event| {
        event["args"]["stream"] = json!(7);
    });
    assert_eq!(found, [Rule::Annotation]);
}

#[test]
fn waits_that_pass_for_kernels_are_found() {
    let found = found_in("cuda_sync", "Stream Sync", |event| {
        event["args"]["stream"] = json!(7);
    });
    assert_eq!(found, [Rule::Wait]);
}

#[test]
fn memory_that_is_not_shown_is_found() {
    for (key, value) in [
        ("Device Type", json!(2)),
        ("Addr", Value::Null),
        ("Bytes", json!(1.5)),
    ] {
        let found = found_in("cpu_instant_event", "[memory]", |event| {
            event["args"][key] = value;
        });
        assert_eq!(found, [Rule::Memory], "{key}");
    }
    assert_eq!(
        found_in("cpu_instant_event", "[memory]", |event| event["ph"] =
            json!("n")),
        [Rule::Memory]
    );
}

#[test]
fn arrows_that_lead_nowhere_or_back_are_found() {
    assert_eq!(
        found_in("ac2g", "ac2g", |event| event["id"] = json!(2)),
        [Rule::Arrow, Rule::Arrow]
    );
    assert_eq!(
        found_in("ac2g", "ac2g", |event| event["ts"] = json!(162.0)),
        [Rule::Arrow]
    );
}

#[test]
fn a_hundred_of_a_kind_are_enough() {
    let events: Vec<Value> = (0..500).map(|_| json!({"ph": "X"})).collect();
    assert_eq!(rules(&json!({"traceEvents": events})).len(), 100);
}

#[test]
fn rules_are_numbered_as_documented() {
    let source = include_str!("rule.rs");
    for (number, rule) in (1..).zip(Rule::ALL) {
        assert_eq!(rule.number(), number);
        let documented = source
            .split(&format!("    {rule:?},\n"))
            .next()
            .expect("text");
        let documented = documented.rsplit("    /// ").find(|line| {
            line.split(':')
                .next()
                .is_some_and(|n| n.parse::<u8>().is_ok())
        });
        assert!(
            documented.is_some_and(|line| line.starts_with(&format!("{number}:"))),
            "{rule:?}"
        );
    }
}
