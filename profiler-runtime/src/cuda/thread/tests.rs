//! Both ends of a scope, where what happens in between takes a driver whose answers the tests set.

use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use profiler_cuda_sys::driver::RawContext;
use profiler_report::CudaLoss;
use profiler_report::internal::RawStream;

use super::beginning::{Begun, open};
use super::ending::close;
use super::scope::{CostSampling, GpuOptions, Mode, NewScope, StreamOwnership};
use super::state::GpuThread;
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
        let span = CpuSpan {
            end: 9,
            elapsed: 4,
            outermost: true,
            call: CountedCall::NONE,
        };
        let mut opened = self.thread.stack.take(serial).unwrap();
        opened.set_span(span);
        let (number, mut owner) = (self.thread.number(), StreamOwnership::Borrowed);
        close(opened, number, &self.driver, &mut owner, CostSampling::Off)
    }

    fn records(&self) -> usize {
        self.driver.calls("cuEventRecord")
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
