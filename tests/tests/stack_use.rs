//! Measuring takes little of a thread's stack: static thread-local storage, which the system takes off it, and what a
//! measured call needs itself.

#![cfg(target_os = "linux")]

// Its `#[test]` runs each test in a process of its own.
#[macro_use]
extern crate isolated;

use std::ffi::c_void;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::ptr;
use std::task::{Context, Poll, Waker};

use profiler_runtime::measure_execution_time;
use profiler_tests::{if_measuring, row};

/// Returns the size of this program's static thread-local storage: of all crates in it, the standard library's
/// too.
fn static_thread_local_storage() -> usize {
    unsafe extern "C" fn visit(
        object: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        found: *mut c_void,
    ) -> libc::c_int {
        // SAFETY: the system hands over a valid object, with as many headers as it says.
        let headers = unsafe {
            let object = &*object;
            std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into())
        };
        let tls = headers.iter().find(|header| header.p_type == libc::PT_TLS);
        // SAFETY: it is what was given to `dl_iterate_phdr`.
        let found = unsafe { &mut *found.cast::<usize>() };
        *found = tls.map_or(0, |tls| {
            usize::try_from(tls.p_memsz).expect("it is in memory")
        });
        // The first object is the program itself: no other one is visited.
        1
    }
    let mut found = 0_usize;
    // SAFETY: `visit` takes what is given here, which outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), ptr::from_mut(&mut found).cast()) };
    found
}

#[test]
fn static_thread_local_storage_is_at_most_a_kibibyte() {
    let bytes = static_thread_local_storage();
    assert!(bytes > 0, "the standard library has some");
    assert!(bytes <= 1024, "{bytes} bytes");
}

/// Runs a function on a thread with the smallest stack that the system gives.
///
/// Not one of the standard library's, which adds what the thread-local storage takes.
fn on_the_smallest_stack(run: extern "C" fn(*mut c_void) -> *mut c_void) {
    let size = libc::PTHREAD_STACK_MIN;
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = MaybeUninit::<libc::pthread_t>::uninit();
    // SAFETY: each is written by the call that is given it before another one reads it; the thread is joined
    // once.
    unsafe {
        assert_eq!(libc::pthread_attr_init(attributes.as_mut_ptr()), 0);
        let set = libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), size);
        assert_eq!(set, 0);
        let attributes = attributes.as_ptr();
        let started = libc::pthread_create(thread.as_mut_ptr(), attributes, run, ptr::null_mut());
        assert_eq!(started, 0, "the thread starts");
        assert_eq!(libc::pthread_join(thread.assume_init(), ptr::null_mut()), 0);
    }
}

#[measure_execution_time(name = "small: known")]
fn known() {}

#[measure_execution_time(name = "small: around")]
fn around() {
    known();
}

extern "C" fn call(_: *mut c_void) -> *mut c_void {
    known();
    around();
    ptr::null_mut()
}

#[test]
fn threads_with_the_smallest_stack_run_measured_functions() {
    // The first call of a process needs more stack for its set-up, so it is not made on those threads.
    known();
    for _ in 0..8 {
        on_the_smallest_stack(call);
    }
    assert_eq!(row("small: known").calls, if_measuring(17));
    assert_eq!(row("small: around").calls, if_measuring(8));
}

/// Returns where the stack stands.
#[inline(never)]
fn stack() -> usize {
    let here = 0_u8;
    black_box(&raw const here).addr()
}

async fn bare_level(level: u32) -> usize {
    if level == 0 {
        return stack();
    }
    black_box(Box::pin(bare_level(level - 1)).await)
}

#[measure_execution_time(name = "small: level")]
async fn level(level: u32) -> usize {
    if level == 0 {
        return stack();
    }
    black_box(Box::pin(self::level(level - 1)).await)
}

fn bare_boxed(level: u32) -> Pin<Box<dyn Future<Output = usize>>> {
    Box::pin(async move {
        if level == 0 {
            return stack();
        }
        black_box(bare_boxed(level - 1).await)
    })
}

#[measure_execution_time(name = "small: boxed")]
fn boxed(level: u32) -> Pin<Box<dyn Future<Output = usize>>> {
    Box::pin(async move {
        if level == 0 {
            return stack();
        }
        black_box(boxed(level - 1).await)
    })
}

/// Drives a future that never waits.
fn ready(future: impl Future<Output = usize>) -> usize {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("it never waits"),
    }
}

/// Returns the bytes of stack that one level takes.
fn each<F: Future<Output = usize>>(levels: impl Fn(u32) -> F) -> usize {
    let (few, many) = (ready(levels(1)), ready(levels(33)));
    assert_ne!(few, many);
    few.abs_diff(many) / 32
}

// The bench `cpu -- async-stack` says what it is: 592 and 464 bytes, 240 and 192 when optimised.
#[test]
fn a_level_of_measured_futures_takes_little_more_stack_than_a_bare_one() {
    let bound = if cfg!(debug_assertions) { 800 } else { 360 };
    for (bare, measured) in [
        (each(bare_level), each(level)),
        (each(bare_boxed), each(boxed)),
    ] {
        assert!(measured <= bare + bound, "{measured} bytes, {bare} bare");
    }
    assert_eq!(row("small: level").calls, if_measuring(36));
    assert_eq!(row("small: boxed").calls, if_measuring(36));
}
