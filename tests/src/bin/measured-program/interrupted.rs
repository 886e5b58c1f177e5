//! Measured calls in a signal handler, which interrupts the profiler wherever it is.

use std::future::{Future, ready};
use std::hint::black_box;
use std::pin::pin;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Waker};

use profiler_runtime::cuda::Stream;
use profiler_runtime::{
    MeasureFuture, is_enabled, measure_execution_time, scope, set_enabled, summary,
};

/// How many measured calls handlers have begun.
static HANDLED: AtomicU64 = AtomicU64::new(0);
/// `true` while handlers make measured calls.
static IS_READY: AtomicBool = AtomicBool::new(false);
/// `true` if handlers also make calls on a stream.
static HAS_STREAM: AtomicBool = AtomicBool::new(false);

#[measure_execution_time(name = "handled")]
fn handled() {
    HANDLED.fetch_add(1, Relaxed);
}

fn handled_by_its_name(name: &str) {
    HANDLED.fetch_add(1, Relaxed);
    let _scope = scope!(name);
}

fn handled_future() {
    HANDLED.fetch_add(1, Relaxed);
    let future = pin!(ready(()).measure_execution_time("handled future"));
    let _ = future.poll(&mut Context::from_waker(Waker::noop()));
}

fn handled_on_a_stream() {
    HANDLED.fetch_add(1, Relaxed);
    // SAFETY: it is the default stream, which exists as long as there is a driver.
    let stream = unsafe { Stream::from_raw(ptr::null_mut(), ptr::null_mut()) };
    let _scope = scope!("handled on a stream", stream = &stream);
}

extern "C" fn on_alarm(_signal: libc::c_int) {
    if IS_READY.load(Relaxed) {
        handled();
        handled_by_its_name("handled by its name");
        handled_future();
        if HAS_STREAM.load(Relaxed) {
            handled_on_a_stream();
        }
    }
}

#[measure_execution_time(name = "interrupted")]
fn interrupted(number: u64) {
    black_box(number);
}

/// Has SIGALRM raised every so many microseconds of real time, or never.
fn every(microseconds: libc::suseconds_t) {
    let time = libc::timeval {
        tv_sec: 0,
        tv_usec: microseconds,
    };
    let timer = libc::itimerval {
        it_interval: time,
        it_value: time,
    };
    // SAFETY: the timer is read, and the one before is not asked for.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
}

/// Makes calls of all kinds until handlers have made `count` calls, and prints that number and the summary.
///
/// The program itself calls nothing that a handler must not interrupt: from the first measured call on, this thread is
/// in its own arithmetic or in the profiler.
pub(crate) fn run(count: u64, microseconds: libc::suseconds_t, has_stream: bool) {
    HAS_STREAM.store(has_stream, Relaxed);
    let names: Vec<String> = (0..2_000).map(|number| format!("name {number}")).collect();
    // SAFETY: the handler stores atomics, and makes measured calls as the guide allows.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_alarm as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGALRM, &raw const action, ptr::null_mut());
    }
    every(microseconds);
    IS_READY.store(true, Relaxed);
    let mut number = 0;
    while HANDLED.load(Relaxed) < count {
        interrupted(number);
        // The profiler's lock for the settings.
        if is_enabled() {
            set_enabled(true);
        }
        // The one for the names.
        if let Some(name) = names.get(usize::try_from(number).unwrap_or(usize::MAX)) {
            let _scope = scope!(name);
            interrupted(number);
        }
        number += 1;
    }
    IS_READY.store(false, Relaxed);
    every(0);
    println!("{}", HANDLED.load(Relaxed));
    println!("{}", summary().to_json());
}
