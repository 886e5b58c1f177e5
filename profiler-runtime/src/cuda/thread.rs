//! What each thread keeps of GPU time: its open scopes, its current stream, its stash of events.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rtrb::Producer;

use super::context::{self, Context, Pair};
use super::driver::{Driver, RawContext, RawStream};
use super::item::{Item, Line, Link};
use super::loss::CudaLoss;
use super::scope::{Held, Opened, TaskSide};
use super::stream::Stream;
use super::totals;
use crate::local::Busy;

/// Scopes that lost their place on the stack and may still end: guards that go in another order than they
/// came, and those that are held from one poll of a future to the next.
const MAX_DISPLACED: usize = 64;

/// Scopes that are open on one thread at most: of more, the oldest are taken for forgotten.
const MAX_OPEN: usize = 4096;

/// Places for the GPU's side of futures that a thread keeps.
const MAX_PLACES: usize = 64;

pub(super) struct Thread {
    /// Different for each thread of the process: what follows is unique with it.
    number: u64,
    opened: u64,
    stack: Vec<Frame>,
    displaced: Vec<Frame>,
    known: Vec<Known>,
    current: Option<Stream>,
    /// Places for the GPU's side of futures, made before.
    places: Vec<TaskSide>,
    pub(super) ring: Option<Producer<Item>>,
}

/// A scope that is open here, or a future that is being polled.
struct Frame {
    /// The scope's number; [`POLL`] for a poll.
    serial: u64,
    link: Link,
    /// None for a poll: its future keeps it.
    opened: Option<Opened>,
}

const POLL: u64 = u64::MAX;

/// A context that the thread has met, and the events it has at hand for it.
pub(super) struct Known {
    pub(super) context: &'static Context,
    pub(super) stash: Vec<Pair>,
}

thread_local! {
    static THREAD: RefCell<Thread> = const {
        RefCell::new(Thread {
            number: 0,
            opened: 0,
            stack: Vec::new(),
            displaced: Vec::new(),
            known: Vec::new(),
            current: None,
            places: Vec::new(),
            ring: None,
        })
    };
}

/// Runs `f` on what the thread keeps; none where the thread is ending, or is inside already: an allocator
/// or a logger that is measured itself.
pub(super) fn with<T>(f: impl FnOnce(&mut Thread) -> T) -> Option<T> {
    THREAD
        .try_with(|thread| {
            thread
                .try_borrow_mut()
                .ok()
                .map(|mut thread| f(&mut thread))
        })
        .ok()?
}

