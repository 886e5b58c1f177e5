//! A signal that would end the program has the outputs written first, unless the program does something about it.

#![cfg(all(target_os = "linux", not(feature = "strip")))]

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// No end of a program takes so long.
const HANGS: Duration = Duration::from_secs(60);

fn program(arguments: &[&str], folder: &Path, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_measured-program"));
    for name in [
        "PROFILER_SUMMARY",
        "PROFILER_TRACE",
        "PROFILER_TENSORBOARD",
        "RANK",
    ] {
        command.env_remove(name);
    }
    command
        .args(arguments)
        .current_dir(folder)
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Who runs the tests may ignore signals, as a shell does for what runs in the background.
    let heed = || {
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: sets a disposition of this process, with constants.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: calls only `signal`, which is safe between `fork` and `exec`.
    unsafe { command.pre_exec(heed) };
    command
}

/// Starts a program, and returns it once it has said that it measures.
fn started(mut command: Command) -> Child {
    let mut child = command.spawn().expect("it runs");
    let stdout = child.stdout.take().expect("a pipe");
    let mut reader = BufReader::new(stdout);
    let mut line = String::new();
    reader.read_line(&mut line).expect("text");
    assert_eq!(line, "ready\n");
    child.stdout = Some(reader.into_inner());
    child
}

fn send(signal: libc::c_int, process: u32) {
    let process = libc::pid_t::try_from(process).expect("a process id");
    // SAFETY: the process is a child that was not waited for, or one of it.
    assert_eq!(unsafe { libc::kill(process, signal) }, 0);
}

fn end(mut child: Child) -> Output {
    let start = Instant::now();
    while child.try_wait().expect("it is ours").is_none() {
        if start.elapsed() > HANGS {
            let _ = child.kill();
            panic!("it hangs");
        }
        sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("it has ended")
}

const UNTIL: [&str; 3] = ["ready-until", "1", "never"];

#[test(measuring)]
fn outputs_are_written_and_the_program_dies_of_the_signal() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let variables = [
            ("PROFILER_SUMMARY", "s.json"),
            ("PROFILER_TRACE", "t.json"),
            ("PROFILER_TENSORBOARD", "board"),
        ];
        let child = started(program(&UNTIL, folder, &variables));
        send(signal, child.id());
        let output = end(child);
        assert_eq!(output.status.signal(), Some(signal), "{output:?}");
        let summary = fs::read(folder.join("s.json")).expect("it was written");
        let summary: Value = serde_json::from_slice(&summary).expect("a whole summary");
        assert_eq!(summary["is_last"], true);
        let trace = fs::read(folder.join("t.json")).expect("it was written");
        let trace: Value = serde_json::from_slice(&trace).expect("a whole trace");
        assert!(
            trace["traceEvents"]
                .as_array()
                .is_some_and(|events| !events.is_empty())
        );
        assert_eq!(
            fs::read_dir(folder.join("board")).expect("a log").count(),
            1
        );
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.starts_with("profiler: wrote t.json, s.json and board"),
            "{stderr}"
        );
    }
}

#[test(measuring)]
fn without_an_output_or_by_the_variable_a_signal_is_left_alone() {
    for variables in [
        &[][..],
        &[("PROFILER_SUMMARY", "s.json"), ("PROFILER_SIGNALS", "off")],
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let child = started(program(&UNTIL, folder.path(), variables));
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it runs");
        let caught = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:\t"));
        let caught = u64::from_str_radix(caught.expect("a set"), 16).expect("a number");
        let bit = |signal: libc::c_int| 1_u64 << (signal - 1);
        assert_eq!(
            caught & (bit(libc::SIGINT) | bit(libc::SIGTERM) | bit(libc::SIGHUP)),
            0
        );
        send(libc::SIGTERM, child.id());
        assert_eq!(end(child).status.signal(), Some(libc::SIGTERM));
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }
}

