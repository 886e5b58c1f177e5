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
}

/// Returns the violations of the good trace with another value at `place`: an event by its category and the beginning
/// of its name, and there a key or an argument.
fn found_at(place: &str, value: &Value) -> Vec<Rule> {
    let mut trace = good();
    let mut place = place.split('|');
    let [category, name] = [(); 2].map(|()| place.next().expect("an event"));
    let events = trace["traceEvents"].as_array_mut().expect("a list");
    let is_named = |event: &Value| {
        event["name"]
            .as_str()
            .is_some_and(|own| own.starts_with(name))
    };
    let is_it = |event: &&mut Value| event["cat"] == category && is_named(event);
    let event = events.iter_mut().find(is_it).expect("the event");
    *place.fold(event, |value, key| &mut value[key]) = value.clone();
    rules(&trace)
}

/// What is wrong, where, the value there, and the rules that the trace violates with it.
const WRONG: &str = r#"
slices without a category: cpu_op|forward|cat = 1 -> Slice
slices without a length: cpu_op|forward|dur = -1.0 -> Slice
slices without a length: cpu_op|forward|dur = "1" -> Slice
slices without a time: cpu_op|forward|ts = null -> Slice
times that lose nanoseconds: cpu_op|forward|ts = 8796093022208.5 -> Time
threads without numbers: cpu_op|forward|tid = "main" -> Track
threads without numbers: cpu_op|forward|pid = "Spans" -> Track
threads with numbers in quotes: cpu_op|forward|tid = "1001" -> TrackText
streams with names: kernel|gemm|tid = "stream 7" -> TrackText
threads without numbers: cpu_instant_event|[memory]|tid = "main" -> Track
slices that cross: cpu_op|matmul|dur = 500.0 -> Nesting
slices that cross: gpu_user_annotation|matmul|ts = 165.0 -> Nesting
an operator alone in one of its name: cpu_op|matmul|name = "forward" -> Recursion
names of steps: gpu_user_annotation|matmul|name = "ProfilerStep#4" -> Step
names of steps: cpu_op|matmul|name = "ProfilerStep#last" -> Step
names of steps: cpu_op|matmul|name = "my::ProfilerStep" -> Step
kernels without a device: kernel|gemm|args|device = 1 -> Device
kernels without a device: kernel|gemm|args|device = null -> Device
kernels without a stream: kernel|gemm|args|stream = 0 -> Stream
kernels without a stream: kernel|gemm|args|stream = "7" -> Stream
kernels without a stream: kernel|gemm|args|stream = null -> Stream
kernels without a launch: kernel|gemm|args|correlation = 0 -> Correlation
kernels without a launch: kernel|gemm|args|correlation = 9 -> Launched
kernels without a launch: kernel|gemm|args|correlation = null -> Correlation
kernels before their launch: kernel|gemm|ts = 129.0 -> BeforeLaunch
kernels with the launch of another: kernel|gemm|args|correlation = 2 -> none
kernels of another operator: kernel|gemm|args|External id = 1 -> Correlation
one has two, one has none: cuda_runtime|cudaMemset|args|correlation = 2 -> Correlation, Launched
launches without an operator: cuda_runtime|cudaLaunch|args|External id = null -> Correlation, Launch
copies with other names: gpu_memcpy|Memcpy|name = "copy" -> Copy
copies with other names: gpu_memset|Memset|name = "zero" -> Copy
annotations that pass for kernels: gpu_user_annotation|matmul|args|stream = 7 -> Annotation
waits that pass for kernels: cuda_sync|Stream|args|stream = 7 -> Wait
memory that is not shown: cpu_instant_event|[memory]|args|Device Type = 2 -> Memory
memory that is not shown: cpu_instant_event|[memory]|args|Addr = null -> Memory
memory that is not shown: cpu_instant_event|[memory]|args|Bytes = 1.5 -> Memory
memory that is not shown: cpu_instant_event|[memory]|ph = "n" -> Memory
memory of a device that is not there: cpu_instant_event|[memory]|args|Device Id = 1 -> Devices
arrows that lead nowhere: ac2g|ac2g|id = 2 -> Arrow, Arrow
arrows that lead back: ac2g|ac2g|ts = 162.0 -> Arrow
"#;

#[test]
fn a_value_that_breaks_a_rule_is_found() {
    for case in WRONG.lines().skip(1) {
        let (_what, change) = case.split_once(": ").expect("what is wrong");
        let (place, change) = change.split_once(" = ").expect("a place");
        let (value, expected) = change.split_once(" -> ").expect("a value");
        let value = serde_json::from_str(value).expect("JSON");
        let found = found_at(place, &value);
        let found: Vec<String> = found.iter().map(|rule| format!("{rule:?}")).collect();
        let expected = expected.replace("none", "");
        assert_eq!(found.join(", "), expected, "{case}");
    }
}

/// Other rules are violated along with these.
#[test]
fn events_without_names_and_operators_that_share_a_number_are_found() {
    let found = found_at("cuda_runtime|cudaMemset|name", &json!(5));
    assert!(found.contains(&Rule::Name), "{found:?}");
    for id in [json!(1), json!(0), json!(-2), Value::Null] {
        let found = found_at("cpu_op|matmul|args|External id", &id);
        assert!(found.contains(&Rule::ExternalId), "{id}: {found:?}");
    }
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
fn correlations_that_make_hta_stop_are_found() {
    let mut trace = good();
    let events = trace["traceEvents"].as_array_mut().expect("a list");
    let about = events[0].clone();
    events.extend((0..32_767).map(|_| about.clone()));
    assert_eq!(rules(&trace), [Rule::Correlation]);
}

#[test]
fn a_hundred_of_a_kind_are_enough() {
    let events: Vec<Value> = (0..500).map(|_| json!({"ph": "X"})).collect();
    assert_eq!(rules(&json!({"traceEvents": events})).len(), 100);
}

#[test]
fn errors_come_before_remarks() {
    let mut trace = good();
    let events = trace["traceEvents"].as_array_mut().expect("a list");
    // The launch loses its correlation, and the wait passes for a kernel.
    events[4]["args"] = json!({"External id": 2});
    events[11]["args"]["stream"] = json!(7);
    assert_eq!(rules(&trace), [Rule::Wait, Rule::Launched]);
}

#[test]
fn remarks_are_documented_as_such() {
    let source = include_str!("rule.rs");
    let documented = source.split("    /// ").scan(String::new(), |text, line| {
        let is_first = line
            .split(':')
            .next()
            .is_some_and(|n| n.parse::<u8>().is_ok());
        *text = if is_first {
            line.to_owned()
        } else {
            format!("{text}{line}")
        };
        Some(text.clone())
    });
    let documented: Vec<String> = documented.collect();
    for rule in Rule::ALL {
        let start = format!("{}:", rule.number());
        let whole = documented.iter().rfind(|text| text.starts_with(&start));
        let says_remark = whole.is_some_and(|text| text.replace('\n', " ").contains("A remark:"));
        assert_eq!(says_remark, rule.severity() == Severity::Remark, "{rule:?}");
    }
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
