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

/// The threads by their numbers.
static THREADS: Lock<Vec<(u64, LaunchingThread)>> = Lock::new(Vec::new());

thread_local! {
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "nothing is recorded"))]
    static IS_NOTED: Cell<bool> = const { Cell::new(false) };
}

/// How users know a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaunchingThread {
    pub(crate) name: Option<String>,
    /// The system's id, if the system has such.
    pub(crate) id: Option<u64>,
}

impl LaunchingThread {
    /// Returns the name and the id in one; `None` if it has neither.
    pub(crate) fn label(&self) -> Option<String> {
        match (&self.name, self.id) {
            (Some(name), Some(id)) => Some(format!("`{name}` ({id})")),
            (Some(name), None) => Some(format!("`{name}`")),
            (None, Some(id)) => Some(format!("thread {id}")),
            (None, None) => None,
        }
    }
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
    let thread = LaunchingThread {
        name: thread::name(),
        id: thread::system_id(),
    };
    let mut threads = THREADS.lock();
    if threads.len() < MAX_THREADS && threads.try_reserve(1).is_ok() {
        threads.push((thread::number(), thread));
    }
}

/// Returns how users know a thread; `None` if it was not noted.
pub(crate) fn launching_thread(number: u64) -> Option<LaunchingThread> {
    let threads = THREADS.lock();
    let found = threads.iter().find(|(known, _)| *known == number);
    found.map(|(_, thread)| thread.clone())
}