#[test(measuring)]
fn a_program_that_handles_the_signal_itself_sees_no_difference() {
    for mode in [
        "handles-before",
        "handles-after",
        "registers-before",
        "registers-after",
        "reads-a-descriptor",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let child = started(program(
            &[mode],
            folder.path(),
            &[("PROFILER_SUMMARY", "s.json")],
        ));
        send(libc::SIGTERM, child.id());
        let output = end(child);
        assert_eq!(output.status.code(), Some(5), "{mode}: {output:?}");
        assert_eq!(output.stdout, b"handled\n", "{mode}");
        assert_eq!(output.stderr, b"profiler: wrote s.json\n", "{mode}");
    }
}

#[test(measuring)]
fn an_ignored_signal_stays_ignored() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = program(&UNTIL, folder.path(), &[("PROFILER_SUMMARY", "s.json")]);
    // As `nohup` does.
    let ignore = || {
        // SAFETY: a call that a forked child may make.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
        Ok(())
    };
    // SAFETY: the closure makes one such call.
    unsafe { command.pre_exec(ignore) };
    let mut child = started(command);
    send(libc::SIGHUP, child.id());
    sleep(Duration::from_millis(50));
    assert!(child.try_wait().expect("it is ours").is_none());
    send(libc::SIGTERM, child.id());
    assert_eq!(end(child).status.signal(), Some(libc::SIGTERM));
}

#[test(measuring)]
fn the_signal_that_starts_and_stops_the_recording_does_only_that() {
    let folder = tempfile::tempdir().expect("a folder");
    let variables = [("PROFILER_TRACE", "t.json"), ("PROFILER_SIGNAL", "HUP")];
    let mut child = started(program(&UNTIL, folder.path(), &variables));
    send(libc::SIGHUP, child.id());
    sleep(Duration::from_millis(300));
    assert!(child.try_wait().expect("it is ours").is_none());
    send(libc::SIGTERM, child.id());
    assert_eq!(end(child).status.signal(), Some(libc::SIGTERM));
}

#[test(measuring)]
fn a_forked_child_dies_at_once_and_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let arguments = ["fork-until", "1", "never"];
    let command = &mut program(&arguments, folder, &[("PROFILER_SUMMARY", "s.json")]);
    let parent = command.spawn().expect("it runs");
    let children = format!("/proc/{0}/task/{0}/children", parent.id());
    let start = Instant::now();
    let child = loop {
        let child = fs::read_to_string(&children).ok();
        if let Some(child) = child.and_then(|child| child.trim().parse::<u32>().ok()) {
            break child;
        }
        assert!(start.elapsed() < HANGS, "it has no child");
        sleep(Duration::from_millis(1));
    };
    send(libc::SIGTERM, child);
    // The parent waits for the child, and ends by itself.
    let output = end(parent);
    assert!(output.status.success(), "{output:?}");
    let files = fs::read_dir(folder).expect("a folder").count();
    assert_eq!(files, 1, "that of the parent");
}

#[test(measuring)]
fn a_second_signal_ends_the_program_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new("mkfifo")
        .arg(folder.path().join("fifo"))
        .status();
    assert!(made.is_ok_and(|made| made.success()));
    // Nobody reads the FIFO, so the first signal has the program wait for its reader. A machine that is busy may let that pass.
    let second_counts = || {
        let variables = [("PROFILER_SUMMARY", "fifo")];
        let child = started(program(&UNTIL, folder.path(), &variables));
        send(libc::SIGTERM, child.id());
        sleep(Duration::from_millis(50));
        send(libc::SIGINT, child.id());
        end(child).status.signal() == Some(libc::SIGINT)
    };
    assert!((0..5).any(|_| second_counts()));
}

#[test(measuring)]
fn an_output_that_cannot_be_written_does_not_keep_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let made = Command::new("mkfifo")
        .arg(folder.path().join("fifo"))
        .status();
    assert!(made.is_ok_and(|made| made.success()));
    let child = started(program(
        &UNTIL,
        folder.path(),
        &[("PROFILER_SUMMARY", "fifo")],
    ));
    send(libc::SIGTERM, child.id());
    assert_eq!(end(child).status.signal(), Some(libc::SIGTERM));
}
