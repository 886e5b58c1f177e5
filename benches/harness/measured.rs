//! The measured functions that several benches call.
//!
//! Each program has this file as a module of its own. In a library, a call would take 23 instructions more: the compiler does
//! not know there that the thread-locals are those of a program, and finds them by a call, around which it saves registers.

use bench_harness::subjects::body;
use profiler_runtime::{measure_execution_time, scope};

/// The body, measured by the attribute without arguments.
#[inline(never)]
#[measure_execution_time]
pub(crate) fn measured(x: u64) -> u64 {
    body(x)
}

/// The body in a scope with a literal name.
#[inline(never)]
pub(crate) fn scope_literal(x: u64) -> u64 {
    let _scope = scope!("a section");
    body(x)
}
