//! The spans that a thread has entered and not exited.
//!
//! The scopes of these spans nest with all others of the thread, as guards do. The stack only keeps what a guard would: it
//! is searched from the top, since most spans are exited in the reverse order.
//!
//! A thread takes slots for a stack with its first span, and gives them back when it ends. As the words that refer to them
//! need no destructor, an access checks nothing; a neighbouring thread-local has the destructor. Slots are never freed: there
//! are as many as threads had spans at once, and at most as many again that were outgrown.
//!
//! A span may never be exited: its guard was forgotten, or the span was closed on another thread. Its scope is given up
//! once that is certain, since it would otherwise count as open: when the span is closed on this thread, when the slots
//! are full, when another span is exited around it, or when the thread ends.

use std::cell::Cell;
use std::ptr;

use profiler_host::sync::{Lock, ReentrancyGuard};

use super::layers;
use super::open_spans::OpenSpan;
use crate::scope::OpenScope;

/// The slots of a new stack.
const FIRST_SLOTS: usize = 64;

/// A span that was entered.
#[derive(Clone, Copy)]
struct Entry {
    /// The number of the layer in the lower half, with [`WHOLE`], and in the upper half how often the span was entered again
    /// inside itself.
    layer_and_again: u64,
    /// The id of the span in the registry of the layer; 0 for none.
    id: u64,
    /// The span among the open ones of the layer. Not valid once the layer has been dropped.
    span: *const OpenSpan,
    open: OpenScope,
}

const AGAIN: u64 = 1 << 32;

/// A flag beside the number of a layer: the span is measured as a whole, so that its exits take the slow path.
pub(super) const WHOLE: u64 = 1 << 31;

impl Entry {
    fn none() -> Self {
        Self {
            layer_and_again: 0,
            id: 0,
            span: ptr::null(),
            open: OpenScope::none(),
        }
    }

    fn layer(&self) -> u64 {
        self.layer_and_again & (WHOLE - 1)
    }

    fn is_of(&self, layer: u64, id: u64) -> bool {
        self.id == id && self.layer() == layer
    }
}

type Slot = Cell<Entry>;

/// Slots that threads use one after the other.
type Slots = &'static [Slot];

/// Slots that no thread has.
static FREE: Lock<Vec<FreeSlots>> = Lock::new(Vec::new());

struct FreeSlots(Slots);

// SAFETY: slots in the list are those of no thread. The lock of the list orders what their last thread did before what
// their next one does. The pointers in them are not followed: the next thread's stack begins without an entry.
unsafe impl Send for FreeSlots {}

/// The stack of a thread. Entries from `len` on are not in use.
struct Stack {
    slots: Cell<Slots>,
    len: Cell<usize>,
}

thread_local! {
    static STACK: Stack = const {
        Stack {
            slots: Cell::new(&[]),
            len: Cell::new(0),
        }
    };
    static GIVES_BACK: GivesBack = const { GivesBack };
}

/// Gives the thread's slots back when the thread ends.
struct GivesBack;

impl Drop for GivesBack {
    fn drop(&mut self) {
        with(|stack| {
            stack.give_up_all(|_| false);
            stack.len.set(0);
            give_back(stack.slots.replace(&[]));
        });
    }
}

fn give_back(slots: Slots) {
    let _reentrancy = ReentrancyGuard::try_enter();
    let mut free = FREE.lock();
    // Without memory for the list, the slots are lost.
    if !slots.is_empty() && free.try_reserve(1).is_ok() {
        free.push(FreeSlots(slots));
    }
}

/// Why there is no slot for a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSlot {
    /// The destructors of the thread's thread-locals have run.
    ThreadEnded,
    /// There is no memory.
    Unavailable,
}

/// Runs `f` on the thread's stack, which is never destroyed.
#[inline(always)]
fn with<T>(f: impl FnOnce(&Stack) -> T) -> Option<T> {
    STACK.try_with(f).ok()
}

/// The scope of a span that is exited, and the span among the open ones of its layer.
pub(super) type Exited = (OpenScope, *const OpenSpan);

/// Makes room for one more span. `is_open` says whether a span of this layer is still open.
#[cold]
pub(super) fn reserve(layer: u64, is_open: impl Fn(u64) -> bool) -> Result<(), NoSlot> {
    GIVES_BACK
        .try_with(|_| ())
        .map_err(|_| NoSlot::ThreadEnded)?;
    let has_room = with(|stack| stack.has_room() || stack.make_room(layer, is_open));
    match has_room {
        Some(true) => Ok(()),
        _ => Err(NoSlot::Unavailable),
    }
}

