//! A program that ends, forks or has others beside it loses no window: what is open at its end is handed over, a
//! forked process neither hangs nor waits, and no process writes over what another one wrote.

#![cfg(all(unix, not(feature = "strip")))]

use profiler_tests::child;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use profiler_runtime::session::ProfileError;
use profiler_runtime::{Profile, Schedule, Trace, scope, step};

const SCOPE: &str = "end: scope";

fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = files
        .map(|file| {
            file.expect("a file")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| name.contains("trace"))
        .collect();
    names.sort();
    names
}

fn again(folder: &Path, variables: &[(&str, &str)]) -> Command {
    let mut command = child::again(folder);
    for variable in [
        "PROFILER_ENABLED",
        "PROFILER_TRACE",
        "PROFILER_SCHEDULE",
        "PROFILER_STEP",
        "RANK",
        "WORLD_SIZE",
    ] {
        command.env_remove(variable);
    }
    for (name, value) in variables {
        command.env(name, value.replace("DIR", &folder.display().to_string()));
    }
    command
}

#[test]
fn a_window_that_is_open_at_the_end_is_handed_over() {
    if let Some(folder) = child::dir() {
        let profile = Profile::builder()
            .on_trace_ready(move |trace: &Trace| {
                let mine = trace.events().filter(|event| event.name() == SCOPE);
                fs::write(folder.join("trace"), mine.count().to_string())
            })
            .start()
            .expect("started");
        (0..7).for_each(|_| drop(scope!("end: scope")));
        // Its destructor does not run.
        std::mem::forget(profile);
        std::process::exit(0);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let status = again(folder.path(), &[]).status().expect("it runs");
    assert!(status.success());
    let held = fs::read_to_string(folder.path().join("trace")).expect("it was handed over");
    assert_eq!(held, "7");
}

#[test]
fn a_forked_process_neither_hangs_nor_waits() {
    if child::dir().is_some() {
        let profile = Profile::builder()
            .schedule(Schedule::new().active(1))
            .on_trace_ready(|_: &Trace| ())
            .start()
            .expect("started");
        let is_over = AtomicBool::new(false);
        thread::scope(|threads| {
            // This thread holds every lock now and then.
            threads.spawn(|| {
                while !is_over.load(Relaxed) {
                    drop(scope!("end: scope"));
                    profile.step();
                }
            });
            for _ in 0..100 {
                // SAFETY: the child calls the profiler, which is what is tested, and exits.
                match unsafe { libc::fork() } {
                    0 => in_child(&profile),
                    child => {
                        let mut status = 0;
                        // SAFETY: this process forked the child, and `status` may be written.
                        unsafe { libc::waitpid(child, &raw mut status, 0) };
                        assert_eq!(status, 0);
                    }
                }
            }
            is_over.store(true, Relaxed);
        });
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let status = again(folder.path(), &[]).status().expect("it runs");
    assert!(status.success());
}

/// Ends the process; a lock that is waited for ends it by the alarm.
fn in_child(profile: &Profile) -> ! {
    // SAFETY: an alarm ends the process, as nothing here handles it.
    unsafe { libc::alarm(20) };
    for _ in 0..100 {
        profile.step();
        step!();
    }
    profile.stop();
    let waited = profile.wait(Duration::from_secs(3600));
    let refused = Profile::builder().start();
    let as_told = !waited && matches!(refused, Err(ProfileError::Forked));
    // SAFETY: ends the process at once, without handlers of the parent's.
    unsafe { libc::_exit(i32::from(!as_told)) }
}

/// The parent has the profiler's threads, but has measured no call: the first one of the child starts the profiler.
#[test]
#[cfg(target_os = "linux")]
fn the_first_measured_call_of_a_forked_process_starts_no_thread() {
    if child::dir().is_some() {
        let profile = Profile::builder().start().expect("started");
        // SAFETY: the child calls the profiler, which is what is tested, and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            // SAFETY: an alarm ends the process, as nothing here handles it.
            unsafe { libc::alarm(20) };
            drop(scope!("end: scope"));
            step();
            let threads = fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
            // SAFETY: ends the process at once, without handlers of the parent's.
            unsafe { libc::_exit(i32::from(threads != 1)) }
        }
        let mut status = 0;
        // SAFETY: this process forked the child, and `status` may be written.
        unsafe { libc::waitpid(child, &raw mut status, 0) };
        assert_eq!(status, 0);
        drop(profile);
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let session = ("PROFILER_TRACE", "DIR/trace.json");
    for variables in [
        &[session][..],
        &[session, ("PROFILER_CONTROL", "DIR/control")],
    ] {
        let status = again(folder.path(), variables).status().expect("it runs");
        assert!(status.success(), "{variables:?}");
    }
}

#[test]
fn no_process_writes_over_what_another_one_wrote() {
    if let Some(folder) = child::dir() {
        drop(scope!("end: scope"));
        if std::env::var("INNER").is_err() {
            // It has the same variables, and ends first.
            let inner = child::again(&folder).env("INNER", "1").status();
            assert!(inner.expect("it runs").success());
        }
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let variables = [("PROFILER_TRACE", "DIR/trace.json")];
    for _run in 0..2 {
        // A run that comes later replaces what the one before has left.
        let status = again(folder.path(), &variables).status().expect("it runs");
        assert!(status.success());
        let names: Vec<String> = names(folder.path());
        assert!(names.contains(&"trace.json".to_owned()), "{names:?}");
    }
    let names = names(folder.path());
    assert_eq!(
        names.len(),
        3,
        "one of each outer process beside: {names:?}"
    );
}

#[test]
fn each_rank_of_a_job_has_a_file_of_its_own() {
    if child::dir().is_some() {
        return drop(scope!("end: scope"));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let ranks: Vec<_> = ["0", "1"]
        .into_iter()
        .map(|rank| {
            let variables = [
                ("PROFILER_TRACE", "DIR/trace.json"),
                ("RANK", rank),
                ("WORLD_SIZE", "2"),
            ];
            again(folder.path(), &variables).spawn().expect("it runs")
        })
        .collect();
    for mut rank in ranks {
        assert!(rank.wait().expect("it ends").success());
    }
    assert_eq!(
        names(folder.path()),
        ["trace_rank0.json", "trace_rank1.json"]
    );
}
