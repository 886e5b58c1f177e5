//! The GPU's side of a scope: what the measured thread does when one opens.
//!
//! In the steady state that is, at each end, one question whether the stream captures and one event put
//! into it; neither waits for the device.

use super::code::{Code, Fault};
use super::context::{Context, Pair};
use super::driver::{Capturing, Driver, RawContext, RawStream};
use super::item::{Begin, Line, Link};
use super::loss::CudaLoss;
use super::stream::{Lent, Raw, Stream};
use super::thread::{self, Thread};
use super::{health, library, resolver};
use crate::clock::now;
use crate::local::Busy;

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
    pub(super) link: Link,
    pub(super) inside: Option<Link>,
    pub(super) apart: Option<u32>,
    pub(super) outcome: Result<Running, CudaLoss>,
    /// What its opening took, in ticks, where that is found out.
    pub(super) cost: Option<u64>,
}

impl Opened {
    pub(crate) fn link(&self) -> Link {
        self.link
    }

    /// Whether its end waits for the device.
    pub(super) fn waits(&self) -> bool {
        let running = self.outcome.as_ref();
        running.is_ok_and(|running| running.mode == Mode::Synchronous)
    }
}

/// What its opening has put into the stream.
#[derive(Debug)]
pub(crate) struct Running {
    pub(super) pair: Pair,
    pub(super) context: &'static Context,
    pub(super) stream: RawStream,
    /// The thread it began on.
    pub(super) thread: u64,
    pub(super) is_implicit: bool,
    pub(super) is_graph: bool,
    pub(super) mode: Mode,
    pub(super) held: Held,
}

/// Who keeps the stream until the scope ends.
#[derive(Debug)]
pub(super) enum Held {
    /// It is lent for as long, or a default stream.
    Elsewhere,
    /// The thread, whose current stream it is.
    Current,
    Own {
        _stream: Stream,
    },
}

impl Held {
    pub(super) fn is_current(&self) -> bool {
        matches!(self, Self::Current)
    }
}

/// What a scope is measured on.
struct Target {
    raw: Raw,
    is_implicit: bool,
    held: Held,
}

/// Opens the GPU's side of a scope of this thread; false where it has none.
#[inline(never)]
pub(crate) fn begin(serial: u64, name: u32, ask: Ask) -> bool {
    // Inside the profiler, where a lock of its own may be held, a measured allocator has its CPU time only.
    let Some(driver) = library::driver().filter(|_| !Busy::is_claimed()) else {
        return false;
    };
    let opened = thread::with(|thread| {
        let begun = thread.is_sampled().then(now);
        let mut opened = open(thread, driver, name, ask)?;
        opened.cost = begun.map(|begun| now().saturating_sub(begun));
        thread.push(serial, opened);
        Some(())
    });
    opened.flatten().is_some()
}

/// The GPU's side of a future, in a place of its own: most have none, and must not carry the room for it.
#[derive(Debug, Default)]
pub(crate) struct TaskSide(Box<Option<Opened>>);

