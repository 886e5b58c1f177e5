//! A program with annotations and hardly another line of the profiler's: what it does is said by its
//! first argument.

#[cfg(target_os = "linux")]
#[path = "interrupted.rs"]
mod interrupted;
#[cfg(target_os = "linux")]
#[path = "own_signals.rs"]
mod own_signals;
#[cfg(target_os = "linux")]
#[path = "program_process.rs"]
mod program_process;

use std::env;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::sleep;
use std::time::Duration;

use profiler_runtime::{measure_execution_time, scope};

#[measure_execution_time]
fn load(items: u64) -> u64 {
    (0..items).sum()
}

#[measure_execution_time(name = "train/step")]
fn step(number: u64) -> u64 {
    load(number % 100) + load(10)
}

fn steps(count: u64) {
    for number in 0..count {
        std::hint::black_box(step(number));
    }
}

fn until(file: &str) {
    while !std::path::Path::new(file).exists() {
        steps(1);
        sleep(Duration::from_millis(1));
    }
}

fn ready_until(file: &str) {
    steps(1);
    println!("ready");
    until(file);
}

/// Measures in a forked child until a file exists, and waits for the child.
fn fork_until(file: &str) {
    // SAFETY: no other thread of the program runs; the child measures and exits.
    match unsafe { libc::fork() } {
        0 => {
            let _scope = scope!("in the child");
            until(file);
            exit(0);
        }
        child => {
            let mut status = 0;
            // SAFETY: this process forked the child, and `status` may be written.
            unsafe { libc::waitpid(child, &raw mut status, 0) };
        }
    }
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Calls as many names on two threads after each other, and returns the memory that this took, in KiB.
fn memory_of_names(count: u64) -> u64 {
    let before = resident_kib();
    for _ in 0..2 {
        let thread = std::thread::spawn(move || {
            for number in 0..count {
                let _scope = scope!(format!("name {number}"));
            }
        });
        let _ = thread.join();
    }
    resident_kib().saturating_sub(before)
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let count = arguments
        .get(2)
        .and_then(|count| count.parse().ok())
        .unwrap_or(100);
    match arguments.get(1).map_or("", String::as_str) {
        "steps" => steps(count),
        // In the folder that the argument names.
        "elsewhere" => {
            steps(count);
            let moved = arguments.get(3).map(env::set_current_dir);
            assert!(matches!(moved, Some(Ok(()))), "{moved:?}");
        }
        // With the guard that `init` gives.
        "guard" => match profiler_runtime::init() {
            Ok(_profiler) => steps(count),
            Err(error) => {
                eprintln!("init: {error}");
                exit(3);
            }
        },
        // Leaves without running destructors.
        "exit" => {
            steps(count);
            exit(7);
        }
        "panic" => {
            steps(count);
            let _scope = scope!("doomed");
            panic!("as asked");
        }
        // Until it is killed.
        "forever" => {
            println!("running");
            loop {
                steps(1);
                sleep(Duration::from_millis(1));
            }
        }
        // Until the file that the argument names exists.
        "until" => until(&arguments[3]),
        // The same, after a line that says that it measures.
        "ready-until" => ready_until(&arguments[3]),
        // A forked child does so, and the parent waits for it.
        "fork-until" => {
            steps(count);
            fork_until(&arguments[3]);
        }
        // Another thread holds standard output for as long as it lives.
        "stdout-held" => {
            steps(count);
            let (held, is_held) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let _held = std::io::stdout().lock();
                let _ = held.send(());
                std::thread::park();
            });
            let _ = is_held.recv();
        }
        "fork" => {
            steps(count);
            // SAFETY: the child only does what may be done after a fork: it exits.
            match unsafe { libc::fork() } {
                0 => exit(0),
                child => {
                    let mut status = 0;
                    // SAFETY: this process forked the child, and `status` may be written.
                    unsafe { libc::waitpid(child, &raw mut status, 0) };
                }
            }
        }
        "two-loggers" => {
            let good = Arc::new(AtomicU64::new(0));
            let counter = Arc::clone(&good);
            let _profiler = profiler_runtime::builder()
                .logger(|_: &str, _: f64, _: u64| Err::<(), _>("refused"))
                .logger(move |_: &str, _: f64, _: u64| _ = counter.fetch_add(1, Relaxed))
                .init();
            steps(count);
            profiler_runtime::flush(Duration::from_secs(10));
            println!("{}", good.load(Relaxed));
        }
        // As many names as are asked for, on two threads after each other; says what that took.
        "names" => println!("{}", memory_of_names(count)),
        // Uses up all descriptors before it ends.
        "descriptors" => {
            steps(count);
            let mut open = Vec::new();
            while let Ok(file) = std::fs::File::open("/dev/null") {
                open.push(file);
            }
            std::mem::forget(open);
        }
        // A guard that goes at once.
        "guard-lost" => {
            let _ = profiler_runtime::init();
            steps(count);
        }
        "nothing" => {}
        // Until signal handlers have made so many measured calls.
        #[cfg(target_os = "linux")]
        "interrupted" => interrupted::run(count, 100, false),
        #[cfg(target_os = "linux")]
        "interrupted-on-a-stream" => interrupted::run(count, 100, true),
        #[cfg(target_os = "linux")]
        other if program_process::run(other, count) => {}
        #[cfg(target_os = "linux")]
        other if own_signals::run(other) => {}
        other => {
            eprintln!("unknown: {other}");
            exit(2);
        }
    }
}
