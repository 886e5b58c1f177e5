//! A thread of the profiler's own: started when it is first needed, never ended, called when there is much to do.
//!
//! A panic in one is a fault of the profiler's. It is caught at the thread's top and said once, what the thread held is
//! counted as lost by the destructors of its state, and the thread goes on with a new state. One that panics again and
//! again ends, and whoever waits for it is told.

use std::io;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::Thread;

use crate::diagnostics;
use crate::diagnostics::catch_own_panic;
use crate::process::fork;
use crate::process::thread;
use crate::sync::ReentrancyGuard;
use crate::sync::{Lock, RaceCell};

/// After so many panics a thread goes on; one more, and it ends.
const MAX_PANICS: u32 = 8;

pub(crate) struct Background {
    name: &'static str,
    run: fn(),
    /// Called on the thread when it ends after too many panics.
    ended: fn(),
    thread: RaceCell<Thread>,
    /// Held by whoever starts it.
    starting: Lock<()>,
    /// Whether it could not be started, or has ended after too many panics.
    missing: AtomicBool,
    /// Whether somebody has called it already.
    woken: AtomicBool,
}

impl Background {
    pub(crate) const fn new(name: &'static str, run: fn(), ended: fn()) -> Self {
        Self {
            name,
            run,
            ended,
            thread: RaceCell::new(),
            starting: Lock::new(()),
            missing: AtomicBool::new(false),
            woken: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.thread.get().is_some() && !self.is_missing()
    }

    /// Whether it could not be started or has ended, and nobody tries again.
    pub(crate) fn is_missing(&self) -> bool {
        self.missing.load(Relaxed)
    }

    /// Whether it ran and has ended, after too many panics.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.get().is_some() && self.is_missing()
    }

    /// Starts it if it is not running. Where it cannot be, it is said once `what` is missing then, and it is not tried
    /// again: a measured thread may ask at each call.
    pub(crate) fn ensure_started(&'static self, what: &str) -> bool {
        if self.is_running() {
            return true;
        }
        // A forked child has none of the profiler's threads, and starts none: it writes nothing.
        if self.is_missing() || fork::is_child() {
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
        diagnostics::warn_once(&format!(
            "the profiler's thread {} cannot be started ({error}): {what}",
            self.name
        ));
        false
    }

    /// Starts it if it is not running.
    ///
    /// # Errors
    ///
    /// The system's, where it starts no thread; another call tries again. One of its own where the thread has ended
    /// after too many panics.
    pub(crate) fn start(&'static self) -> io::Result<()> {
        if self.is_running() {
            return Ok(());
        }
        self.start_under(&self.starting.lock())
    }

    fn start_under(&'static self, _: &MutexGuard<'_, ()>) -> io::Result<()> {
        if self.is_running() {
            return Ok(());
        }
        if self.has_ended() {
            return Err(io::Error::other(format!(
                "the profiler's thread {} has ended after several panics",
                self.name
            )));
        }
        let spawned = thread::spawn(self.name, || self.live())?;
        let thread = self.thread.get_or_init(|| spawned);
        // Who called it before now has found nobody.
        thread.unpark();
        Ok(())
    }

    fn live(&self) {
        ReentrancyGuard::enter_permanently();
        if run_persistently(self.name, self.run) {
            return;
        }
        self.missing.store(true, Relaxed);
        (self.ended)();
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

/// Runs `work` on a thread of the profiler's own, and again after a panic, which is said; false where it panicked too
/// often to go on.
pub(crate) fn run_persistently(thread: &str, mut work: impl FnMut()) -> bool {
    for _ in 0..=MAX_PANICS {
        if catch_own_panic(&format!("its thread {thread} was at work"), &mut work).is_some() {
            return true;
        }
    }
    diagnostics::warn_once(&format!(
        "the profiler's thread {thread} has ended after {} panics: what it did is not done any more",
        MAX_PANICS + 1
    ));
    false
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::sync::mpsc::{Sender, channel};
    use std::time::Duration;

    use super::*;

    /// Reports each time that it begins, and panics the first times.
    fn begin(begun: &AtomicU32, panics: u32, told: &Lock<Option<Sender<u32>>>) {
        let time = begun.fetch_add(1, Relaxed) + 1;
        if let Some(told) = &*told.lock() {
            let _ = told.send(time);
        }
        if time <= panics {
            std::panic::panic_any("a test panics");
        }
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_thread_goes_on_after_a_panic_and_it_is_said() {
        static BEGUN: AtomicU32 = AtomicU32::new(0);
        static TOLD: Lock<Option<Sender<u32>>> = Lock::new(None);
        static THREAD: Background = Background::new(
            "goes-on",
            || {
                begin(&BEGUN, 3, &TOLD);
                thread_parks();
            },
            || {},
        );
        let (sender, receiver) = channel();
        *TOLD.lock() = Some(sender);
        assert!(THREAD.ensure_started("a test"));
        for time in 1..=4 {
            assert_eq!(receiver.recv_timeout(PATIENCE), Ok(time));
        }
        assert!(THREAD.is_running() && !THREAD.has_ended());
        let said = diagnostics::notices();
        assert!(said.iter().any(|said| said.contains("thread goes-on")));
    }

    #[test]
    fn a_thread_that_panics_again_and_again_ends_and_says_so() {
        static BEGUN: AtomicU32 = AtomicU32::new(0);
        static TOLD: Lock<Option<Sender<u32>>> = Lock::new(None);
        static THREAD: Background = Background::new(
            "panics",
            || begin(&BEGUN, u32::MAX, &TOLD),
            // The other end is told by what is dropped.
            || *TOLD.lock() = None,
        );
        let (sender, receiver) = channel();
        *TOLD.lock() = Some(sender);
        assert!(THREAD.ensure_started("a test"));
        let begun = std::iter::from_fn(|| receiver.recv_timeout(PATIENCE).ok());
        assert_eq!(begun.last(), Some(MAX_PANICS + 1));
        assert!(THREAD.has_ended() && THREAD.is_missing() && !THREAD.is_running());
        assert!(!THREAD.ensure_started("a test") && THREAD.start().is_err());
        // To call it wakes nobody, and does no harm.
        THREAD.wake();
        let said = diagnostics::notices();
        let ended = said
            .iter()
            .filter(|said| said.contains("thread panics has ended"));
        assert_eq!(ended.count(), 1);
    }

    fn thread_parks() {
        loop {
            std::thread::park();
        }
    }
}
