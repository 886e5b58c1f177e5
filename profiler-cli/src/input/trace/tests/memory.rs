//! Memory: counters, and what each scope allocated.

use super::{complete, name, read};

fn memory(at: f64, device: &str, bytes: i64, allocated: u64, reserved: u64) -> String {
    format!(
        r#"{{"ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": {at}, "args":
            {{{device}, "Bytes": {bytes}, "Addr": 1, "Total Allocated": {allocated}, "Total Reserved": {reserved}}}}}"#
    )
}

const HOST: &str = r#""Device Type": 0, "Device Id": -1"#;
const DEVICE: &str = r#""Device Type": 1, "Device Id": 2"#;

#[test]
fn changes_of_memory_are_counted_for_the_innermost_scope_and_over_time() {
    let events = [
        complete("cpu_op", "outer", (0.0, 100.0), ""),
        complete("cpu_op", "inner", (20.0, 20.0), ""),
        memory(30.0, HOST, 512, 512, 0),
        memory(35.0, HOST, -512, 0, 0),
        memory(50.0, DEVICE, 4096, 4096, 8192),
        memory(40.0, HOST, 64, 64, 0),
        memory(200.0, HOST, 1, 1, 0),
    ];
    let timeline = read(&events.join(","));
    let used: Vec<_> = timeline
        .slices
        .iter()
        .map(|slice| {
            (
                name(&timeline, slice),
                slice.allocated_bytes,
                slice.device_bytes,
            )
        })
        .collect();
    assert_eq!(
        used,
        [("outer", None, Some(4096)), ("inner", Some(576), None)]
    );
    let counters: Vec<_> = timeline
        .counters
        .iter()
        .map(|counter| {
            (
                counter.name.as_str(),
                counter.unit.as_str(),
                counter.device,
                counter.samples.clone(),
            )
        })
        .collect();
    assert_eq!(
        counters,
        [
            (
                "device memory allocated",
                "bytes",
                Some(2),
                vec![(50_000, 4096.0)]
            ),
            (
                "device memory reserved",
                "bytes",
                Some(2),
                vec![(50_000, 8192.0)]
            ),
            (
                "host memory allocated",
                "bytes",
                None,
                vec![
                    (30_000, 512.0),
                    (35_000, 0.0),
                    (40_000, 64.0),
                    (200_000, 1.0)
                ]
            ),
        ]
    );
    assert_eq!(timeline.duration_ns, 200_000);
}

#[test]
fn counter_events_become_counters() {
    let counter = |name: &str, at: u32, args: &str| {
        format!(r#"{{"args": {{{args}}}, "ph": "C", "name": "{name}", "pid": 1, "ts": {at}}}"#)
    };
    let events = [
        counter("host memory", 5, r#""bytes": 10, "note": "x""#),
        counter("host memory", 1, r#""bytes": 20"#),
        counter("queue", 2, r#""waiting": 3, "running": 1.5"#),
    ];
    let timeline = read(&events.join(","));
    let counters: Vec<_> = timeline
        .counters
        .iter()
        .map(|counter| {
            (
                counter.name.as_str(),
                counter.unit.as_str(),
                counter.samples.clone(),
            )
        })
        .collect();
    assert_eq!(
        counters,
        [
            ("host memory", "bytes", vec![(0, 20.0), (4000, 10.0)]),
            ("queue: running", "", vec![(1000, 1.5)]),
            ("queue: waiting", "", vec![(1000, 3.0)]),
        ]
    );
}
