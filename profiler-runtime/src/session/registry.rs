//! All windows that are open, or closed and not yet complete. Its lock is held for moments only, by the threads that
//! open and close windows and by the thread that fills them.

use std::sync::Arc;

use profiler_host::sync::{Lock, Locked};

use super::SessionOptions;
use super::delivery::Delivery;
use super::kernels;
use super::window::{WindowClose, WindowSpec};
use crate::cuda;

/// A window, and where it is delivered.
pub(super) struct RegisteredWindow {
    pub(super) spec: WindowSpec,
    pub(super) delivery: Arc<Delivery>,
    /// Set when the window closes.
    pub(super) closing: Option<WindowClose>,
}

#[derive(Default)]
pub(super) struct WindowRegistry {
    pub(super) entries: Vec<RegisteredWindow>,
    /// Sessions that open no more windows, by their ids; their handlers' threads end after the last window.
    pub(super) ended: Vec<(u64, Arc<Delivery>)>,
    next: u64,
}

static REGISTRY: Lock<WindowRegistry> = Lock::new(WindowRegistry {
    entries: Vec::new(),
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
        self.entries.push(RegisteredWindow {
            spec: WindowSpec { id, ..spec },
            delivery: Arc::clone(delivery),
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
        kernels::windows_want(options().any(SessionOptions::has_kernels));
    }
}