impl TaskSide {
    pub(crate) fn link(&self) -> Option<Link> {
        self.0.as_ref().as_ref().map(Opened::link)
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

/// The same for a future, which keeps it.
pub(crate) fn begin_task(name: u32, ask: Ask) -> Option<TaskSide> {
    let driver = library::driver()?;
    thread::with(|thread| {
        let mut opened = open(thread, driver, name, ask)?;
        opened.link.is_future = true;
        // It may be finished on another thread, which knows nothing of this one's current stream.
        if let Ok(running) = &mut opened.outcome
            && running.held.is_current()
            && let Some(stream) = thread.current()
        {
            running.held = Held::Own {
                _stream: stream.clone(),
            };
        }
        let mut side = thread.take_place();
        *side.0 = Some(opened);
        Some(side)
    })?
}

fn open(thread: &mut Thread, driver: &Driver, name: u32, ask: Ask) -> Option<Opened> {
    let target = match target(thread, driver, ask.stream) {
        Ok(target) => target?,
        Err(code) => return Some(refused(thread, driver, name, code)),
    };
    let number = thread.number();
    let context = thread.known(driver, target.raw.context)?.context;
    let on = thread::line(context, target.raw.stream, number);
    let (inside, apart) = thread.parents(on);
    let key = thread.next_key();
    let outcome = record_begin(thread, driver, context, target, ask.mode);
    let link = Link {
        key,
        line: on,
        name,
        begin: outcome
            .as_ref()
            .ok()
            .map(|running| Begin::of(&running.pair)),
        is_future: false,
    };
    Some(Opened {
        link,
        inside,
        apart,
        outcome,
        cost: None,
    })
}

/// A scope for which the driver does not say which context is current.
#[cold]
fn refused(thread: &mut Thread, driver: &Driver, name: u32, code: Code) -> Opened {
    health::refused(driver, "cuCtxGetCurrent", code);
    let link = Link {
        key: thread.next_key(),
        line: Line::NOWHERE,
        name,
        begin: None,
        is_future: false,
    };
    Opened {
        link,
        inside: None,
        apart: None,
        outcome: Err(CudaLoss::DriverRefused),
        cost: None,
    }
}

/// The stream of the call, else of the thread, else the default one of the thread's context; none where no
/// context is current. The error is what the driver said to being asked.
fn target(thread: &Thread, driver: &Driver, given: Option<Given>) -> Result<Option<Target>, Code> {
    let mut target = match (given, thread.current()) {
        (Some(Given { raw, held }), _) => Target {
            raw,
            is_implicit: false,
            held: held.map_or(Held::Elsewhere, |stream| Held::Own { _stream: stream }),
        },
        (None, Some(current)) => Target {
            raw: current.raw,
            is_implicit: false,
            held: Held::Current,
        },
        (None, None) => Target {
            raw: Raw {
                stream: RawStream::LEGACY,
                context: RawContext::NONE,
            },
            is_implicit: true,
            held: Held::Elsewhere,
        },
    };
    if target.raw.context == RawContext::NONE {
        target.raw.context = match driver.current_context() {
            // It is not there yet, or not any more, and no context either.
            Err(code) if code.fault() == Fault::NoDriver => RawContext::NONE,
            answer => answer?,
        };
    }
    Ok((target.raw.context != RawContext::NONE).then_some(target))
}

fn record_begin(
    thread: &mut Thread,
    driver: &Driver,
    context: &'static Context,
    target: Target,
    mode: Mode,
) -> Result<Running, CudaLoss> {
    if context.has_failed() {
        return Err(CudaLoss::ContextFailed);
    }
    if context.is_suspect() {
        return Err(CudaLoss::ContextGone);
    }
    let stream = target.raw.stream;
    let begin = || {
        let is_graph = is_graph(driver, context, stream, mode)?;
        let pair = if is_graph {
            take_pair_for_graph(driver, context)?
        } else {
            take_pair(thread, driver, context)?
        };
        match record(driver, context, pair.begin, stream, is_graph) {
            Ok(()) => Ok((pair, is_graph)),
            Err(code) => {
                thread.put_back(context, pair);
                Err(loss_of(driver, context, code, "cuEventRecord"))
            }
        }
    };
    let (pair, is_graph) = in_own_context(driver, context, stream, target.is_implicit, begin)?;
    Ok(Running {
        pair,
        context,
        stream,
        thread: thread.number(),
        is_implicit: target.is_implicit,
        is_graph,
        mode,
        held: target.held,
    })
}

/// Runs `f` with a stream's own context current where its handle means the stream of whichever is: a default
/// stream that was named may be of another one. One that nobody named is that of the current one.
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
        .unwrap_or_else(|code| Err(loss_of(driver, context, code, "cuCtxSetCurrent")))
}

/// Whether events in the stream become part of a graph, as asked for; a loss where they would unasked.
pub(super) fn is_graph(
    driver: &Driver,
    context: &Context,
    stream: RawStream,
    mode: Mode,
) -> Result<bool, CudaLoss> {
    match driver.capturing(stream) {
        Capturing::No => Ok(false),
        Capturing::Yes if mode == Mode::Captured => Ok(true),
        Capturing::Yes => Err(CudaLoss::Captured),
        Capturing::Unknown(code) => Err(loss_of(driver, context, code, "cuStreamIsCapturing")),
    }
}

/// One that was never recorded: it would read as a replay.
fn take_pair_for_graph(driver: &Driver, context: &Context) -> Result<Pair, CudaLoss> {
    if !context.has_room_for_graph() {
        return Err(CudaLoss::TooManyCaptured);
    }
    context
        .make_for_graph(driver)
        .map_err(|code| loss_of(driver, context, code, "cuEventCreate"))?
        .ok_or(CudaLoss::PoolEmpty)
}

fn take_pair(
    thread: &mut Thread,
    driver: &Driver,
    context: &'static Context,
) -> Result<Pair, CudaLoss> {
    let Some(known) = thread.known(driver, context.raw) else {
        return Err(CudaLoss::PoolEmpty);
    };
    loop {
        match known.stash.pop() {
            // Of an earlier life of the context: its events went with it.
            Some(pair) if pair.life != context.life() => {}
            Some(pair) => return Ok(pair),
            None => {
                let refilled = context.refill(driver, &mut known.stash);
                // It makes more, or gives back what the device has passed.
                if context.is_low() {
                    resolver::wake();
                }
                refilled.map_err(|code| loss_of(driver, context, code, "cuEventCreate"))?;
                if known.stash.is_empty() {
                    return Err(CudaLoss::PoolEmpty);
                }
            }
        }
    }
}

#[inline]
pub(super) fn record(
    driver: &Driver,
    context: &Context,
    event: super::driver::Event,
    stream: RawStream,
    is_graph: bool,
) -> Result<(), Code> {
    let record = || {
        if is_graph {
            let recorded = driver.record_external(event, stream);
            recorded.unwrap_or(NOT_SUPPORTED)
        } else {
            driver.record(event, stream)
        }
    };
    match record() {
        Code::SUCCESS => Ok(()),
        // There are drivers that want a context on the thread, whatever they are asked.
        Code::INVALID_CONTEXT => driver.with_context(context.raw, || record().ok()),
        code => Err(code),
    }
}

const NOT_SUPPORTED: Code = Code(801);

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
        Fault::Refused | Fault::NotReady => CudaLoss::DriverRefused,
    }
}
