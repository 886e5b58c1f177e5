//! The names of threads that launch work: windows know only the threads of their scopes.

use std::cell::Cell;

use profiler_host::process::thread;
use profiler_host::sync::Lock;

/// The most threads that are kept, so that a program that starts one for each request takes no more memory with each.
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "nothing is recorded")
)]
const MAX_THREADS: usize = 1024;

/// The threads by their numbers, and how users know them.
static THREADS: Lock<Vec<(u64, String)>> = Lock::new(Vec::new());

thread_local! {
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "nothing is recorded"))]
    static IS_NOTED: Cell<bool> = const { Cell::new(false) };
}

/// Notes the calling thread, the first time that it launches something.
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "nothing is recorded")
)]
pub(super) fn note() {
    if IS_NOTED.replace(true) {
        return;
    }
    let label = match (thread::name(), thread::system_id()) {
        (Some(name), Some(id)) => format!("`{name}` ({id})"),
        (Some(name), None) => format!("`{name}`"),
        (None, Some(id)) => format!("thread {id}"),
        (None, None) => return,
    };
    let mut threads = THREADS.lock();
    if threads.len() < MAX_THREADS && threads.try_reserve(1).is_ok() {
        threads.push((thread::number(), label));
    }
}

/// Returns how users know a thread; `None` if it was not noted.
pub(crate) fn label_of_thread(number: u64) -> Option<String> {
    let threads = THREADS.lock();
    let found = threads.iter().find(|(known, _)| *known == number);
    found.map(|(_, label)| label.clone())
}
