//! The gate that the resolver passes to call the driver, closed when the process exits.

use profiler_host::sync::primitive::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use profiler_host::sync::primitive::atomic::fence;
use profiler_host::sync::primitive::{AtomicBool, AtomicU64, const_unless_loom};

/// Tells the exit handler whether the resolver may be inside the driver.
///
/// The driver frees its objects at exit, and some drivers crash if a freed event is queried after that. So the exit
/// handler closes the gate and waits until the resolver is outside.
///
/// # Protocol
///
/// The resolver alone writes `entered_at`. The exit handler alone writes `is_closed`, once.
///
/// | resolver, [`enter`](Self::enter) | exit handler, [`close`](Self::close), [`is_occupied`](Self::is_occupied) |
/// |---|---|
/// | store `entered_at` | store `is_closed` |
/// | `SeqCst` fence | `SeqCst` fence |
/// | load `is_closed` | load `entered_at` |
///
/// Each side announces itself before it looks at the other (Dekker's algorithm). The two fences have one order that
/// both threads agree on, and the load after the later fence sees the store before the earlier one. So either the
/// resolver finds the gate closed and stays outside, or the exit handler finds it occupied and waits. Release and
/// acquire would not do: each processor may keep its store in its store buffer until after its load, and both could
/// pass.
///
/// Leaving is a release store that [`is_occupied`](Self::is_occupied) acquires: an exit handler that finds the gate
/// unoccupied comes after all driver calls of the resolver.
#[derive(Debug)]
pub(crate) struct ExitGate {
    /// When the resolver entered, in ticks; zero while it is outside.
    entered_at: AtomicU64,
    is_closed: AtomicBool,
}

/// The resolver's stay inside; it leaves when this is dropped, by a panic too.
#[derive(Debug)]
pub(crate) struct Inside<'a>(&'a ExitGate);

impl ExitGate {
    const_unless_loom! {
        /// Creates an open gate.
        pub(crate) fn new() -> Self {
            Self {
                entered_at: AtomicU64::new(0),
                is_closed: AtomicBool::new(false),
            }
        }
    }

    /// Enters the gate at the time `now` in ticks. Returns `None` if it is closed: the driver must not be called.
    ///
    /// One thread at a time may be inside.
    pub(crate) fn enter(&self, now: u64) -> Option<Inside<'_>> {
        self.entered_at.store(now.max(1), Relaxed);
        fence(SeqCst);
        let inside = Inside(self);
        (!self.is_closed.load(Relaxed)).then_some(inside)
    }

    /// Closes the gate for good. The resolver may still be inside.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Relaxed);
        fence(SeqCst);
    }

    /// Returns `true` once the gate has been closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Relaxed)
    }

    /// Returns `true` if the resolver may be inside. After [`close`](Self::close), `false` means that it stays outside.
    pub(crate) fn is_occupied(&self) -> bool {
        self.entered_at.load(Acquire) != 0
    }

    /// Returns when the resolver entered, in ticks, or `None` if it is outside.
    pub(crate) fn entered_at(&self) -> Option<u64> {
        Some(self.entered_at.load(Relaxed)).filter(|ticks| *ticks != 0)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.entered_at.store(0, Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_closed_gate_lets_nothing_in() {
        let gate = ExitGate::new();
        let inside = gate.enter(7);
        assert_eq!((inside.is_some(), gate.entered_at()), (true, Some(7)));
        gate.close();
        assert!(gate.is_closed() && gate.is_occupied());
        drop(inside);
        assert!(!gate.is_occupied());
        assert!(gate.enter(8).is_none() && !gate.is_occupied());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    #[test]
    fn the_driver_is_never_called_after_the_exit_handler_found_the_gate_unoccupied() {
        loom::model(|| {
            // Loom fails the test if a read of the resolver and the write of the exit handler are concurrent.
            let state = Arc::new((ExitGate::new(), UnsafeCell::new("alive")));
            let shared = Arc::clone(&state);
            let resolver = thread::spawn(move || {
                let (gate, driver) = &*shared;
                for round in 1..=2 {
                    let Some(_inside) = gate.enter(round) else {
                        return;
                    };
                    // SAFETY: the gate keeps the write of the exit handler away, which is what is tested.
                    driver.with(|driver| assert_eq!(unsafe { *driver }, "alive"));
                }
            });
            let (gate, driver) = &*state;
            gate.close();
            if !gate.is_occupied() {
                // SAFETY: as above.
                driver.with_mut(|driver| unsafe { *driver = "freed" });
            }
            let _ = resolver.join();
        });
    }
}
