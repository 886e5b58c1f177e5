//! The profiler's threads.
//!
//! A panic in one of them is a bug in the profiler. It is caught at the top of the thread, with a warning; the
//! destructors of the thread's state count what it held as lost, and the thread starts over with new state. A thread
//! that keeps panicking ends, and notifies those who wait for it.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, Thread};
use std::time::Duration;

use crate::diagnostics::{self, user_code};
use crate::process::fork;
use crate::process::platform::Instant;
use crate::process::thread::spawn as spawn_thread;
use crate::sync::{Doze, Lock, Locked, RaceCell, ReentrancyGuard, SETTLED};

/// The number of panics after which a thread starts over; after one more it ends.
const MAX_PANICS: u32 = 8;

/// How calls of annotated functions on a background thread are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// They are not measured: the thread runs the profiler's own code, and loggers.
    Unmeasured,
    /// They are measured, as on a thread of the program.
    Measured,
}

/// Starts a thread that runs `work`, and runs it again after a panic. A panic for the ninth time ends the thread;
/// `on_failure` is called on it then.
///
/// # Errors
///
/// Returns the system's error if it starts no thread.
pub fn spawn(
    name: &'static str,
    calls: Calls,
    work: impl FnMut() + Send + 'static,
    on_failure: impl FnOnce() + Send + 'static,
) -> io::Result<Thread> {
    spawn_thread(name, move || {
        if calls == Calls::Unmeasured {
            ReentrancyGuard::enter_permanently();
        }
        let mut work = work;
        let has_finished = run_persistently(name, &mut work);
        if !has_finished {
            on_failure();
        }
        // It may own values of the program.
        user_code::drop_value(work);
    })
}

/// Runs `work`, and runs it again after a panic. Returns `false` if it panicked too often.
fn run_persistently(thread: &str, mut work: impl FnMut()) -> bool {
    for _ in 0..=MAX_PANICS {
        if user_code::call(&mut work).is_some() {
            return true;
        }
        diagnostics::warn_of_own_panic(&format!("its thread {thread} was at work"));
    }
    diagnostics::warn_once(&format!(
        "the profiler's thread {thread} has ended after {} panics: what it did is not done any more",
        MAX_PANICS + 1
    ));
    false
}

/// A thread that exists once in a process, is started when it is first needed, and sleeps between rounds of work.
///
/// # Wakeups
///
/// A round begins with [`clear_wakeup`](Self::clear_wakeup), then looks for work, then parks. [`wake`](Self::wake)
/// unparks the thread unless a wakeup is pending already, so that many calls cost one system call.
///
/// Work that is published under a lock which the round also takes is never missed. If the round's critical section
/// comes second, it sees the work. If it comes first, the lock orders `clear_wakeup` before `wake`, which then finds no
/// wakeup pending and unparks the thread.
///
/// Work in a ring is published without a lock. Relaxed operations do not order the push before the load in `wake`, so a
/// wakeup may be missed: a thread that drains rings parks with a timeout, which bounds the delay. Before it parks without
/// one, it [dozes](Doze), and whoever pushes calls [`wake_if_dozing`](Self::wake_if_dozing).
///
/// A wakeup before the handle is published in `thread` cannot unpark anything. The thread that starts this one unparks
/// it once after the publication, which makes up for it.
pub struct Background {
    name: &'static str,
    run: fn(),
    /// Called on the thread when it ends after too many panics.
    on_failure: fn(),
    thread: RaceCell<Thread>,
    /// Held by the thread that starts this one.
    starting: Lock<()>,
    /// `true` if the thread could not be started or has ended after too many panics.
    has_failed: AtomicBool,
    /// `true` from a wakeup until the thread begins its next round.
    wakeup_pending: AtomicBool,
    doze: Doze,
}

impl Background {
    /// Creates the description of a thread that calls `run` in rounds, and `on_failure` if it cannot be started or has ended
    /// after too many panics. Starts nothing.
    pub const fn new(name: &'static str, run: fn(), on_failure: fn()) -> Self {
        Self {
            name,
            run,
            on_failure,
            thread: RaceCell::new(),
            starting: Lock::new(()),
            has_failed: AtomicBool::new(false),
            wakeup_pending: AtomicBool::new(false),
            doze: Doze::new(),
        }
    }

    /// Returns `true` if the thread was started, and has not ended.
    pub fn is_running(&self) -> bool {
        self.thread.get().is_some() && !self.has_failed()
    }

