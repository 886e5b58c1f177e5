//! The exported control functions. Their names begin with `simulated_driver_`.

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, Once, PoisonError};

use super::ffi::{Out, Text};
use super::state::LockedState;
use super::{exports, fault, policy, script, thread};
use crate::report::{Objects, Report};

/// Runs a script. Returns 0, or the length of the error message, which is written to `error`,
/// truncated to `room` bytes including the terminating zero.
// SAFETY: no other library exports a name that begins with `simulated_driver_`.
#[unsafe(no_mangle)]
extern "C" fn simulated_driver_run(text: Text, error: Out<c_char>, room: c_int) -> usize {
    script::run_environment();
    let done = match text.get() {
        Ok(text) => script::run(text),
        Err(_) => Err("a script is a C string in UTF-8".to_owned()),
    };
    let Err(message) = done else { return 0 };
    // A caller that passes no buffer only wants the result.
    let _ = error.set_text(&message, room);
    message.len().max(1)
}

/// Returns the time on the driver's clock in nanoseconds.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn simulated_driver_now() -> u64 {
    LockedState::new().clock.now()
}

/// Advances the clock by `ns` nanoseconds. Returns 0, or 1 if the clock is real.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn simulated_driver_advance(ns: u64) -> c_int {
    c_int::from(script::advance(ns).is_err())
}

/// Opens (any value but 0) or closes a region in which this thread may wait for devices.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn simulated_driver_allow_waiting(open: c_int) {
    thread::allow_waiting(open != 0);
}

/// Returns the number of calls of an entry point, or `u64::MAX` if no entry point has this name.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn simulated_driver_calls(name: Text) -> u64 {
    let Ok(name) = name.get() else {
        return u64::MAX;
    };
    exports::all()
        .chain(exports::tools())
        .find(|entry| entry.name == name)
        .map_or(u64::MAX, super::entry::EntryPoint::calls)
}

/// Returns the number of faults that were triggered.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn simulated_driver_faults() -> u64 {
    fault::happened()
}

/// Returns the number of this thread in the log.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn simulated_driver_thread() -> u64 {
    thread::id()
}

/// Returns the length of the report as JSON without the terminating zero, and writes the report to
/// `text` if `room` suffices.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn simulated_driver_report(text: Out<c_char>, room: c_int) -> usize {
    let report = json();
    // A caller that passes no buffer only wants the length.
    let _ = text.set_text(&report, room);
    report.len()
}

fn json() -> String {
    serde_json::to_string(&report()).unwrap_or_default()
}

fn report() -> Report {
    let state = LockedState::new();
    let all = exports::all().chain(exports::tools());
    let called = all.filter(|entry| entry.calls() > 0);
    let objects = |of: [u64; 7]| {
        let [
            contexts,
            streams,
            events,
            graphs,
            graph_execs,
            modules,
            allocations,
        ] = of;
        Objects {
            contexts,
            streams,
            events,
            graphs,
            graph_execs,
            modules,
            allocations,
        }
    };
    let defaults = state
        .streams
        .values()
        .filter(|stream| stream.is_default)
        .count() as u64;
    let (m, memory) = (&*state, &state.memory);
    let mut activities = m.log.activities.clone();
    activities.sort_by_key(|activity| activity.order);
    Report {
        now: m.clock.now(),
        calls: called
            .map(|entry| (entry.name.to_owned(), entry.calls()))
            .collect(),
        alive: objects([
            m.contexts.alive(),
            m.streams.alive() - defaults,
            m.events.alive(),
            m.graphs.alive(),
            m.execs.alive(),
            m.modules.alive(),
            memory.alive(),
        ]),
        created: objects([
            m.contexts.created(),
            m.streams.created(),
            m.events.created(),
            m.graphs.created(),
            m.execs.created(),
            m.modules.created(),
            memory.created,
        ]),
        events_lost_with_context: m.log.events_lost_with_context,
        activities,
        unfinished: m.timeline.unfinished(),
        misuses: m.log.misuses.clone(),
        unread_records: m.log.unread_records,
        captures_invalidated: m.log.captures_invalidated,
        host_function_calls: m.log.host_function_calls,
        blocked_calls: m.log.blocked_calls,
        faults: fault::happened(),
        cupti: super::cupti::report(),
    }
}

static REPORT_PATH: Mutex<String> = Mutex::new(String::new());

unsafe extern "C" {
    /// Registers a function that the C library calls when the process exits, in reverse order of
    /// registration.
    safe fn atexit(function: extern "C" fn()) -> c_int;
}

/// Writes the report to a file when the process exits.
pub(crate) fn report_at_exit(path: &str) {
    static ONCE: Once = Once::new();
    path.clone_into(&mut REPORT_PATH.lock().unwrap_or_else(PoisonError::into_inner));
    ONCE.call_once(|| at_exit(write_report));
}

/// Shuts the driver down when the process exits.
pub(crate) fn shut_down_at_exit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| at_exit(shut_down));
}

fn at_exit(function: extern "C" fn()) {
    // `atexit` fails only if memory is exhausted. The test then fails because the function has not
    // run.
    let _ = atexit(function);
}

extern "C" fn write_report() {
    let path = REPORT_PATH.lock().unwrap_or_else(PoisonError::into_inner);
    // If the file cannot be written, the test fails because the report is missing.
    let _ = std::fs::write(&*path, json());
}

extern "C" fn shut_down() {
    policy::SHUT_DOWN.store(true, std::sync::atomic::Ordering::Relaxed);
}

/// Strings are written as bytes, so `c_char` must have the size of `u8` on each target.
const _: () = assert!(size_of::<c_char>() == size_of::<u8>());
