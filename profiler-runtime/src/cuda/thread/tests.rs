//! Both ends of a scope, with a driver whose answers the tests set.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use profiler_cuda_sys::driver::RawContext;
use profiler_report::CudaLoss;
use profiler_report::internal::RawStream;

use super::beginning::{Begun, open};
use super::ending::{close, must_wait};
use super::scope::{CostSampling, GpuOptions, Mode, NewScope, StreamOwnership};
use super::state::GpuThread;
use super::synchronous::log_now;
use super::target::{NamedBy, target};
use crate::cuda::context::measurement::{CpuSpan, GpuMeasurement};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::fake::FakeDriver;
use crate::cuda::stream::{Stream, StreamHandles};
use crate::local::callers::CountedCall;

/// The number of no name, so that the counts of other tests' names stay theirs.
const NAME: u32 = u32::MAX;
const STREAM: RawStream = RawStream(ptr::without_provenance_mut(0x50));

/// A thread, a driver, and a context of the test's own.
struct Bench {
    thread: GpuThread,
    driver: FakeDriver,
    context: RawContext,
    serial: u64,
}

impl Bench {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0x9000);
        let context = RawContext(ptr::without_provenance_mut(NEXT.fetch_add(16, Relaxed)));
        let driver = FakeDriver::new();
        let _ = driver.set_context(context);
        Self {
            thread: GpuThread::new(),
            driver,
            context,
            serial: 0,
        }
    }

    /// Begins a scope on a stream of the bench's context. Returns its serial number.
    fn begin_on(&mut self, stream: RawStream, mode: Mode) -> Result<u64, Begun> {
        let handles = StreamHandles {
            stream,
            context: self.context,
        };
        let mut options = GpuOptions {
            stream: Some(Stream::unowned(handles)),
            mode,
        };
        self.serial += 1;
        let (thread, serial) = (&mut self.thread, self.serial);
        let new = NewScope::new(serial, NAME);
        open(thread, &self.driver, new, Some(&mut options))?;
        Ok(serial)
    }

    fn begin(&mut self) -> u64 {
        self.begin_on(STREAM, Mode::Later).unwrap()
    }

    fn end(&mut self, serial: u64) -> Box<GpuMeasurement> {
        self.end_on_thread(serial, None)
    }

    /// Ends a scope, on a thread of another number if there is one.
    fn end_on_thread(&mut self, serial: u64, number: Option<u32>) -> Box<GpuMeasurement> {
        let number = number.unwrap_or_else(|| self.thread.number());
        let span = CpuSpan {
            end: 9,
            elapsed: 4,
            outermost: true,
            call: CountedCall::NONE,
        };
        let mut opened = self.thread.stack.take(serial).unwrap();
        opened.set_span(span);
        let mode = opened.mode;
        let mut owner = StreamOwnership::Borrowed;
        let measurement = close(opened, number, &self.driver, &mut owner, CostSampling::Off);
        assert_eq!(
            must_wait(mode, &measurement),
            mode == Mode::Synchronous && measurement.loss.is_none()
        );
        measurement
    }

    fn records(&self) -> usize {
        self.driver.calls("cuEventRecord")
    }
}

#[test]
fn a_scope_records_one_event_at_each_end() {
    let mut bench = Bench::new();
    let scope = bench.begin();
    assert_eq!(bench.records(), 1);
    let measurement = bench.end(scope);
    assert_eq!(bench.records(), 2);
    assert_eq!(
        (
            measurement.loss,
            measurement.scope.name,
            measurement.span.end
        ),
        (None, NAME, 9)
    );
    assert!(measurement.scope.has_begun && !measurement.is_fallback);
    assert_eq!(measurement.scope.stream_key.stream, STREAM);
}

#[test]
fn a_scope_owns_the_stream_that_its_call_names() {
    let mut bench = Bench::new();
    let scope = bench.begin();
    let opened = bench.thread.stack.take(scope).unwrap();
    assert!(matches!(opened.ownership, StreamOwnership::Owned { .. }));
}

#[test]
fn without_a_stream_or_a_context_there_is_no_gpu_scope() {
    let mut bench = Bench::new();
    let begun = open(
        &mut bench.thread,
        &bench.driver,
        NewScope::new(1, NAME),
        None,
    );
    assert_eq!(begun.unwrap_err(), Begun::NoStream);
    let _ = bench.driver.set_context(RawContext::NONE);
    bench.context = RawContext::NONE;
    let begun = bench.begin_on(RawStream::LEGACY, Mode::Later);
    assert_eq!(begun, Err(Begun::NoContext));
    assert_eq!(bench.records(), 0);
}

