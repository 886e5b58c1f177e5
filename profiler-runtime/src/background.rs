//! A thread of the profiler's own: started when it is first needed, never ended, called when there is much to do.

use std::io;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::Thread;

use crate::health;
use crate::local::Busy;
use crate::process::{Lock, RaceCell, thread};

pub(crate) struct Background {
    name: &'static str,
    run: fn(),
    thread: RaceCell<Thread>,
    /// Held by whoever starts it.
    starting: Lock<()>,
    /// Whether it could not be started.
    missing: AtomicBool,
    /// Whether somebody has called it already.
    woken: AtomicBool,
}

impl Background {
    pub(crate) const fn new(name: &'static str, run: fn()) -> Self {
        Self {
            name,
            run,
            thread: RaceCell::new(),
            starting: Lock::new(()),
            missing: AtomicBool::new(false),
            woken: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.thread.get().is_some()
    }

    /// Whether it could not be started, and nobody tries again.
    pub(crate) fn is_missing(&self) -> bool {
        self.missing.load(Relaxed)
    }

    /// Starts it if it is not running. Where it cannot be, it is said once `what` is missing then, and it is not tried
    /// again: a measured thread may ask at each call.
    pub(crate) fn ensure_started(&self, what: &str) -> bool {
        if self.is_running() {
            return true;
        }
        if self.is_missing() {
            return false;
        }
        let error = {
            let starting = self.starting.lock();
            if self.is_missing() {
                return false;
            }
            let Err(error) = self.start_under(&starting) else {
                return true;
            };
            self.missing.store(true, Relaxed);
            error
        };
        health::notice(&format!(
            "the profiler's thread {} cannot be started ({error}): {what}",
            self.name
        ));
        false
    }

    /// Starts it if it is not running.
    ///
    /// # Errors
    ///
    /// The system's, where it starts no thread; another call tries again.
    pub(crate) fn start(&self) -> io::Result<()> {
        if self.is_running() {
            return Ok(());
        }
        self.start_under(&self.starting.lock())
    }

    fn start_under(&self, _: &MutexGuard<'_, ()>) -> io::Result<()> {
        if self.is_running() {
            return Ok(());
        }
        let run = self.run;
        let spawned = thread::spawn(self.name, move || {
            Busy::for_ever();
            run();
        })?;
        let thread = self.thread.get_or_init(|| spawned);
        // Who called it before now has found nobody.
        thread.unpark();
        Ok(())
    }

    /// Has it look soon. Cheap to call again and again.
    pub(crate) fn wake(&self) {
        if self.woken.load(Relaxed) || self.woken.swap(true, Relaxed) {
            return;
        }
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// On it, before it looks: whoever calls from now on calls it again.
    pub(crate) fn looks(&self) {
        self.woken.store(false, Relaxed);
    }
}
