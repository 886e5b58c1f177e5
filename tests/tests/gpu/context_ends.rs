//! A context that the program ends, inside of a scope or before its events were read, takes these times with it and
//! no others; a new one under the same handle is measured again.

use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;

use crate::raw::{Driver, NON_BLOCKING, made};
use cudarc::driver::sys;
use profiler_runtime::cuda::{CudaLoss, Stream};
use profiler_runtime::{init, scope, summary};
use profiler_tests::allocator::BYTES;
use profiler_tests::gpu::{
    Held, OnDriver, cuda, driver, exact, finish, lost, row, settle, simulator, started, tell, told,
};

/// A user's program that makes and ends its contexts by itself.
struct Own {
    driver: Driver,
    context: usize,
    stream: usize,
    spin: usize,
}

impl Own {
    fn new(driver: &Driver, context: usize) -> Self {
        assert_eq!(driver.cuCtxSetCurrent(context), 0);
        let (stream, spin) = (driver.stream(NON_BLOCKING), driver.kernel("spin_ns"));
        Self {
            driver: *driver,
            context,
            stream,
            spin,
        }
    }

    /// In a context that the program makes itself.
    fn made(driver: &Driver) -> Self {
        Self::new(driver, made(|context| driver.cuCtxCreate_v2(context, 0, 0)))
    }

    fn lent(&self) -> Stream {
        // SAFETY: scopes end before what the stream belongs to does, or are meant to find out.
        unsafe { Stream::from_raw(self.stream as *mut c_void, self.context as *mut c_void) }
    }

    fn measure(&self, name: &str, scopes: usize) {
        let stream = self.lent();
        for _ in 0..scopes {
            let _scope = scope!(name, stream = &stream);
            assert_eq!(self.driver.spin(self.spin, 10_000, self.stream), 0);
        }
    }
}

/// Ends a context with scopes that the resolver has not read, while the resolver is about to ask whether the context
/// exists.
///
/// If it ended after the answer, the next call of the resolver would name an event that is gone. No profiler can
/// prevent that, so programs must flush first (see the guide), and what happens then cannot be tested.
fn before_events_are_queried(end: impl FnOnce()) {
    let held = Held::call("cuCtxGetId", 1);
    held.wait();
    end();
}

/// The one question that has "it is destroyed" among its documented answers.
fn asks_whether_it_exists(call: &str) -> bool {
    call == "cuCtxGetId"
}

#[test(on = driver().may_misuse(asks_whether_it_exists).warnings(0))]
fn unread_gpu_times_of_a_destroyed_context_are_lost() {
    let profiler = init().expect("set up");
    let driver = Driver::of(simulator());
    assert_eq!(driver.cuInit(0), 0);
    for round in 0..5 {
        let own = Own::made(&driver);
        own.measure("read", 10);
        assert_eq!(driver.cuStreamSynchronize(own.stream), 0);
        settle();
        own.measure("not read", 10);
        before_events_are_queried(|| assert_eq!(driver.cuCtxDestroy_v2(own.context), 0));
        settle();
        let expected = 10 * (round + 1);
        assert_eq!(
            (cuda("read").calls, row("read").without_cuda),
            (expected, 0)
        );
        let (timed, without) = (cuda("not read").calls, row("not read").without_cuda);
        assert_eq!(timed + without, expected);
        assert_eq!((timed, lost(CudaLoss::ContextGone)), (0, expected));
    }
    exact(cuda("read").total_ns, 500_000.0);
    drop(profiler);
}

/// No event of the one before is recorded or destroyed in the one that follows.
fn is_not_of_events(call: &str) -> bool {
    !call.starts_with("cuEventRecord") && call != "cuEventDestroy_v2"
}

#[test(on = driver().script("contexts reused").may_misuse(is_not_of_events))]
fn another_context_under_the_same_handle_is_measured_again() {
    const ROUNDS: u64 = 6;

    let _profiler = init().expect("set up");
    let driver = Driver::of(simulator());
    assert_eq!(driver.cuInit(0), 0);
    let mut handles = Vec::new();
    for round in 1..=ROUNDS {
        let own = Own::made(&driver);
        handles.push(own.context);
        // In some rounds the resolver has not had time to look at the previous one.
        let mut tries = 0;
        while cuda("met").calls < round && tries < 10 {
            own.measure("met", 1);
            assert_eq!(driver.cuStreamSynchronize(own.stream), 0);
            settle();
            tries += 1;
        }
        own.measure("measured", 10);
        assert_eq!(driver.cuStreamSynchronize(own.stream), 0);
        if round % 2 == 0 {
            settle();
            assert_eq!(cuda("met").calls, round);
        }
        assert_eq!(driver.cuCtxDestroy_v2(own.context), 0);
    }
    settle();
    assert!(handles.iter().all(|handle| *handle == handles[0]));
    assert!(cuda("measured").calls >= 10 * ROUNDS / 2);
    let without = row("met").without_cuda + row("measured").without_cuda;
    assert_eq!(lost(CudaLoss::ContextGone), without);
    exact(cuda("measured").max_ns, 10_000.0);
}