#[test]
fn nested_scopes_know_their_parent() {
    let mut bench = Bench::new();
    let [outer, inner] = [bench.begin(), bench.begin()];
    let inner = bench.end(inner);
    let outer = bench.end(outer);
    assert_eq!(
        inner.parent.map(std::num::NonZero::get),
        Some(outer.scope.key)
    );
    assert_eq!(outer.parent, None);
}

#[test]
fn pairs_are_used_again() {
    let mut bench = Bench::new();
    for _ in 0..1_000 {
        let scope = bench.begin();
        bench.end(scope).give_back();
    }
    assert!(bench.driver.events() <= 64, "{}", bench.driver.events());
}

#[test]
fn a_capture_is_left_alone_unless_the_call_asks_for_it() {
    let mut bench = Bench::new();
    bench.driver.set_capture(7);
    let scope = bench.begin();
    let measurement = bench.end(scope);
    assert_eq!(measurement.loss, Some(CudaLoss::Captured));
    assert!(!measurement.scope.has_begun);
    let scope = bench.begin_on(STREAM, Mode::Captured).unwrap();
    let measurement = bench.end(scope);
    assert_eq!((measurement.loss, measurement.capture), (None, 7));
    assert!(measurement.pair.unwrap().is_graph);
    assert_eq!(bench.records(), 0);
    assert_eq!(bench.driver.calls("cuEventRecordWithFlags"), 2);
}

#[test]
fn a_scope_in_which_a_capture_begins_has_no_time() {
    // The legacy default stream does not capture: the driver's answer is about other streams, whose captures a record
    // would invalidate.
    for (stream, records) in [(STREAM, 2), (RawStream::LEGACY, 1)] {
        let mut bench = Bench::new();
        let scope = bench.begin_on(stream, Mode::Later).unwrap();
        bench.driver.set_capture(7);
        assert_eq!(bench.end(scope).loss, Some(CudaLoss::Captured));
        assert_eq!(bench.records(), records);
    }
}

#[test]
fn a_captured_scope_that_the_driver_refuses_takes_no_place() {
    let mut bench = Bench::new();
    bench.driver.set_capture(7);
    bench.driver.break_call("cuEventRecordWithFlags", 801);
    for _ in 0..300 {
        let scope = bench.begin_on(STREAM, Mode::Captured).unwrap();
        assert_eq!(bench.end(scope).loss, Some(CudaLoss::DriverRefused));
    }
    bench.driver.repair("cuEventRecordWithFlags");
    let scope = bench.begin_on(STREAM, Mode::Captured).unwrap();
    assert_eq!(bench.end(scope).loss, None);
}

#[test]
fn no_event_is_recorded_after_a_reset() {
    let mut bench = Bench::new();
    let scope = bench.begin();
    bench.driver.set_context_id(Some(2));
    let measurement = bench.end(scope);
    assert_eq!(measurement.loss, Some(CudaLoss::ContextGone));
    let context = measurement.pair.unwrap().context;
    assert!(context.is_suspect());
    let scope = bench.begin();
    assert_eq!(bench.end(scope).loss, Some(CudaLoss::ContextGone));
    assert_eq!(bench.records(), 1, "only before the reset");
}

#[test]
fn no_event_of_an_earlier_epoch_is_recorded_after_the_resolver_has_seen_the_reset() {
    let mut bench = Bench::new();
    let [outer, inner] = [bench.begin(), bench.begin()];
    bench.driver.set_context_id(Some(2));
    let context = bench.end(inner).pair.unwrap().context;
    context.advance_epoch();
    context.set_suspect(false);
    let fresh = bench.begin();
    assert_eq!(bench.end(fresh).loss, None, "the new epoch is measured");
    let records = bench.records();
    assert_eq!(bench.end(outer).loss, Some(CudaLoss::ContextGone));
    assert_eq!(bench.records(), records);
}

#[test]
fn no_event_is_recorded_if_the_epoch_advances_while_the_driver_answers() {
    let mut bench = Bench::new();
    let first = bench.begin();
    let context = bench.end(first).pair.unwrap().context;
    let scope = bench.begin();
    let records = bench.records();
    // Another thread has adopted the number of the next context then, which is that of the answer.
    bench.driver.before_context_id(|| context.advance_epoch());
    assert_eq!(bench.end(scope).loss, Some(CudaLoss::ContextGone));
    assert_eq!(bench.records(), records);
}

#[test]
fn no_event_is_recorded_in_a_suspect_context() {
    let mut bench = Bench::new();
    let first = bench.begin();
    let context = bench.end(first).pair.unwrap().context;
    let open = bench.begin();
    let records = bench.records();
    context.set_suspect(true);
    assert_eq!(bench.end(open).loss, Some(CudaLoss::ContextGone));
    let scope = bench.begin();
    assert_eq!(bench.end(scope).loss, Some(CudaLoss::ContextGone));
    assert_eq!(bench.records(), records);
    context.set_suspect(false);
    let scope = bench.begin();
    assert_eq!(bench.end(scope).loss, None);
}

