//! Actions of a process that must neither harm its profiler nor spread through it: signals, limits, pipes without a
//! reader.

use std::fs;
use std::io;
use std::mem;
use std::process::exit;
use std::ptr;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use profiler_runtime::{Profile, TensorBoardLogger, measure_execution_time_context, scope};

fn measured() {
    for number in 0..100_u64 {
        measure_execution_time_context!("train/step", { std::hint::black_box(number) });
    }
}

/// The mode's name, where it is one of these.
pub(crate) fn run(mode: &str, count: u64) -> bool {
    match mode {
        // The exit handler waits 2 s for loggers, which are too few for a busy machine.
        "flushed-steps" => {
            crate::steps(count);
            profiler_runtime::flush(Duration::from_secs(600));
        }
        "running-threads" => log_until_the_end(),
        "sigwait" => wait_for_a_signal(),
        "ppoll" => wait_in_ppoll(),
        "threads" => show_masks(),
        "limited" => write_over_the_limit(),
        "broken-pipe" => break_standard_error(),
        "full-stderr" => fill_standard_error(),
        "privileges" => show_privileges(),
        "long-table" => {
            for number in 0..count {
                let _scope = scope!(format!("a name that fills a line of the table {number}"));
            }
        }
        _ => return false,
    }
    true
}

/// Returns while threads log.
fn log_until_the_end() {
    for _ in 0..4 {
        std::thread::spawn(|| {
            loop {
                measured();
                sleep(Duration::from_micros(500));
            }
        });
    }
    sleep(Duration::from_millis(400));
}

/// Has the profiler's threads running: they are there before the program turns to its signals.
fn set_up() -> profiler_runtime::ProfilerGuard {
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
    // SAFETY: the handler does nothing; the structures live longer than the calls, and zero is a valid value of each field.
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

/// Prints the signal mask of each thread in hexadecimal: this thread's before and after, then the others' by name.
fn show_masks() {
    println!("before {}", mask("self").unwrap_or_default());
    let profiler = set_up();
    let profile = Profile::builder().start().ok();
    measured();
    println!("after {}", mask("self").unwrap_or_default());
    // Threads name themselves, and sessions start their threads, a moment later.
    let expected = [
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

fn default_action(signal: libc::c_int) {
    // SAFETY: no handler is installed, only the system's own action.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

fn limit_files(bytes: u64) {
    default_action(libc::SIGXFSZ);
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: the limit lives longer than the call.
    let error = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    assert_eq!(error, 0);
}

/// All that the profiler writes goes over the limit, on its threads and on the program's, with the default action.
fn write_over_the_limit() {
    let folder = std::env::temp_dir().join(format!("limited-{}", std::process::id()));
    let logger = TensorBoardLogger::new(&folder).map(Arc::new);
    let ((), trace) = Profile::builder().run(|_| measured());
    limit_files(64);
    let _profiler = profiler_runtime::init();
    measured();
    profiler_runtime::flush(Duration::from_secs(10));
    let mut refused = Vec::new();
    if let Ok(logger) = logger {
        let _ = logger.add_scalar("loss", 0.5, 1);
        refused.push(logger.flush().is_err());
        drop(logger);
    }
    if let Ok(trace) = trace {
        refused.push(
            trace
                .export_chrome_trace(folder.join("trace.json"))
                .is_err(),
        );
    }
    let _ = fs::remove_dir_all(folder);
    println!("refused {}", refused.iter().all(|refused| *refused));
}

fn new_pipe() -> [libc::c_int; 2] {
    let mut ends = [0; 2];
    // SAFETY: there is room for both numbers.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    ends
}

/// Makes standard error and output pipes without a reader, with the default action for the signal.
fn break_standard_error() {
    default_action(libc::SIGPIPE);
    measured();
    let profiler = profiler_runtime::init();
    let ends = new_pipe();
    // SAFETY: the numbers are those of the pipe; the standard streams are this program's to replace.
    unsafe {
        libc::dup2(ends[1], 1);
        libc::dup2(ends[1], 2);
        libc::close(ends[0]);
        libc::close(ends[1]);
    }
    // The guard writes on this thread, the exit handler once more.
    drop(profiler);
    measured();
    exit(7);
}

/// Standard error takes no more bytes, and is blocking.
fn fill_standard_error() {
    measured();
    let zeros = [b'.'; 4096];
    // SAFETY: the flags are put back; the bytes live longer than the call.
    unsafe {
        let flags = libc::fcntl(2, libc::F_GETFL);
        libc::fcntl(2, libc::F_SETFL, flags | libc::O_NONBLOCK);
        while libc::write(2, zeros.as_ptr().cast(), zeros.len()) > 0 {}
        libc::fcntl(2, libc::F_SETFL, flags & !libc::O_NONBLOCK);
    }
}

/// Prints whether the system reports that the process has more privileges than the user who started it.
fn show_privileges() {
    // SAFETY: asks for a number that the kernel has given the process.
    let is_raised = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    println!("raised {is_raised}");
    measured();
}