    /// Returns `true` if the thread could not be started, or has ended: it is not started again.
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Relaxed)
    }

    /// Returns `true` if the thread ran and has ended after too many panics.
    pub fn has_ended(&self) -> bool {
        self.thread.get().is_some() && self.has_failed()
    }

    /// Starts the thread if it is not running. Returns `false` if it does not run.
    ///
    /// A failed start is not repeated, since measured threads call this often. It is warned of once; `consequence` says
    /// what is missing without the thread.
    pub fn ensure_started(&'static self, consequence: &str) -> bool {
        if self.is_running() {
            return true;
        }
        // A forked child has none of the profiler's threads, and must not start any: it writes nothing.
        if self.has_failed() || fork::is_child() {
            return false;
        }
        let error = {
            let starting = self.starting.lock();
            if self.has_failed() {
                return false;
            }
            let Err(error) = self.start_locked(&starting) else {
                return true;
            };
            self.has_failed.store(true, Relaxed);
            error
        };
        diagnostics::warn_once(&format!(
            "the profiler's thread {} cannot be started ({error}): {consequence}",
            self.name
        ));
        false
    }

    /// Starts the thread if it is not running.
    ///
    /// # Errors
    ///
    /// Returns the system's error if it starts no thread; a later call tries again. Returns an error too if the thread
    /// has ended after too many panics.
    pub fn start(&'static self) -> io::Result<()> {
        if self.is_running() {
            return Ok(());
        }
        self.start_locked(&self.starting.lock())
    }

    fn start_locked(&'static self, _starting: &Locked<'_, ()>) -> io::Result<()> {
        if self.is_running() {
            return Ok(());
        }
        if self.has_ended() {
            return Err(io::Error::other(format!(
                "the profiler's thread {} has ended after several panics",
                self.name
            )));
        }
        let fail = || {
            self.has_failed.store(true, Relaxed);
            (self.on_failure)();
        };
        let spawned = spawn(self.name, Calls::Unmeasured, self.run, fail)?;
        let thread = self.thread.get_or_init(|| spawned);
        // A `wake` before the handle was published found no thread to unpark.
        thread.unpark();
        Ok(())
    }

    /// Makes the thread begin a round soon. Many calls before that round cost about as much as one.
    pub fn wake(&self) {
        // Most calls find a wakeup pending: the load keeps them from writing the shared cache line.
        if self.wakeup_pending.load(Relaxed) || self.wakeup_pending.swap(true, Relaxed) {
            return;
        }
        self.unpark();
    }

    /// Makes the thread begin a round if it sleeps until something happens. Called after a push to a ring: for one that
    /// looks at its rings by itself, this is one load.
    #[inline(always)]
    pub fn wake_if_dozing(&self) {
        if self.doze.must_unpark() {
            self.unpark();
        }
    }

    #[cold]
    #[inline(never)]
    fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// Begins a round. Called by the thread itself, before it looks for work: a later `wake` unparks it again.
    pub fn clear_wakeup(&self) {
        self.wakeup_pending.store(false, Relaxed);
    }

    /// Returns how the thread sleeps between its rounds. Called by the thread itself, when it begins.
    pub fn sleeper(&'static self) -> Sleeper {
        self.doze.end();
        Sleeper {
            doze: &self.doze,
            dozes_since: Instant::now(),
            has_settled: false,
        }
    }
}

/// How a background thread sleeps between two rounds.
#[derive(Debug)]
pub struct Sleeper {
    doze: &'static Doze,
    /// When the thread announced that it dozes.
    dozes_since: Instant,
    /// The round before began at least [`SETTLED`] after the announcement: it was the last look.
    has_settled: bool,
}

impl Sleeper {
    /// Sleeps for this time, or until the thread is woken.
    pub fn sleep(&mut self, nap: Duration) {
        self.doze.end();
        thread::park_timeout(nap);
    }

    /// Sleeps until the thread is woken or something is pushed, for `at_most` if that is given. The round before has found
    /// nothing to do.
    pub fn doze(&mut self, at_most: Option<Duration>) {
        if !self.doze.is_dozing() {
            self.doze.begin();
            self.dozes_since = Instant::now();
            self.has_settled = false;
        }
        let settles_in = || SETTLED.saturating_sub(self.dozes_since.elapsed());
        let left = (!self.has_settled).then(settles_in);
        match left.into_iter().chain(at_most).min() {
            Some(time) => thread::park_timeout(time),
            None => thread::park(),
        }
        // Before the next round, which may be long, or not run for long.
        self.has_settled = self.dozes_since.elapsed() >= SETTLED;
    }