#[test]
fn a_failed_context_is_left_alone() {
    let mut bench = Bench::new();
    let scope = bench.begin();
    bench.driver.break_call("cuEventRecord", 719);
    assert_eq!(bench.end(scope).loss, Some(CudaLoss::ContextFailed));
    let calls = bench.records();
    let scope = bench.begin();
    assert_eq!(bench.end(scope).loss, Some(CudaLoss::ContextFailed));
    assert_eq!(bench.records(), calls);
}

#[test]
fn a_destroyed_stream_costs_only_its_own_scope() {
    let mut bench = Bench::new();
    let scope = bench.begin();
    bench.driver.break_call("cuEventRecord", 400);
    assert_eq!(bench.end(scope).loss, Some(CudaLoss::InvalidHandle));
    bench.driver.repair("cuEventRecord");
    let scope = bench.begin();
    assert_eq!(bench.end(scope).loss, None);
}

#[test]
fn a_per_thread_stream_ends_on_its_thread() {
    let mut bench = Bench::new();
    let begin = |bench: &mut Bench| bench.begin_on(RawStream::PER_THREAD, Mode::Later).unwrap();
    let scope = begin(&mut bench);
    let measurement = bench.end_on_thread(scope, Some(u32::MAX));
    assert_eq!(measurement.loss, Some(CudaLoss::OtherThread));
    let scope = begin(&mut bench);
    assert_eq!(bench.end(scope).loss, None);
}

#[test]
fn after_a_refusal_in_a_host_function_the_next_scopes_skip_the_driver() {
    let mut bench = Bench::new();
    bench.driver.break_call("cuEventRecord", 800);
    let scope = bench.begin();
    assert_eq!(bench.end(scope).loss, Some(CudaLoss::HostFunction));
    bench.driver.repair("cuEventRecord");
    let calls = bench.records();
    for _ in 0..64 {
        let scope = bench.begin();
        assert_eq!(bench.end(scope).loss, Some(CudaLoss::HostFunction));
    }
    assert_eq!(bench.records(), calls);
    let scope = bench.begin();
    assert_eq!(bench.end(scope).loss, None);
}

#[test]
fn a_synchronous_scope_waits_and_rejects_impossible_times() {
    for (end, waited) in [(7.5, Ok(())), (4.0, Err(CudaLoss::ImpossibleTime))] {
        let mut bench = Bench::new();
        bench.driver.set_time(5.0);
        let scope = bench.begin_on(STREAM, Mode::Synchronous).unwrap();
        bench.driver.set_time(end);
        bench.driver.hold();
        let measurement = bench.end(scope);
        let logged = log_now(
            &bench.driver,
            &measurement,
            measurement.pair.unwrap(),
            &mut None,
        );
        assert_eq!(logged, waited);
        assert_eq!(bench.driver.calls("cuEventSynchronize"), 1);
    }
}

#[test]
fn the_stream_of_the_call_comes_before_that_of_the_thread() {
    let mut bench = Bench::new();
    let handles = |handle| StreamHandles {
        stream: RawStream(ptr::without_provenance_mut(handle)),
        context: bench.context,
    };
    let (current, explicit) = (handles(0x60), handles(0x61));
    assert_eq!(target(&bench.thread, None), None);
    bench.thread.replace_current(Some(Stream::unowned(current)));
    let named = |explicit| {
        let target = target(&bench.thread, explicit).unwrap();
        assert!(!target.named_by.is_fallback() && !target.named_by.is_implicit());
        (target.handles, target.named_by)
    };
    assert_eq!(named(None), (current, NamedBy::Thread));
    assert_eq!(named(Some(explicit)), (explicit, NamedBy::Call));
}

#[test]
fn a_scope_on_the_current_stream_does_not_own_it_while_it_is_current() {
    let mut bench = Bench::new();
    let stream = Stream::unowned(StreamHandles {
        stream: STREAM,
        context: bench.context,
    });
    bench.thread.replace_current(Some(stream));
    open(
        &mut bench.thread,
        &bench.driver,
        NewScope::new(1, NAME),
        None,
    )
    .unwrap();
    let ownership = |bench: &mut Bench| {
        let opened = bench.thread.stack.innermost().unwrap();
        matches!(opened.ownership, StreamOwnership::Owned { .. })
    };
    assert!(!ownership(&mut bench));
    bench.thread.replace_current(None);
    assert!(ownership(&mut bench), "replaced while the scope is open");
    assert_eq!(bench.end(1).loss, None);
}