/// Adds a span if there is room and `open` opens a scope. Returns `false` if not.
#[inline(always)]
pub(super) fn push_if_room(
    layer: u64,
    id: u64,
    span: &OpenSpan,
    open: impl FnOnce() -> Option<OpenScope>,
) -> bool {
    let pushed = with(|stack| {
        let len = stack.len.get();
        let slot = stack.slots.get().get(len)?;
        slot.set(Entry {
            layer_and_again: layer,
            id,
            span,
            open: open()?,
        });
        stack.len.set(len + 1);
        Some(())
    });
    pushed.flatten().is_some()
}

/// Returns `true` if the thread has entered no span, or exited all.
#[inline(always)]
pub(super) fn is_empty() -> bool {
    with(|stack| stack.len.get() == 0).unwrap_or(true)
}

/// Notes that a span is entered inside itself. Returns `false` if this thread has not entered it.
#[inline(always)]
pub(super) fn enter_again(layer: u64, id: u64) -> bool {
    with(|stack| stack.len.get() > 0 && stack.enter_again(layer, id)).unwrap_or(false)
}

/// Removes a span that is exited, if it was entered last.
#[inline(always)]
pub(super) fn exit_innermost(layer: u64, id: u64) -> Option<Exited> {
    let exited = with(|stack| {
        let last = stack.len.get().wrapping_sub(1);
        let entry = stack.slots.get().get(last)?.get();
        if entry.id != id || entry.layer_and_again != layer {
            return None;
        }
        stack.len.set(last);
        Some((entry.open, entry.span))
    });
    exited.flatten()
}

/// Removes a span that is exited. Returns `None` if this thread has not entered it, measuring was off then, or it is still
/// entered further out. `is_open` says whether a span of this layer is still open.
#[cold]
#[inline(never)]
pub(super) fn exit(layer: u64, id: u64, is_open: impl Fn(u64) -> bool) -> Option<Exited> {
    let exited = with(|stack| {
        let at = stack.find(layer, id)?;
        let slot = stack.used().get(at)?;
        let mut entry = slot.get();
        if entry.layer_and_again >= AGAIN {
            entry.layer_and_again -= AGAIN;
            slot.set(entry);
            return None;
        }
        stack.remove(at);
        if at < stack.len.get() {
            stack.sweep(layer, is_open);
        }
        Some((entry.open, entry.span))
    });
    exited.flatten()
}

/// Gives up the scope of a span that is closed, if this thread has entered and not exited it.
#[cold]
pub(super) fn give_up(layer: u64, id: u64) {
    with(|stack| {
        if let Some(at) = stack.find(layer, id) {
            let entry = stack.used().get(at).map(Cell::get);
            stack.remove(at);
            if let Some(entry) = entry {
                entry.open.give_up();
            }
        }
    });
}

impl Stack {
    fn has_room(&self) -> bool {
        self.len.get() < self.slots.get().len()
    }

    fn used(&self) -> Slots {
        self.slots.get().get(..self.len.get()).unwrap_or_default()
    }

    #[cold]
    #[inline(never)]
    fn enter_again(&self, layer: u64, id: u64) -> bool {
        let slot = self.find(layer, id).and_then(|at| self.slots.get().get(at));
        slot.is_some_and(|slot| {
            let mut entry = slot.get();
            entry.layer_and_again += AGAIN;
            slot.set(entry);
            true
        })
    }

    fn find(&self, layer: u64, id: u64) -> Option<usize> {
        self.used()
            .iter()
            .rposition(|slot| slot.get().is_of(layer, id))
    }

    fn remove(&self, at: usize) {
        let used = self.used();
        for pair in used.get(at..).unwrap_or_default().windows(2) {
            pair[0].set(pair[1].get());
        }
        self.len.set(used.len().saturating_sub(1));
    }

    /// Gives up spans that were closed without an exit on this thread, whose loss was counted then, and those of layers
    /// that are no more.
    fn sweep(&self, layer: u64, is_open: impl Fn(u64) -> bool) {
        self.give_up_all(|entry| {
            if entry.layer() == layer {
                is_open(entry.id)
            } else {
                layers::is_alive(entry.layer())
            }
        });
    }

    /// Gives up all spans but those that `keeps` names, innermost first.
    fn give_up_all(&self, keeps: impl Fn(&Entry) -> bool) {
        for slot in self.used().iter().rev() {
            let entry = slot.get();
            if entry.id != 0 && !keeps(&entry) {
                slot.set(Entry::none());
                entry.open.give_up();
            }
        }
        let used = self.used();
        let kept = used.iter().map(Cell::get).filter(|entry| entry.id != 0);
        // Each is moved to a slot that has been read.
        let kept = kept.zip(used).map(|(entry, slot)| slot.set(entry)).count();
        self.len.set(kept);
    }

