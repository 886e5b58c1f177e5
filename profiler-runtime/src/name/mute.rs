//! Whether a logger is called.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::diagnostics::DropReason;

/// Whether a logger is called, for one name or as a default one.
#[derive(Debug, Default)]
pub(crate) struct Mute(AtomicU8);

impl Mute {
    const SILENT_UNTIL_BACK: u8 = 1;
    const SILENT: u8 = 2;

    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// The reason for which entries are dropped now.
    pub(crate) fn reason(&self) -> Option<DropReason> {
        match self.0.load(Relaxed) {
            0 => None,
            Self::SILENT => Some(DropReason::LoggerPanicked),
            _ => Some(DropReason::LoggerBlocked),
        }
    }

    pub(crate) fn silence_until_back(&self) {
        let _ = self
            .0
            .compare_exchange(0, Self::SILENT_UNTIL_BACK, Relaxed, Relaxed);
    }

    pub(crate) fn back(&self) {
        let _ = self
            .0
            .compare_exchange(Self::SILENT_UNTIL_BACK, 0, Relaxed, Relaxed);
    }

    /// Silences the logger for good: it panicked.
    pub(crate) fn silence(&self) {
        self.0.store(Self::SILENT, Relaxed);
    }
}
