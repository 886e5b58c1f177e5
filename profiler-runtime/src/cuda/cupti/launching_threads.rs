//! The names of threads that launch work: windows know only the threads of their scopes.

use std::cell::Cell;

use profiler_host::process::thread;
use profiler_host::sync::Lock;

/// The most threads that are kept, so that a program that starts one for each request takes no more memory with each. The
/// threads that have ended make room for new ones.
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "nothing is recorded")
)]
const MAX_THREADS: usize = 1024;

/// A thread that has launched work.
#[derive(Debug)]
struct Noted {
    number: u64,
    thread: LaunchingThread,
    /// A window may still name a thread that has ended.
    has_ended: bool,
}

/// The threads, in the order of their first launches.
static THREADS: Lock<Vec<Noted>> = Lock::new(Vec::new());

/// The number of the calling thread once it is noted, or 0. Notes that the thread ends.
#[cfg_attr(
    not(feature = "cuda"),
    allow(dead_code, reason = "nothing is recorded")
)]
struct NotedThread(Cell<u64>);

impl Drop for NotedThread {
    fn drop(&mut self) {
        let number = self.0.get();
        let mut threads = THREADS.lock();
        if let Some(thread) = threads.iter_mut().find(|thread| thread.number == number) {
            thread.has_ended = true;
        }
    }
}

thread_local! {
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "nothing is recorded"))]
    static NOTED: NotedThread = const { NotedThread(Cell::new(0)) };
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
    let number = thread::number();
    // An error says that the thread was noted, and is ending.
    if NOTED.try_with(|noted| noted.0.replace(number)) != Ok(0) {
        return;
    }
    let thread = LaunchingThread {
        name: thread::name(),
        id: thread::system_id(),
    };
    let mut threads = THREADS.lock();
    if threads.len() >= MAX_THREADS
        && let Some(ended) = threads.iter().position(|thread| thread.has_ended)
    {
        threads.remove(ended);
    }
    if threads.len() >= MAX_THREADS || threads.try_reserve(1).is_err() {
        return;
    }
    threads.push(Noted {
        number,
        thread,
        has_ended: false,
    });
}

/// Returns how users know a thread; `None` if it was not noted, or has ended before many others.
pub(crate) fn launching_thread(number: u64) -> Option<LaunchingThread> {
    let threads = THREADS.lock();
    let found = threads.iter().find(|noted| noted.number == number);
    found.map(|noted| noted.thread.clone())
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn threads_that_have_ended_make_room_and_others_are_kept() {
        note();
        let number = || {
            note();
            thread::number()
        };
        let start = |name: usize| std::thread::Builder::new().name(format!("launching {name}"));
        let numbers: Vec<u64> = (0..MAX_THREADS + 8)
            .map(|name| start(name).spawn(number).expect("it starts"))
            .map(|thread| thread.join().expect("it does not panic"))
            .collect();
        let is_known = |number: u64| launching_thread(number).is_some();
        assert!(is_known(thread::number()), "it has not ended");
        assert!(numbers.last().is_some_and(|last| is_known(*last)));
        assert!(numbers.first().is_some_and(|first| !is_known(*first)));
        assert_eq!(THREADS.lock().len(), MAX_THREADS);
    }
}
