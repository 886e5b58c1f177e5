//! The profiler starts with the first measured call, and with each public function that needs it running: a program that
//! calls nothing else gets what its environment asks for, and its windows end with it.

#![cfg(all(unix, not(feature = "strip")))]

use std::fs;
use std::path::Path;
use std::process::Output;
use std::time::Duration;

use profiler_runtime::{Profile, Schedule, Trace, init, is_enabled, pause, set_enabled, step};
use profiler_tests::child;

/// The variable that names the action of the child.
const ACTION: &str = "PROFILER_TESTS_ACTION";

/// Runs this test again in a process that does `action` alone, with variables; `DIR` in their values is `folder`.
fn run(folder: &Path, action: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = child::again(folder);
    for variable in ["PROFILER_ENABLED", "PROFILER_SUMMARY", "PROFILER_TRACE"] {
        command.env_remove(variable);
    }
    command.env(ACTION, action);
    for (name, value) in variables {
        command.env(name, value.replace("DIR", &folder.display().to_string()));
    }
    let output = command.output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{action}: {stderr}");
    output
}

/// Calls one public function, and ends the process without running destructors.
fn act(action: &str) -> ! {
    match action {
        "set_enabled" => set_enabled(true),
        "pause" => pause(|| ()),
        "is_enabled" => assert!(is_enabled()),
        "step" => step(),
        "init" => std::mem::forget(init().expect("set up")),
        "nothing" => {}
        other => panic!("unknown action {other}"),
    }
    std::process::exit(0);
}

#[test]
fn each_public_function_starts_what_the_environment_asks_for() {
    if child::dir().is_some() {
        act(&std::env::var(ACTION).expect("an action"));
    }
    let variables = [
        ("PROFILER_ENABLED", "1"),
        ("PROFILER_SUMMARY", "DIR/summary.json"),
        ("PROFILER_TRACE", "DIR/trace.json"),
    ];
    for action in ["set_enabled", "pause", "is_enabled", "step", "init"] {
        let folder = tempfile::tempdir().expect("a folder");
        run(folder.path(), action, &variables);
        for file in ["summary.json", "trace.json"] {
            let exists = folder.path().join(file).exists();
            assert!(exists, "{action} leaves {file}");
        }
    }
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), "nothing", &variables);
    assert!(!folder.path().join("summary.json").exists());
}

#[test]
fn a_session_without_a_measured_call_ends_with_the_program() {
    if let Some(folder) = child::dir() {
        let profile = Profile::builder()
            .schedule(Schedule::new().active(2))
            .on_trace_ready(move |trace: &Trace| {
                fs::write(folder.join("window"), trace.events().count().to_string())
            })
            .start()
            .expect("started");
        profile.step();
        // Its destructor does not run.
        std::mem::forget(profile);
        std::process::exit(0);
    }
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), "session", &[]);
    let events = fs::read_to_string(folder.path().join("window")).expect("a window was delivered");
    assert_eq!(events, "0");
}

#[test]
fn a_control_file_starts_recording_while_measuring_is_off() {
    if let Some(folder) = child::dir() {
        set_enabled(false);
        let trace = folder.join("trace.json");
        // Off, no call site would start the thread that reads the file. It reads five times a second.
        for command in ["start", "stop"].into_iter().cycle().take(400) {
            fs::write(folder.join("control"), command).expect("written");
            std::thread::sleep(Duration::from_millis(300));
            if trace.exists() {
                break;
            }
        }
        std::process::exit(0);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let variables = [
        ("PROFILER_TRACE", "DIR/trace.json"),
        ("PROFILER_CONTROL", "DIR/control"),
    ];
    run(folder.path(), "control", &variables);
    assert!(folder.path().join("trace.json").exists());
}
