//! A context that the program ends, inside of a scope or before its events were read, takes these times with it and
//! no others; a new one under the same handle is measured again.

use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use crate::raw::{Driver, NON_BLOCKING, made};
use cudarc::driver::sys;
use profiler_runtime::cuda::{CudaLoss, Stream};
use profiler_runtime::{init, scope, summary};
use profiler_simulated_driver::Installation;
use profiler_tests::allocator::BYTES;
use profiler_tests::gpu::{
    Gpu, Held, TOLD, cuda, exact, is_child, lost, on_driver, on_the_driver_with, row, settle,
    simulator, told,
};
use profiler_tests::measuring;

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

#[test]
fn unread_gpu_times_of_a_destroyed_context_are_lost() {
    if !measuring() {
        return;
    }
    if is_child() {
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
        return;
    }
    let ran = on_the_driver_with("", |_| {});
    assert_eq!(ran.warnings(), 0, "{}", ran.stderr);
    assert_eq!(ran.report.alive.events, 0);
    // The one question that has "it is destroyed" among its documented answers.
    let of_others: Vec<_> = ran
        .report
        .misuses
        .iter()
        .filter(|misuse| misuse.call != "cuCtxGetId")
        .collect();
    assert!(of_others.is_empty(), "{of_others:?}");
}

#[test]
fn another_context_under_the_same_handle_is_measured_again() {
    const ROUNDS: u64 = 6;

    if !measuring() {
        return;
    }
    if is_child() {
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
        return;
    }
    let ran = on_the_driver_with("contexts reused", |_| {});
    assert_eq!(ran.report.alive.events, 0);
    // No event of the one before is recorded or destroyed in the one that follows.
    let of_events = |call: &str| call.starts_with("cuEventRecord") || call == "cuEventDestroy_v2";
    let misuses = ran.report.misuses.iter();
    let misuses: Vec<_> = misuses.filter(|misuse| of_events(&misuse.call)).collect();
    assert!(misuses.is_empty(), "{misuses:?}");
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

#[test]
fn more_contexts_than_can_be_measured_are_a_reason_of_their_own() {
    if !measuring() {
        return;
    }
    if is_child() {
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
        return;
    }
    let ran = on_the_driver_with("", |_| {});
    assert_eq!(ran.warnings(), 1, "{}", ran.stderr);
}

#[test]
fn a_destroyed_context_leaves_a_bounded_number_of_bytes() {
    const CONTEXTS: i64 = 100;

    if !measuring() {
        return;
    }
    if is_child() {
        let _profiler = init().expect("set up");
        let driver = Driver::of(simulator());
        assert_eq!(driver.cuInit(0), 0);
        measure_in_contexts(&driver, "measured", 4);
        let before = BYTES.load(Relaxed);
        measure_in_contexts(&driver, "measured", CONTEXTS.unsigned_abs());
        let each = (BYTES.load(Relaxed) - before) / CONTEXTS;
        assert!(each < 12 << 10, "each context left {each} bytes");
        return;
    }
    on_the_driver_with("", |_| {});
}

#[test]
fn a_context_that_is_destroyed_inside_a_scope_is_found_out() {
    if !measuring() {
        return;
    }
    if is_child() {
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
        return;
    }
    // To end the stream of an open scope breaks the promise that `from_raw` asks for: the driver may see
    // it used once more.
    let ran = on_the_driver_with("devices 2", |_| {});
    assert_eq!(ran.report.alive.events, 0);
    let of_events: Vec<_> = ran
        .report
        .misuses
        .iter()
        .filter(|misuse| misuse.call.starts_with("cuEventD"))
        .collect();
    assert!(of_events.is_empty(), "{of_events:?}");
}

#[test]
fn a_device_that_is_reset_is_measured_again_under_the_same_handle() {
    if !measuring() {
        return;
    }
    if is_child() {
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
        return;
    }
    for told in ["when known", "at once"] {
        let ran = on_the_driver_with("", |command| _ = command.env(TOLD, told));
        assert_eq!(ran.report.misuses, [], "{told}");
        assert_eq!(ran.report.alive.events, 0, "{told}");
        assert_eq!(ran.warnings(), 0, "{told}: {}", ran.stderr);
    }
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

#[test]
fn no_event_of_before_a_reset_is_used_after_it() {
    if !measuring() {
        return;
    }
    if is_child() {
        return reset_when_all_was_read();
    }
    let ran = on_the_driver_with("", |_| {});
    assert_eq!((ran.report.misuses, ran.report.alive.events), (vec![], 0));
}

#[test]
fn the_guard_does_not_touch_events_of_a_reset_context() {
    if !measuring() {
        return;
    }
    if is_child() {
        let profiler = init().expect("set up");
        let gpu = Gpu::new(0);
        let stream = gpu.stream();
        for _ in 0..40 {
            let _scope = scope!("before", stream = &stream);
            gpu.spin(&stream, 10_000);
        }
        stream.synchronize().expect("nothing failed");
        settle();
        assert_eq!(cuda("before").calls, 40);
        // SAFETY: what was made in the context is not used any more, not even to be destroyed.
        let code = unsafe { sys::cuDevicePrimaryCtxReset_v2(0) };
        assert_eq!(code, sys::CUresult::CUDA_SUCCESS);
        std::mem::forget((gpu, stream));
        drop(profiler);
        return;
    }
    for lacking in [None, Some("cuCtxGetId")] {
        let installation = |folder: &Path| {
            let driver = Installation::new(folder);
            lacking.map_or(driver.clone(), |lacking| driver.without(lacking))
        };
        let ran = on_driver(installation, "", |_| {});
        assert_eq!(ran.report.misuses, [], "without {lacking:?}");
        assert_eq!(ran.warnings(), 0, "{}", ran.stderr);
    }
}

#[test]
fn a_context_destroyed_after_all_times_were_read_is_not_touched() {
    if !measuring() {
        return;
    }
    if is_child() {
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
        simulator()
            .run("fault cuEventRecord nth 1 return 709")
            .expect("it is right");
        staying.measure("refused", 1);
        settle();
        staying.measure("stays", 10);
        assert_eq!(driver.cuStreamSynchronize(staying.stream), 0);
        settle();
        assert_eq!((cuda("stays").calls, cuda("goes").calls), (20, 10));
        assert_eq!(summary().cuda.lost, [(CudaLoss::ContextGone, 1)]);
        drop(profiler);
        return;
    }
    let ran = on_the_driver_with("devices 2", |_| {});
    assert_eq!(ran.report.misuses, []);
}
