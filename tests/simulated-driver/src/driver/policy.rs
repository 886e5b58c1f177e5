//! What happens to calls that make the host wait for a device, and to all after the driver ended.

use std::backtrace::Backtrace;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::entry::EntryPoint;
use super::thread;

/// Set when the driver has shut down.
pub(crate) static DOWN: AtomicBool = AtomicBool::new(false);

const ALLOW: u8 = 0;
const ABORT: u8 = 1;
const ABORT_FROM: u8 = 2;

static WAITING: AtomicU8 = AtomicU8::new(ALLOW);
static BLAMED: Mutex<String> = Mutex::new(String::new());

const REFUSE: u8 = 0;

/// What happens to calls from inside a host function.
static HOST_CALLS: AtomicU8 = AtomicU8::new(REFUSE);

/// What the driver does when a host function calls it: NVIDIA leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum HostCalls {
    /// The call does nothing and returns 800.
    Refuse = REFUSE,
    /// It is a call like others.
    Allow,
    /// The process ends, where another driver would wait for ever.
    Abort,
}

pub(crate) fn set_host_calls(calls: HostCalls) {
    HOST_CALLS.store(calls as u8, Relaxed);
}

/// Whether a call of this thread is refused because the thread runs a host function. Ends the process where that is
/// wanted.
pub(crate) fn refuses_host_call(entry: &EntryPoint) -> bool {
    if !thread::is_worker() {
        return false;
    }
    let calls = HOST_CALLS.load(Relaxed);
    if calls == HostCalls::Abort as u8 {
        // Nothing is left to do when standard error is closed.
        let _ = writeln!(
            std::io::stderr(),
            "simulated driver: {} was called inside a host function, where some drivers wait for ever",
            entry.name
        );
        std::process::abort()
    }
    calls == REFUSE
}

/// Who may make the host wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// Everybody.
    Allow,
    /// Nobody outside a region that allows it.
    Abort,
    /// Everybody but code whose path begins with this, such as `some_crate::`.
    AbortFrom(String),
}

pub(crate) fn set_waiting(waiting: Waiting) {
    let (mode, blamed) = match waiting {
        Waiting::Allow => (ALLOW, String::new()),
        Waiting::Abort => (ABORT, String::new()),
        Waiting::AbortFrom(path) => (ABORT_FROM, path),
    };
    *BLAMED.lock().unwrap_or_else(PoisonError::into_inner) = blamed;
    WAITING.store(mode, Relaxed);
}

/// Ends the process if the caller of `entry` may not wait for a device.
pub(crate) fn before_waiting(entry: &EntryPoint) {
    before_implicit_waiting(entry.name);
}

/// Ends the process if the caller of the entry point `name` may not wait for a device.
pub(crate) fn before_implicit_waiting(name: &str) {
    let mode = WAITING.load(Relaxed);
    if mode == ALLOW || thread::may_wait() || thread::is_worker() {
        return;
    }
    let stack = Backtrace::force_capture().to_string();
    if mode == ABORT_FROM {
        let blamed = BLAMED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if !caller(&stack).is_some_and(|caller| caller.starts_with(&blamed)) {
            return;
        }
    }
    refuse(name, &stack);
}

/// The function nearest to the driver that is neither the driver's nor the standard library's.
fn caller(stack: &str) -> Option<&str> {
    const INSIDE: [&str; 5] = [
        "profiler_simulated_driver::",
        "std::",
        "core::",
        "alloc::",
        "cu",
    ];
    let frames = stack.lines().filter_map(|line| {
        let (number, name) = line.trim_start().split_once(": ")?;
        number.parse::<u32>().ok()?;
        // `<path::Type as Trait>::method` begins with the type's path.
        Some(name.trim_start_matches(['<', '&']))
    });
    frames
        .map(|name| name.strip_prefix("mut ").unwrap_or(name))
        .find(|name| !INSIDE.iter().any(|inside| is_inside(name, inside)))
}

fn is_inside(name: &str, inside: &str) -> bool {
    match inside {
        // The entry points themselves, which have no path: `cuEventSynchronize`.
        "cu" => {
            name.starts_with("cu")
                && !name.contains("::")
                && name.chars().nth(2).is_some_and(char::is_uppercase)
        }
        _ => name.starts_with(inside),
    }
}

fn refuse(entry: &str, stack: &str) -> ! {
    let thread = std::thread::current();
    // Nothing is left to do when standard error is closed.
    let _ = writeln!(
        std::io::stderr(),
        "simulated driver: {} would make thread '{}' wait for the device, which this run forbids; \
         allow it with `synchronise allow` or inside `Simulator::allow_waiting`\n{stack}",
        entry,
        thread.name().unwrap_or("without name"),
    );
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use super::caller;

    const STACK: &str = "   0: std::backtrace::Backtrace::force_capture
             at /src/backtrace.rs:10:5
   1: profiler_simulated_driver::driver::policy::before_waiting
   2: cuEventSynchronize
   3: <some_crate::Reader as core::ops::Drop>::drop
   4: user::main";

    #[test]
    fn the_caller_is_the_first_frame_outside_the_driver() {
        assert_eq!(
            caller(STACK),
            Some("some_crate::Reader as core::ops::Drop>::drop")
        );
        assert_eq!(
            caller("   0: cuCtxSynchronize\n   1: custom\n"),
            Some("custom")
        );
        assert_eq!(caller("disabled backtrace"), None);
    }
}