/// Makes contexts one after the other, measures in each, and ends it.
fn measure_in_contexts(driver: &Driver, name: &str, contexts: u64) {
    for _ in 0..contexts {
        let own = Own::made(driver);
        own.measure(name, 1);
        assert_eq!(driver.cuStreamSynchronize(own.stream), 0);
        settle();
        assert_eq!(driver.cuCtxDestroy_v2(own.context), 0);
    }
}

#[test(on = driver().warnings(1))]
fn more_contexts_than_can_be_measured_are_a_reason_of_their_own() {
    let _profiler = init().expect("set up");
    let driver = Driver::of(simulator());
    assert_eq!(driver.cuInit(0), 0);
    measure_in_contexts(&driver, "measured", 256);
    measure_in_contexts(&driver, "one too many", 3);
    assert_eq!(
        (cuda("measured").calls, row("measured").without_cuda),
        (256, 0)
    );
    let beyond = row("one too many");
    assert_eq!((beyond.calls, beyond.without_cuda), (3, 3));
    assert_eq!(summary().cuda.lost, [(CudaLoss::TooManyContexts, 3)]);
}

#[test(on = driver())]
fn a_destroyed_context_leaves_a_bounded_number_of_bytes() {
    const CONTEXTS: i64 = 100;

    let _profiler = init().expect("set up");
    let driver = Driver::of(simulator());
    assert_eq!(driver.cuInit(0), 0);
    measure_in_contexts(&driver, "measured", 4);
    let before = BYTES.load(Relaxed);
    measure_in_contexts(&driver, "measured", CONTEXTS.unsigned_abs());
    let each = (BYTES.load(Relaxed) - before) / CONTEXTS;
    assert!(each < 12 << 10, "each context left {each} bytes");
}

/// To end the stream of an open scope breaks the promise that `from_raw` asks for: the driver may see it used once more.
fn destroys_no_event(call: &str) -> bool {
    !call.starts_with("cuEventD")
}

#[test(on = driver().script("devices 2").may_misuse(destroys_no_event))]
fn a_context_that_is_destroyed_inside_a_scope_is_found_out() {
    let _profiler = init().expect("set up");
    let driver = Driver::of(simulator());
    assert_eq!(driver.cuInit(0), 0);
    let staying = Own::new(&driver, driver.primary(1));
    let going = Own::made(&driver);
    {
        let stream = going.lent();
        let _scope = scope!("across", stream = &stream);
        assert_eq!(driver.cuCtxDestroy_v2(going.context), 0);
    }
    settle();
    assert_eq!((row("across").calls, row("across").without_cuda), (1, 1));
    assert_eq!(summary().cuda.lost, [(CudaLoss::ContextGone, 1)]);
    assert_eq!(driver.cuCtxSetCurrent(staying.context), 0);
    staying.measure("stays", 10);
    assert_eq!(driver.cuStreamSynchronize(staying.stream), 0);
    settle();
    exact(cuda("stays").total_ns, 100_000.0);
}

#[test(on = driver().cases(["when known", "at once"]).warnings(0))]
fn a_device_that_is_reset_is_measured_again_under_the_same_handle() {
    let _profiler = init().expect("set up");
    let driver = Driver::of(simulator());
    assert_eq!(driver.cuInit(0), 0);
    let handle = driver.primary(0);
    for round in 1..=4 {
        let own = Own::new(&driver, handle);
        own.measure("read", 20);
        assert_eq!(driver.cuStreamSynchronize(own.stream), 0);
        settle();
        assert_eq!(cuda("read").calls + row("read").without_cuda, 20 * round);
        own.measure("not read", 20);
        before_events_are_queried(|| assert_eq!(driver.cuDevicePrimaryCtxReset_v2(0), 0));
        if told() == "at once" {
            // The new context is in use before anything shows that it is one.
            let again = Own::new(&driver, handle);
            again.measure("at once", 20);
            assert_eq!(driver.cuStreamSynchronize(again.stream), 0);
        }
        settle();
        let (timed, without) = (cuda("not read").calls, row("not read").without_cuda);
        assert_eq!((timed, without), (0, 20 * round));
    }
    let total = |name: &str| (cuda(name).total_ns, cuda(name).calls as f64 * 10_000.0);
    for name in ["read", "at once"] {
        let (sum, expected) = total(name);
        exact(sum, expected);
        assert_eq!(
            cuda(name).calls + row(name).without_cuda,
            row(name).calls,
            "{name}"
        );
    }
    if told() != "at once" {
        assert_eq!(cuda("read").calls, 80, "{:?}", summary().cuda.lost);
    }
    // Once it is known, all is measured.
    let own = Own::new(&driver, handle);
    settle();
    own.measure("in the end", 20);
    assert_eq!(driver.cuStreamSynchronize(own.stream), 0);
    settle();
    own.measure("in the end", 20);
    assert_eq!(driver.cuStreamSynchronize(own.stream), 0);
    settle();
    assert!(cuda("in the end").calls >= 20, "{:?}", summary().cuda.lost);
}

