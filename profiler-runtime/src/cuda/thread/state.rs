//! What each thread keeps of GPU time: its open scopes, its current stream, its magazine of events.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::context_cache::ContextCache;
use super::context_seen::ContextSeen;
use super::scope::{OpenGpuScope, StreamOwnership, TaskGpuScope};
use crate::cuda::context::measurement::{Enclosing, GpuMeasurement, ScopeRef, StartEvent};
use crate::cuda::context::pool::MAGAZINE_SIZE;
use crate::cuda::context::{self, Context};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::code::Fault;
use crate::cuda::ffi::driver::RawContext;
use crate::cuda::loss::CudaLoss;
use crate::cuda::resolver::totals;
use crate::cuda::stream::Stream;
use crate::diagnostics::catch_own_panic;
use crate::stream_key::RawStream;
use crate::stream_key::StreamKey;
use crate::sync::ReentrancyGuard;
use crate::sync::ring::Producer;

/// Scopes that lost their place on the stack and may still end: guards that go in another order than they
/// came, and those that are held from one poll of a future to the next.
const MAX_DISPLACED: usize = 64;

/// Scopes that are open on one thread at most: of more, the oldest are taken for forgotten.
const MAX_OPEN: usize = 4096;

/// Places for the GPU's side of futures that a thread keeps.
const MAX_PLACES: usize = 64;

/// After the first refusal, so many scopes do not ask the driver again.
const FIRST_BAR: u32 = 64;
/// So many at most.
const LONGEST_BAR: u32 = 1 << 20;

pub(crate) struct GpuThread {
    /// Different for each thread of the process: what follows is unique with it.
    number: u32,
    opened: u64,
    stack: Vec<Frame>,
    displaced: Vec<Frame>,
    known: Vec<ContextCache>,
    current: Option<Stream>,
    /// Scopes to come that do not call the driver: it said that it must not be called here.
    barred: u32,
    /// How many that were after the last time.
    bar: u32,
    context_seen: ContextSeen,
    /// Places for the GPU's side of futures, made before.
    places: Vec<TaskGpuScope>,
    pub(crate) ring: Option<Producer<Box<GpuMeasurement>>>,
}

/// A scope that is open here, or a future that is being polled.
enum Frame {
    Scope {
        serial: u64,
        opened: OpenGpuScope,
    },
    /// Its future keeps what was opened.
    Poll {
        scope: ScopeRef,
        begin: Option<StartEvent>,
    },
}

impl Frame {
    #[inline]
    fn is_scope(&self, number: u64) -> bool {
        matches!(self, Self::Scope { serial, .. } if *serial == number)
    }

    #[inline]
    fn scope(&self) -> &ScopeRef {
        match self {
            Self::Scope { opened, .. } => &opened.scope,
            Self::Poll { scope, .. } => scope,
        }
    }

    /// Where it began, if what is inside of it may overlap.
    #[inline]
    fn begin_if_overlapped(&self, is_future: bool) -> Option<StartEvent> {
        match self {
            Self::Scope { opened, .. } if opened.has_futures || is_future => opened.begin(),
            Self::Scope { .. } => None,
            Self::Poll { begin, .. } => *begin,
        }
    }

    #[inline]
    fn into_opened(self) -> Option<OpenGpuScope> {
        match self {
            Self::Scope { opened, .. } => Some(opened),
            Self::Poll { .. } => None,
        }
    }
}

thread_local! {
    static THREAD: RefCell<GpuThread> = const {
        RefCell::new(GpuThread {
            number: 0,
            opened: 0,
            stack: Vec::new(),
            displaced: Vec::new(),
            known: Vec::new(),
            current: None,
            barred: 0,
            bar: 0,
            context_seen: ContextSeen::After(0),
            places: Vec::new(),
            ring: None,
        })
    };
}

