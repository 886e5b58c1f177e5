//! A hundred thousand requests over connections that stay open are counted exactly, and memory does not grow with them.

mod client;

use std::fs;

use client::send_all;
use profiler_runtime::{ProfilerLayer, summary};
use tracing_subscriber::layer::SubscriberExt;

/// Requests in each half of the test.
const REQUESTS: u64 = 50_000;

/// Returns the resident memory of this process in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    number.expect("the system shows it")
}

fn calls(name: &str) -> u64 {
    summary().row(name).map_or(0, |row| row.calls)
}

#[test]
fn requests_are_counted_exactly_and_memory_does_not_grow() {
    let subscriber = tracing_subscriber::registry().with(ProfilerLayer::new().whole_spans());
    tracing::subscriber::set_global_default(subscriber).expect("the only one");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    runtime.spawn(async move { axum::serve(listener, spans_of_a_service::routes()).await });

    send_all(address, REQUESTS);
    let before = resident();
    send_all(address, REQUESTS);
    let grown = resident().saturating_sub(before);
    assert!(grown < 4096, "{grown} KiB with {REQUESTS} requests");

    drop(runtime);
    let expected = 2 * REQUESTS;
    for handler in ["square", "multiply"] {
        let name = format!("spans_of_a_service::{handler}");
        assert_eq!(calls(&name), expected, "{name}");
    }
    let table = summary();
    assert_eq!(table.lost_spans, []);
    let row = table.row("spans_of_a_service::square").expect("a row");
    assert_eq!((row.futures, row.open), (expected, 0));
    let cpu = row.cpu.expect("they have times");
    assert!(row.polled_ns > 0.0 && row.polled_ns <= cpu.total_ns);
    println!("{table}");
}
