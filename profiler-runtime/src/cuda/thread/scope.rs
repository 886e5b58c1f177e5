//! The GPU's side of a scope: what the measured thread does when one opens.
//!
//! In the steady state that is, at each end, one question for the context's number, one whether the stream
//! captures, and one event put into it; none waits for the device.

use std::num::NonZero;

use super::context_cache::ContextCache;
use super::record_times;
use super::state::{self, GpuThread};
use crate::clock::now;
use crate::cuda::context::Context;
use crate::cuda::context::measurement::{Enclosing, GpuMeasurement, ScopeRef, StartEvent};
use crate::cuda::ffi::Capturing;
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::code::{Code, Failed, Fault};
use crate::cuda::ffi::driver::Event;
use crate::cuda::ffi::library;
use crate::cuda::health;
use crate::cuda::loss::CudaLoss;
use crate::cuda::resolver;
use crate::cuda::stream::target::{NamedBy, Target, target};
use crate::cuda::stream::{KeepAlive, Stream, StreamHandles, StreamRef};
use crate::stream_key::RawStream;
use crate::sync::ReentrancyGuard;

/// What a call asks for beyond the usual.
#[derive(Debug, Default)]
pub(crate) struct GpuOptions {
    pub(crate) stream: Option<ExplicitStream>,
    pub(crate) mode: Mode,
}

/// A stream that the call brought along.
#[derive(Debug)]
pub(crate) struct ExplicitStream {
    handles: StreamHandles,
    owned: Option<Stream>,
}

impl From<StreamRef<'_>> for ExplicitStream {
    /// Whoever keeps it must keep the borrow too, for as long as the scope is open.
    fn from(lent: StreamRef<'_>) -> Self {
        Self {
            handles: lent.handles,
            owned: lent.owned,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The events are read later, elsewhere.
    #[default]
    Later,
    /// The scope's end waits for them.
    Synchronous,
    /// The events become part of the graph that is being captured.
    Captured,
}

/// An open scope that is to have a GPU time.
#[derive(Debug)]
pub(crate) struct OpenGpuScope {
    /// The item whose first event is in the stream; else why there is none.
    pub(crate) outcome: Result<Box<GpuMeasurement>, CudaLoss>,
    pub(crate) scope: ScopeRef,
    pub(crate) around: Enclosing,
    pub(crate) mode: Mode,
    /// Whether it is on the driver's default stream of whichever context is current.
    pub(crate) is_implicit: bool,
    /// Whether neither the call nor its thread named the stream.
    pub(crate) is_fallback: bool,
    /// Whether a future is polled inside of it: what it has inside may overlap.
    pub(crate) has_futures: bool,
    pub(crate) held: StreamOwnership,
    /// What its opening took, in ticks, where that is found out.
    pub(crate) cost: Option<NonZero<u64>>,
}

impl OpenGpuScope {
    /// One that nothing is known of yet.
    pub(crate) const NOTHING: Self = Self {
        outcome: Err(CudaLoss::Abandoned),
        scope: ScopeRef::NONE,
        around: Enclosing::NONE,
        mode: Mode::Later,
        is_implicit: false,
        is_fallback: false,
        has_futures: false,
        held: StreamOwnership::Borrowed,
        cost: None,
    };

    /// Where it began; none where it has no GPU time.
    pub(crate) fn begin(&self) -> Option<StartEvent> {
        self.outcome
            .as_ref()
            .ok()?
            .pair
            .as_ref()
            .map(StartEvent::of)
    }
}

/// Who keeps the stream until the scope ends.
#[derive(Debug)]
pub(crate) enum StreamOwnership {
    /// It is lent for as long, or a default stream, which is kept to the end of the process.
    Borrowed,
    /// The thread, whose current stream it is.
    ThreadCurrent,
    Owned {
        _keep: KeepAlive,
    },
}

impl StreamOwnership {
    pub(crate) fn own(stream: Stream) -> Self {
        Self::Owned {
            _keep: stream.into_keep_alive(),
        }
    }

    pub(crate) fn is_current(&self) -> bool {
        matches!(self, Self::ThreadCurrent)
    }

    /// What has to be let go of, if anything.
    #[inline]
    pub(crate) fn take(&mut self) -> Self {
        match self {
            Self::Owned { .. } => std::mem::replace(self, Self::Borrowed),
            Self::Borrowed | Self::ThreadCurrent => Self::Borrowed,
        }
    }
}

/// Whether a scope has a GPU's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    Opened,
    /// Its stream is a default one of the driver's, and no context is current; or the driver cannot be called here.
    NoContext,
    /// No stream is named for it.
    NoStream,
    /// There was no driver in use when it began, and so nobody looked for its stream.
    NotAsked,
}

