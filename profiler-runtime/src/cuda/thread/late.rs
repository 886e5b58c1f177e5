//! Streams that are bound to a scope after it has begun.
//!
//! A scope that is bound to a stream records an event on it at that moment, and another one when it ends. The first
//! measurement is that of the scope, as if it had named the stream; those on further streams hang on it as a list.
//!
//! A thread does not know its open scopes that have no stream, only the innermost one. Its name is stored when it ends.

use std::{iter, mem};

use profiler_host::diagnostics::{self, catch_own_panic};
use profiler_host::sync::ReentrancyGuard;
use profiler_report::CudaLoss;

use super::beginning::{Begun, in_context, record_begin, without_context};
use super::scope::{CostSampling, Mode, OpenGpuScope, StreamOwnership, TaskGpuScope};
use super::stack::GpuFrame;
use super::state::{self, GpuThread};
use super::target::{NamedBy, Target};
use crate::cuda::context::measurement::{Enclosing, GpuMeasurement, LateRole, NO_NAME, ScopeRef};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::library::{self, DiscoveryReason};
use crate::cuda::stream::{IntoStream, Stream, StreamHandles};
use crate::local::{self, Innermost};
use crate::switch;

/// The most streams of a scope.
pub(super) const MAX_STREAMS: usize = 16;

/// Binds the innermost open scope of this thread, or the future that it polls, to a further stream from now on.
///
/// For libraries that choose a stream at each operation, where nobody knows the stream when the scope begins: call this where
/// they choose it. (To set the current stream there would be wrong: it is that of scopes which begin later.) An event is
/// recorded on the stream at this moment, and one on each of the scope's streams when it ends; no other stream is touched, and
/// nothing waits. A future stays bound to its streams on every thread that polls it.
///
/// A scope's GPU time is then the time during which at least one of its streams was between the two events, so that each
/// instant of a context counts once. Scopes around are not bound: only in those that are on the same stream, since they named
/// it or were bound to it before, is the time contained.
///
/// Has no effect if the scope is bound to the stream already, if no scope is open on this thread, directly inside of an entered
/// handle, while measuring is off, and in scopes that have a stream and `cuda_graph` or `sync`; without a stream, these options
/// have no effect. A scope has 16 streams at most. If one of them
/// cannot be measured, since it is one more, is being captured, or the driver refuses, the scope has no GPU time, and the
/// reason is counted. That of a future on the per-thread default stream is lost if it ends on another thread.
///
/// # Examples
///
/// ```no_run
/// use profiler_runtime::{cuda, measured};
///
/// # struct Queue { stream: *mut std::ffi::c_void, context: *mut std::ffi::c_void }
/// # fn next_queue() -> Queue { unimplemented!() }
/// #[measured]
/// fn forward() {
///     let queue = next_queue();
///     // SAFETY: the queues exist as long as the program.
///     cuda::bind_stream(unsafe { cuda::Stream::from_raw(queue.stream, queue.context) });
///     // launch on the queue
/// }
/// ```
#[inline]
pub fn bind_stream(stream: impl IntoStream<'static>) {
    if switch::NEVER_MEASURES || switch::is_off(switch::load()) {
        return;
    }
    let innermost = local::innermost();
    if innermost != Innermost::NONE {
        let stream = stream.into_stream().stream;
        catch_own_panic("a stream was bound", || bind_innermost(innermost, stream));
    }
}

#[inline(never)]
fn bind_innermost(innermost: Innermost, stream: Stream) {
    // Dropped after the thread's state is released: the destructor of a stream may call the driver.
    let mut stream = Some(stream);
    if ReentrancyGuard::is_entered() || is_entered_handle(innermost) {
        return;
    }
    if let Some(driver) = library::find(DiscoveryReason::ExplicitRequest) {
        state::with(|thread| thread.bind(driver, innermost.serial(), &mut stream));
    }
}

/// Returns `true` for an entered handle, which is no scope of this thread.
fn is_entered_handle(innermost: Innermost) -> bool {
    innermost.is_linked() && local::is_inside_handle()
}

