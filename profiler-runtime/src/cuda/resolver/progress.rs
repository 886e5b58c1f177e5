//! How far the resolver has come, for threads that wait for the GPU times of a window.

use profiler_host::sync::primitive::atomic::Ordering::{Acquire, Release};
use profiler_host::sync::primitive::{AtomicU64, const_unless_loom};

/// The last round of the resolver that emptied the rings, as one thread publishes it and others read it.
///
/// # Protocol
///
/// A round publishes two times. They are separate atomics, so a reader may see those of different rounds. The writer
/// stores `oldest_unread` first and `drained_at` second. Readers load `drained_at` first, with acquire, so they see an
/// `oldest_unread` of the same round or of a later one. Both combinations are right: a later round has drained
/// everything that the earlier one had.
///
/// The opposite combination would be wrong: a new `drained_at` promises that the rings were emptied, while an old
/// `oldest_unread` ignores the scopes that came out of them and wait for the device.
#[derive(Debug)]
pub(crate) struct ReadProgress {
    /// When the round began, in ticks. Every scope that was in a ring by then has been taken out.
    drained_at: AtomicU64,
    /// When the oldest scope that waited for the device after the round had ended on the CPU, in ticks; `u64::MAX` if
    /// none waited.
    oldest_unread: AtomicU64,
}

/// How far the resolver had come at some moment. GPU times that it had read by then have been delivered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadSoFar {
    drained_at: u64,
    oldest_unread: u64,
}

impl ReadProgress {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self {
                drained_at: AtomicU64::new(0),
                oldest_unread: AtomicU64::new(u64::MAX),
            }
        }
    }

    /// Publishes a round that emptied the rings.
    pub(crate) fn publish(&self, drained_at: u64, oldest_unread: u64) {
        self.oldest_unread.store(oldest_unread, Release);
        self.drained_at.store(drained_at, Release);
    }

    pub(crate) fn read(&self) -> ReadSoFar {
        let drained_at = self.drained_at.load(Acquire);
        ReadSoFar {
            drained_at,
            oldest_unread: self.oldest_unread.load(Acquire),
        }
    }
}

impl ReadSoFar {
    /// The state of a resolver that reads nothing any more.
    pub(crate) const EVERYTHING: Self = Self {
        drained_at: u64::MAX,
        oldest_unread: u64::MAX,
    };

    /// Returns `true` if the GPU times of all scopes that ended at `end` or before have been read or given up, provided
    /// that the scopes were in their rings by the time `since`. Both times are in ticks.
    pub(crate) fn includes(&self, end: u64, since: u64) -> bool {
        self.drained_at >= since && self.oldest_unread > end
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_included_once_its_ring_was_drained_and_nothing_older_waits() {
        let progress = ReadProgress::new();
        assert!(!progress.read().includes(10, 12), "no round yet");
        progress.publish(11, u64::MAX);
        assert!(!progress.read().includes(10, 12), "the round was too early");
        progress.publish(12, 10);
        assert!(!progress.read().includes(10, 12), "the device is not done");
        progress.publish(13, 11);
        assert!(progress.read().includes(10, 12));
        assert!(ReadSoFar::EVERYTHING.includes(u64::MAX - 1, u64::MAX));
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    #[test]
    fn a_drained_scope_is_not_included_while_it_waits_for_the_device() {
        loom::model(|| {
            let progress = Arc::new(ReadProgress::new());
            let shared = Arc::clone(&progress);
            // The scope ended at 5. The round at 10 takes it out of its ring, the round at 20 reads its time.
            let is_read = Arc::new(loom::sync::atomic::AtomicBool::new(false));
            let read = Arc::clone(&is_read);
            let resolver = thread::spawn(move || {
                shared.publish(10, 5);
                read.store(true, loom::sync::atomic::Ordering::Release);
                shared.publish(20, u64::MAX);
            });
            if progress.read().includes(5, 6) {
                assert!(is_read.load(loom::sync::atomic::Ordering::Acquire));
            }
            let _ = resolver.join();
        });
    }
}
