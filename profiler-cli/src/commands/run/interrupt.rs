//! Ctrl-C while a program runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Notes Ctrl-C instead of ending this program at once. The program that runs gets the signal too, and ends as it ends;
/// then nothing else is started. A second Ctrl-C ends this program.
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub(super) fn watch() -> Self {
        let received = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        {
            use signal_hook::consts::SIGINT;
            use signal_hook::flag::{register, register_conditional_shutdown};
            // The first of these acts on the second signal, since the other one sets the flag after it. Without them,
            // the signal ends this program at once, and the files are complete all the same.
            let _ = register_conditional_shutdown(SIGINT, 130, Arc::clone(&received));
            let _ = register(SIGINT, Arc::clone(&received));
        }
        Self(received)
    }

    pub(super) fn was_received(&self) -> bool {
        self.0.load(Relaxed)
    }
}
