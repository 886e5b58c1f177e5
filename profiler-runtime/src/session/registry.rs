//! All windows that are open, or closed and not yet complete. Its lock is held for moments only, by the threads that
//! open and close windows and by the thread that fills them.

use std::sync::{Arc, MutexGuard};

use super::Options;
use super::kernels;
use super::live::Session;
use super::window::{WindowClose, WindowSpec};
use crate::cuda;
use crate::sync::Lock;

/// A window and its session.
pub(super) struct RegisteredWindow {
    pub(super) spec: WindowSpec,
    pub(super) session: Arc<Session>,
    /// Set when the window closes.
    pub(super) closing: Option<WindowClose>,
}

#[derive(Default)]
pub(super) struct WindowRegistry {
    pub(super) entries: Vec<RegisteredWindow>,
    /// Sessions that open no more windows; their handlers' threads end after the last window.
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
    /// Adds a window and returns its id.
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
        let options = || self.entries.iter().map(|entry| entry.spec.options);
        cuda::want_records(options().any(|options| options.cuda));
        cuda::nvml::want(options().filter_map(|options| options.gpu_samples).min());
        kernels::windows_want(options().any(Options::has_kernels));
    }
}
