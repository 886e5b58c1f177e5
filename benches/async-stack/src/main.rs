//! Measures the stack size of a level of nested futures, bare and measured: boxed futures that
//! await each other, as recursive `async` functions do. It compares addresses, so every run returns
//! the same numbers.

use std::future::Future;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use profiler_runtime::{MeasureFuture, measure_execution_time};

/// The levels between the two compared addresses.
const LEVELS: u32 = 64;

/// Returns an address on the stack.
#[inline(never)]
fn stack() -> usize {
    let here = 0_u8;
    black_box(&raw const here).addr()
}

async fn bare(level: u32) -> usize {
    if level == 0 {
        return stack();
    }
    black_box(Box::pin(bare(level - 1)).await)
}

#[measure_execution_time]
async fn measured(level: u32) -> usize {
    if level == 0 {
        return stack();
    }
    black_box(Box::pin(measured(level - 1)).await)
}

#[measure_execution_time(log = |_: &str, _: f64, _: u64| {}, global_step = level)]
async fn logged(level: u32) -> usize {
    if level == 0 {
        return stack();
    }
    black_box(Box::pin(logged(level - 1)).await)
}

fn bare_boxed(level: u32) -> Pin<Box<dyn Future<Output = usize>>> {
    Box::pin(async move {
        if level == 0 {
            return stack();
        }
        black_box(bare_boxed(level - 1).await)
    })
}

#[measure_execution_time]
fn measured_boxed(level: u32) -> Pin<Box<dyn Future<Output = usize>>> {
    Box::pin(async move {
        if level == 0 {
            return stack();
        }
        black_box(measured_boxed(level - 1).await)
    })
}

async fn by_method(level: u32) -> usize {
    if level == 0 {
        return stack();
    }
    let inner = by_method(level - 1).measure_execution_time("by method");
    black_box(Box::pin(inner).await)
}

/// Runs a future that is always ready.
fn ready(future: impl Future<Output = usize>) -> usize {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => 0,
    }
}

/// Prints the bytes per level.
fn show<F: Future<Output = usize>>(name: &str, levels: impl Fn(u32) -> F) {
    // The first call initializes what is initialized once.
    ready(levels(1));
    let (few, many) = (ready(levels(1)), ready(levels(1 + LEVELS)));
    println!("{name:<44}{:>6}", few.abs_diff(many) / LEVELS as usize);
}

fn main() {
    println!("bytes of stack per level");
    show("async fn, bare", bare);
    show("async fn, measured", measured);
    show("async fn, measured and logged", logged);
    show("boxed future returned, bare", bare_boxed);
    show("boxed future returned, measured", measured_boxed);
    show("future.measure_execution_time(…), boxed", by_method);
}