/// Opens the GPU's side of a scope of this thread.
#[inline(never)]
pub(crate) fn begin(serial: u64, name: u32, ask: Option<&mut GpuOptions>) -> Begun {
    // Inside the profiler, where a lock of its own may be held, a measured allocator has its CPU time only.
    let Some(driver) = library::driver().filter(|_| !ReentrancyGuard::is_entered()) else {
        return Begun::NoContext;
    };
    let opened = state::with(|thread| {
        let begun = thread.is_sampled().then(now);
        let opened = open(thread, driver, serial, name, ask, false)?;
        if let Some(begun) = begun {
            opened.cost = NonZero::new(now().saturating_sub(begun));
        }
        Ok(())
    });
    match opened {
        Some(Ok(())) => Begun::Opened,
        Some(Err(without)) => without,
        None => Begun::NoContext,
    }
}

/// The GPU's side of a future, in a place of its own: most have none, and must not carry the room for it.
#[derive(Debug, Default)]
pub(crate) struct TaskGpuScope(Box<Option<OpenGpuScope>>);

impl TaskGpuScope {
    pub(crate) fn scope(&self) -> Option<ScopeRef> {
        self.0.as_ref().as_ref().map(|opened| opened.scope)
    }

    pub(crate) fn begin(&self) -> Option<StartEvent> {
        self.0.as_ref().as_ref().and_then(OpenGpuScope::begin)
    }

    /// The key of its GPU time; zero for none.
    pub(crate) fn key(&self) -> u64 {
        self.scope().map_or(0, |scope| scope.key)
    }

    /// What it holds; the place itself is kept for the next one.
    pub(crate) fn into_opened(mut self) -> Option<OpenGpuScope> {
        let opened = self.0.take();
        state::with(|thread| thread.keep_place(self));
        opened
    }
}

/// The same for a future, which keeps it; the error says why it has none.
pub(crate) fn begin_task(name: u32, ask: Option<&mut GpuOptions>) -> Result<TaskGpuScope, Begun> {
    let driver = library::driver().ok_or(Begun::NoContext)?;
    let begun = state::with(|thread| {
        open(thread, driver, 0, name, ask, true)?;
        let mut opened = thread.pop_innermost().ok_or(Begun::NoContext)?;
        // It may be finished on another thread, which knows nothing of this one's current stream.
        if opened.held.is_current()
            && let Some(stream) = thread.current()
        {
            opened.held = StreamOwnership::own(stream.clone());
        }
        let mut side = thread.take_place();
        *side.0 = Some(opened);
        Ok(side)
    });
    begun.unwrap_or(Err(Begun::NoContext))
}

/// Opens any scope, as the innermost one of the thread.
// There, and nowhere else: what is opened is large, and to copy what has just been written takes longer than to
// write it.
#[inline(always)]
fn open<'t>(
    thread: &'t mut GpuThread,
    driver: &impl EventApi,
    serial: u64,
    name: u32,
    ask: Option<&mut GpuOptions>,
    is_future: bool,
) -> Result<&'t mut OpenGpuScope, Begun> {
    let (given, mode) = match ask {
        Some(ask) => (ask.stream.as_mut(), ask.mode),
        None => (None, Mode::Later),
    };
    let target =
        target(thread, given.as_deref().map(|given| given.handles)).ok_or(Begun::NoStream)?;
    if thread.is_barred() {
        return without(thread, serial, name, CudaLoss::HostFunction);
    }
    let target = match target.in_context(driver) {
        Ok(target) => target.ok_or(Begun::NoContext)?,
        Err(code) if code.fault() == Fault::NotPermitted => {
            health::not_permitted();
            thread.bar();
            return without(thread, serial, name, CudaLoss::HostFunction);
        }
        Err(code) => {
            health::refused(driver, "cuCtxGetCurrent", code);
            return without(thread, serial, name, CudaLoss::DriverRefused);
        }
    };
    let (number, is_sampled) = (thread.number(), thread.is_sampled());
    let Some(known) = thread.known(driver, target.handles.context) else {
        return without(thread, serial, name, CudaLoss::TooManyContexts);
    };
    let context = known.context;
    let mut outcome = record_begin(known, driver, target, mode, is_sampled);
    let stream_key = state::stream_key(context, target.handles.stream, number);
    let around = thread.around(stream_key, is_future);
    let key = thread.next_key();
    if let Ok(item) = &mut outcome {
        // All is written when the scope ends; the resolver's processor may have what is written to. It is called
        // for now, so that it is here by then.
        item.scope.key = key;
    } else if let Err(CudaLoss::HostFunction) = outcome {
        thread.bar();
    }
    let opened = thread.push(serial).ok_or(Begun::NoContext)?;
    opened.scope = ScopeRef {
        key,
        stream_key,
        name,
        has_begun: outcome.is_ok(),
    };
    opened.outcome = outcome;
    opened.around = around;
    opened.mode = mode;
    opened.is_implicit = target.is_implicit();
    opened.is_fallback = target.is_fallback();
    if target.named_by == NamedBy::Thread {
        opened.held = StreamOwnership::ThreadCurrent;
    } else if let Some(given) = given {
        opened.held = given
            .owned
            .take()
            .map_or(StreamOwnership::Borrowed, StreamOwnership::own);
    }
    Ok(opened)
}

