//! The profiler takes no signal that is meant for the program, and none that its own writes raise reaches it.

#![cfg(all(target_os = "linux", not(feature = "strip")))]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use profiler_tests::measuring;

fn run(mode: &str, variables: &[(&str, &OsStr)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_measured-program"));
    for name in [
        "PROFILER_SUMMARY",
        "PROFILER_TENSORBOARD",
        "PROFILER_TRACE",
        "PROFILER_CONTROL",
        "PROFILER_SIGNAL",
    ] {
        command.env_remove(name);
    }
    command
        .arg(mode)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .expect("it runs")
}

/// Ended by itself, and said this.
fn said(output: &Output, expected: &str) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        output.status.signal(),
        None,
        "killed by a signal: {output:?}"
    );
    assert!(
        output.status.success() && stdout.contains(expected),
        "{output:?}"
    );
}

#[test]
fn a_signal_waits_for_the_thread_that_waits_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let board = [("PROFILER_TENSORBOARD", folder.path().as_os_str())];
    said(&run("sigwait", &board), "received 15");
}

#[test]
fn a_signal_interrupts_the_ppoll_of_the_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let board = [("PROFILER_TENSORBOARD", folder.path().as_os_str())];
    said(&run("ppoll", &board), "woken");
}

fn bit(signal: libc::c_int) -> u64 {
    1 << (signal - 1)
}

#[test]
fn each_thread_of_the_profiler_blocks_all_that_the_program_may_wait_for() {
    // Faults stay open: a logger's must reach the program's handler. The last two are the C library's own.
    let faults = [
        libc::SIGSEGV,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGSYS,
    ];
    let never = [libc::SIGKILL, libc::SIGSTOP, 32, 33];
    let open: u64 = faults.iter().chain(&never).map(|signal| bit(*signal)).sum();

    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let (board, trace, control) = (path("board"), path("trace.json"), path("control"));
    let output = run(
        "threads",
        &[
            ("PROFILER_TENSORBOARD", board.as_os_str()),
            ("PROFILER_TRACE", trace.as_os_str()),
            ("PROFILER_CONTROL", control.as_os_str()),
            ("PROFILER_SIGNAL", OsStr::new("USR2")),
        ],
    );
    said(&output, "before");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let line = |name: &str| {
        let mut lines = stdout.lines().filter_map(|line| line.split_once(' '));
        let found = lines.find(|(thread, _)| thread.starts_with(name));
        found.map(|(_, mask)| u64::from_str_radix(mask, 16).expect("a mask"))
    };
    assert_eq!(line("before"), line("after"), "the program's own: {stdout}");
    if !measuring() {
        return;
    }
    for name in ["profiler-log", "profiler-window", "profiler-export"] {
        assert_eq!(line(name), Some(!open), "{name}: {stdout}");
    }
    let others = stdout
        .lines()
        .filter(|line| line.starts_with("profiler-") && !line.starts_with("profiler-contro"));
    for line in others {
        assert!(line.ends_with(&format!(" {:016x}", !open)), "{stdout}");
    }
    // The one signal that the profiler was told to take.
    let own = open | bit(libc::SIGUSR2);
    assert_eq!(line("profiler-contro"), Some(!own), "{stdout}");
}

#[test]
fn a_write_over_the_limit_of_a_file_is_an_error_and_no_signal() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("out.json");
    for name in ["PROFILER_SUMMARY", "PROFILER_TENSORBOARD", "PROFILER_TRACE"] {
        let output = run("limited", &[(name, path.as_os_str())]);
        said(&output, "refused true");
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
}

#[test]
fn a_pipe_that_nobody_reads_is_an_error_and_no_signal() {
    let exits = |target: &Path| {
        let output = run("broken-pipe", &[("PROFILER_SUMMARY", target.as_os_str())]);
        assert_eq!(output.status.code(), Some(7), "{target:?}: {output:?}");
    };
    exits(Path::new("stderr"));
    exits(Path::new("stdout"));
    exits(Path::new("/dev/stderr"));
    // The warning of it goes there as well.
    exits(Path::new("/dev/null/no/file"));
}
