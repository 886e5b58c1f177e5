//! What a process does to itself that its profiler must neither be harmed by nor pass on: signals, limits, pipes
//! without a reader.

use std::fs;
use std::io;
use std::mem;
use std::process::exit;
use std::ptr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use profiler_runtime::{Profile, measure_execution_time_context};

fn measured() {
    for number in 0..100_u64 {
        measure_execution_time_context!("train/step", { std::hint::black_box(number) });
    }
}

/// The mode's name, where it is one of these.
pub(crate) fn run(mode: &str, _count: u64) -> bool {
    match mode {
        "sigwait" => wait_for_a_signal(),
        "ppoll" => wait_in_ppoll(),
        "threads" => show_masks(),
        "privileges" => show_privileges(),
        _ => return false,
    }
    true
}

/// Has the profiler's threads running: they are there before the program turns to its signals.
fn set_up() -> profiler_runtime::Profiler {
    let profiler = profiler_runtime::init().unwrap_or_else(|error| {
        eprintln!("init: {error}");
        exit(3)
    });
    measured();
    profiler_runtime::flush(Duration::from_secs(10));
    profiler
}

fn block(signal: libc::c_int) -> libc::sigset_t {
    // SAFETY: all bits zero is a value of the type, which `sigemptyset` makes a set; each call gets pointers to
    // sets that live longer than it.
    unsafe {
        let mut set = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        assert_eq!(
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, ptr::null_mut()),
            0
        );
        set
    }
}

fn send_to_self(signal: libc::c_int) {
    // SAFETY: plain numbers; the process is this one.
    assert_eq!(unsafe { libc::kill(libc::getpid(), signal) }, 0);
}

/// Every thread of the program blocks SIGTERM, as one does who waits for it with `sigwait`.
fn wait_for_a_signal() {
    let _profiler = set_up();
    let set = block(libc::SIGTERM);
    send_to_self(libc::SIGTERM);
    let mut signal = 0;
    // SAFETY: both live longer than the call.
    let error = unsafe { libc::sigwait(&raw const set, &raw mut signal) };
    assert_eq!(error, 0);
    println!("received {signal}");
}

/// The signal is to interrupt `ppoll`, where alone it is not blocked.
fn wait_in_ppoll() {
    extern "C" fn handler(_: libc::c_int) {}

    let _profiler = set_up();
    block(libc::SIGUSR1);
    // SAFETY: the handler does nothing; the structures live longer than the calls, and zero is a value of theirs.
    let (result, error) = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(libc::c_int) as usize;
        assert_eq!(
            libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()),
            0
        );
        send_to_self(libc::SIGUSR1);
        // A thread that does not block it has the time to take it.
        sleep(Duration::from_millis(200));
        let mut none = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        let limit = libc::timespec {
            tv_sec: 5,
            tv_nsec: 0,
        };
        let result = libc::ppoll(ptr::null_mut(), 0, &raw const limit, &raw const none);
        (result, io::Error::last_os_error())
    };
    assert_eq!(result, -1, "the wake-up is lost");
    assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    println!("woken");
}

/// What each thread blocks, in hexadecimal: the program's own before and after, then the others by name.
fn show_masks() {
    println!("before {}", mask("self").unwrap_or_default());
    let profiler = set_up();
    let profile = Profile::builder().start().ok();
    measured();
    println!("after {}", mask("self").unwrap_or_default());
    // Threads name themselves, and sessions start theirs, a moment later.
    let expected = [
        "profiler-collec",
        "profiler-log",
        "profiler-window",
        "profiler-export",
        "profiler-contro",
    ];
    let start = Instant::now();
    let threads = loop {
        let threads = threads();
        let is_there = |name: &&str| threads.iter().any(|(thread, _)| thread.starts_with(*name));
        if !profiler_runtime::is_enabled()
            || expected.iter().all(is_there)
            || start.elapsed() > Duration::from_secs(20)
        {
            break threads;
        }
        sleep(Duration::from_millis(10));
    };
    for (name, mask) in threads {
        println!("{name} {mask}");
    }
    drop((profile, profiler));
}

fn threads() -> Vec<(String, String)> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    tasks
        .filter_map(|task| {
            let task = task.ok()?.file_name().into_string().ok()?;
            let name = fs::read_to_string(format!("/proc/self/task/{task}/comm")).ok()?;
            Some((name.trim().to_owned(), mask(&format!("self/task/{task}"))?))
        })
        .filter(|(name, _)| name.starts_with("profiler-"))
        .collect()
}

fn mask(task: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{task}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("SigBlk:"))?;
    Some(line.trim().to_owned())
}

/// Whether the system says that the process may do more than who started it.
fn show_privileges() {
    // SAFETY: asks for a number that the kernel has given the process.
    let is_raised = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    println!("raised {is_raised}");
    measured();
}
