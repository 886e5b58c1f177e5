//! The state of the driver behind one lock, and how a call waits without holding the lock.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use std::collections::BTreeMap;

use super::capture::Capture;
use super::clock::{Clock, ClockMode};
use super::code::{CONTEXT_IS_DESTROYED, Code, INVALID_HANDLE};
use super::context::{Context, Device};
use super::event::Event;
use super::graph::{Graph, GraphExec};
use super::kernel::{Function, Module};
use super::link::Link;
use super::log::Log;
use super::memory::Memory;
use super::settings::Settings;
use super::slab::{Kind, Missing, Slab};
use super::stream::Stream;
use super::task::Join;
use super::thread;
use super::timeline::Timeline;

static STATE: LazyLock<Mutex<DriverState>> = LazyLock::new(|| Mutex::new(DriverState::new()));
/// Notified when an end became known, the clock moved, or a hang was released.
static CHANGED: Condvar = Condvar::new();

/// The driver and its devices.
#[derive(Debug)]
pub(crate) struct DriverState {
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) initialised: bool,
    /// The entry point that is being called.
    pub(crate) call: &'static str,
    /// Device and context of the source and of the destination of the copy that is being queued.
    pub(crate) peers: Option<[(u32, u32); 2]>,
    /// The number of `release` commands.
    pub(crate) releases: u64,
    /// The last number given to a context or stream.
    pub(crate) last_id: u64,
    pub(crate) devices: Vec<Device>,
    pub(crate) contexts: Slab<Context>,
    pub(crate) streams: Slab<Stream>,
    pub(crate) events: Slab<Event>,
    pub(crate) captures: BTreeMap<u64, Capture>,
    pub(crate) graphs: Slab<Graph>,
    pub(crate) execs: Slab<GraphExec>,
    pub(crate) modules: Slab<Module>,
    pub(crate) functions: Slab<Function>,
    pub(crate) links: Slab<Link>,
    pub(crate) memory: Memory,
    pub(crate) timeline: Timeline,
    pub(crate) log: Log,
}

impl DriverState {
    fn new() -> Self {
        Self {
            settings: Settings::default(),
            clock: Clock::new(),
            initialised: false,
            call: "",
            peers: None,
            releases: 0,
            last_id: 0,
            devices: Vec::new(),
            contexts: Slab::new(Kind::Context),
            streams: Slab::new(Kind::Stream),
            events: Slab::new(Kind::Event),
            captures: BTreeMap::new(),
            graphs: Slab::new(Kind::Graph),
            execs: Slab::new(Kind::GraphExec),
            modules: Slab::new(Kind::Module),
            functions: Slab::new(Kind::Function),
            links: Slab::new(Kind::Link),
            memory: Memory::default(),
            timeline: Timeline::default(),
            log: Log::new(),
        }
    }

    /// Restores the state after loading. The clock continues.
    pub(crate) fn reset(&mut self) {
        let releases = self.releases + 1;
        let mut clock = std::mem::replace(&mut self.clock, Clock::new());
        clock.set_pace(ClockMode::Real);
        *self = Self {
            clock,
            releases,
            ..Self::new()
        };
        thread::forget_all();
    }

    pub(crate) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Records the use of an invalid handle, and returns the driver's result for it.
    pub(crate) fn report_missing(&mut self, missing: Missing, handle: usize) -> Code {
        let (what, code) = match missing {
            Missing::Never => ("no such object", INVALID_HANDLE),
            Missing::Destroyed => ("used after it was destroyed", INVALID_HANDLE),
            Missing::WithContext => ("used after its context was destroyed", CONTEXT_IS_DESTROYED),
        };
        self.misuse(what, handle);
        code
    }

    pub(crate) fn misuse(&mut self, what: &str, handle: usize) {
        let call = self.call;
        self.log.misuse(call, what, handle);
    }
}

/// The locked state of the driver.
pub(crate) struct LockedState {
    /// `None` only while `without_lock` or `wait_for_change` runs.
    guard: Option<MutexGuard<'static, DriverState>>,
}

impl LockedState {
    pub(crate) fn new() -> Self {
        Self {
            guard: Some(lock()),
        }
    }

    /// Waits until another thread changed the state.
    pub(crate) fn wait_for_change(&mut self) {
        if let Some(guard) = self.guard.take() {
            self.guard = Some(CHANGED.wait(guard).unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn without_lock(&mut self, pause: impl FnOnce()) {
        self.guard = None;
        pause();
        self.guard = Some(lock());
    }

    /// Waits until there were more releases than `releases`.
    pub(crate) fn wait_for_release(&mut self, releases: u64) {
        while self.releases == releases {
            self.wait_for_change();
        }
    }

    /// Waits until all of `join` has finished.
    pub(crate) fn wait_for(&mut self, join: &Join) {
        let mut until = join.at;
        join.pending
            .iter()
            .for_each(|work| self.timeline.watch(*work));
        for work in &join.pending {
            until = until.max(self.wait_for_end(*work));
        }
        self.wait_until(until);
    }

    fn wait_for_end(&mut self, work: u64) -> u64 {
        loop {
            if let Some(end) = self.timeline.end_of(work) {
                return end;
            }
            match self.timeline.next_host_function() {
                Some(next) if self.clock.pace() == ClockMode::Virtual => self.advance_to(next),
                _ => self.wait_for_change(),
            }
        }
    }

    /// Waits until the launch queue has a free slot.
    pub(crate) fn wait_for_slot(&mut self) {
        if self.has_free_slot() {
            return;
        }
        self.log.blocked_calls += 1;
        while !self.has_free_slot() {
            match (
                self.timeline.first_end(),
                self.timeline.next_host_function(),
            ) {
                (Some(at), _) => self.wait_until(at),
                (None, Some(at)) if self.clock.pace() == ClockMode::Virtual => self.advance_to(at),
                (None, _) => self.wait_for_change(),
            }
        }
    }

    /// Waits until the clock shows `at`.
    pub(crate) fn wait_until(&mut self, at: u64) {
        loop {
            let left = at.saturating_sub(self.clock.now());
            match (left, self.clock.pace()) {
                (0, _) => return,
                (_, ClockMode::Virtual) => self.advance_to(at),
                // Sleep less than asked for, because a sleep may overrun; spin for the rest.
                (200_000.., ClockMode::Real) => {
                    self.without_lock(|| std::thread::sleep(Duration::from_nanos(left - 150_000)));
                }
                (_, ClockMode::Real) => self.without_lock(std::thread::yield_now),
            }
        }
    }

    /// Moves the clock, unless its pace is real, and lets the host functions on the way run.
    pub(crate) fn advance_to(&mut self, at: u64) {
        loop {
            match self.timeline.next_host_function() {
                Some(next) if next <= at && !thread::is_worker() => {
                    self.clock.move_to(next);
                    super::worker::wake();
                    self.wait_for_change();
                }
                _ if self.timeline.running.is_some() && !thread::is_worker() => {
                    self.wait_for_change();
                }
                _ => break,
            }
        }
        self.clock.move_to(at);
        notify_all();
    }
}

/// Notifies all threads that wait for a change of the state.
pub(crate) fn notify_all() {
    CHANGED.notify_all();
}

fn lock() -> MutexGuard<'static, DriverState> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Deref for LockedState {
    type Target = DriverState;

    fn deref(&self) -> &DriverState {
        self.guard.as_ref().expect("a wait gives the lock back")
    }
}

impl DerefMut for LockedState {
    fn deref_mut(&mut self) -> &mut DriverState {
        self.guard.as_mut().expect("a wait gives the lock back")
    }
}