/// What a thread knows of an open scope or poll.
enum Found {
    /// It has a measurement.
    Measured,
    /// It has none, and its end asks for one.
    Unmeasured,
    /// Its end does not ask for one, or it has one that is read in another way.
    NotBindable,
}

impl GpuThread {
    /// Binds the scope or poll with this serial, which is the innermost one. Takes the stream if it is kept.
    pub(super) fn bind(
        &mut self,
        driver: &impl EventApi,
        serial: u64,
        stream: &mut Option<Stream>,
    ) {
        let Some(handles) = stream.as_ref().map(|stream| stream.handles) else {
            return;
        };
        let found = self.find(serial);
        if matches!(found, Found::NotBindable) {
            return;
        }
        let target = Target {
            handles,
            named_by: NamedBy::Call,
        };
        let bound = self.measure_on(driver, serial, target);
        let measured = match bound {
            Ok(Some(measured)) => measured,
            Ok(None) => return,
            Err(loss) => return self.lose(serial, loss),
        };
        match self.stack.frame_of(serial).and_then(GpuFrame::opened_mut) {
            Some(opened) => {
                opened.become_late();
                let mut further = measured;
                further.scope.key = opened.key();
                further.late.role = LateRole::Further;
                further.late.keep_alive = stream.take().map(Stream::into_keep_alive);
                opened.measurement.add_further(further);
            }
            None => self.open_late(serial, measured, stream.take()),
        }
    }

    fn find(&mut self, serial: u64) -> Found {
        let asks = self.asks_from(serial);
        match self.stack.frame_of(serial) {
            Some(frame) => match frame.opened() {
                Some(opened) if opened.mode != Mode::Later => {
                    diagnostics::warn_once(
                        "`cuda::bind_stream` has no effect in scopes with a stream and `cuda_graph` or `sync`",
                    );
                    Found::NotBindable
                }
                // It has no GPU time, whatever is bound.
                Some(opened) if opened.measurement.loss.is_some() => Found::NotBindable,
                Some(_) => Found::Measured,
                None => Found::Unmeasured,
            },
            // A poll that can be measured has a frame, and scopes from this one on ask for theirs when they end.
            None if asks && local::innermost_poll() != serial => Found::Unmeasured,
            None => Found::NotBindable,
        }
    }

    /// Records the first event on a stream, unless the scope is on it already.
    fn measure_on(
        &mut self,
        driver: &impl EventApi,
        serial: u64,
        target: Target,
    ) -> Result<Option<Box<GpuMeasurement>>, CudaLoss> {
        // Before the driver is called.
        if self.backoff.is_active() {
            let opened = self.stack.frame_of(serial).and_then(GpuFrame::opened_mut);
            if opened.is_some_and(|opened| opened.has_handles(target.handles)) {
                return Ok(None);
            }
            self.backoff.skips_scope();
            return Err(CudaLoss::HostFunction);
        }
        let target = match in_context(driver, target) {
            Ok(Some(target)) => target,
            Ok(None) | Err(None) => return Ok(None),
            Err(Some(code)) => return Err(without_context(self, driver, code)),
        };
        let number = self.number();
        let raw = target.handles.context;
        let cache = self.context_cache(driver, raw);
        let context = cache.ok_or(CudaLoss::TooManyContexts)?.context;
        let stream_key = state::stream_key(context, target.handles.stream, number);
        if let Some(opened) = self.stack.frame_of(serial).and_then(GpuFrame::opened_mut) {
            if opened.is_on(stream_key) {
                return Ok(None);
            }
            let streams = usize::from(opened.measurement.scope.has_begun)
                + opened.measurement.further().count();
            if streams >= MAX_STREAMS {
                return Err(CudaLoss::TooManyStreams);
            }
        }
        self.stack.reserve();
        let cache = self.context_cache(driver, raw);
        let cache = cache.ok_or(CudaLoss::TooManyContexts)?;
        let begun = record_begin(cache, driver, target, Mode::Later, CostSampling::Off);
        if let Err(CudaLoss::HostFunction) = begun {
            self.backoff.extend();
        }
        let mut measured = begun?;
        let scope = ScopeRef {
            key: self.next_key(number),
            stream_key,
            name: NO_NAME,
            has_begun: true,
        };
        measured.begin(scope, false);
        self.stack.enclose_late(&mut measured, serial);
        Ok(Some(measured))
    }

