//! The way of recorded scopes to the thread that sorts them into windows: one bounded ring for each thread.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, MutexGuard};

use rtrb::{Consumer, Producer, RingBuffer};

use super::record::{ScopeRecord, ThreadInfo};
use super::worker;
use crate::local::Busy;
use crate::process::Lock;
use crate::switch::with_control;

/// Scopes that a thread holds until they are taken, for each entry of `PROFILER_RING`: by default 16,384 in all, which
/// is 16 milliseconds at a million a second.
const FOR_EACH: usize = 8;

/// A thread's own end.
struct Near {
    ring: Producer<ScopeRecord>,
    thread: Arc<ThreadInfo>,
}

/// The other end.
struct Far {
    ring: Consumer<ScopeRecord>,
    thread: Arc<ThreadInfo>,
}

thread_local! {
    static NEAR: RefCell<Option<Near>> = const { RefCell::new(None) };
}

static FAR: Lock<Vec<Far>> = Lock::new(Vec::new());
/// Scopes that found the ring full, or none.
static LOST: AtomicU64 = AtomicU64::new(0);

fn far() -> MutexGuard<'static, Vec<Far>> {
    FAR.lock()
}

/// Scopes that could not be recorded so far.
pub(super) fn lost() -> u64 {
    LOST.load(Relaxed)
}

/// Hands a finished scope on, or counts that it could not be.
pub(super) fn push(record: ScopeRecord) {
    // An allocator or the like that is measured itself must not come back here.
    let busy = Busy::claim();
    let pushed = busy.is_some() && with_near(|near| offer(near, record)).unwrap_or(false);
    if !pushed {
        lose();
    }
}

/// Counts a scope that has no ring to go to.
pub(super) fn lose() {
    LOST.fetch_add(1, Relaxed);
}

fn offer(near: &mut Near, record: ScopeRecord) -> bool {
    let half = near.ring.buffer().capacity() / 2;
    let pushed = near.ring.push(record).is_ok();
    // What is known to be free without a look at the other end, first.
    if !pushed || (near.ring.cached_slots() < half && near.ring.slots() < half) {
        worker::wake();
    }
    pushed
}

fn with_near<T>(f: impl FnOnce(&mut Near) -> T) -> Option<T> {
    NEAR.try_with(|near| {
        let mut near = near.try_borrow_mut().ok()?;
        Some(f(near.get_or_insert_with(make)))
    })
    .ok()?
}

#[cold]
fn make() -> Near {
    let thread = Arc::new(ThreadInfo::current());
    let capacity = with_control(|control| control.settings.ring).saturating_mul(FOR_EACH);
    let (near, ring) = RingBuffer::new(capacity);
    far().push(Far {
        ring,
        thread: Arc::clone(&thread),
    });
    Near { ring: near, thread }
}

/// The calling thread as windows know it; none where it is ending.
pub(super) fn this_thread() -> Option<Arc<ThreadInfo>> {
    let _busy = Busy::claim();
    with_near(|near| Arc::clone(&near.thread))
}

/// Takes what stands in the rings, and forgets the rings of threads that have ended. For one thread at a time.
pub(super) fn drain(mut take: impl FnMut(&Arc<ThreadInfo>, ScopeRecord)) {
    // With the lock released: a thread that makes its ring must not wait for all the others to be emptied.
    let mut known = std::mem::take(&mut *far());
    known.retain_mut(|far| {
        // Asked before the last look: what was pushed before the thread ended is there to be read.
        let ended = far.ring.is_abandoned();
        let slots = far.ring.slots();
        if let Ok(chunk) = far.ring.read_chunk(slots) {
            chunk
                .into_iter()
                .for_each(|record| take(&far.thread, record));
        }
        !ended
    });
    let mut far = far();
    known.append(&mut far);
    *far = known;
}

impl ThreadInfo {
    fn current() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let name = std::thread::current().name().map(str::to_owned);
        Self {
            id: system_id().unwrap_or_else(|| NEXT.fetch_add(1, Relaxed)),
            name,
        }
    }
}

/// The number that the system, and other tools, know the thread by.
#[cfg(target_os = "linux")]
fn system_id() -> Option<u64> {
    // SAFETY: the call takes nothing and cannot fail.
    u64::try_from(unsafe { libc::gettid() }).ok()
}

#[cfg(not(target_os = "linux"))]
fn system_id() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::super::record::{Kind, RecordEnding};
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
            kind: Kind::Scope,
            extra: None,
        }
    }

    #[test]
    fn a_thread_records_its_first_scope_while_the_rings_are_emptied() {
        const HERE: u32 = u32::MAX - 1;
        const THERE: u32 = u32::MAX - 2;

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
