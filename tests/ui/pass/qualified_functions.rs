//! `unsafe`, `extern "C"`, recursive and diverging functions.
#![deny(warnings)]
#![warn(unsafe_op_in_unsafe_fn)]

use profiler_runtime::measure_execution_time;

/// # Safety
///
/// `pointer` must be good to read.
#[measure_execution_time]
pub unsafe fn read(pointer: *const u8) -> u8 {
    // SAFETY: the caller says so.
    unsafe { *pointer }
}

#[measure_execution_time]
pub extern "C" fn exported(value: u8) -> u8 {
    value + 1
}

#[measure_execution_time]
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn under_its_own_name(value: u8) -> u8 {
    value + 2
}

#[measure_execution_time]
fn fib(n: u32) -> u32 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

#[measure_execution_time]
fn fails() -> ! {
    panic!("on purpose")
}

#[measure_execution_time]
fn leaves(code: i32) -> ! {
    std::process::exit(code)
}

fn main() {
    // SAFETY: a reference is good to read.
    assert_eq!(unsafe { read(&1) }, 1);
    assert_eq!(exported(1), 2);
    // SAFETY: it only adds.
    assert_eq!(unsafe { under_its_own_name(1) }, 3);
    assert_eq!(fib(10), 55);
    std::panic::set_hook(Box::new(|_| {}));
    assert!(std::panic::catch_unwind(|| fails()).is_err());
    leaves(0);
}