/// Runs `f` on what the thread keeps; none where the thread is ending, or is inside already: an allocator
/// or a logger that is measured itself.
pub(crate) fn with<T>(f: impl FnOnce(&mut GpuThread) -> T) -> Option<T> {
    THREAD
        .try_with(|thread| {
            thread
                .try_borrow_mut()
                .ok()
                .map(|mut thread| f(&mut thread))
        })
        .ok()?
}

impl GpuThread {
    #[inline]
    pub(crate) fn number(&mut self) -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        if self.number == 0 {
            self.number = NEXT.fetch_add(1, Relaxed);
        }
        self.number
    }

    /// A number that no other scope with a GPU time has: that of the thread, and one of the thread's own.
    pub(crate) fn next_key(&mut self) -> u64 {
        self.opened += 1;
        u64::from(self.number()) << 40 | self.opened & ((1 << 40) - 1)
    }

    /// How to refer to a scope of which it is not known what it was to be measured on.
    #[cold]
    pub(crate) fn link_nowhere(&mut self, name: u32) -> ScopeRef {
        ScopeRef {
            key: self.next_key(),
            stream_key: StreamKey::NOWHERE,
            name,
            has_begun: false,
        }
    }

    /// Whether the next scope must not call the driver.
    #[inline]
    pub(crate) fn is_barred(&mut self) -> bool {
        self.barred > 0 && self.count_barred()
    }

    #[cold]
    fn count_barred(&mut self) -> bool {
        self.barred -= 1;
        true
    }

    /// The driver said that it must not be called on this thread now: it runs a host function. The driver's own threads
    /// run nothing else, and nothing tells when one has ended; so scopes ask again, each time after twice as many. A
    /// thread of the program's that got the answer once measures again after some scopes; one of the driver's asks
    /// some twenty times in its life, where the driver has shown that it answers.
    #[cold]
    pub(crate) fn bar(&mut self) {
        self.bar = (2 * self.bar).clamp(FIRST_BAR, LONGEST_BAR);
        self.barred = self.bar;
    }

    /// Whether it is found out what the next scope costs.
    pub(crate) fn is_sampled(&self) -> bool {
        matches!(self.opened % 64, 1)
    }

    /// What a new scope on a line is inside of.
    #[inline]
    pub(crate) fn around(&self, stream_key: StreamKey, is_future: bool) -> Enclosing {
        let Some(innermost) = self.stack.last() else {
            return Enclosing::NONE;
        };
        let is_around = |scope: &ScopeRef| scope.stream_key == stream_key && scope.has_begun;
        let mut frames = self.stack.iter().rev();
        let inside = frames.find(|frame| is_around(frame.scope()));
        let apart = innermost.scope().stream_key != stream_key;
        Enclosing {
            parent: inside.and_then(|frame| NonZero::new(frame.scope().key)),
            parent_start: inside.and_then(|frame| frame.begin_if_overlapped(is_future)),
            parent_elsewhere: apart.then_some(innermost.scope().name),
        }
    }

    /// Makes room for a scope, as the innermost one.
    #[inline]
    pub(crate) fn push(&mut self, serial: u64) -> Option<&mut OpenGpuScope> {
        if self.stack.len() >= MAX_OPEN {
            self.abandon_oldest();
        }
        self.stack.push(Frame::Scope {
            serial,
            opened: OpenGpuScope::NOTHING,
        });
        self.last_opened()
    }

    #[inline]
    fn last_opened(&mut self) -> Option<&mut OpenGpuScope> {
        match self.stack.last_mut() {
            Some(Frame::Scope { opened, .. }) => Some(opened),
            _ => None,
        }
    }

    /// The innermost scope, for whoever keeps it from now on.
    pub(crate) fn pop_innermost(&mut self) -> Option<OpenGpuScope> {
        self.stack.pop()?.into_opened()
    }

    /// Polls keep their places: they are undone by them.
    #[cold]
    fn abandon_oldest(&mut self) {
        let is_scope = |frame: &mut Frame| matches!(frame, Frame::Scope { .. });
        let old = self.stack.extract_if(..MAX_OPEN / 2, is_scope);
        old.filter_map(Frame::into_opened).for_each(abandon);
    }

    /// The scope with this number, as the innermost one; what came after it stays to be closed, but has nothing
    /// to do with what is opened from now on.
    #[inline]
    pub(crate) fn innermost(&mut self, serial: u64) -> Option<&mut OpenGpuScope> {
        if !self
            .stack
            .last()
            .is_some_and(|frame| frame.is_scope(serial))
        {
            self.make_innermost(serial)?;
        }
        self.last_opened()
    }

    #[cold]
    fn make_innermost(&mut self, serial: u64) -> Option<()> {
        let is_it = |frame: &Frame| frame.is_scope(serial);
        if let Some(place) = self.stack.iter().rposition(is_it) {
            self.displace(place + 1);
        } else {
            let place = self.displaced.iter().rposition(is_it)?;
            self.stack.push(self.displaced.remove(place));
        }
        Some(())
    }

    /// Ends the scope that [`innermost`](Self::innermost) found.
    #[inline]
    pub(crate) fn forget_innermost(&mut self) {
        let last = self.stack.len().saturating_sub(1);
        self.stack.truncate(last);
    }

    /// The key of an open scope.
    pub(crate) fn key_of(&self, serial: u64) -> Option<u64> {
        let mut frames = self.stack.iter().rev().chain(&self.displaced);
        let frame = frames.find(|frame| frame.is_scope(serial))?;
        Some(frame.scope().key)
    }

    /// Makes a future's scope the innermost one for a poll; to be undone with what this returns.
    pub(crate) fn push_poll(&mut self, side: &TaskGpuScope) -> Option<u64> {
        let (scope, begin) = (side.scope()?, side.begin());
        // What is opened in the scope around it from now on may run while the future waits.
        let is_around =
            |around: &ScopeRef| around.stream_key == scope.stream_key && around.has_begun;
        let mut frames = self.stack.iter_mut().rev();
        let around = frames.find(|frame| is_around(frame.scope()));
        if let Some(Frame::Scope { opened, .. }) = around {
            opened.has_futures = true;
        }
        self.stack.push(Frame::Poll { scope, begin });
        Some(scope.key)
    }

    /// Ends a poll. Scopes that were opened in it and not closed may be closed in a later one.
    pub(crate) fn pop_poll(&mut self, key: u64) {
        let is_it = |frame: &Frame| matches!(frame, Frame::Poll { scope, .. } if scope.key == key);
        if let Some(place) = self.stack.iter().rposition(is_it) {
            self.displace(place + 1);
            self.stack.truncate(place);
        }
    }

    fn displace(&mut self, from: usize) {
        let frames = self.stack.drain(from.min(self.stack.len())..);
        self.displaced
            .extend(frames.filter(|frame| matches!(frame, Frame::Scope { .. })));
        while self.displaced.len() > MAX_DISPLACED {
            let oldest = self.displaced.remove(0);
            oldest.into_opened().into_iter().for_each(abandon);
        }
    }

    /// What the thread knows of a context.
    pub(crate) fn known(
        &mut self,
        driver: &impl EventApi,
        raw: RawContext,
    ) -> Option<&mut ContextCache> {
        let known = self.known.iter().position(|known| known.context.raw == raw);
        let place = known.unwrap_or(self.known.len());
        if known.is_none() {
            self.known.push(ContextCache {
                context: context::of(driver, raw)?,
                magazine: VecDeque::with_capacity(MAGAZINE_SIZE),
            });
        }
        self.known.get_mut(place)
    }

    #[inline]
    pub(crate) fn current(&self) -> Option<&Stream> {
        self.current.as_ref()
    }

    /// Whether a context is current on this thread, or has been, for a scope without a stream that ends now. What the
    /// driver is asked for that is said at [`ContextSeen::is_due`].
    pub(crate) fn has_context(&mut self, driver: &impl EventApi, elapsed: i64) -> bool {
        if self.context_seen.is_due(elapsed) && !self.is_barred() {
            match driver.current_context() {
                Ok(RawContext::NONE) => {}
                Ok(_) => self.context_seen = ContextSeen::Yes,
                Err(code) if code.fault() == Fault::NotPermitted => self.bar(),
                Err(_) => {}
            }
        }
        self.context_seen == ContextSeen::Yes
    }

    /// Another current stream. Scopes that are open on the one before hold it themselves from now on.
    pub(crate) fn replace_current(&mut self, stream: Option<Stream>) -> Option<Stream> {
        let before = std::mem::replace(&mut self.current, stream);
        if let Some(before) = &before {
            let frames = self.stack.iter_mut().chain(&mut self.displaced);
            for frame in frames {
                if let Frame::Scope { opened, .. } = frame
                    && opened.held.is_current()
                {
                    opened.held = StreamOwnership::own(before.clone());
                }
            }
        }
        before
    }

    /// A place for the GPU's side of a future: one that another had, where there is any.
    pub(crate) fn take_place(&mut self) -> TaskGpuScope {
        self.places.pop().unwrap_or_default()
    }

    pub(crate) fn keep_place(&mut self, place: TaskGpuScope) {
        if self.places.len() < MAX_PLACES {
            self.places.push(place);
        }
    }

    /// Gives what is at hand back to the pools.
    pub(crate) fn return_magazines(&mut self) {
        for known in &mut self.known {
            known.magazine.drain(..).for_each(GpuMeasurement::give_back);
        }
    }
}

