//! Setting the profiler up and closing it down: the one place that knows all its parts.

mod control;
mod environment;
mod error;
mod exit;
mod flush;
mod init;

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

use crate::switch::{is_enabled, with_control};
use crate::sync::{Lock, ReentrancyGuard};
use crate::{clock, collect, cuda};

pub use environment::step;
pub use error::InitError;
pub use flush::{FlushReport, flush};
pub use init::{Builder, Profiler, builder, init};

/// Starts what the environment asks for, on the first call in the process: the default logger, the exit handler and the
/// session. Call sites call it when they decide, before they read the settings.
#[cold]
pub(crate) fn ensure_started() {
    /// Stored with `Release` after the default logger is set, and loaded with `Acquire`: a thread that finds it set
    /// finds the logger too.
    static STARTED: AtomicBool = AtomicBool::new(false);
    static STARTING: Lock<()> = Lock::new(());

    if cfg!(feature = "strip") || STARTED.load(Acquire) {
        return;
    }
    {
        // A default logger may allocate, and the allocator may be measured.
        let _guard = ReentrancyGuard::try_enter();
        let _starting = STARTING.lock();
        if STARTED.load(Acquire) {
            return;
        }
        let settings = with_control(|control| control.settings.clone());
        collect::set_default_from(&settings);
        collect::on_each_round(cuda::poll_discovery_if_active);
        STARTED.store(true, Release);
    }
    // With the lock released: what starts here may call measured code.
    exit::register();
    environment::begin(&with_control(|control| control.settings.session.clone()));
    if is_enabled() {
        clock::warn_if_fallback();
    }
}
