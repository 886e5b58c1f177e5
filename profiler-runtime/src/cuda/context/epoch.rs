//! Which of the contexts that a handle has stood for an event belongs to.

use profiler_host::sync::primitive::atomic::Ordering::{Acquire, Relaxed, Release};
use profiler_host::sync::primitive::{AtomicU32, AtomicU64, const_unless_loom};

/// The epoch of a context handle.
///
/// The driver reuses the handle of a destroyed context, and a device reset replaces a context under its handle. The
/// contexts that a handle has stood for, one after another, are its epochs. Events are destroyed with their context,
/// and some drivers crash when they are given such an event, so each event pair carries the epoch in which it was made.
///
/// Drivers since CUDA 12 number contexts. The saved [`id`](Self::id) of the current epoch tells the epochs apart:
///
/// 1. A measured thread reads an id from the driver that differs from the saved one, right before it would record an
///    event. It records nothing, and marks the context as suspect; other threads see that mark and record nothing
///    either.
/// 2. The resolver confirms it, and calls [`advance`](Self::advance): it increments `epoch`, and stores zero in `id`
///    with `Release`.
/// 3. The next thread that reads the driver's id loads the zero, and adopts the driver's id by exchange.
///
/// A thread may record a pair if first [`is_other`](Self::is_other) has returned `false`, and then the pair's epoch
/// equals [`current`](Self::current). Suppose the pair is one of an earlier epoch. The driver's id was then adopted
/// after the resolver's store of zero, by this thread or another one. This thread has loaded the id with `Acquire`. It
/// has loaded the zero itself, or the value of the adopting exchange, which continues the release sequence of the zero.
/// Either way the load synchronizes with the store of zero, and the thread sees the incremented epoch. In the other
/// order the check would be useless: an epoch that was equal when it was read may be outdated when the id is compared.
///
/// A thread may adopt an id that it read before a reset, after the resolver has advanced the epoch. The next thread then
/// finds another id, and the epoch advances once more: some scopes are lost, and no destroyed event is recorded.
#[derive(Debug)]
pub(crate) struct Epoch {
    /// Incremented by the resolver only.
    epoch: AtomicU32,
    /// The driver's id of the current epoch; zero if it is not known. No context has the id zero.
    id: AtomicU64,
}

impl Epoch {
    const_unless_loom! {
        /// Epoch zero, whose id is not known.
        pub(crate) fn new() -> Self {
            Self {
                epoch: AtomicU32::new(0),
                id: AtomicU64::new(0),
            }
        }
    }

    /// Returns the number of the current epoch.
    #[inline]
    pub(crate) fn current(&self) -> u32 {
        self.epoch.load(Relaxed)
    }

    /// Returns `true` if the driver's id of the handle differs from the saved one. Adopts it if none is saved.
    #[inline]
    pub(crate) fn is_other(&self, id: u64) -> bool {
        let known = self.id.load(Acquire);
        if known == 0 {
            self.adopt(id)
        } else {
            known != id
        }
    }

    /// Saves the id of the current epoch. Returns `true` if another thread has just saved a different one.
    #[cold]
    #[inline(never)]
    fn adopt(&self, id: u64) -> bool {
        let known = self.id.compare_exchange(0, id, Acquire, Acquire);
        known.is_err_and(|known| known != id)
    }

    /// Begins the next epoch. Calls `reset` before any thread can adopt the next id, so that such a thread sees what
    /// `reset` has stored.
    pub(crate) fn advance(&self, reset: impl FnOnce()) {
        self.epoch.fetch_add(1, Relaxed);
        reset();
        self.id.store(0, Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_other_until_the_epoch_advances() {
        let epoch = Epoch::new();
        assert!(!epoch.is_other(7), "adopts the first id");
        assert!(epoch.is_other(8));
        assert_eq!(epoch.current(), 0);
        epoch.advance(|| ());
        assert_eq!(epoch.current(), 1);
        assert!(!epoch.is_other(8), "adopts the next id");
        assert!(epoch.is_other(7));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::thread;

    use super::*;
    use profiler_host::sync::primitive::Arc;

    /// The device was reset, so that the driver's id is 2. Returns `true` if a pair of epoch zero may be recorded.
    fn records_old_pair(epoch: &Epoch) -> bool {
        !epoch.is_other(2) && epoch.current() == 0
    }

    #[test]
    fn no_thread_records_a_pair_of_an_earlier_epoch() {
        loom::model(|| {
            let epoch = Arc::new(Epoch::new());
            assert!(!epoch.is_other(1));
            let measured = [(); 2].map(|()| {
                let epoch = Arc::clone(&epoch);
                thread::spawn(move || records_old_pair(&epoch))
            });
            epoch.advance(|| ());
            for thread in measured {
                assert!(!thread.join().unwrap(), "a destroyed event is recorded");
            }
        });
    }

    #[test]
    fn a_thread_of_the_new_epoch_sees_what_was_reset() {
        loom::model(|| {
            let epoch = Arc::new(Epoch::new());
            assert!(!epoch.is_other(1));
            let pairs = Arc::new(AtomicU32::new(9));
            let measured = {
                let (epoch, pairs) = (Arc::clone(&epoch), Arc::clone(&pairs));
                thread::spawn(move || (!epoch.is_other(2)).then(|| pairs.load(Relaxed)))
            };
            epoch.advance(|| pairs.store(0, Relaxed));
            assert_ne!(measured.join().unwrap(), Some(9), "counts of the old epoch");
        });
    }
}