    /// Sweeps, and doubles the slots if that does not help much.
    #[cold]
    fn make_room(&self, layer: u64, is_open: impl Fn(u64) -> bool) -> bool {
        self.sweep(layer, is_open);
        let slots = self.slots.get();
        if 2 * self.len.get() >= slots.len()
            && let Some(more) = more_slots(2 * slots.len())
        {
            // The entries of now: an allocator may have entered and exited spans meanwhile.
            let used = self.used();
            if used.len() < more.len() {
                for (from, to) in used.iter().zip(more) {
                    to.set(from.get());
                }
                self.slots.set(more);
            }
        }
        self.has_room()
    }
}

/// Returns at least this many slots, and at least as many as a new stack has. Returns `None` if there is no memory.
fn more_slots(wanted: usize) -> Option<Slots> {
    let wanted = wanted.max(FIRST_SLOTS);
    let _reentrancy = ReentrancyGuard::try_enter();
    let free = || FREE.lock().pop_if(|free| free.0.len() >= wanted);
    if let Some(FreeSlots(slots)) = free() {
        return Some(slots);
    }
    let mut slots = Vec::new();
    slots.try_reserve_exact(wanted).ok()?;
    slots.resize_with(wanted, || Cell::new(Entry::none()));
    Some(slots.leak())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(id: u64) -> bool {
        let span = OpenSpan::new();
        reserve(7, |id| id % 2 == 1).is_ok()
            && push_if_room(7, id, &span, || Some(OpenScope::none()))
    }

    fn ids() -> Vec<u64> {
        with(|stack| stack.used().iter().map(|slot| slot.get().id).collect()).unwrap_or_default()
    }

    fn on_a_new_thread(test: impl FnOnce() + Send) {
        std::thread::scope(|scope| scope.spawn(test).join()).expect("the test passes");
    }

    #[test]
    fn spans_are_removed_from_wherever_they_are() {
        on_a_new_thread(|| {
            assert!((1..=4).all(|id| push(id * 2 - 1)));
            assert!(exit_innermost(7, 5).is_none() && exit_innermost(8, 7).is_none());
            assert!(exit(7, 3, |_| true).is_some());
            assert_eq!(ids(), [1, 5, 7]);
            assert!(exit_innermost(7, 7).is_some() && exit_innermost(7, 5).is_some());
            assert!(exit_innermost(7, 1).is_some() && exit_innermost(7, 1).is_none());
        });
    }

    #[test]
    fn a_span_inside_itself_is_removed_with_its_last_exit() {
        on_a_new_thread(|| {
            assert!(!enter_again(7, 1));
            assert!(push(1) && enter_again(7, 1) && !enter_again(7, 3));
            assert!(exit_innermost(7, 1).is_none() && exit(7, 1, |_| true).is_none());
            assert!(exit_innermost(7, 1).is_some());
        });
    }

    #[test]
    fn closed_spans_make_room_and_open_ones_stay() {
        on_a_new_thread(|| {
            let (closed, open) = ((1..=10_000).map(|n| 2 * n), (1..=100).map(|n| 2 * n - 1));
            assert!(closed.clone().all(push) && ids().len() <= FIRST_SLOTS);
            assert!(open.clone().all(push) && closed.clone().all(push));
            let kept = ids();
            assert!(open.eq(kept.iter().copied().filter(|id| id % 2 == 1)));
            assert!(kept.len() <= 4 * FIRST_SLOTS, "{}", kept.len());
        });
    }

    #[test]
    fn an_exit_around_a_closed_span_removes_that() {
        on_a_new_thread(|| {
            assert!([1, 2, 3].into_iter().all(push));
            assert!(exit(7, 1, |id| id == 3).is_some());
            assert_eq!(ids(), [3]);
        });
    }

    #[test]
    fn spans_of_layers_that_are_no_more_are_swept() {
        on_a_new_thread(|| {
            let (live, dead) = (layers::new(), layers::new());
            let span = OpenSpan::new();
            for layer in [live, dead] {
                assert!(reserve(layer, |_| true).is_ok());
                assert!(push_if_room(layer, 1, &span, || Some(OpenScope::none())));
            }
            layers::end(dead);
            with(|stack| stack.sweep(7, |_| true));
            assert!(!enter_again(dead, 1) && enter_again(live, 1));
            layers::end(live);
        });
    }
}