    /// Notes that a scope has no GPU time, since one of its streams cannot be measured.
    fn lose(&mut self, serial: u64, loss: CudaLoss) {
        if let Some(opened) = self.stack.frame_of(serial).and_then(GpuFrame::opened_mut) {
            opened.become_late();
            opened.measurement.set_loss(Some(loss));
            return;
        }
        // Do not attribute the memory to the program's scopes.
        let _reentrancy = ReentrancyGuard::try_enter();
        let mut measurement = GpuMeasurement::without(loss);
        measurement.begin(self.unplaced_scope(NO_NAME), false);
        measurement.set_enclosing(&Enclosing::NONE);
        self.stack.reserve();
        self.open_late(serial, measurement, None);
    }

    /// Gives a measurement to an open scope or poll that has none.
    fn open_late(&mut self, serial: u64, measurement: Box<GpuMeasurement>, stream: Option<Stream>) {
        let mut opened = OpenGpuScope::new(measurement, NamedBy::Call);
        if let Some(stream) = stream {
            opened.ownership = StreamOwnership::owned(stream);
        }
        opened.become_late();
        opened.measurement.late.has_late_begin = true;
        if let Some(GpuFrame::Poll { .. }) = self.stack.frame_of(serial) {
            let mut task = self.take_task_box();
            task.set(opened);
            if let Some(GpuFrame::Poll { task: place, .. }) = self.stack.frame_of(serial) {
                *place = Some(task);
            }
        } else {
            self.stack.push(serial, opened);
        }
    }

    /// Notes that a scope ends. If that is inside of a younger poll, it will seem to be the innermost one when the poll has ended,
    /// so nothing is bound to it, or to what is around it, from now on.
    pub(super) fn note_end(&mut self, serial: u64) {
        if serial < local::innermost_poll() {
            self.note_without_context();
        }
    }

    /// Gives the open scope with this serial its name, if it has a measurement. Returns `true` if it has.
    fn name_late(&mut self, serial: u64, name: u32) -> bool {
        self.note_end(serial);
        let opened = self.stack.scope_of(serial);
        opened
            .map(|opened| opened.measurement.scope.name = name)
            .is_some()
    }
}

impl OpenGpuScope {
    /// Returns `true` if the scope is measured on the stream with these handles.
    fn has_handles(&self, handles: StreamHandles) -> bool {
        let first = &*self.measurement;
        let mut streams = iter::once(first).chain(first.further());
        streams.any(|on_stream| {
            let context = on_stream.pair.map(|pair| pair.context.raw);
            on_stream.scope.stream_key.stream == handles.stream && context == Some(handles.context)
        })
    }

    /// Notes that streams were bound late. Scopes inside may overlap: on different streams.
    fn become_late(&mut self) {
        if !self.is_late {
            self.is_late = true;
            self.has_futures = true;
            self.measurement.late.role = LateRole::First;
        }
    }
}

/// Makes a future the innermost entry of this thread during a poll, and takes its scope until [`pop_poll`] if it has one.
pub(crate) fn push_poll(serial: u64, cuda: &mut Result<TaskGpuScope, Begun>) {
    state::with(|thread| {
        let task = match cuda {
            Ok(_) => mem::replace(cuda, Err(Begun::Polled)).ok(),
            Err(_) => None,
        };
        thread.stack.push_poll(serial, task);
    });
}

/// Ends a poll, in which streams may have been bound. Returns the scope of the future, if it has one.
pub(crate) fn pop_poll(serial: u64) -> Option<TaskGpuScope> {
    state::with(|thread| thread.stack.pop_poll(serial)).flatten()
}

/// Gives a scope that began without a stream its name, if streams were bound to it. Returns `true` if it has a
/// measurement, which [`end`](super::ending::end) ends.
#[cold]
pub(crate) fn is_bound(serial: u64, name: u32) -> bool {
    state::with(|thread| !thread.stack.has_nothing() && thread.name_late(serial, name))
        == Some(true)
}
