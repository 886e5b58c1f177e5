//! Streams that are bound to a scope while it is open.
//!
//! A scope's time on a bound stream is a [segment](Segments). It is measured as a scope is, with events of its own, and is on the
//! thread's stack under the serial of its scope or poll. What the scope shares between threads adds its segments up. When the call
//! has ended, a measurement without events follows them to the resolver, which completes the call with the last of them.

use std::sync::Arc;

use profiler_cuda_sys::driver::Driver;
use profiler_host::diagnostics::{self, catch_own_panic};
use profiler_host::sync::ReentrancyGuard;
use profiler_report::CudaLoss;

use super::accounting::{Sent, account, rejection};
use super::beginning::{Begun, begin_with};
use super::ending::{end_segment, send_without_events};
use super::scope::{GpuOptions, Mode};
use super::stack::Choice;
use super::state::{self, GpuThread};
use super::target::{NamedBy, Target};
use crate::clock::{elapsed, now};
use crate::cuda::context::measurement::{Bound, CpuSpan, ScopeRef};
use crate::cuda::ffi::library;
use crate::cuda::stream::{IntoStream, Stream, owned};
use crate::local::callers::CountedCall;
use crate::local::{self, Segments, SharedScope};
use crate::log_record::LogRequest;
use crate::stats::StatCell;

/// Measures the innermost open scope of this thread, or the future that it polls, on a stream from this moment on: for libraries
/// that choose a stream at each operation.
///
/// It is measured there until another stream is bound to the scope, or the scope ends; in a future, until the poll ends. A scope
/// has any number of such times, one after the other, and its GPU time is their sum: where the device works on two of them at once,
/// that time counts twice, as it does for kernels. Each is the time between two events on the stream, so it includes what other
/// threads submit there. If one cannot be measured, the call has no GPU time.
///
/// A scope whose stream is named keeps it: by the call, as the thread's current one, as the default of the process, or by
/// `PROFILER_CUDA_STREAM`. Outside of scopes, directly inside of an [entered handle](crate::Handle::enter), and where a thread is
/// inside of 1,024 handles and scopes that have handles or bound streams, nothing happens. Binding the stream again that is bound
/// already records no event.
///
/// # Examples
///
/// ```no_run
/// # #[cfg(feature = "cudarc-0_19")] {
/// use std::sync::Arc;
///
/// use cudarc::driver::CudaStream;
/// use profiler_runtime::{cuda, scope};
///
/// /// Chooses a stream for each operation.
/// fn next_stream(pool: &[Arc<CudaStream>], operation: usize) -> &Arc<CudaStream> {
///     let stream = &pool[operation % pool.len()];
///     cuda::bind_stream(stream);
///     stream
/// }
///
/// let context = cudarc::driver::CudaContext::new(0)?;
/// let pool = [context.new_stream()?, context.new_stream()?];
/// let _scope = scope!("forward");
/// for operation in 0..8 {
///     let stream = next_stream(&pool, operation);
///     // launch on the stream
/// }
/// # }
/// # #[cfg(feature = "cudarc-0_19")]
/// # Ok::<(), cudarc::driver::DriverError>(())
/// ```
pub fn bind_stream(stream: impl IntoStream<'static>) {
    if let Some(stream) = owned(stream) {
        catch_own_panic("a stream was bound", || bind(stream));
    }
}

#[cold]
#[inline(never)]
fn bind(stream: Stream) {
    let Some(driver) = library::driver().filter(|_| !ReentrancyGuard::is_entered()) else {
        return;
    };
    let serial = local::innermost().serial();
    if serial == 0 || local::entered().is_some() {
        return;
    }
    match choice(driver, serial, &stream) {
        Choice::None => {}
        Choice::Bound | Choice::Named => return,
        Choice::Implied => return warn_of_implied_stream(),
    }
    let Some(scope) = local::share_innermost() else {
        return;
    };
    end(serial, now());
    let name = scope.name;
    {
        // The memory is not the program's.
        let _reentrancy = ReentrancyGuard::try_enter();
        scope.begin_segment();
    }
    let mut options = GpuOptions {
        stream: Some(stream),
        mode: Mode::Later,
    };
    let begun = begin_with(serial, name.unwrap_or(ScopeRef::NO_NAME), &mut options);
    if begun != Begun::Opened {
        // A default stream, and no context is current.
        return scope.segments(|segments| segments.lose_open(CudaLoss::NoContext));
    }
    let begun = now();
    state::with(|thread| {
        if let Some(opened) = thread.stack.innermost() {
            *opened.measurement.bound = Some(Bound::Segment { scope, begun });
        }
    });
}

