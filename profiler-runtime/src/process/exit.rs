//! Exit handlers.

/// Has the process call `handler` when it exits. Returns `false` if the system takes no more handlers.
///
/// Handlers run in the opposite order of their registration. Other threads may hold any lock at that time, so a handler
/// must take only locks of the profiler's own, and wait for them for a bounded time. `handler` must not unwind, which
/// would abort the process.
pub(crate) fn register(handler: extern "C" fn()) -> bool {
    // SAFETY: `handler` is a function of this program with the C ABI that `atexit` asks for, so that it is there until
    // the process ends. An `extern "C"` function never unwinds into its caller: it aborts.
    (unsafe { libc::atexit(handler) }) == 0
}
