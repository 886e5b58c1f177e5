//! The writing end of a thread's ring of recorded scopes, which the thread that sorts them into windows drains.

use std::cell::RefCell;
use std::sync::Arc;

use profiler_host::process::thread;
use profiler_host::sync::ReentrancyGuard;
use profiler_host::sync::ring::Producer;

use super::record::{ScopeRecord, ThreadInfo};
use super::ring::{RINGS, lose, lose_for_memory};
use super::window_sorter;
use crate::switch::with_control;

/// Entries of the ring for each entry of `PROFILER_RING`: 16,384 by default, which is 16 milliseconds at a million
/// scopes a second.
const SCOPES_PER_ENTRY: usize = 8;

/// The writing end of a thread's ring.
struct ThreadRing {
    ring: Producer<ScopeRecord>,
    thread: Arc<ThreadInfo>,
}

thread_local! {
    static THREAD_RING: RefCell<Option<ThreadRing>> = const { RefCell::new(None) };
}

/// Why there is no ring to push into.
enum NoRing {
    /// The thread is ending, or in the middle of a push.
    Unusable,
    NoMemory,
}

/// [`push`] for the usual scope, whose thread has a ring with room. Returns `false`, and does nothing, if `push` must do it.
#[inline(always)]
pub(super) fn push_early(make: impl FnOnce() -> ScopeRecord) -> bool {
    if ReentrancyGuard::is_entered() {
        return false;
    }
    let push = |thread_ring: &RefCell<Option<ThreadRing>>| {
        let mut thread_ring = thread_ring.try_borrow_mut().ok()?;
        Some(thread_ring.as_mut()?.ring.push_early(make))
    };
    let is_pushed = THREAD_RING.try_with(push).ok().flatten() == Some(true);
    if is_pushed {
        window_sorter::wake_if_dozing();
    }
    is_pushed
}

/// Hands a finished scope on, or counts that it could not be.
pub(super) fn push(record: ScopeRecord) {
    // An allocator or the like that is measured itself must not come back here.
    let Some(_busy) = ReentrancyGuard::try_enter() else {
        return lose(1);
    };
    match with_thread_ring(|thread_ring| offer(thread_ring, record)) {
        Ok(true) => {}
        Ok(false) | Err(NoRing::Unusable) => lose(1),
        Err(NoRing::NoMemory) => lose_for_memory(),
    }
}

// The record should be written to its place in the ring, and not be copied on the way.
#[inline(always)]
fn offer(thread_ring: &mut ThreadRing, record: ScopeRecord) -> bool {
    let pushed = thread_ring.ring.push(record).is_ok();
    window_sorter::wake_if_dozing();
    if !pushed || thread_ring.ring.is_half_full() {
        window_sorter::wake();
    }
    pushed
}

#[inline(always)]
fn with_thread_ring<T>(f: impl FnOnce(&mut ThreadRing) -> T) -> Result<T, NoRing> {
    let with = |thread_ring: &RefCell<Option<ThreadRing>>| {
        let mut thread_ring = thread_ring.try_borrow_mut().map_err(|_| NoRing::Unusable)?;
        let thread_ring = match &mut *thread_ring {
            Some(thread_ring) => thread_ring,
            // Without memory the next scope tries again.
            empty => empty.insert(make().ok_or(NoRing::NoMemory)?),
        };
        Ok(f(thread_ring))
    };
    THREAD_RING.try_with(with).unwrap_or(Err(NoRing::Unusable))
}

#[cold]
fn make() -> Option<ThreadRing> {
    let thread = Arc::new(ThreadInfo::current());
    let capacity = with_control(|control| control.settings.ring).saturating_mul(SCOPES_PER_ENTRY);
    let ring = RINGS.add(capacity, Arc::clone(&thread))?;
    Some(ThreadRing { ring, thread })
}

/// The calling thread as windows know it; none where it is ending.
pub(super) fn this_thread() -> Option<Arc<ThreadInfo>> {
    let _busy = ReentrancyGuard::try_enter();
    with_thread_ring(|thread_ring| Arc::clone(&thread_ring.thread)).ok()
}

impl ThreadInfo {
    fn current() -> Self {
        let name = std::thread::current().name().map(str::to_owned);
        Self {
            id: thread::system_id().unwrap_or_else(thread::number),
            number: thread::number(),
            name,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::super::ended::RecordEnding;
    use super::super::record::RecordKind;
    use super::super::ring::{drain, lost};
    use super::*;

    fn record(name: u32) -> ScopeRecord {
        ScopeRecord {
            name,
            ending: RecordEnding::Returned,
            thread: 0,
            has_cpu: true,
            serial: 1,
            parent: 0,
            start: 1,
            elapsed: 1,
            cuda: 0,
            kind: RecordKind::Scope,
            extra: None,
        }
    }

    /// Each test drains the scopes that it pushed itself.
    static DRAINING: Mutex<()> = Mutex::new(());

    fn draining() -> MutexGuard<'static, ()> {
        DRAINING.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn a_panic_while_the_rings_are_emptied_costs_the_scope_at_hand_and_no_ring() {
        const LOST: u32 = u32::MAX - 3;
        const KEPT: u32 = u32::MAX - 4;

        let _draining = draining();
        let before = lost().ring_full;
        push(record(LOST));
        push(record(KEPT));
        let panicked = profiler_host::diagnostics::user_code::call(|| {
            drain(|_, taken| {
                if taken.name == LOST {
                    std::panic::panic_any("a test panics");
                }
            });
        });
        assert!(panicked.is_none());
        // Other tests lose some too.
        assert!(lost().ring_full > before);
        let mut seen = Vec::new();
        drain(|_, taken| seen.push(taken.name));
        assert!(seen.contains(&KEPT), "the thread's ring is still known");
    }

    #[test]
    fn nothing_is_pushed_early_inside_the_profiler() {
        const EARLY: u32 = u32::MAX - 5;

        let _draining = draining();
        push(record(EARLY));
        assert!(push_early(|| record(EARLY)));
        let guard = ReentrancyGuard::try_enter();
        assert!(!push_early(|| record(EARLY)));
        drop(guard);
        let mut seen = Vec::new();
        drain(|_, taken| seen.push(taken.name));
        seen.retain(|name| *name == EARLY);
        assert_eq!(seen.len(), 2);
    }

    #[test]
    fn a_thread_records_its_first_scope_while_the_rings_are_emptied() {
        const HERE: u32 = u32::MAX - 1;
        const THERE: u32 = u32::MAX - 2;

        let _draining = draining();
        let mut seen = Vec::new();
        push(record(HERE));
        drain(|_, taken| {
            if taken.name == HERE {
                let there = std::thread::spawn(|| push(record(THERE)));
                there.join().expect("nobody is waited for");
            }
            seen.push(taken.name);
        });
        drain(|_, taken| seen.push(taken.name));
        seen.retain(|name| [HERE, THERE].contains(name));
        assert_eq!(seen, [HERE, THERE]);
    }
}