impl Thread {
    pub(super) fn number(&mut self) -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if self.number == 0 {
            self.number = NEXT.fetch_add(1, Relaxed);
        }
        self.number
    }

    /// A number that no other scope with a GPU time has: that of the thread, and one of the thread's own.
    pub(super) fn next_key(&mut self) -> u64 {
        self.opened += 1;
        self.number() << 40 | self.opened & ((1 << 40) - 1)
    }

    /// Whether it is found out what the next scope costs.
    pub(super) fn is_sampled(&self) -> bool {
        matches!(self.opened % 64, 1)
    }

    /// The scope on the same line that a new one is inside of, if any; and the name of the one that it is
    /// directly inside of, if that is on another line.
    pub(super) fn parents(&self, line: Line) -> (Option<Link>, Option<u32>) {
        let mut links = self.stack.iter().rev().map(|frame| frame.link);
        let inside = links.find(|link| link.line == line && link.begin.is_some());
        let apart = self.stack.last().filter(|frame| frame.link.line != line);
        (inside, apart.map(|frame| frame.link.name))
    }

    pub(super) fn push(&mut self, serial: u64, opened: Opened) {
        if self.stack.len() >= MAX_OPEN {
            self.give_up_half();
        }
        self.stack.push(Frame {
            serial,
            link: opened.link,
            opened: Some(opened),
        });
    }

    /// Polls keep their places: they are undone by them.
    #[cold]
    fn give_up_half(&mut self) {
        for frame in &mut self.stack[..MAX_OPEN / 2] {
            if let Some(opened) = frame.opened.take() {
                give_up(opened);
            }
        }
        let first_poll = self.stack.iter().position(|frame| frame.serial == POLL);
        let end = first_poll.unwrap_or(MAX_OPEN / 2).min(MAX_OPEN / 2);
        self.stack.drain(..end);
    }

    /// The scope with this number; what came after it stays to be closed, but has nothing to do with what
    /// is opened from now on.
    pub(super) fn pop(&mut self, serial: u64) -> Option<Opened> {
        if self
            .stack
            .last()
            .is_some_and(|frame| frame.serial == serial)
        {
            return self.stack.pop()?.opened;
        }
        if let Some(place) = self.stack.iter().rposition(|frame| frame.serial == serial) {
            self.displace(place + 1);
            return self.stack.pop()?.opened;
        }
        let place = self
            .displaced
            .iter()
            .rposition(|frame| frame.serial == serial)?;
        self.displaced.remove(place).opened
    }

    /// The key of an open scope.
    pub(super) fn key_of(&self, serial: u64) -> Option<u64> {
        let mut frames = self.stack.iter().rev().chain(&self.displaced);
        let frame = frames.find(|frame| frame.serial == serial)?;
        Some(frame.link.key)
    }

    /// Makes a future's scope the innermost one for a poll; to be undone with what this returns.
    pub(super) fn push_poll(&mut self, link: Link) -> u64 {
        // What is opened in the scope around it from now on may run while the future waits.
        let mut frames = self.stack.iter_mut().rev();
        let around =
            frames.find(|frame| frame.link.line == link.line && frame.link.begin.is_some());
        if let Some(around) = around {
            around.link.is_future = true;
        }
        self.stack.push(Frame {
            serial: POLL,
            link,
            opened: None,
        });
        link.key
    }

    /// Ends a poll. Scopes that were opened in it and not closed may be closed in a later one.
    pub(super) fn pop_poll(&mut self, key: u64) {
        let is_it = |frame: &Frame| frame.serial == POLL && frame.link.key == key;
        if let Some(place) = self.stack.iter().rposition(is_it) {
            self.displace(place + 1);
            self.stack.truncate(place);
        }
    }

    fn displace(&mut self, from: usize) {
        let frames = self.stack.drain(from.min(self.stack.len())..);
        self.displaced
            .extend(frames.filter(|frame| frame.opened.is_some()));
        while self.displaced.len() > MAX_DISPLACED {
            let oldest = self.displaced.remove(0);
            oldest.opened.into_iter().for_each(give_up);
        }
    }

    /// What the thread knows of a context.
    pub(super) fn known(&mut self, driver: &Driver, raw: RawContext) -> Option<&mut Known> {
        let known = self.known.iter().position(|known| known.context.raw == raw);
        let place = known.unwrap_or(self.known.len());
        if known.is_none() {
            self.known.push(Known {
                context: context::of(driver, raw)?,
                stash: Vec::new(),
            });
        }
        self.known.get_mut(place)
    }

    /// Gives a pair back to be used next.
    pub(super) fn put_back(&mut self, context: &'static Context, pair: Pair) {
        let known = self
            .known
            .iter_mut()
            .find(|known| std::ptr::eq(known.context, context));
        match known {
            Some(known) => {
                pair.turns.fetch_add(1, Relaxed);
                known.stash.push(pair);
            }
            None => context.put_back(pair),
        }
    }

    pub(super) fn current(&self) -> Option<&Stream> {
        self.current.as_ref()
    }

    /// Another current stream. Scopes that are open on the one before hold it themselves from now on.
    pub(super) fn replace_current(&mut self, stream: Option<Stream>) -> Option<Stream> {
        let before = std::mem::replace(&mut self.current, stream);
        if let Some(before) = &before {
            let frames = self.stack.iter_mut().chain(&mut self.displaced);
            let held = frames.filter_map(|frame| frame.opened.as_mut()?.outcome.as_mut().ok());
            for running in held.filter(|running| running.held.is_current()) {
                running.held = Held::Own {
                    _stream: before.clone(),
                };
            }
        }
        before
    }

    /// A place for the GPU's side of a future: one that another had, where there is any.
    pub(super) fn take_place(&mut self) -> TaskSide {
        self.places.pop().unwrap_or_default()
    }

    pub(super) fn keep_place(&mut self, place: TaskSide) {
        if self.places.len() < MAX_PLACES {
            self.places.push(place);
        }
    }

    /// Gives what is at hand back to the pools.
    pub(super) fn return_stashes(&mut self) {
        for known in &mut self.known {
            known
                .stash
                .drain(..)
                .for_each(|pair| known.context.put_back(pair));
        }
    }
}

/// Takes back what a scope has that is not to be finished.
#[cold]
pub(crate) fn give_up(opened: Opened) {
    if let Ok(running) = opened.outcome
        // Part of a graph that is not ours to take back.
        && !running.is_graph
    {
        running.context.put_back(running.pair);
    }
    totals::count_without(opened.link.name, CudaLoss::Abandoned);
}

impl Drop for Thread {
    fn drop(&mut self) {
        let _busy = Busy::claim();
        self.stack
            .drain(..)
            .chain(self.displaced.drain(..))
            .filter_map(|frame| frame.opened)
            .for_each(give_up);
        self.return_stashes();
    }
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

pub(super) fn replace_current(stream: Option<Stream>) -> Option<Stream> {
    with(|thread| thread.replace_current(stream)).flatten()
}

/// Makes a future's scope the innermost one of this thread for a poll; what [`pop_poll`] takes.
pub(crate) fn push_poll(link: Link) -> Option<u64> {
    with(|thread| thread.push_poll(link))
}

pub(crate) fn pop_poll(key: u64) {
    with(|thread| thread.pop_poll(key));
}

/// The key of a scope that is open on this thread; zero for none.
pub(crate) fn key_of(serial: u64) -> u64 {
    with(|thread| thread.key_of(serial)).flatten().unwrap_or(0)
}

/// Gives the events that this thread has at hand back to the pools.
pub(crate) fn return_stashes() {
    with(Thread::return_stashes);
}

/// The line of a stream: what runs in one order on a device.
pub(super) fn line(context: &Context, stream: RawStream, thread: u64) -> Line {
    Line {
        context: context.index,
        stream,
        thread: if stream.is_per_thread() { thread } else { 0 },
    }
}
