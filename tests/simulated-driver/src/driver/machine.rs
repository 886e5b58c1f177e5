//! The state of the driver behind one lock, and how a call waits without holding it.

use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use std::collections::BTreeMap;

use super::capture::Capture;
use super::clock::{Clock, Pace};
use super::code::{CONTEXT_IS_DESTROYED, Code, INVALID_HANDLE};
use super::context::{Context, Device};
use super::event::Event;
use super::graph::{Exec, Graph};
use super::kernel::{Function, Module};
use super::memory::Memory;
use super::settings::Settings;
use super::slab::{Kind, Missing, Slab};
use super::stream::Stream;
use super::task::Join;
use super::thread;
use super::timeline::Timeline;
use super::truth::Truth;

static MACHINE: LazyLock<Mutex<Machine>> = LazyLock::new(|| Mutex::new(Machine::new()));
/// Told when an end became known, the clock moved, or something was released.
static CHANGED: Condvar = Condvar::new();

/// The driver and its devices.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) initialised: bool,
    /// The entry point that is being called.
    pub(crate) call: &'static str,
    /// Rises with each `release`.
    pub(crate) releases: u64,
    /// Rises with each context and stream.
    pub(crate) last_id: u64,
    pub(crate) devices: Vec<Device>,
    pub(crate) contexts: Slab<Context>,
    pub(crate) streams: Slab<Stream>,
    pub(crate) events: Slab<Event>,
    pub(crate) captures: BTreeMap<u64, Capture>,
    pub(crate) graphs: Slab<Graph>,
    pub(crate) execs: Slab<Exec>,
    pub(crate) modules: Slab<Module>,
    pub(crate) functions: Slab<Function>,
    pub(crate) memory: Memory,
    pub(crate) timeline: Timeline,
    pub(crate) truth: Truth,
}

impl Machine {
    fn new() -> Self {
        Self {
            settings: Settings::default(),
            clock: Clock::new(),
            initialised: false,
            call: "",
            releases: 0,
            last_id: 0,
            devices: Vec::new(),
            contexts: Slab::new(Kind::Context),
            streams: Slab::new(Kind::Stream),
            events: Slab::new(Kind::Event),
            captures: BTreeMap::new(),
            graphs: Slab::new(Kind::Graph),
            execs: Slab::new(Kind::Exec),
            modules: Slab::new(Kind::Module),
            functions: Slab::new(Kind::Function),
            memory: Memory::default(),
            timeline: Timeline::default(),
            truth: Truth::new(),
        }
    }

    /// Begins anew, as if just loaded; the clock goes on.
    pub(crate) fn reset(&mut self) {
        let releases = self.releases + 1;
        let mut clock = std::mem::replace(&mut self.clock, Clock::new());
        clock.set_pace(Pace::Real);
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

    /// Notes the use of a handle that leads nowhere, and says what the driver answers.
    pub(crate) fn missing(&mut self, missing: Missing, handle: usize) -> Code {
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
        self.truth.misuse(call, what, handle);
    }
}

/// The machine, locked for this thread.
pub(crate) struct Locked {
    /// `None` only while a wait holds it.
    guard: Option<MutexGuard<'static, Machine>>,
}

impl Locked {
    pub(crate) fn new() -> Self {
        Self {
            guard: Some(lock()),
        }
    }

    /// Waits until somebody changed something.
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

    /// Waits for the next `release`.
    pub(crate) fn wait_for_release(&mut self) {
        let releases = self.releases;
        while self.releases == releases {
            self.wait_for_change();
        }
    }

    /// Waits until all of `join` is over.
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
                Some(next) if self.clock.pace() == Pace::Virtual => self.advance_to(next),
                _ => self.wait_for_change(),
            }
        }
    }

    /// Waits until the launch queue has a place, as calls that need one do.
    pub(crate) fn wait_for_room(&mut self) {
        if self.has_room() {
            return;
        }
        self.truth.blocked_calls += 1;
        while !self.has_room() {
            match (
                self.timeline.first_end(),
                self.timeline.next_host_function(),
            ) {
                (Some(at), _) => self.wait_until(at),
                (None, Some(at)) if self.clock.pace() == Pace::Virtual => self.advance_to(at),
                (None, _) => self.wait_for_change(),
            }
        }
    }

    fn wait_until(&mut self, at: u64) {
        loop {
            let left = at.saturating_sub(self.clock.now());
            match (left, self.clock.pace()) {
                (0, _) => return,
                (_, Pace::Virtual) => self.advance_to(at),
                (_, Pace::Manual) => self.wait_for_change(),
                // A sleep may take this much longer than asked for.
                (200_000.., Pace::Real) => {
                    self.without_lock(|| std::thread::sleep(Duration::from_nanos(left - 150_000)));
                }
                (_, Pace::Real) => self.without_lock(std::thread::yield_now),
            }
        }
    }

    /// Moves a clock that is not real, and lets the host functions on the way run.
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
        tell();
    }
}

/// Tells all that wait that something changed.
pub(crate) fn tell() {
    CHANGED.notify_all();
}

fn lock() -> MutexGuard<'static, Machine> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Deref for Locked {
    type Target = Machine;

    fn deref(&self) -> &Machine {
        self.guard.as_ref().expect("a wait gives the lock back")
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Machine {
        self.guard.as_mut().expect("a wait gives the lock back")
    }
}
