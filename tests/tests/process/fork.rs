//! A process that is forked while other threads are inside the profiler continues: nothing in it waits for a thread
//! that does not exist there, and its calls are counted.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use profiler_runtime::{
    TensorBoardLogger, flush, is_enabled, measure_execution_time, scope, set_enabled, summary,
};
use profiler_tests::child;
use profiler_tests::gpu::{Gpu, driver, on_a_thread, settle};
use profiler_tests::{if_measuring, measuring};

/// How many children there are.
const FORKS: usize = 400;
/// A child that takes longer hangs: it ends by the signal of its alarm.
const WATCHDOG_SECONDS: u32 = 60;

#[measure_execution_time(name = "fork: known")]
fn known() {}

#[measure_execution_time(name = "fork: logged", log = |_: &str, _: f64, _: u64| ())]
fn logged() {}

#[measure_execution_time(name = "fork: in the child")]
fn in_the_child() {}

/// Starts threads that hold every lock of the profiler now and then. Each fork finds them in the middle of that; they
/// stop when they have done their share.
fn disturb<'s, 'e: 's>(
    threads: &'s thread::Scope<'s, 'e>,
    forks: &'e Forks,
    share: usize,
    mut work: impl FnMut() + Send + 'e,
) {
    threads.spawn(move || {
        let mut done = 0;
        while !forks.are_over.load(Relaxed) {
            if done < share * forks.begun.load(Relaxed) {
                done += 1;
                work();
            } else {
                thread::park_timeout(Duration::from_millis(1));
            }
        }
    });
}

fn disturb_all<'s, 'e: 's>(threads: &'s thread::Scope<'s, 'e>, forks: &'e Forks) {
    // Each call takes the registry's lock, and one in 256 also registers a name while it holds it, up to the last forks. There
    // are no more new names, as each child summarises all of them, which would take most of the test's time.
    let mut calls = 0;
    disturb(threads, forks, 64, move || {
        calls += 1;
        drop(scope!(&format!("fork: name {}", calls / 256)));
    });
    disturb(threads, forks, 4, || {
        on_a_thread(|| {
            known();
            logged();
        });
    });
    disturb(threads, forks, 1, || drop(summary()));
    disturb(threads, forks, 1, || {
        logged();
        let _ = flush(Duration::from_millis(20));
    });
    disturb(threads, forks, 100, || set_enabled(is_enabled()));
}

/// How far the test has come.
#[derive(Default)]
struct Forks {
    begun: AtomicUsize,
    are_over: AtomicBool,
}

impl Forks {
    /// Runs `fork` as often as there are to be children.
    fn each(&self, mut fork: impl FnMut()) {
        // Where a child fails, too: the test would wait for the other threads.
        struct End<'f>(&'f AtomicBool);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                self.0.store(true, Relaxed);
            }
        }
        let _end = End(&self.are_over);
        for _ in 0..FORKS {
            self.begun.fetch_add(1, Relaxed);
            fork();
        }
    }
}

/// Forks; the child runs `work` and ends, by `exit` or at once, with whether that returned true.
#[track_caller]
fn fork_and(work: impl FnOnce() -> bool, exit: impl FnOnce(i32) -> i32) {
    // SAFETY: the child calls the profiler, which is what is tested, and exits.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "{}", std::io::Error::last_os_error());
    if child == 0 {
        // SAFETY: an alarm ends the process, as nothing here handles it.
        unsafe { libc::alarm(WATCHDOG_SECONDS) };
        let as_told = work();
        let status = exit(i32::from(!as_told));
        // SAFETY: ends the process at once.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: this process forked the child, and `status` may be written.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    assert!(
        !libc::WIFSIGNALED(status) || libc::WTERMSIG(status) != libc::SIGALRM,
        "the child hangs"
    );
    assert_eq!(status, 0);
}

/// Ends a child with all exit handlers, that of the profiler too.
///
/// Not with `std::process::exit`, which first removes the handler of stack overflows under the standard library's lock
/// for threads that are starting or ending: a thread of the parent may have held it during the fork.
fn with_exit_handlers(status: i32) -> i32 {
    // SAFETY: no other thread of this process runs that could exit as well.
    unsafe { libc::exit(status) }
}

