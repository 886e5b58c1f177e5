//! Where memory is profiled, a trace tells of each scope what it took itself: together, what was taken.

use profiler_runtime::{Profile, scope};
use profiler_tests::traces::kept_events;

#[test(measuring)]
fn what_scopes_took_themselves_adds_up() {
    let builder = Profile::builder().profile_memory(true).record_shapes(true);
    let (kept, trace) = builder.run(|_| {
        let _outer = scope!("told: outer");
        let mut kept = vec![Vec::<u8>::with_capacity(1 << 16)];
        for shape in [[4, 8], [16, 32]] {
            let _inner = scope!("told: inner", shapes = [shape]);
            kept.push(Vec::with_capacity(1 << 12));
            drop(Vec::<u8>::with_capacity(1 << 14));
        }
        kept
    });
    let trace = trace.expect("a window");
    let events = kept_events(&trace, "what_scopes_took_themselves_adds_up");
    let outer = trace.events().find(|event| event.name() == "told: outer");
    let net = outer.and_then(|event| Some(event.memory()?.host_net));
    let told = |is_wanted: fn(i64) -> bool| -> i64 {
        let memory = events.iter().filter(|event| event["name"] == "[memory]");
        let bytes = memory.filter_map(|event| event["args"]["Bytes"].as_i64());
        bytes.filter(|bytes| is_wanted(*bytes)).sum()
    };
    assert_eq!(Some(told(|_| true)), net);
    assert!(told(|_| true) >= (1 << 16) + 2 * (1 << 12));
    assert!(told(|bytes| bytes < 0) <= -2 * (1 << 14));
    assert_eq!(kept.len(), 3);
}
