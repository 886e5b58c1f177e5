//! The policies for calls that make the host wait for a device, and for calls from host functions
//! and after shutdown.

use std::backtrace::Backtrace;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use super::entry::EntryPoint;
use super::thread;

/// `true` after the driver has shut down.
pub(crate) static SHUT_DOWN: AtomicBool = AtomicBool::new(false);

const ALLOW: u8 = 0;
const ABORT: u8 = 1;
const ABORT_FROM: u8 = 2;

static WAITING: AtomicU8 = AtomicU8::new(ALLOW);
static FORBIDDEN_PATH: Mutex<String> = Mutex::new(String::new());

const REFUSE: u8 = 0;

/// The policy for calls from inside a host function.
static HOST_CALLS: AtomicU8 = AtomicU8::new(REFUSE);

/// The driver's reaction when a host function calls it, which NVIDIA leaves undefined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum HostCallPolicy {
    /// The call does nothing and returns 800.
    Refuse = REFUSE,
    /// The call runs as any other.
    Allow,
    /// The process aborts, where some drivers would wait forever.
    Abort,
}

pub(crate) fn set_host_calls(calls: HostCallPolicy) {
    HOST_CALLS.store(calls as u8, Relaxed);
}

/// Returns `true` if a call must be refused because this thread is running a host function. Aborts
/// the process if the policy says so.
pub(crate) fn must_refuse_host_call(entry: &EntryPoint) -> bool {
    if !thread::is_worker() {
        return false;
    }
    let calls = HOST_CALLS.load(Relaxed);
    if calls == HostCallPolicy::Abort as u8 {
        // A failed write is ignored: standard error may be closed.
        let _ = writeln!(
            std::io::stderr(),
            "simulated driver: {} was called inside a host function, where some drivers wait for ever",
            entry.name
        );
        std::process::abort()
    }
    calls == REFUSE
}

/// Which code may make the host wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WaitPolicy {
    /// Any code.
    Allow,
    /// Only code in a region that allows it.
    Abort,
    /// Any code but that whose path begins with this, such as `some_crate::`.
    AbortFrom(String),
}

pub(crate) fn set_waiting(waiting: WaitPolicy) {
    let (mode, forbidden) = match waiting {
        WaitPolicy::Allow => (ALLOW, String::new()),
        WaitPolicy::Abort => (ABORT, String::new()),
        WaitPolicy::AbortFrom(path) => (ABORT_FROM, path),
    };
    *FORBIDDEN_PATH
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = forbidden;
    WAITING.store(mode, Relaxed);
}

/// Aborts the process if the caller of `entry` must not wait for a device.
pub(crate) fn check_waiting(entry: &EntryPoint) {
    check_implicit_waiting(entry.name);
}

/// Aborts the process if the caller of the entry point `name` must not wait for a device.
pub(crate) fn check_implicit_waiting(name: &str) {
    let mode = WAITING.load(Relaxed);
    if mode == ALLOW || thread::may_wait() || thread::is_worker() {
        return;
    }
    let stack = Backtrace::force_capture().to_string();
    if mode == ABORT_FROM {
        let forbidden = FORBIDDEN_PATH
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let paths = caller(&stack);
        if !paths.iter().any(|path| path.starts_with(&forbidden)) {
            return;
        }
    }
    refuse(name, &stack);
}

/// Returns the paths of the innermost function outside of the driver and the standard library: its own, or those of the type
/// and the trait that it belongs to.
fn caller(stack: &str) -> Vec<&str> {
    const INSIDE: [&str; 5] = [
        "profiler_simulated_driver::",
        "std::",
        "core::",
        "alloc::",
        "cu",
    ];
    let mut frames = stack.lines().filter_map(|line| {
        let (number, name) = line.trim_start().split_once(": ")?;
        number.parse::<u32>().ok()?;
        Some(paths(name))
    });
    let is_outside = |path: &str| !INSIDE.iter().any(|inside| is_inside(path, inside));
    let outside = frames.find(|paths| paths.iter().any(|path| is_outside(path)));
    outside.unwrap_or_default()
}

/// Returns the paths of a function: of `<a::Type as b::Trait>::method`, which may be in either crate, those of both.
fn paths(name: &str) -> Vec<&str> {
    fn bare(path: &str) -> &str {
        let path = path.trim_start_matches(['<', '&']);
        path.strip_prefix("mut ").unwrap_or(path)
    }
    let mut depth = 0;
    let mut ends = name.match_indices(['<', '>', ' ']).filter(|(at, found)| {
        match *found {
            "<" => depth += 1,
            // Not that of `fn() -> usize`.
            ">" if !name[..*at].ends_with('-') => depth -= 1,
            _ => {}
        }
        depth == 0 || depth == 1 && name[*at..].starts_with(" as ")
    });
    match ends.next() {
        Some((at, " ")) if name.starts_with('<') => vec![bare(&name[..at]), bare(&name[at + 4..])],
        _ => vec![bare(name)],
    }
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
    // A failed write is ignored: standard error may be closed.
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
   1: profiler_simulated_driver::driver::policy::check_waiting
   2: cuEventSynchronize
   3: <some_crate::Reader as core::ops::Drop>::drop
   4: user::main";

    #[test]
    fn the_caller_is_the_first_frame_outside_the_driver() {
        assert_eq!(
            caller(STACK),
            ["some_crate::Reader", "core::ops::Drop>::drop"]
        );
        assert_eq!(caller("   0: cuCtxSynchronize\n   1: custom\n"), ["custom"]);
        assert!(caller("disabled backtrace").is_empty());
    }

    #[test]
    fn a_method_belongs_to_the_crates_of_its_type_and_of_its_trait() {
        let of_trait = "  4: <&mut other_crate::Driver as some_crate::Api>::wait";
        assert_eq!(
            caller(of_trait),
            ["other_crate::Driver", "some_crate::Api>::wait"]
        );
        let of_std = "  4: <core::option::Option<<a::B as c::D>::E> as some_crate::Api>::wait";
        assert_eq!(caller(of_std)[1], "some_crate::Api>::wait");
        let of_pointer = "  4: <fn() -> a::B as core::ops::FnOnce<()>>::call_once";
        assert_eq!(caller(of_pointer)[1], "core::ops::FnOnce<()>>::call_once");
        assert_eq!(
            caller("  5: <a::B<c::D>>::f::<e as f>"),
            ["a::B<c::D>>::f::<e as f>"]
        );
        assert_eq!(
            caller("  5: a::<impl b::C for d::E>::f"),
            ["a::<impl b::C for d::E>::f"]
        );
    }
}
