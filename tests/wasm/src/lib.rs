//! Calls everything public of the profiler on WebAssembly. `run.mjs` loads this module in Node.js.
//!
//! A panic ends the module with a trap, which fails the test. WASI has a clock, so calls are counted there.
//! `wasm32-unknown-unknown` has none: annotated functions run, and nothing is measured.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use profiler_runtime::{
    MeasureFuture, SummaryTarget, flush, is_enabled, measure, measure_execution_time, pause,
    set_enabled, step, summary,
};

const HAS_CLOCK: bool = cfg!(target_os = "wasi");
const CALLS: u64 = 100;

#[measure_execution_time]
fn square(number: u64) -> u64 {
    number * number
}

#[measure_execution_time(log = |_tag: &str, _milliseconds: f64, _step: u64| ())]
fn logged(number: u64) -> u64 {
    number + 1
}

#[measure_execution_time]
// Stripped, it is what is written here.
#[allow(clippy::unused_async, reason = "a measured function that is a future")]
async fn later(number: u64) -> u64 {
    square(number)
}

fn poll<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("no future here waits"),
    }
}

/// Returns the number of calls that the summary has under `name`.
fn calls(name: &str) -> u64 {
    let rows = summary().rows;
    let rows = rows.iter().filter(|row| row.name.ends_with(name));
    rows.map(|row| row.calls).sum()
}

/// Returns the calls that are expected after `calls` calls.
fn measured(calls: u64) -> u64 {
    if HAS_CLOCK { calls } else { 0 }
}

/// Runs every part of the profiler. Returns the sum of the squares below 100.
///
/// # Panics
///
/// Panics if a result is wrong.
#[unsafe(no_mangle)]
pub extern "C" fn exercise() -> u64 {
    // Before anything has started the profiler.
    let sum = (0..CALLS).map(square).sum();
    assert_eq!(calls("square"), measured(CALLS));

    let guard = profiler_runtime::builder()
        .summary(SummaryTarget::Stderr)
        .init()
        .expect("nothing that is asked for can be missing");
    assert_eq!(is_enabled(), HAS_CLOCK);
    assert_eq!(poll(later(3)), 9);
    assert_eq!(poll(async { 4 }.measure_execution_time("future")), 4);
    {
        let _scope = measure!("guard", global_step = 7);
        assert_eq!(measure!("block", { square(2) }), 4);
    }
    assert_eq!(calls("square"), measured(CALLS + 2));
    for name in ["later", "future", "guard", "block"] {
        assert_eq!(calls(name), measured(1), "{name}");
    }

    pause(|| square(5));
    set_enabled(false);
    square(6);
    set_enabled(true);
    assert_eq!(calls("square"), measured(CALLS + 2));

    // Loggers need a thread, which cannot be started: entries are counted as dropped.
    assert_eq!(logged(1), 2);
    assert_eq!(flush(Duration::from_millis(10)).dropped, measured(1));
    step();

    #[cfg(feature = "files")]
    files();

    let text = summary().to_string();
    assert_eq!(
        text.contains("this target has no clock"),
        !HAS_CLOCK,
        "{text}"
    );
    drop(guard);
    sum
}

/// The host gives WASI no folder, and other targets have no files. Sessions need a thread, too.
#[cfg(feature = "files")]
fn files() {
    use profiler_runtime::{Profile, TensorBoardLogger, tensorboard_trace_handler};

    assert!(Profile::builder().start().is_err());
    let (value, window) = Profile::builder().run(|_profile| square(7));
    assert!(value == 49 && window.is_err());
    assert!(TensorBoardLogger::new("log").is_err());
    let _handler = tensorboard_trace_handler("log");
}