/// Runs `work` on two threads at once. Returns `false` if the system refuses one.
///
/// These are no threads of the standard library: it has a lock for its threads that are starting or ending, which a
/// thread of the parent may have held during the fork.
fn on_two_threads<W: Fn() + Sync>(work: &W) -> bool {
    extern "C" fn run<W: Fn() + Sync>(work: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the address of the caller's `work`, which outlives this thread.
        let work = unsafe { &*work.cast::<W>() };
        work();
        std::ptr::null_mut()
    }
    let start = |_| {
        let mut thread: libc::pthread_t = 0;
        let address = std::ptr::from_ref(work).cast_mut().cast();
        // SAFETY: `run` gets the address that it expects, and the thread is joined below.
        let code =
            unsafe { libc::pthread_create(&raw mut thread, std::ptr::null(), run::<W>, address) };
        (code == 0).then_some(thread)
    };
    let started = [0, 1].map(start);
    // SAFETY: each was started above, and is joined once.
    let join = |thread| unsafe { libc::pthread_join(thread, std::ptr::null_mut()) } == 0;
    let ended = started.map(|thread| thread.is_some_and(join));
    ended == [true, true]
}

/// Does in a child whatever takes locks; returns whether what was measured is counted.
fn measure_in_child(also: impl Fn() + Sync) -> bool {
    let work = || {
        known();
        logged();
        in_the_child();
        also();
        for name in 0..4 {
            drop(scope!(&format!("fork: name {name} of a child")));
        }
    };
    work();
    on_two_threads(&work) && {
        let report = flush(Duration::from_secs(3600));
        let summary = summary();
        let calls = |name: &str| summary.row(name).map_or(0, |row| row.calls);
        report.unread == 0
            && calls("fork: in the child") == if_measuring(3)
            && calls("fork: name 3 of a child") == if_measuring(3)
            // Others may have been lost with a lock that was held.
            && calls("fork: known") >= if_measuring(3)
    }
}

#[test]
fn whatever_other_threads_held_a_child_goes_on() {
    check_children("0", || true);
}

#[test]
fn whatever_other_threads_held_a_child_counts_callers() {
    check_children("1", || {
        let functions = summary().call_tree().functions();
        let of_child = functions
            .iter()
            .find(|function| &*function.name == "fork: in the child");
        of_child.is_some_and(|function| function.calls == 3) || !measuring()
    });
}

/// Forks while other threads hold locks. `is_right` checks a child that has measured some calls.
fn check_children(callers: &str, is_right: impl Fn() -> bool) {
    if child::dir().is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let status = child::again(folder.path())
            .env("PROFILER_CALLERS", callers)
            .env("PROFILER_SUMMARY", "off")
            .status();
        assert!(status.expect("it runs").success());
        return;
    }
    // These names exist before the forks; calls of the children are counted only in the children.
    known();
    let forks = Forks::default();
    thread::scope(|threads| {
        disturb_all(threads, &forks);
        let child = || measure_in_child(|| ()) && is_right();
        forks.each(|| fork_and(child, with_exit_handlers));
    });
    let calls = summary()
        .row("fork: in the child")
        .map_or(0, |row| row.calls);
    assert_eq!(calls, 0, "the parent has not called it");
}

#[test]
fn a_child_writes_nothing_into_its_parents_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let logger = TensorBoardLogger::new(folder.path()).expect("a log");
    let path = logger.path();
    let taken = logger.add_scalar("fork: once", 1.0, 1);
    taken.expect("it waits to be written");
    // The child drops its copy, and then the parent its own.
    let in_child = move || {
        let refused = logger.add_scalar("fork: never", 1.0, 2).is_err();
        refused && logger.flush().is_err() && { logger }.lost() == 1
    };
    fork_and(in_child, |status| status);
    let written = std::fs::read(path).expect("a file");
    let count = |tag: &[u8]| written.windows(tag.len()).filter(|at| *at == tag).count();
    assert_eq!((count(b"fork: once"), count(b"fork: never")), (1, 0));
}

#[test(on = driver().keeps_events())]
fn whatever_the_gpu_was_asked_a_child_goes_on() {
    let gpu = Gpu::new(0);
    let forks = Forks::default();
    let on_gpu = || {
        let stream = gpu.stream();
        for _ in 0..8 {
            drop(scope!("fork: on the gpu", stream = &stream));
        }
    };
    on_gpu();
    settle();
    thread::scope(|threads| {
        disturb_all(threads, &forks);
        disturb(threads, &forks, 2, || on_a_thread(on_gpu));
        disturb(threads, &forks, 2, || on_a_thread(on_gpu));
        let stream = gpu.stream();
        forks.each(|| {
            // A scope that is open at the fork ends in both processes.
            let open = scope!("fork: open on the gpu", stream = &stream);
            let in_child = || {
                drop(open);
                measure_in_child(|| drop(scope!("fork: on the gpu", stream = &stream)))
            };
            // The driver has an exit handler, and locks of its own that no thread releases in the child.
            fork_and(in_child, |status| status);
        });
    });
    settle();
}
