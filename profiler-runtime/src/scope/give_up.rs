//! Scopes that will never close: those of spans that a thread has entered and does not exit.

use profiler_host::diagnostics::catch_own_panic;
use profiler_host::sync::ReentrancyGuard;

use super::open::OpenScope;
use super::serial::Flags;
use crate::clock::now;
use crate::cuda::nvtx;
use crate::local::callers;
use crate::local::{self, Innermost, ThreadState};
use crate::name;

impl OpenScope {
    /// Gives the scope up, on the thread that opened it. Nothing is counted; the name is not open any more.
    #[cold]
    pub(crate) fn give_up(&self) {
        catch_own_panic("a span was given up", || {
            if self.has(Flags::DETACHED) {
                return;
            }
            if local::has_ended() {
                self.give_up_after_thread_end();
            } else {
                self.give_up_attached();
            }
        });
    }

    fn give_up_attached(&self) {
        let serial = self.serial();
        // As when it closes: what it shares ends before it.
        let shared = self.close_shared(now());
        {
            // The memory is not the program's.
            let _reentrancy = ReentrancyGuard::try_enter();
            drop(shared);
        }
        self.leave_late();
        if self.has(Flags::CALLERS) {
            callers::suspended(serial);
        }
        if self.has(Flags::RANGE) {
            nvtx::pop(serial);
        }
        local::with_state(|state| {
            if state.innermost.get() == Innermost::new(serial) {
                // Its children are those of the scope around it.
                let children = state.child_ticks.get() - self.outer_child_ticks;
                self.restore_outer(state, children);
            }
        });
        if self.has(Flags::IN_LINKED) {
            local::child_closed(self.outer_serial);
        }
        local::with_state(ThreadState::skip_left_handles);
        local::give_back(self.cell);
    }

    /// The cell has been retired, with the scope open. A part of a call was not counted as open.
    fn give_up_after_thread_end(&self) {
        if !self.has(Flags::PART)
            && let Some(name) = name::by_id(self.id())
        {
            name.count_after_thread_end(|_| ());
        }
    }
}