    /// [Sleeps](Self::sleep) for this time, or [dozes](Self::doze) if there is none.
    pub fn sleep_or_doze(&mut self, nap: Option<Duration>) {
        match nap {
            Some(nap) => self.sleep(nap),
            None => self.doze(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::sync::mpsc::{Sender, channel};

    /// Reports each time that it begins, and panics the first `panics` times.
    fn begin(begun: &AtomicU32, panics: u32, reports: &Lock<Option<Sender<u32>>>) {
        let time = begun.fetch_add(1, Relaxed) + 1;
        if let Some(reports) = &*reports.lock() {
            let _ = reports.send(time);
        }
        if time <= panics {
            std::panic::panic_any("a test panics");
        }
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_thread_starts_over_after_a_panic_with_a_warning() {
        static BEGUN: AtomicU32 = AtomicU32::new(0);
        static REPORTS: Lock<Option<Sender<u32>>> = Lock::new(None);
        static THREAD: Background = Background::new(
            "starts-over",
            || {
                begin(&BEGUN, 3, &REPORTS);
                thread_parks();
            },
            || {},
        );
        let (sender, receiver) = channel();
        *REPORTS.lock() = Some(sender);
        assert!(THREAD.ensure_started("a test"));
        for time in 1..=4 {
            assert_eq!(receiver.recv_timeout(PATIENCE), Ok(time));
        }
        assert!(THREAD.is_running() && !THREAD.has_ended());
        let warnings = diagnostics::notices();
        assert!(
            warnings
                .iter()
                .any(|known| known.contains("thread starts-over"))
        );
    }

    #[test]
    fn a_thread_that_keeps_panicking_ends_with_a_warning() {
        static BEGUN: AtomicU32 = AtomicU32::new(0);
        static REPORTS: Lock<Option<Sender<u32>>> = Lock::new(None);
        static THREAD: Background = Background::new(
            "panics",
            || begin(&BEGUN, u32::MAX, &REPORTS),
            // Disconnects the channel, which ends the loop below.
            || *REPORTS.lock() = None,
        );
        let (sender, receiver) = channel();
        *REPORTS.lock() = Some(sender);
        assert!(THREAD.ensure_started("a test"));
        let begun = std::iter::from_fn(|| receiver.recv_timeout(PATIENCE).ok());
        assert_eq!(begun.last(), Some(MAX_PANICS + 1));
        assert!(THREAD.has_ended() && THREAD.has_failed() && !THREAD.is_running());
        assert!(!THREAD.ensure_started("a test") && THREAD.start().is_err());
        // A wakeup of a thread that has ended has no effect.
        THREAD.wake();
        let warnings = diagnostics::notices();
        let ended = warnings
            .iter()
            .filter(|known| known.contains("thread panics has ended"));
        assert_eq!(ended.count(), 1);
    }

    #[test]
    fn a_thread_that_has_nothing_to_do_sleeps_until_something_is_pushed() {
        static ROUNDS: AtomicU32 = AtomicU32::new(0);
        static PUSHED: AtomicU32 = AtomicU32::new(0);
        static REPORTS: Lock<Option<Sender<u32>>> = Lock::new(None);
        static THREAD: Background = Background::new(
            "dozes",
            || {
                let mut sleeper = THREAD.sleeper();
                loop {
                    THREAD.clear_wakeup();
                    ROUNDS.fetch_add(1, Relaxed);
                    let pushed = PUSHED.swap(0, Relaxed);
                    if let Some(reports) = &*REPORTS.lock() {
                        let _ = reports.send(pushed);
                    }
                    sleeper.doze(None);
                }
            },
            || {},
        );
        let (sender, receiver) = channel();
        *REPORTS.lock() = Some(sender);
        assert!(THREAD.ensure_started("a test"));
        for _ in 0..3 {
            // Spurious wakeups aside, these are all its rounds.
            while receiver.recv_timeout(10 * SETTLED).is_ok() {}
            let rounds = ROUNDS.load(Relaxed);
            PUSHED.store(7, Relaxed);
            THREAD.wake_if_dozing();
            let found = receiver.iter().find(|pushed| *pushed > 0);
            assert_eq!(found, Some(7));
            assert!(ROUNDS.load(Relaxed) > rounds);
        }
    }

    #[test]
    fn only_threads_that_measure_calls_are_measured() {
        for (calls, is_unmeasured) in [(Calls::Unmeasured, true), (Calls::Measured, false)] {
            let (sender, receiver) = channel();
            let work = move || {
                let _ = sender.send(ReentrancyGuard::is_entered());
            };
            spawn("calls", calls, work, || ()).expect("a thread");
            assert_eq!(receiver.recv_timeout(PATIENCE), Ok(is_unmeasured));
        }
    }

    #[test]
    fn what_a_thread_owns_may_panic_when_it_is_dropped() {
        struct PanicsInDrop(Sender<()>);

        impl Drop for PanicsInDrop {
            fn drop(&mut self) {
                let _ = self.0.send(());
                std::panic::panic_any("a test panics");
            }
        }

        let (sender, receiver) = channel();
        let owned = PanicsInDrop(sender);
        let work = move || {
            let _ = &owned;
        };
        spawn("drops", Calls::Measured, work, || ()).expect("a thread");
        assert_eq!(receiver.recv_timeout(PATIENCE), Ok(()));
    }

    fn thread_parks() {
        loop {
            std::thread::park();
        }
    }
}
