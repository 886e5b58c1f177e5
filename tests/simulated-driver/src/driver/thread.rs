//! The state that the driver keeps per thread.
//!
//! None of it has a destructor, so it can still be used by calls that a thread makes while it
//! exits.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::code::{Code, CudaResult, INVALID_CONTEXT, INVALID_VALUE};

const DEPTH: usize = 16;

/// The number of threads that have called the driver.
static THREADS: AtomicU64 = AtomicU64::new(0);
/// The number of resets. The state of a thread from an earlier epoch is void.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// The effect of a fault on the next work that this thread queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkFault {
    /// The work runs, and its context fails with this code when it ends.
    Fail(Code),
    /// The work does not end before it is released.
    Stall,
}

struct Local {
    id: Cell<u64>,
    epoch: Cell<u64>,
    contexts: Cell<[usize; DEPTH]>,
    depth: Cell<usize>,
    capture_mode: Cell<u32>,
    may_wait: Cell<u32>,
    is_worker: Cell<bool>,
    work_fault: Cell<Option<WorkFault>>,
    sticky: Cell<Option<Code>>,
    time: Cell<Option<f32>>,
}

thread_local! {
    static LOCAL: Local = const {
        Local {
            id: Cell::new(0),
            epoch: Cell::new(0),
            contexts: Cell::new([0; DEPTH]),
            depth: Cell::new(0),
            capture_mode: Cell::new(0),
            may_wait: Cell::new(0),
            is_worker: Cell::new(false),
            work_fault: Cell::new(None),
            sticky: Cell::new(None),
            time: Cell::new(None),
        }
    };
}

fn local<R>(use_it: impl FnOnce(&Local) -> R) -> R {
    LOCAL.with(|local| {
        let epoch = EPOCH.load(Relaxed);
        if local.epoch.replace(epoch) != epoch {
            local.depth.set(0);
            local.capture_mode.set(0);
        }
        use_it(local)
    })
}

/// Clears the current contexts and capture modes of all threads.
pub(crate) fn forget_all() {
    EPOCH.fetch_add(1, Relaxed);
}

/// Returns the number of this thread, from 1 in the order of first calls.
pub(crate) fn id() -> u64 {
    local(|local| {
        if local.id.get() == 0 {
            local.id.set(THREADS.fetch_add(1, Relaxed) + 1);
        }
        local.id.get()
    })
}

/// Returns the handle of the current context, or 0 if there is none.
pub(crate) fn current() -> usize {
    local(|local| match local.depth.get() {
        0 => 0,
        depth => local.contexts.get()[depth - 1],
    })
}

/// Replaces the current context; 0 removes it.
pub(crate) fn set_current(context: usize) {
    if current() != 0 {
        local(|local| local.depth.set(local.depth.get() - 1));
    }
    if context != 0 {
        // This cannot fail: an entry was just removed, or the stack was empty.
        let _ = push(context);
    }
}

pub(crate) fn push(context: usize) -> CudaResult {
    local(|local| {
        let (mut contexts, depth) = (local.contexts.get(), local.depth.get());
        *contexts.get_mut(depth).ok_or(INVALID_VALUE)? = context;
        local.contexts.set(contexts);
        local.depth.set(depth + 1);
        Ok(())
    })
}

pub(crate) fn pop() -> CudaResult<usize> {
    let context = current();
    if context == 0 {
        return Err(INVALID_CONTEXT);
    }
    local(|local| local.depth.set(local.depth.get() - 1));
    Ok(context)
}

/// Sets how this thread takes part in captures, and returns the previous mode: 0 global, 1
/// thread-local, 2 relaxed.
pub(crate) fn exchange_capture_mode(mode: u32) -> u32 {
    local(|local| local.capture_mode.replace(mode))
}

pub(crate) fn capture_mode() -> u32 {
    local(|local| local.capture_mode.get())
}

/// Opens or closes a region in which this thread may wait for the device.
pub(crate) fn allow_waiting(open: bool) {
    local(|local| {
        let regions = local.may_wait.get();
        local.may_wait.set(if open {
            regions + 1
        } else {
            regions.saturating_sub(1)
        });
    });
}

pub(crate) fn may_wait() -> bool {
    local(|local| local.may_wait.get() > 0)
}

pub(crate) fn become_worker() {
    local(|local| local.is_worker.set(true));
}

/// Returns `true` on the thread that runs the program's host functions.
pub(crate) fn is_worker() -> bool {
    local(|local| local.is_worker.get())
}

pub(crate) fn plan_work_fault(fault: Option<WorkFault>) {
    local(|local| local.work_fault.set(fault));
}

pub(crate) fn take_work_fault() -> Option<WorkFault> {
    local(|local| local.work_fault.take())
}

/// Makes the next context that this thread uses fail permanently.
pub(crate) fn plan_sticky(code: Option<Code>) {
    local(|local| local.sticky.set(code));
}

pub(crate) fn take_sticky() -> Option<Code> {
    local(|local| local.sticky.take())
}

/// Sets the milliseconds that this thread's call reports between two events.
pub(crate) fn plan_time(ms: Option<f32>) {
    local(|local| local.time.set(ms));
}

pub(crate) fn planned_time() -> Option<f32> {
    local(|local| local.time.get())
}