/// Resets the device after all was read, between scopes and inside of one.
fn reset_when_all_was_read() {
    const RESETS: u64 = 10;
    const PER_THREAD: usize = 2;

    let profiler = init().expect("set up");
    let driver = Driver::of(simulator());
    assert_eq!(driver.cuInit(0), 0);
    let handle = driver.primary(0);
    for round in 0..RESETS {
        let own = Own::new(&driver, handle);
        own.measure("first", 1);
        own.measure("measured", 10);
        assert_eq!(driver.cuStreamSynchronize(own.stream), 0);
        settle();
        {
            // A stream that there is in each context.
            // SAFETY: its context is there to the end, or its handle is.
            let stream =
                unsafe { Stream::from_raw(PER_THREAD as *mut c_void, handle as *mut c_void) };
            let _across = scope!("across", stream = &stream);
            assert_eq!(driver.cuDevicePrimaryCtxReset_v2(0), 0);
        }
        if round % 2 == 0 {
            settle();
        }
    }
    settle();
    assert_eq!((cuda("across").calls, row("across").calls), (0, RESETS));
    // The first scope that finds out is lost, and what comes before the resolver has looked.
    let timed = cuda("first").calls + cuda("measured").calls;
    let without = ["first", "measured", "across"].map(|name| row(name).without_cuda);
    let without: u64 = without.iter().sum();
    assert_eq!(timed + without, 12 * RESETS);
    assert!(timed >= 11 * RESETS / 2, "{timed} times");
    assert_eq!(summary().cuda.lost, [(CudaLoss::ContextGone, without)]);
    drop(profiler);
}

#[test(on = driver())]
fn no_event_of_before_a_reset_is_used_after_it() {
    reset_when_all_was_read();
}

fn with_and_without_context_ids() -> OnDriver {
    driver().table(
        [("with", None), ("without", Some("cuCtxGetId"))],
        |driver, lacking| match *lacking {
            None => driver,
            Some(lacking) => driver.installed(|of| of.without(lacking)),
        },
    )
}

#[test(on = with_and_without_context_ids().keeps_events().warnings(0))]
fn the_guard_does_not_touch_events_of_a_reset_context() {
    let (profiler, gpu, stream) = started();
    for _ in 0..40 {
        let _scope = scope!("before", stream = &stream);
        gpu.spin(&stream, 10_000);
    }
    finish(&stream);
    assert_eq!(cuda("before").calls, 40);
    // SAFETY: what was made in the context is not used any more, not even to be destroyed.
    let code = unsafe { sys::cuDevicePrimaryCtxReset_v2(0) };
    assert_eq!(code, sys::CUresult::CUDA_SUCCESS);
    std::mem::forget((gpu, stream));
    drop(profiler);
}

#[test(on = driver().script("devices 2"))]
fn a_context_destroyed_after_all_times_were_read_is_not_touched() {
    let profiler = init().expect("set up");
    let driver = Driver::of(simulator());
    assert_eq!(driver.cuInit(0), 0);
    let staying = Own::new(&driver, driver.primary(1));
    staying.measure("stays", 10);
    assert_eq!(driver.cuStreamSynchronize(staying.stream), 0);
    let going = Own::made(&driver);
    going.measure("goes", 10);
    assert_eq!(driver.cuStreamSynchronize(going.stream), 0);
    settle();
    assert_eq!(driver.cuCtxDestroy_v2(going.context), 0);
    assert_eq!(driver.cuCtxSetCurrent(staying.context), 0);
    // A sign that another context was destroyed makes the resolver check all of them.
    tell("fault cuEventRecord nth 1 return 709");
    staying.measure("refused", 1);
    settle();
    staying.measure("stays", 10);
    assert_eq!(driver.cuStreamSynchronize(staying.stream), 0);
    settle();
    assert_eq!((cuda("stays").calls, cuda("goes").calls), (20, 10));
    assert_eq!(summary().cuda.lost, [(CudaLoss::ContextGone, 1)]);
    drop(profiler);
}
