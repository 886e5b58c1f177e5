//! The strictest crate there is: no unsafe code, no prelude, no warning.
#![no_implicit_prelude]
#![forbid(unsafe_code)]
#![deny(
    warnings,
    future_incompatible,
    let_underscore,
    nonstandard_style,
    unused,
    elided_lifetimes_in_paths,
    explicit_outlives_requirements,
    missing_debug_implementations,
    redundant_lifetimes,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unit_bindings,
    unnameable_types,
    unreachable_pub,
    unused_extern_crates,
    unused_import_braces,
    unused_lifetimes,
    unused_qualifications,
    unused_results,
    variant_size_differences
)]

use ::profiler_runtime::{measure_execution_time, measure_execution_time_context, scope};
use ::std::assert_eq;
use ::std::boxed::Box;
use ::std::future::Future;
use ::std::mem::drop;
use ::std::pin::Pin;

#[measure_execution_time]
fn plain() -> u8 {
    1
}

#[measure_execution_time(name = "with everything", bypass = step == 0, global_step = step, sync)]
fn full(step: u64) -> u64 {
    step
}

#[measure_execution_time(name = NAME, log = |_tag, _milliseconds, _step| {})]
fn logged() {}

const NAME: &str = "from a constant";

#[measure_execution_time(per_instance)]
fn each<T>(value: T) -> T {
    value
}

#[measure_execution_time]
async fn later() -> u8 {
    2
}

#[measure_execution_time]
fn boxed(value: u8) -> Pin<Box<dyn Future<Output = u8>>> {
    if value == 0 {
        return Box::pin(async { 0 });
    }
    Box::pin(async move { value })
}

#[measure_execution_time]
fn branches(value: u8) -> Pin<Box<dyn Future<Output = u8>>> {
    match value {
        0 => Box::pin(later()),
        _ => Box::pin(async move { value }),
    }
}

fn main() {
    let _whole = scope!("main");
    assert_eq!(plain(), 1);
    assert_eq!(full(3), 3);
    logged();
    assert_eq!(NAME.len(), 15);
    assert_eq!(each(4), 4);
    drop(later());
    drop(boxed(1));
    drop(branches(1));
    let value = measure_execution_time_context!("section", global_step = 1, { plain() + 1 });
    assert_eq!(value, 2);
}