/// A scope that has no GPU time for this reason, and of which it is not known what it was to be measured on.
#[cold]
fn without(
    thread: &mut GpuThread,
    serial: u64,
    name: u32,
    loss: CudaLoss,
) -> Result<&mut OpenGpuScope, Begun> {
    let scope = thread.link_nowhere(name);
    let opened = thread.push(serial).ok_or(Begun::NoContext)?;
    opened.outcome = Err(loss);
    opened.scope = scope;
    Ok(opened)
}

#[inline(always)]
fn record_begin(
    known: &mut ContextCache,
    driver: &impl EventApi,
    target: Target,
    mode: Mode,
    is_sampled: bool,
) -> Result<Box<GpuMeasurement>, CudaLoss> {
    let context = known.context;
    if context.is_replaced(driver) {
        resolver::suspect(context);
        return Err(CudaLoss::ContextGone);
    }
    if context.has_failed() {
        return Err(CudaLoss::ContextFailed);
    }
    if context.is_suspect() {
        return Err(CudaLoss::ContextGone);
    }
    let stream = target.handles.stream;
    in_own_context(driver, context, stream, target.is_implicit(), || {
        let item = if is_graph(driver, context, stream, mode)? {
            take_for_graph(driver, context, stream)?
        } else {
            known.take(driver)?
        };
        let pair = item.pair.as_ref().ok_or(CudaLoss::PoolEmpty)?;
        let recorded = record_times::timed(is_sampled, || {
            record(driver, context, pair.begin, stream, pair.is_graph)
        });
        match recorded {
            Ok(()) => Ok(item),
            Err(failed) => {
                known.put_back(item);
                Err(loss_of(driver, context, failed.code, failed.call))
            }
        }
    })
}

/// Runs `f` with a stream's own context current where its handle means the stream of whichever is: a default
/// stream that was named may be of another one. One that nobody named is that of the current one.
#[inline(always)]
pub(crate) fn in_own_context<T>(
    driver: &impl EventApi,
    context: &Context,
    stream: RawStream,
    is_implicit: bool,
    f: impl FnOnce() -> Result<T, CudaLoss>,
) -> Result<T, CudaLoss> {
    if is_implicit || !stream.is_default() {
        return f();
    }
    driver
        .with_context(context.raw, || Ok(f()))
        .unwrap_or_else(|failed| Err(loss_of(driver, context, failed.code, failed.call)))
}

/// Whether events in the stream become part of a graph, as asked for; a loss where they would unasked.
#[inline]
pub(crate) fn is_graph(
    driver: &impl EventApi,
    context: &Context,
    stream: RawStream,
    mode: Mode,
) -> Result<bool, CudaLoss> {
    match driver.capturing(context.raw, stream) {
        Capturing::No => Ok(false),
        Capturing::Yes if mode == Mode::Captured => Ok(true),
        Capturing::Yes => Err(CudaLoss::Captured),
        Capturing::Unknown(failed) => Err(loss_of(driver, context, failed.code, failed.call)),
    }
}

/// One that was never recorded: it would read as a replay.
#[cold]
fn take_for_graph(
    driver: &impl EventApi,
    context: &'static Context,
    stream: RawStream,
) -> Result<Box<GpuMeasurement>, CudaLoss> {
    if !context.has_room_for_graph() {
        return Err(CudaLoss::TooManyCaptured);
    }
    let mut item = context
        .make_for_graph(driver)
        .map_err(|failed| loss_of(driver, context, failed.code, failed.call))?
        .ok_or(CudaLoss::PoolEmpty)?;
    item.capture = driver.capture_id(context.raw, stream).unwrap_or(0);
    Ok(item)
}

#[inline]
pub(crate) fn record(
    driver: &impl EventApi,
    context: &Context,
    event: Event,
    stream: RawStream,
    is_graph: bool,
) -> Result<(), Failed> {
    driver.retried_in(context.raw, || {
        if is_graph {
            driver.record_external(event, stream)
        } else {
            driver.record(event, stream)
        }
    })
}

/// Why a scope has no GPU time, from what a call returned.
#[cold]
pub(crate) fn loss_of(
    driver: &impl EventApi,
    context: &Context,
    code: Code,
    call: &str,
) -> CudaLoss {
    match context.handle_error(driver, code, call) {
        Fault::Capture => CudaLoss::Captured,
        Fault::Sticky => CudaLoss::ContextFailed,
        Fault::ContextGone => {
            resolver::suspect(context);
            CudaLoss::ContextGone
        }
        Fault::NoDriver => CudaLoss::ContextGone,
        Fault::InvalidHandle => CudaLoss::InvalidHandle,
        Fault::NotPermitted => CudaLoss::HostFunction,
        Fault::Refused | Fault::NotReady => CudaLoss::DriverRefused,
    }
}