/// Takes back what a scope has that is not to be finished.
#[cold]
pub(crate) fn abandon(opened: OpenGpuScope) {
    totals::count_without(opened.scope.name, CudaLoss::Abandoned);
    if let Ok(item) = opened.outcome {
        item.give_back();
    }
}

impl Drop for GpuThread {
    fn drop(&mut self) {
        let _busy = ReentrancyGuard::try_enter();
        catch_own_panic("a thread ended", || {
            self.stack
                .drain(..)
                .chain(self.displaced.drain(..))
                .filter_map(Frame::into_opened)
                .for_each(abandon);
            self.return_magazines();
        });
    }
}

/// Whether this thread must not call the driver.
pub(crate) fn is_barred() -> bool {
    with(|thread| thread.barred > 0).unwrap_or(false)
}

/// The stream that scopes without one of their own are measured on, if one was set on this thread.
///
/// # Examples
///
/// ```
/// assert!(profiler_runtime::cuda::current_stream().is_none());
/// ```
#[must_use]
pub fn current_stream() -> Option<Stream> {
    with(|thread| thread.current.clone()).flatten()
}

pub(crate) fn replace_current(stream: Option<Stream>) -> Option<Stream> {
    with(|thread| thread.replace_current(stream)).flatten()
}

/// Makes a future's scope the innermost one of this thread for a poll; what [`pop_poll`] takes.
pub(crate) fn push_poll(side: &TaskGpuScope) -> Option<u64> {
    with(|thread| thread.push_poll(side))?
}

pub(crate) fn pop_poll(key: u64) {
    with(|thread| thread.pop_poll(key));
}

/// The key of a scope that is open on this thread; zero for none.
pub(crate) fn key_of(serial: u64) -> u64 {
    with(|thread| thread.key_of(serial)).flatten().unwrap_or(0)
}

/// Gives the events that this thread has at hand back to the pools.
pub(crate) fn return_magazines() {
    with(GpuThread::return_magazines);
}

/// The line of a stream: what runs in one order on a device.
#[inline]
pub(crate) fn stream_key(context: &Context, stream: RawStream, thread: u32) -> StreamKey {
    StreamKey {
        context: context.index,
        stream,
        thread: if stream.is_per_thread() { thread } else { 0 },
    }
}
