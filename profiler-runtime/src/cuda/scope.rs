//! The GPU's side of a scope: what the measured thread does when one opens.
//!
//! In the steady state that is, at each end, one question for the context's number, one whether the stream
//! captures, and one event put into it; none waits for the device.

use std::num::NonZero;

use super::code::{Code, Failed, Fault};
use super::context::Context;
use super::driver::{Capturing, Driver, Event};
use super::item::{Around, Begin, Link, Parcel};
use super::loss::CudaLoss;
use super::stash::Known;
use super::stream::{Keep, Lent, Raw, Stream};
use super::target::{NamedBy, Target, target};
use super::thread::{self, Thread};
use super::{health, library, records, resolver};
use crate::clock::now;
use crate::stream_key::RawStream;
use crate::sync::ReentrancyGuard;

/// What a call asks for beyond the usual.
#[derive(Debug, Default)]
pub(crate) struct Ask {
    pub(crate) stream: Option<Given>,
    pub(crate) mode: Mode,
}

/// A stream that the call brought along.
#[derive(Debug)]
pub(crate) struct Given {
    raw: Raw,
    held: Option<Stream>,
}

impl From<Lent<'_>> for Given {
    /// Whoever keeps it must keep the borrow too, for as long as the scope is open.
    fn from(lent: Lent<'_>) -> Self {
        Self {
            raw: lent.raw,
            held: lent.held,
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
pub(crate) struct Opened {
    /// The item whose first event is in the stream; else why there is none.
    pub(super) outcome: Result<Parcel, CudaLoss>,
    pub(super) link: Link,
    pub(super) around: Around,
    pub(super) mode: Mode,
    /// Whether it is on the driver's default stream of whichever context is current.
    pub(super) is_implicit: bool,
    /// Whether neither the call nor its thread named the stream.
    pub(super) is_fallback: bool,
    /// Whether a future is polled inside of it: what it has inside may overlap.
    pub(super) has_futures: bool,
    pub(super) held: Held,
    /// What its opening took, in ticks, where that is found out.
    pub(super) cost: Option<NonZero<u64>>,
}

impl Opened {
    /// One that nothing is known of yet.
    pub(super) const NOTHING: Self = Self {
        outcome: Err(CudaLoss::Abandoned),
        link: Link::NOTHING,
        around: Around::NOTHING,
        mode: Mode::Later,
        is_implicit: false,
        is_fallback: false,
        has_futures: false,
        held: Held::Elsewhere,
        cost: None,
    };

    /// Where it began; none where it has no GPU time.
    pub(super) fn begin(&self) -> Option<Begin> {
        self.outcome.as_ref().ok()?.pair.as_ref().map(Begin::of)
    }
}

/// Who keeps the stream until the scope ends.
#[derive(Debug)]
pub(super) enum Held {
    /// It is lent for as long, or a default stream, which is kept to the end of the process.
    Elsewhere,
    /// The thread, whose current stream it is.
    Current,
    Own {
        _keep: Keep,
    },
}

impl Held {
    pub(super) fn own(stream: Stream) -> Self {
        Self::Own {
            _keep: stream.into_keep(),
        }
    }

    pub(super) fn is_current(&self) -> bool {
        matches!(self, Self::Current)
    }

    /// What has to be let go of, if anything.
    #[inline]
    pub(super) fn take(&mut self) -> Self {
        match self {
            Self::Own { .. } => std::mem::replace(self, Self::Elsewhere),
            Self::Elsewhere | Self::Current => Self::Elsewhere,
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
pub(crate) fn begin(serial: u64, name: u32, ask: Option<&mut Ask>) -> Begun {
    // Inside the profiler, where a lock of its own may be held, a measured allocator has its CPU time only.
    let Some(driver) = library::driver().filter(|_| !ReentrancyGuard::is_entered()) else {
        return Begun::NoContext;
    };
    let opened = thread::with(|thread| {
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
pub(crate) struct TaskSide(Box<Option<Opened>>);

impl TaskSide {
    pub(super) fn link(&self) -> Option<Link> {
        self.0.as_ref().as_ref().map(|opened| opened.link)
    }

    pub(super) fn begin(&self) -> Option<Begin> {
        self.0.as_ref().as_ref().and_then(Opened::begin)
    }

    /// The key of its GPU time; zero for none.
    pub(crate) fn key(&self) -> u64 {
        self.link().map_or(0, |link| link.key)
    }

    /// What it holds; the place itself is kept for the next one.
    pub(crate) fn into_opened(mut self) -> Option<Opened> {
        let opened = self.0.take();
        thread::with(|thread| thread.keep_place(self));
        opened
    }
}

/// The same for a future, which keeps it; the error says why it has none.
pub(crate) fn begin_task(name: u32, ask: Option<&mut Ask>) -> Result<TaskSide, Begun> {
    let driver = library::driver().ok_or(Begun::NoContext)?;
    let begun = thread::with(|thread| {
        open(thread, driver, 0, name, ask, true)?;
        let mut opened = thread.pop_innermost().ok_or(Begun::NoContext)?;
        // It may be finished on another thread, which knows nothing of this one's current stream.
        if opened.held.is_current()
            && let Some(stream) = thread.current()
        {
            opened.held = Held::own(stream.clone());
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
    thread: &'t mut Thread,
    driver: &Driver,
    serial: u64,
    name: u32,
    ask: Option<&mut Ask>,
    is_future: bool,
) -> Result<&'t mut Opened, Begun> {
    let (given, mode) = match ask {
        Some(ask) => (ask.stream.as_mut(), ask.mode),
        None => (None, Mode::Later),
    };
    let target = target(thread, given.as_deref().map(|given| given.raw)).ok_or(Begun::NoStream)?;
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
    let Some(known) = thread.known(driver, target.raw.context) else {
        return without(thread, serial, name, CudaLoss::TooManyContexts);
    };
    let context = known.context;
    let mut outcome = record_begin(known, driver, target, mode, is_sampled);
    let line = thread::line(context, target.raw.stream, number);
    let around = thread.around(line, is_future);
    let key = thread.next_key();
    if let Ok(item) = &mut outcome {
        // All is written when the scope ends; the resolver's processor may have what is written to. It is called
        // for now, so that it is here by then.
        item.link.key = key;
    } else if let Err(CudaLoss::HostFunction) = outcome {
        thread.bar();
    }
    let opened = thread.push(serial).ok_or(Begun::NoContext)?;
    opened.link = Link {
        key,
        line,
        name,
        has_begun: outcome.is_ok(),
    };
    opened.outcome = outcome;
    opened.around = around;
    opened.mode = mode;
    opened.is_implicit = target.is_implicit();
    opened.is_fallback = target.is_fallback();
    if target.named_by == NamedBy::Thread {
        opened.held = Held::Current;
    } else if let Some(given) = given {
        opened.held = given.held.take().map_or(Held::Elsewhere, Held::own);
    }
    Ok(opened)
}

/// A scope that has no GPU time for this reason, and of which it is not known what it was to be measured on.
#[cold]
fn without(
    thread: &mut Thread,
    serial: u64,
    name: u32,
    loss: CudaLoss,
) -> Result<&mut Opened, Begun> {
    let link = thread.link_nowhere(name);
    let opened = thread.push(serial).ok_or(Begun::NoContext)?;
    opened.outcome = Err(loss);
    opened.link = link;
    Ok(opened)
}

#[inline(always)]
fn record_begin(
    known: &mut Known,
    driver: &Driver,
    target: Target,
    mode: Mode,
    is_sampled: bool,
) -> Result<Parcel, CudaLoss> {
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
    let stream = target.raw.stream;
    in_own_context(driver, context, stream, target.is_implicit(), || {
        let item = if is_graph(driver, context, stream, mode)? {
            take_for_graph(driver, context, stream)?
        } else {
            known.take(driver)?
        };
        let pair = item.pair.as_ref().ok_or(CudaLoss::PoolEmpty)?;
        let recorded = records::timed(is_sampled, || {
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
pub(super) fn in_own_context<T>(
    driver: &Driver,
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
pub(super) fn is_graph(
    driver: &Driver,
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
    driver: &Driver,
    context: &'static Context,
    stream: RawStream,
) -> Result<Parcel, CudaLoss> {
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
pub(super) fn record(
    driver: &Driver,
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
pub(super) fn loss_of(driver: &Driver, context: &Context, code: Code, call: &str) -> CudaLoss {
    match context.learn(driver, code, call) {
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
