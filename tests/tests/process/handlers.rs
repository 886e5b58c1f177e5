//! Measured calls in signal handlers: they wait for nothing that the interrupted thread has, and each is in a row or counted
//! as refused.

#![cfg(all(target_os = "linux", not(feature = "strip")))]

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use profiler_tests::measuring;
use serde_json::Value;

/// What no program here needs that does not hang.
const DEADLINE: Duration = Duration::from_secs(200);

fn program(mode: &str, calls: u32) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_measured-program"));
    command.args([mode, &calls.to_string()]);
    for name in ["PROFILER_SUMMARY", "PROFILER_CUDA_STREAM"] {
        command.env_remove(name);
    }
    // A driver has locks of its own, for which a handler must not wait either.
    command.env("PROFILER_CUDA_LIBRARY", "/nowhere/libcuda.so.1");
    command
}

/// Runs a program, calls `meanwhile` as long as it runs, and returns what it printed.
fn run(command: &mut Command, mut meanwhile: impl FnMut()) -> (ExitStatus, String) {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut printed = child.stdout.take().expect("a pipe");
    let reader = thread::spawn(move || {
        let mut text = String::new();
        printed.read_to_string(&mut text).map(|_| text)
    });
    let status = end_of(&mut child, &mut meanwhile);
    (status, reader.join().expect("it ends").expect("text"))
}

fn end_of(child: &mut Child, meanwhile: &mut impl FnMut()) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a status") {
            return status;
        }
        if start.elapsed() > DEADLINE {
            child.kill().expect("it runs");
            panic!("the program hangs");
        }
        meanwhile();
        thread::sleep(Duration::from_millis(1));
    }
}

/// Checks that each call of the program's handlers is in a row or counted as refused. Returns how many were refused.
fn refused((status, printed): (ExitStatus, String)) -> u64 {
    assert!(status.success(), "{status}: {printed}");
    let (made, summary) = printed.split_once('\n').expect("two parts");
    let made: u64 = made.parse().expect("a number");
    let summary: Value = serde_json::from_str(summary).expect("JSON");
    let rows = summary["rows"].as_array().expect("rows");
    let of_handlers = rows.iter().filter(|row| {
        row["name"]
            .as_str()
            .is_some_and(|name| name.starts_with("handled"))
    });
    let counted: u64 = of_handlers.filter_map(|row| row["calls"].as_u64()).sum();
    let refused = summary["refused"].as_u64().unwrap_or(0);
    if measuring() {
        assert_eq!(counted + refused, made, "{counted} + {refused}");
    }
    refused
}

/// Lets a program that waits for a writer of this pipe find an empty file after a while.
fn open_and_close(pipe: &Path) {
    let nonblocking = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(pipe);
    match nonblocking {
        // The program is interrupted in the search, again and again.
        Ok(_writer) => thread::sleep(Duration::from_millis(20)),
        Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENXIO), "{error}"),
    }
}

/// The program looks for the library in a folder where that is a pipe, and so waits inside the search.
fn run_while_searching(mode: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("libcuda.so.1");
    let pipe = Command::new("mkfifo").arg(&library).status();
    assert!(pipe.is_ok_and(|status| status.success()));
    let mut command = program(mode, 2_000);
    command
        .env_remove("PROFILER_CUDA_LIBRARY")
        .env("LD_LIBRARY_PATH", folder.path());
    refused(run(&mut command, || open_and_close(&library)));
}

#[test]
fn a_call_that_interrupts_the_search_for_a_driver_does_not_wait_for_it() {
    run_while_searching("interrupted");
}

#[test]
fn a_call_on_a_stream_that_interrupts_the_search_for_a_driver_does_not_wait_for_it() {
    run_while_searching("interrupted-on-a-stream");
}

#[test]
fn calls_that_interrupt_the_profiler_anywhere_hang_in_no_program() {
    for round in 0..200 {
        let mode = ["interrupted", "interrupted-on-a-stream"][round % 2];
        let callers = ["0", "1"][round / 2 % 2];
        let mut command = program(mode, 100);
        refused(run(command.env("PROFILER_CALLERS", callers), || ()));
    }
}

#[test]
fn a_summary_says_how_many_calls_were_refused() -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("summary.txt");
    let mut refusals = 0;
    while refusals == 0 {
        let mut command = program("interrupted", 100);
        refusals = refused(run(command.env("PROFILER_SUMMARY", &path), || ()));
        if !measuring() {
            return Ok(());
        }
    }
    let table = std::fs::read_to_string(&path)?;
    let expected = "not measured, in no row: made while the thread was inside the profiler";
    assert!(table.contains(expected), "{table}");
    Ok(())
}
