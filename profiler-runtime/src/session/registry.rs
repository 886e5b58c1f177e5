//! The windows that are open, or closed and not complete yet; looked at by whoever opens and closes them and by
//! the thread that fills them, for moments.

use std::sync::{Arc, MutexGuard};

use super::live::Session;
use super::window::{WindowClose, WindowSpec};
use crate::cuda;
use crate::sync::Lock;

/// One of them.
pub(super) struct RegisteredWindow {
    pub(super) spec: WindowSpec,
    pub(super) session: Arc<Session>,
    /// How it ended.
    pub(super) closing: Option<WindowClose>,
}

#[derive(Default)]
pub(super) struct WindowRegistry {
    pub(super) entries: Vec<RegisteredWindow>,
    /// Sessions that open no more windows, and whose handlers' threads are to end.
    pub(super) ended: Vec<Arc<Session>>,
    next: u64,
}

static REGISTRY: Lock<WindowRegistry> = Lock::new(WindowRegistry {
    entries: Vec::new(),
    ended: Vec::new(),
    next: 1,
});
pub(super) fn registry() -> MutexGuard<'static, WindowRegistry> {
    REGISTRY.lock()
}

impl WindowRegistry {
    /// Adds a window: its number.
    pub(super) fn add(&mut self, session: &Arc<Session>, spec: WindowSpec) -> u64 {
        let id = self.next;
        self.next += 1;
        self.entries.push(RegisteredWindow {
            spec: WindowSpec { id, ..spec },
            session: Arc::clone(session),
            closing: None,
        });
        self.count();
        id
    }

    pub(super) fn get(&mut self, id: u64) -> Option<&mut RegisteredWindow> {
        self.entries.iter_mut().find(|entry| entry.spec.id == id)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<RegisteredWindow> {
        let place = self.entries.iter().position(|entry| entry.spec.id == id)?;
        let removed = self.entries.remove(place);
        self.count();
        Some(removed)
    }

    fn count(&self) {
        let mut entries = self.entries.iter();
        cuda::want_records(entries.any(|entry| entry.spec.options.cuda));
    }
}