fn choice(driver: &Driver, serial: u64, stream: &Stream) -> Choice {
    let found = state::with(|thread| {
        let target = Target {
            handles: stream.handles,
            named_by: NamedBy::Call,
        };
        // If the driver refuses to say which context is current, the beginning of the segment finds out why.
        let target = if thread.backoff.is_active() {
            None
        } else {
            target.in_context(driver).ok().flatten()
        };
        let handles = target.map_or(stream.handles, |target| target.handles);
        thread.stack.choice(serial, handles)
    });
    // Without the thread's state, nothing can be bound.
    found.unwrap_or(Choice::Named)
}

#[cold]
fn warn_of_implied_stream() {
    diagnostics::warn_once(
        "`cuda::bind_stream` has no effect in scopes that are on the current stream of their thread, on the default stream of the \
         process, or on that of PROFILER_CUDA_STREAM: set none of them where streams are bound",
    );
}

/// Returns the open segment of a scope or poll of this thread: its scope, and when it began, in ticks.
fn segment_of(serial: u64) -> Option<(Arc<SharedScope>, u64)> {
    state::with(|thread| thread.stack.segment_of(serial)).flatten()
}

/// Ends the segment that is open in a scope or poll of this thread, if there is one, at this time in ticks.
fn end(serial: u64, at: u64) {
    let Some((scope, begun)) = segment_of(serial) else {
        return;
    };
    scope.segments(Segments::end);
    let span = CpuSpan {
        end: at,
        elapsed: elapsed(begun, at),
        outermost: true,
        call: CountedCall::NONE,
    };
    let loss = match end_segment(serial, span) {
        Sent::ToResolver => return,
        Sent::Rejected | Sent::RejectedAfterLog => rejection(),
        Sent::Nothing => CudaLoss::Abandoned,
    };
    scope.segments(|segments| segments.lose(loss));
}

/// Ends the segment that is open in a scope or poll that ends at this time, in ticks, on this thread.
pub(crate) fn end_segment_of(scope: &SharedScope, serial: u64, at: u64) {
    if scope.is_bound() {
        catch_own_panic("a scope was closed", || end(serial, at));
    }
}

/// A call that has ended, and to whose scope streams were bound.
#[derive(Debug)]
pub(crate) struct BoundCall {
    scope: Arc<SharedScope>,
    /// That of its GPU time. Zero on a thread that is ending.
    key: u64,
}

impl BoundCall {
    /// Returns the call of a scope that has ended, if streams were bound to it. Until another one ends on this thread,
    /// [`key_of`](state::key_of) finds its key by the scope's serial.
    pub(crate) fn of(scope: &Arc<SharedScope>, serial: u64) -> Option<Self> {
        scope.is_bound().then(|| Self {
            scope: Arc::clone(scope),
            key: state::with(|thread| thread.next_call_key(serial)).unwrap_or(0),
        })
    }

    /// Returns the key of its GPU time; zero for none.
    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// Sends the call to the resolver.
    #[cold]
    #[inline(never)]
    pub(crate) fn end(
        self,
        name: u32,
        span: CpuSpan,
        cell: Option<&'static StatCell>,
        log: Option<LogRequest>,
    ) {
        let Self { scope, key } = self;
        let reference = ScopeRef {
            key,
            name,
            ..ScopeRef::NONE
        };
        let bound = Bound::Call(Arc::clone(&scope));
        account(cell, log, |log| {
            if library::driver().is_none() {
                return Sent::Nothing;
            }
            let send = |thread: &mut GpuThread| {
                send_without_events(thread, reference, span, Ok(bound), log)
            };
            match state::with(send).unwrap_or(Sent::Rejected) {
                Sent::ToResolver => Sent::ToResolver,
                // Counted here, unless a segment was abandoned, or if one is later.
                _ if scope.segments(Segments::count_without) => Sent::Rejected,
                _ => Sent::Nothing,
            }
        });
    }
}
