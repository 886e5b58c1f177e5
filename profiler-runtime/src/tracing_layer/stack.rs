//! The spans that a thread has entered and not exited.
//!
//! The scopes of these spans nest with all others of the thread, as guards do. The stack only keeps what a guard would: it
//! is searched from the top, since most spans are exited in the reverse order.
//!
//! A thread takes a stack with its first span, and gives it back when it ends. As the word that refers to it needs no
//! destructor, an access checks nothing; a neighbouring thread-local has the destructor. Stacks are never freed, and there are
//! as many as threads had spans at once.

use std::cell::{Cell, RefCell};

use crate::scope::OpenScope;
use crate::sync::{Lock, ReentrancyGuard};

/// The number of entries at which closed spans are first looked for.
const FIRST_SWEEP: usize = 64;

/// A span that was entered.
struct Entry {
    /// The number of the layer in the lower half, and in the upper half how often the span was entered again inside itself.
    layer_and_again: u64,
    /// The id of the span in the registry of the layer.
    id: u64,
    open: OpenScope,
}

const AGAIN: u64 = 1 << 32;

impl Entry {
    fn layer(&self) -> u64 {
        self.layer_and_again & (AGAIN - 1)
    }
}

#[derive(Default)]
struct Stack {
    entries: Vec<Entry>,
    /// The number of entries at which closed spans are looked for next.
    sweep_at: usize,
    /// The number of entries for which there is room, at most `sweep_at`.
    room: usize,
}

/// A stack that threads use one after the other. Only the thread that has taken it borrows it.
type SharedStack = &'static RefCell<Stack>;

/// Stacks that no thread has.
static FREE: Lock<Vec<FreeStack>> = Lock::new(Vec::new());

struct FreeStack(SharedStack);

// SAFETY: a stack in the list is that of no thread, and it has no entries. The lock of the list orders what its last thread
// did before what its next one does.
unsafe impl Send for FreeStack {}

thread_local! {
    static STACK: Cell<Option<SharedStack>> = const { Cell::new(None) };
    static GIVES_BACK: GivesBack = const { GivesBack };
}

/// Gives the thread's stack back when the thread ends.
struct GivesBack;

impl Drop for GivesBack {
    fn drop(&mut self) {
        let _reentrancy = ReentrancyGuard::try_enter();
        let Some(stack) = STACK.take() else { return };
        if let Ok(mut stack) = stack.try_borrow_mut() {
            stack.entries.clear();
        }
        let mut free = FREE.lock();
        // Without memory for the list, the stack is lost.
        if free.try_reserve(1).is_ok() {
            free.push(FreeStack(stack));
        }
    }
}

/// Why there is no stack, or no room on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoStack {
    /// The destructors of the thread's thread-locals have run.
    ThreadEnded,
    /// There is no memory, or the stack is in use further out: an allocator has entered a span.
    Unavailable,
}

/// Runs `f` on the stack, if the thread has one.
#[inline(always)]
fn with<T>(f: impl FnOnce(&mut Stack) -> T) -> Option<T> {
    let mut stack = STACK.get()?.try_borrow_mut().ok()?;
    Some(f(&mut stack))
}

/// Gives the thread a stack.
#[cold]
fn take() -> Result<(), NoStack> {
    GIVES_BACK
        .try_with(|_| ())
        .map_err(|_| NoStack::ThreadEnded)?;
    if STACK.get().is_some() {
        return Ok(());
    }
    let _reentrancy = ReentrancyGuard::try_enter();
    let free = FREE.lock().pop();
    let stack = free.map_or_else(|| &*Box::leak(Box::default()), |free| free.0);
    STACK.set(Some(stack));
    Ok(())
}

/// Makes room for one more entry. `is_open` says whether a span of this layer is still open.
pub(super) fn reserve(layer: u64, is_open: impl Fn(u64) -> bool) -> Result<(), NoStack> {
    take()?;
    let has_room = with(|stack| stack.has_room() || stack.grow(layer, is_open));
    match has_room {
        Some(true) => Ok(()),
        _ => Err(NoStack::Unavailable),
    }
}

/// Adds a span if there is room and `open` opens a scope. Returns `false` if not.
#[inline(always)]
pub(super) fn push_if_room(layer: u64, id: u64, open: impl FnOnce() -> Option<OpenScope>) -> bool {
    let pushed = with(|stack| {
        if !stack.has_room() {
            return false;
        }
        let Some(open) = open() else { return false };
        stack.entries.push(Entry {
            layer_and_again: layer,
            id,
            open,
        });
        true
    });
    pushed.unwrap_or(false)
}

/// Notes that a span is entered inside itself. Returns `false` if this thread has not entered it.
#[cold]
pub(super) fn enter_again(layer: u64, id: u64) -> bool {
    let again = with(|stack| {
        let at = stack.find(layer, id)?;
        stack.entries.get_mut(at)?.layer_and_again += AGAIN;
        Some(())
    });
    again.flatten().is_some()
}

/// Removes a span that is exited, if it was entered last.
#[inline(always)]
pub(super) fn exit_innermost(layer: u64, id: u64) -> Option<OpenScope> {
    let exited = with(|stack| {
        let entry = stack.entries.last()?;
        if entry.id != id || entry.layer_and_again != layer {
            return None;
        }
        let open = entry.open;
        stack.entries.truncate(stack.entries.len() - 1);
        Some(open)
    });
    exited.flatten()
}

/// Removes a span that is exited. Returns `None` if this thread has not entered it, measuring was off then, or it is still
/// entered further out.
#[cold]
#[inline(never)]
pub(super) fn exit(layer: u64, id: u64) -> Option<OpenScope> {
    let exited = with(|stack| {
        let at = stack.find(layer, id)?;
        let entry = stack.entries.get_mut(at)?;
        if entry.layer_and_again >= AGAIN {
            entry.layer_and_again -= AGAIN;
            return None;
        }
        Some(stack.entries.remove(at).open)
    });
    exited.flatten()
}

impl Stack {
    #[inline(always)]
    fn has_room(&self) -> bool {
        self.entries.len() < self.room
    }

    fn find(&self, layer: u64, id: u64) -> Option<usize> {
        let is_it = |entry: &Entry| entry.id == id && entry.layer() == layer;
        self.entries.iter().rposition(is_it)
    }

    /// Removes spans that were closed and never exited, whose loss was counted then, and makes room for one more.
    #[cold]
    fn grow(&mut self, layer: u64, is_open: impl Fn(u64) -> bool) -> bool {
        let _reentrancy = ReentrancyGuard::try_enter();
        if self.sweep_at == 0 {
            self.sweep_at = FIRST_SWEEP;
        } else if self.entries.len() >= self.sweep_at {
            self.entries
                .retain(|entry| entry.layer() != layer || is_open(entry.id));
            self.sweep_at = (2 * self.entries.len()).max(FIRST_SWEEP);
        }
        let has_memory = self.entries.try_reserve(1).is_ok();
        self.room = self.entries.capacity().min(self.sweep_at);
        has_memory
    }
}
