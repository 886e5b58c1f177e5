//! The stack that a level of nested futures takes, bare and measured: boxed futures that await each other, as recursive
//! `async` functions do. It compares addresses, so every run returns the same numbers.
//!
//! This is a crate of its own: the frames depend on which functions the compiler inlines, and so on what else is in a crate.

use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;

use bench_harness::subjects::ready;
use profiler_runtime::{MeasureFuture, measure_execution_time};

/// The levels between the two compared addresses.
const LEVELS: u32 = 64;

/// Returns an address on the stack.
#[inline(never)]
fn stack() -> usize {
    let here = 0_u8;
    black_box(&raw const here).addr()
}

/// The body of a level: awaits the next one, if there is one.
macro_rules! level {
    ($level:ident, $next:expr) => {{
        if $level == 0 {
            return stack();
        }
        black_box($next.await)
    }};
}

async fn bare(level: u32) -> usize {
    level!(level, Box::pin(bare(level - 1)))
}

#[measure_execution_time]
async fn measured(level: u32) -> usize {
    level!(level, Box::pin(measured(level - 1)))
}

#[measure_execution_time(log = |_: &str, _: f64, _: u64| {}, global_step = level)]
async fn logged(level: u32) -> usize {
    level!(level, Box::pin(logged(level - 1)))
}

fn bare_boxed(level: u32) -> Pin<Box<dyn Future<Output = usize>>> {
    Box::pin(async move { level!(level, bare_boxed(level - 1)) })
}

#[measure_execution_time]
fn measured_boxed(level: u32) -> Pin<Box<dyn Future<Output = usize>>> {
    Box::pin(async move { level!(level, measured_boxed(level - 1)) })
}

async fn by_method(level: u32) -> usize {
    let next = |level| by_method(level).measure_execution_time("by method");
    level!(level, Box::pin(next(level - 1)))
}

/// Returns the bytes per level.
fn bytes<F: Future<Output = usize>>(levels: impl Fn(u32) -> F) -> f64 {
    // The first call initializes what is initialized once.
    ready(levels(1));
    let (few, many) = (ready(levels(1)), ready(levels(1 + LEVELS)));
    few.abs_diff(many) as f64 / f64::from(LEVELS)
}

/// Returns the bytes of stack that a level takes, by the kind of future.
pub fn levels() -> [(&'static str, f64); 6] {
    [
        ("async fn, bare", bytes(bare)),
        ("async fn, measured", bytes(measured)),
        ("async fn, measured and logged", bytes(logged)),
        ("boxed future returned, bare", bytes(bare_boxed)),
        ("boxed future returned, measured", bytes(measured_boxed)),
        ("future.measure_execution_time(…), boxed", bytes(by_method)),
    ]
}
