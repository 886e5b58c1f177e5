//! Calls one function repeatedly, so that callgrind can count its instructions; see
//! `instructions.sh`.

use std::hint::black_box;
use std::process::ExitCode;

use profiler_runtime::{measure_execution_time, set_enabled};

#[inline(never)]
fn bare(x: u64) -> u64 {
    black_box(x) + 1
}

#[inline(never)]
#[measure_execution_time]
fn measured(x: u64) -> u64 {
    black_box(x) + 1
}

#[inline(never)]
fn bare_nested(x: u64) -> u64 {
    bare(x) + 1
}

#[inline(never)]
#[measure_execution_time]
fn measured_nested(x: u64) -> u64 {
    measured(x) + 1
}

#[inline(never)]
#[measure_execution_time(name = "filtered out")]
fn filtered_out(x: u64) -> u64 {
    black_box(x) + 1
}

const USAGE: &str = "usage: instructions bare|bare-nested|off|on|on-nested|filtered-out CALLS";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let variant = arguments.next().unwrap_or_default();
    let calls = arguments.next().and_then(|calls| calls.parse().ok());
    let (Some(function), Some(calls)) = (function(&variant), calls) else {
        println!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let profiler = profiler_runtime::builder().filter("-filtered out").init();
    if let Err(error) = &profiler {
        println!("{error}");
        return ExitCode::FAILURE;
    }
    // Not counted: the first call initializes the clock, the name and the thread's cell.
    black_box(function(0));
    set_enabled(variant != "off");
    counted_calls(function, calls);
    ExitCode::SUCCESS
}

/// One loop for all variants, so that its cost is equal. The script makes callgrind count only
/// inside it: the time to calibrate the clock differs between runs.
#[inline(never)]
fn counted_calls(function: fn(u64) -> u64, calls: u64) {
    for argument in 0..calls {
        black_box(function(black_box(argument)));
    }
}

fn function(variant: &str) -> Option<fn(u64) -> u64> {
    Some(match variant {
        "bare" => bare,
        "bare-nested" => bare_nested,
        "off" | "on" => measured,
        "on-nested" => measured_nested,
        "filtered-out" => filtered_out,
        _ => return None,
    })
}
