//! Measures asynchronous functions: how long they take, and how long they run.
//!
//! `Total` is the time from a future's first poll to its end. `Polled` is the part of it in which
//! the future was running; the rest is waiting. Futures that are polled alternately on one thread
//! are measured separately: none becomes another's parent because it was polled between its polls.
//!
//! ```text
//! cargo run --release --example async_functions
//! ```

use std::time::{Duration, Instant};

use profiler_runtime::{MeasureFuture, measure_execution_time, scope, summary};
use tokio::time::{sleep, timeout};

// The attribute works on an `async fn` as on any other function. It also measures functions that
// return a boxed future, as `async_trait` generates them: it measures the future, not its creation.
#[measure_execution_time]
async fn fetch(shard: u32) -> Vec<u64> {
    // Simulates the network: takes long, but uses no CPU time.
    sleep(Duration::from_millis(10 * u64::from(shard))).await;
    (0..200_000).map(|item| item * u64::from(shard)).collect()
}

// A function that a future calls is its child, as in synchronous code.
#[measure_execution_time]
fn decode(items: &[u64]) -> Vec<u64> {
    items
        .iter()
        .map(|item| item.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20)
        .collect()
}

#[measure_execution_time]
async fn load(shard: u32) -> Vec<u64> {
    let items = fetch(shard).await;
    decode(&items)
}

#[measure_execution_time]
async fn load_all() -> u64 {
    // Three futures at once, on one thread.
    let (one, two, three) = tokio::join!(load(1), load(2), load(3));
    // A guard measures its thread, so end its block before the next `.await`. On a multi-threaded
    // executor, the compiler enforces that.
    let sum = {
        let _combining = scope!("combine");
        let mut all = [one, two, three].concat();
        all.sort_unstable();
        all.iter().step_by(1000).sum()
    };
    // Any future can be measured where it is awaited, even one from another crate.
    sleep(Duration::from_millis(5))
        .measure_execution_time("wait a little")
        .await;
    sum
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let begin = Instant::now();
    println!("the sum is {:x}", load_all().await);
    println!("it took {:.0} ms", begin.elapsed().as_secs_f64() * 1e3);

    // A future that is dropped early is counted, and marked below the table.
    let late = timeout(Duration::from_millis(2), fetch(100)).await.is_err();
    println!("the fetch that takes a second was dropped early: {late}\n");

    let summary = summary();
    println!("{summary}");
    if let Some(fetch) = summary.row("async_functions::fetch")
        && let Some(cpu) = fetch.cpu
    {
        println!(
            "fetch took {:.1} ms in {} calls and ran for {:.1} ms of them: it mostly waited.\n\
             The calls overlap, so their total may exceed the elapsed time.",
            cpu.total_ns / 1e6,
            fetch.calls,
            fetch.polled_ns / 1e6
        );
    }
}
