//! The spans that a thread has entered and not exited.
//!
//! The scopes of these spans nest with all others of the thread, as guards do. The stack only keeps what a guard would: it
//! is searched from the top, since most spans are exited in the reverse order.

use std::cell::RefCell;

use crate::scope::OpenScope;
use crate::sync::ReentrancyGuard;

/// The number of entries at which closed spans are first looked for.
const FIRST_SWEEP: usize = 64;

/// A span that was entered.
struct Entry {
    /// The number of the layer.
    layer: u32,
    /// How often the span was entered again inside itself.
    again: u32,
    /// The id of the span in the registry of the layer.
    id: u64,
    open: OpenScope,
}

struct Stack {
    entries: Vec<Entry>,
    /// The number of entries at which closed spans are looked for next.
    sweep_at: usize,
}

thread_local! {
    static STACK: RefCell<Stack> = const {
        RefCell::new(Stack { entries: Vec::new(), sweep_at: FIRST_SWEEP })
    };
}

/// Why there is no stack, or no room on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoStack {
    /// The destructors of the thread's thread-locals have run.
    ThreadEnded,
    /// There is no memory, or the stack is in use further out: an allocator has entered a span.
    Unavailable,
}

fn with<T>(f: impl FnOnce(&mut Stack) -> T) -> Result<T, NoStack> {
    let stack = STACK.try_with(|stack| Some(f(&mut *stack.try_borrow_mut().ok()?)));
    stack
        .map_err(|_| NoStack::ThreadEnded)?
        .ok_or(NoStack::Unavailable)
}

/// Makes room for one more entry. `is_open` says whether a span of this layer is still open.
#[inline]
pub(super) fn reserve(layer: u32, is_open: impl Fn(u64) -> bool) -> Result<(), NoStack> {
    with(|stack| {
        if stack.entries.len() < stack.entries.capacity() && stack.entries.len() < stack.sweep_at {
            return true;
        }
        stack.grow(layer, is_open)
    })?
    .then_some(())
    .ok_or(NoStack::Unavailable)
}

/// Adds a span, for which there is room.
#[inline]
pub(super) fn push(layer: u32, id: u64, open: OpenScope) {
    // There is room, and nothing can have borrowed the stack since.
    let _ = with(|stack| {
        stack.entries.push(Entry {
            layer,
            again: 0,
            id,
            open,
        });
    });
}

/// Notes that a span is entered inside itself. Returns `false` if this thread has not entered it.
#[cold]
pub(super) fn enter_again(layer: u32, id: u64) -> bool {
    let again = with(|stack| {
        let at = stack.find(layer, id)?;
        stack.entries.get_mut(at)?.again += 1;
        Some(())
    });
    again.ok().flatten().is_some()
}

/// The exit of a span.
pub(super) enum Exit {
    /// The thread has not entered it, or measuring was off.
    NotEntered,
    /// It is still entered, further out.
    Again,
    Out(OpenScope),
}

/// Removes a span that is exited.
#[inline]
pub(super) fn exit(layer: u32, id: u64) -> Exit {
    let exited = with(|stack| {
        let at = stack.find(layer, id)?;
        let entry = stack.entries.get_mut(at)?;
        if entry.again > 0 {
            entry.again -= 1;
            return Some(Exit::Again);
        }
        Some(Exit::Out(stack.entries.remove(at).open))
    });
    exited.ok().flatten().unwrap_or(Exit::NotEntered)
}

impl Stack {
    #[inline]
    fn find(&self, layer: u32, id: u64) -> Option<usize> {
        let is_it = |entry: &Entry| entry.id == id && entry.layer == layer;
        self.entries.iter().rposition(is_it)
    }

    /// Removes spans that were closed and never exited, whose loss was counted then, and makes room for one more.
    #[cold]
    fn grow(&mut self, layer: u32, is_open: impl Fn(u64) -> bool) -> bool {
        let _reentrancy = ReentrancyGuard::try_enter();
        if self.entries.len() >= self.sweep_at {
            self.entries
                .retain(|entry| entry.layer != layer || is_open(entry.id));
            self.sweep_at = (2 * self.entries.len()).max(FIRST_SWEEP);
        }
        self.entries.try_reserve(1).is_ok()
    }
}
