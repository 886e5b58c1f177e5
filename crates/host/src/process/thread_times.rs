//! What the system's scheduler says of other threads of the process, without their doing.

/// For how long a thread has run on a processor since it began, and for how long it was ready to and waited for one, in
/// nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// Up to the call.
    pub running_ns: u64,
    /// Up to when it last got a processor.
    pub ready_ns: u64,
}

impl ThreadTimes {
    /// Reads the times of the thread with this [`system_id`](super::thread::system_id). Returns `None` if it has ended, or
    /// the system does not say both: to take a time that is not known for none would turn a wait for a processor into sleep.
    ///
    /// The time on a processor is that of the thread's clock, since `schedstat` has it only up to the last tick of the
    /// scheduler, some milliseconds ago.
    #[cfg(target_os = "linux")]
    pub fn of(system_id: u64) -> Option<Self> {
        /// The clock counts the time on a processor, of one thread: `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED` in Linux.
        const CLOCK_OF_THREAD: libc::clockid_t = 6;

        let id = libc::pid_t::try_from(system_id).ok().filter(|id| *id > 0)?;
        // The other bits are the complement of the thread's number, as in what `pthread_getcpuclockid` returns.
        let running_ns = super::processor_time::read(!id << 3 | CLOCK_OF_THREAD)?;
        let statistics = std::fs::read_to_string(format!("/proc/self/task/{id}/schedstat"));
        Self::read(running_ns, &statistics.ok()?)
    }

    #[cfg(any(target_os = "linux", test))]
    fn read(running_ns: u64, statistics: &str) -> Option<Self> {
        Some(Self {
            running_ns,
            ready_ns: ready_ns(statistics)?,
        })
    }

    /// Returns `None`: only Linux is asked.
    #[cfg(not(target_os = "linux"))]
    pub fn of(_system_id: u64) -> Option<Self> {
        None
    }
}

/// Returns `true` if the thread with this [`system_id`](super::thread::system_id) is neither on a processor nor ready to run: it
/// sleeps, or waits for something. Returns `None` if it has ended.
#[cfg(target_os = "linux")]
pub fn is_off_processor(system_id: u64) -> Option<bool> {
    use std::io::Read;
    // The state comes after the number and a name of at most 15 bytes.
    let mut line = [0; 64];
    let mut file = std::fs::File::open(format!("/proc/self/task/{system_id}/stat")).ok()?;
    let length = file.read(&mut line).ok()?;
    is_off(&String::from_utf8_lossy(&line[..length]))
}

/// Returns `None`: only Linux is asked.
#[cfg(not(target_os = "linux"))]
pub fn is_off_processor(_system_id: u64) -> Option<bool> {
    None
}

/// Reads `id (name) state …`. The name may have parentheses.
#[cfg(any(target_os = "linux", test))]
fn is_off(line: &str) -> Option<bool> {
    let (_, rest) = line.rsplit_once(')')?;
    Some(rest.trim_start().chars().next()? != 'R')
}

/// Reads `running waited slices`.
#[cfg(any(target_os = "linux", test))]
fn ready_ns(statistics: &str) -> Option<u64> {
    statistics.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_of_the_statistics_is_the_time_spent_waiting() {
        assert_eq!(ready_ns("15 7 3\n"), Some(7));
        assert_eq!(ready_ns(""), None);
        assert_eq!(ready_ns("15"), None);
        let known = ThreadTimes::read(9, "15 7 3").map(|times| (times.running_ns, times.ready_ns));
        assert_eq!(known, Some((9, 7)));
        assert_eq!(ThreadTimes::read(9, ""), None, "none is not zero");
    }

    #[test]
    fn a_thread_is_off_the_processor_in_any_state_but_running() {
        assert_eq!(is_off("7 (a) R) R 1 2"), Some(false));
        assert_eq!(is_off("7 (a (R) S 1 2"), Some(true));
        assert_eq!(is_off("7 (a) D 1 2"), Some(true));
        assert_eq!(is_off("7 (a)"), None);
        assert_eq!(is_off(""), None);
    }

    #[cfg(all(target_os = "linux", not(miri)))]
    #[test]
    fn another_thread_that_works_is_told_from_one_that_sleeps() {
        use std::sync::mpsc::{Sender, channel};
        use std::thread;

        use crate::process::thread::{processor_time, system_id};

        const WORK_NS: u64 = 20_000_000;
        let (send, receive) = channel();
        let start = |work_ns, send: Sender<u64>| {
            let (end, ends) = channel::<()>();
            let run = move || {
                let begin = processor_time();
                while processor_time() - begin < work_ns {}
                let _ = send.send(system_id().expect("it is Linux"));
                let _ = ends.recv();
            };
            (thread::spawn(run), end)
        };
        for (work_ns, is_working) in [(WORK_NS, true), (0, false)] {
            let (thread, end) = start(work_ns, send.clone());
            let id = receive.recv().expect("it sends its number");
            let times = ThreadTimes::of(id).expect("it lives");
            assert_eq!(times.running_ns >= WORK_NS, is_working, "{times:?}");
            // It waits at some time, in `recv`.
            while is_off_processor(id) != Some(true) {}
            drop(end);
            thread.join().expect("it ends");
        }
        assert_eq!(ThreadTimes::of(u64::MAX), None);
        assert_eq!(is_off_processor(u64::MAX), None);
        let this = system_id().and_then(is_off_processor);
        assert_eq!(this, Some(false), "it reads its own state");
    }
}
