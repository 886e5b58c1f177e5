//! All windows that are open, or closed and not yet delivered. Its lock is held for moments only, however many windows
//! there are, by the threads that open and close windows and by the thread that fills them.

use std::mem;
use std::sync::Arc;

use profiler_host::sync::{Lock, Locked};

use super::SessionOptions;
use super::delivery::Delivery;
use super::kernels;
use super::window::{WindowClose, WindowSpec};
use crate::cuda;

/// The most windows of one session that are open, or closed and not delivered. Their scopes have yet to be sorted: a
/// program that makes windows faster than that is done, or while no processor is free for it, makes no more of them.
pub(super) const MAX_WINDOWS: usize = 1 << 14;

/// A window that is open, and where it will be delivered.
pub(super) struct OpenWindow {
    pub(super) spec: WindowSpec,
    delivery: Arc<Delivery>,
}

/// Windows that have closed. Boxed, so that the list grows in no time while the registry is locked.
#[allow(clippy::vec_box, reason = "a thousand of them are moved at once")]
pub(super) type ClosedWindows = Vec<Box<ClosedWindow>>;

/// A window that has closed, and where it is delivered.
pub(super) struct ClosedWindow {
    pub(super) spec: WindowSpec,
    pub(super) delivery: Arc<Delivery>,
    pub(super) closing: WindowClose,
}

/// How many windows a session has.
struct SessionWindows {
    session: u64,
    options: SessionOptions,
    /// Those that are open, or closed and not delivered.
    windows: usize,
}

#[derive(Default)]
pub(super) struct WindowRegistry {
    /// Those of each session at most one.
    open: Vec<OpenWindow>,
    /// Those that the thread that fills them has not taken, in the order in which they closed.
    closed: ClosedWindows,
    /// Closed windows that have not been delivered, with those that were taken.
    waiting: usize,
    /// The sessions that have windows.
    sessions: Vec<SessionWindows>,
    /// Sessions that open no more windows, by their ids; their handlers' threads end after the last window.
    pub(super) ended: Vec<(u64, Arc<Delivery>)>,
    next: u64,
}

static REGISTRY: Lock<WindowRegistry> = Lock::new(WindowRegistry {
    open: Vec::new(),
    closed: Vec::new(),
    waiting: 0,
    sessions: Vec::new(),
    ended: Vec::new(),
    next: 1,
});
pub(super) fn registry() -> Locked<'static, WindowRegistry> {
    REGISTRY.lock()
}

impl WindowRegistry {
    /// Adds a window and returns its id.
    pub(super) fn add(&mut self, delivery: &Arc<Delivery>, spec: WindowSpec) -> u64 {
        let id = self.next;
        self.next += 1;
        let (session, options) = (spec.session, spec.options);
        self.open.push(OpenWindow {
            spec: WindowSpec { id, ..spec },
            delivery: Arc::clone(delivery),
        });
        match self.of(session) {
            Some(known) => known.windows += 1,
            None => self.sessions.push(SessionWindows {
                session,
                options,
                windows: 1,
            }),
        }
        self.count();
        id
    }

    /// Returns an open window.
    pub(super) fn get(&mut self, id: u64) -> Option<&mut OpenWindow> {
        self.open.iter_mut().find(|window| window.spec.id == id)
    }

    /// Closes an open window, whose `spec` says when it closed.
    pub(super) fn close(&mut self, id: u64, closing: WindowClose) {
        if let Some(place) = self.open.iter().position(|window| window.spec.id == id) {
            let OpenWindow { spec, delivery } = self.open.remove(place);
            self.waiting += 1;
            self.closed.push(Box::new(ClosedWindow {
                spec,
                delivery,
                closing,
            }));
        }
    }

    /// Removes an open window.
    pub(super) fn discard(&mut self, id: u64) {
        if let Some(place) = self.open.iter().position(|window| window.spec.id == id) {
            let session = self.open.remove(place).spec.session;
            self.forget_one(session);
        }
    }

    /// Takes the windows that have closed, and calls `see` with those that are open.
    pub(super) fn take_closed(&mut self, see: impl FnMut(&WindowSpec)) -> ClosedWindows {
        self.open.iter().map(|window| &window.spec).for_each(see);
        mem::take(&mut self.closed)
    }

    /// Puts windows back that were taken and not delivered. They closed before the others.
    pub(super) fn put_back(&mut self, closed: ClosedWindows) {
        self.closed.splice(0..0, closed);
    }

    /// Returns the windows that have closed and were not taken.
    pub(super) fn closed_mut(&mut self) -> impl Iterator<Item = &mut ClosedWindow> {
        self.closed.iter_mut().map(|window| &mut **window)
    }

    /// Notes that a window that was taken is delivered.
    pub(super) fn delivered(&mut self, session: u64) {
        if self.of(session).is_some() {
            self.waiting -= 1;
        }
        self.forget_one(session);
    }

    /// Returns how many windows of a session are open, or closed and not delivered.
    pub(super) fn windows_of(&self, session: u64) -> usize {
        let mut known = self.sessions.iter();
        known
            .find(|known| known.session == session)
            .map_or(0, |known| known.windows)
    }

    /// Returns `true` if any window is open, or closed and not delivered.
    pub(super) fn has_windows(&self) -> bool {
        !self.sessions.is_empty()
    }

    /// Returns `true` if any closed window has not been delivered.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    fn of(&mut self, session: u64) -> Option<&mut SessionWindows> {
        let mut known = self.sessions.iter_mut();
        known.find(|known| known.session == session)
    }

    fn forget_one(&mut self, session: u64) {
        let Some(known) = self.of(session) else {
            return;
        };
        known.windows -= 1;
        if known.windows == 0 {
            self.sessions.retain(|known| known.windows > 0);
            self.count();
        }
    }

    fn count(&self) {
        let options = || self.sessions.iter().map(|known| known.options);
        cuda::want_records(options().any(|options| options.cuda));
        cuda::nvml::want(options().filter_map(|options| options.gpu_samples).min());
        kernels::windows_want(options().any(SessionOptions::has_kernels));
    }
}
