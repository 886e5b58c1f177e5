//! A program that has only annotations and steps gets windows by its environment: written to a file or a folder,
//! by schedule, name, control file or signal, however it ends, and what cannot be understood is said once.

#![cfg(all(unix, not(feature = "strip")))]

use profiler_tests::child;
use profiler_tests::gpu;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use profiler_runtime::{init, measure_execution_time, scope, set_enabled, step};
use profiler_tests::gpu::{Gpu, driver, tell, told};
use serde_json::Value;

const VARIABLES: [&str; 9] = [
    "PROFILER_ENABLED",
    "PROFILER_TRACE",
    "PROFILER_SCHEDULE",
    "PROFILER_STEP",
    "PROFILER_CONTROL",
    "PROFILER_SIGNAL",
    "PROFILER_SUMMARY",
    "RANK",
    "WORLD_SIZE",
];
const MODE: &str = "PROFILER_TESTS_MODE";
const PATIENCE: Duration = Duration::from_secs(60);

fn mode() -> String {
    std::env::var(MODE).unwrap_or_default()
}

/// The files that this test leaves in a folder when it runs again with variables; `DIR` in their values is that folder.
struct Ran {
    folder: tempfile::TempDir,
    output: Output,
}

fn run(mode: &str, variables: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = child::again(folder.path());
    prepare(&mut command, folder.path(), mode, variables);
    let output = command.output().expect("it runs");
    Ran { folder, output }
}

fn prepare(command: &mut Command, folder: &Path, mode: &str, variables: &[(&str, &str)]) {
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command.env(MODE, mode);
    for (name, value) in variables {
        command.env(name, value.replace("DIR", &folder.display().to_string()));
    }
}

impl Ran {
    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    fn warnings(&self) -> Vec<String> {
        let stderr = self.stderr();
        let lines = stderr.lines();
        let said = lines.filter_map(|line| line.strip_prefix("profiler: warning: "));
        said.map(str::to_owned).collect()
    }

    /// Asserts that the program ended well, with one warning that has these parts.
    fn warned_once(&self, parts: &[&str]) -> &Self {
        let said = self.ended(0).warnings();
        assert_eq!(said.len(), 1, "{said:?}");
        for part in parts {
            assert!(said[0].contains(part), "{part}: {said:?}");
        }
        self
    }

    fn files(&self) -> Vec<PathBuf> {
        files(self.folder.path())
    }

    fn file(&self, name: &str) -> Value {
        trace(&self.folder.path().join(name))
    }

    fn ended(&self, code: i32) -> &Self {
        assert_eq!(self.output.status.code(), Some(code), "{}", self.stderr());
        self
    }
}

/// All files below a folder, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn trace(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// How many complete events of a trace have a name that ends so.
fn count(trace: &Value, name: &str) -> usize {
    let events = trace["traceEvents"].as_array().expect("a list of events");
    events
        .iter()
        .filter(|event| event["ph"] == "X" && event["cat"] != "gpu_user_annotation")
        .filter(|event| {
            event["name"]
                .as_str()
                .is_some_and(|own| own.ends_with(name))
        })
        .count()
}

fn scopes(count: u32) {
    for _ in 0..count {
        drop(scope!("environment: scope"));
    }
}

const SCOPE: &str = "environment: scope";

#[test]
fn the_whole_run_is_written_to_a_file_however_the_program_ends() {
    if child::dir().is_some() {
        let _profiler = (mode() == "guard").then(|| init().expect("set up"));
        scopes(20);
        match &*mode() {
            "exit" => std::process::exit(7),
            "panic" => {
                let _scope = scope!("environment: doomed");
                panic!("as asked");
            }
            "open" => {
                std::mem::forget(scope!("environment: never closed"));
            }
            "thread" => {
                // It is at work when the program ends.
                std::thread::spawn(|| {
                    loop {
                        scopes(1);
                        sleep(Duration::from_micros(100));
                    }
                });
                std::process::exit(7);
            }
            _ => {}
        }
        return;
    }
    for (mode, code) in [
        ("guard", 0),
        ("nothing", 0),
        ("exit", 7),
        ("panic", 101),
        ("open", 0),
        ("thread", 7),
    ] {
        let ran = run(mode, &[("PROFILER_TRACE", "DIR/trace.json")]);
        ran.ended(code);
        assert_eq!(ran.warnings(), [""; 0], "{mode}");
        assert_eq!(ran.files().len(), 1, "{mode}: {:?}", ran.files());
        let trace = ran.file("trace.json");
        let found = count(&trace, SCOPE);
        assert!(
            found == 20 || mode == "thread" && found > 20,
            "{mode}: {found}"
        );
        assert_eq!(
            count(&trace, "environment: doomed"),
            usize::from(mode == "panic"),
            "{mode}"
        );
    }
}

#[test]
fn a_trace_is_in_the_format_of_its_ending() {
    if child::dir().is_some() {
        return scopes(20);
    }
    // A packet, which is field 1 of a trace; and what all gzip files begin with.
    let plain = ("run.pftrace", &[0x0a][..], true);
    let packed = ("run.pftrace.gz", &[0x1f, 0x8b][..], false);
    for (name, beginning, is_plain) in [plain, packed] {
        let ran = run("", &[("PROFILER_TRACE", &format!("DIR/{name}"))]);
        ran.ended(0);
        assert_eq!(ran.warnings(), [""; 0]);
        assert_eq!(ran.files(), [ran.folder.path().join(name)]);
        let bytes = fs::read(&ran.files()[0]).expect("it is there");
        assert!(bytes.starts_with(beginning), "{name}");
        let is_name = |part: &[u8]| part == SCOPE.as_bytes();
        let has_name = bytes.windows(SCOPE.len()).any(is_name);
        assert_eq!(has_name, is_plain, "names are written as they are");
    }
}

/// At the end, a program waits two seconds for the handlers of other sessions. A pipe whose reader takes its time needs more,
/// on any machine.
#[test]
fn what_takes_long_to_write_is_written_at_the_end() {
    const SCOPES: u32 = 5_000;

    if child::dir().is_some() {
        // In bursts that the rings have room for.
        for _ in 0..SCOPES / 1000 {
            scopes(1000);
            sleep(Duration::from_millis(1));
        }
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("trace.json");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|made| made.success()));
    let reader = std::thread::spawn(|| {
        let mut file = fs::File::open(pipe)?;
        let mut text = Vec::new();
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(3) {
            file.by_ref().take(1 << 12).read_to_end(&mut text)?;
            sleep(Duration::from_millis(50));
        }
        assert!(!text.is_empty() && !text.ends_with(b"}\n"), "it was slow");
        file.read_to_end(&mut text)?;
        Ok::<_, std::io::Error>(text)
    });
    let mut command = child::again(folder.path());
    let variables = [("PROFILER_TRACE", "DIR/trace.json")];
    prepare(&mut command, folder.path(), "", &variables);
    let output = command.output().expect("it runs");
    let ran = Ran { folder, output };
    assert_eq!(ran.ended(0).warnings(), [""; 0]);
    let text = reader.join().expect("it was slow").expect("it is read");
    let text = String::from_utf8(text).expect("text");
    assert!(text.trim_end().ends_with('}'));
    let missing = text.split("\"missing\":").nth(1).expect("a list");
    let missing = serde_json::Deserializer::from_str(missing).into_iter();
    let missing: Vec<Vec<(String, u32)>> =
        missing.take(1).collect::<Result<_, _>>().expect("pairs");
    let lost: u32 = missing[0].iter().map(|(_, count)| *count).sum();
    let found = text.matches(&format!("\"name\":\"{SCOPE}\"")).count();
    assert_eq!(found, (SCOPES - lost) as usize);
}

#[test]
fn nothing_is_written_unasked() {
    if child::dir().is_some() {
        scopes(3);
        step!();
        return;
    }
    let ran = run("", &[]);
    assert!(ran.ended(0).files().is_empty());
    assert_eq!(ran.warnings(), [""; 0]);
}

#[measure_execution_time(name = "environment: iteration")]
fn iteration(number: u32) {
    drop(scope!(format!("environment: in {number}")));
}

/// Ten iterations, and who says that they are steps.
fn iterations() {
    for number in 0..10 {
        if mode() == "recursive" {
            let _outer = scope!("environment: iteration");
            iteration(number);
        } else {
            iteration(number);
        }
        match &*mode() {
            "macro" => step!(),
            "function" => step(),
            _ => {}
        }
    }
}

/// The numbers of the iterations that a trace holds.
fn held(trace: &Value) -> Vec<u32> {
    (0..10)
        .filter(|number| count(trace, &format!("environment: in {number}")) == 1)
        .collect()
}

#[test]
fn windows_are_written_by_schedule_whoever_makes_the_steps() {
    if child::dir().is_some() {
        return iterations();
    }
    for mode in ["macro", "function", "name", "recursive"] {
        let mut variables = vec![
            ("PROFILER_TRACE", "DIR/trace.json"),
            ("PROFILER_SCHEDULE", "wait=1,warmup=1,active=2,repeat=2"),
        ];
        if mode == "name" || mode == "recursive" {
            variables.push(("PROFILER_STEP", "environment: iteration"));
        }
        let ran = run(mode, &variables);
        ran.ended(0);
        assert_eq!(ran.warnings(), [""; 0], "{mode}");
        let mut windows: Vec<_> = ran.files().iter().map(|file| held(&trace(file))).collect();
        windows.sort();
        assert_eq!(windows, [[2, 3], [6, 7]], "{mode}: {:?}", ran.files());
    }
}

#[test]
fn a_folder_gets_a_trace_of_each_window_for_tensorboard() {
    if child::dir().is_some() {
        return iterations();
    }
    let ran = run(
        "macro",
        &[
            ("PROFILER_TRACE", "DIR/below/traces"),
            ("PROFILER_SCHEDULE", "wait=1,warmup=1,active=2,repeat=2"),
        ],
    );
    ran.ended(0);
    let files = ran.files();
    assert_eq!(files.len(), 2, "{files:?}");
    for file in &files {
        assert!(
            file.starts_with(ran.folder.path().join("below/traces")),
            "{file:?}"
        );
        assert!(
            file.to_string_lossy().ends_with(".pt.trace.json"),
            "{file:?}"
        );
    }
    let mut windows: Vec<_> = files.iter().map(|file| held(&trace(file))).collect();
    windows.sort();
    assert_eq!(windows, [[2, 3], [6, 7]]);
}

#[test]
fn a_path_with_a_known_ending_is_a_file_and_need_not_be_utf_8() {
    use std::os::unix::ffi::OsStrExt;

    if child::dir().is_some() {
        return scopes(1);
    }
    let names: [(&[u8], bool, &str); 5] = [
        (b"t.JSON", true, ""),
        (b"t.Json.GZ", true, ""),
        (b"n\xff.json", true, ""),
        (b"folder.json/", false, ""),
        (b"t.txt", false, "so it is a folder"),
    ];
    for (wanted, is_file, said) in names {
        let folder = tempfile::tempdir().expect("a folder");
        let mut target = folder.path().as_os_str().as_bytes().to_vec();
        target.push(b'/');
        target.extend_from_slice(wanted);
        let mut command = child::again(folder.path());
        prepare(&mut command, folder.path(), "", &[]);
        let target = std::ffi::OsStr::from_bytes(&target);
        let output = command.env("PROFILER_TRACE", target).output();
        let output = output.expect("it runs");
        let stderr =
            profiler_tests::without_names_of_files(&String::from_utf8_lossy(&output.stderr));
        assert!(
            output.status.success()
                && stderr.contains(said)
                && stderr.is_empty() == said.is_empty(),
            "{output:?}"
        );
        let target = Path::new(target);
        assert_eq!((target.is_file(), target.is_dir()), (is_file, !is_file));
        assert_eq!(files(folder.path()).len(), 1);
    }
}

#[test]
fn no_window_overwrites_another() {
    if child::dir().is_some() {
        iterations();
        return scopes(1);
    }
    let ran = run(
        "macro",
        &[
            ("PROFILER_TRACE", "DIR/trace.json"),
            ("PROFILER_SCHEDULE", "warmup=0,active=1"),
        ],
    );
    ran.ended(0);
    // One for each step, and what came after the last one.
    assert_eq!(ran.files().len(), 11, "{:?}", ran.files());
    for file in ran.files() {
        let trace = trace(&file);
        // Some were closed faster than others were written, and emptied.
        let given_up = missing(&trace, "scopes were dropped with their windows");
        let is_last = trace["profiler"]["step_num"] == 10 && trace["profiler"]["cycle"] == 10;
        assert_eq!(
            held(&trace).len(),
            usize::from(given_up == 0 && !is_last),
            "{file:?}"
        );
    }
}

/// Returns how much a trace lacks for a reason.
fn missing(trace: &Value, reason: &str) -> u64 {
    let missing = trace["profiler"]["missing"].as_array().expect("a list");
    let mut pairs = missing.iter();
    let pair = pairs.find(|pair| {
        pair[0]
            .as_str()
            .is_some_and(|text| text.starts_with(reason))
    });
    pair.map_or(0, |pair| pair[1].as_u64().expect("a count"))
}

#[test]
fn an_invalid_schedule_is_reported_once_and_the_program_continues() {
    if child::dir().is_some() {
        return iterations();
    }
    for (schedule, words) in [
        ("wait", "`wait` is not `key=number`"),
        ("wait=-1", "`wait=-1` is not `key=number`"),
        ("wiat=1", "no `wiat`"),
        ("active=1,active=2", "`active` is given twice"),
        ("active=0", "`active` is 0"),
        ("wait=99999999999999999999", "is not `key=number`"),
        (";;;", "is not `key=number`"),
    ] {
        let variables = [
            ("PROFILER_TRACE", "DIR/trace.json"),
            ("PROFILER_SCHEDULE", schedule),
        ];
        let ran = run("macro", &variables);
        ran.ended(0);
        let said = ran.warnings();
        assert_eq!(said.len(), 1, "{schedule}: {said:?}");
        assert!(
            said[0].contains("PROFILER_SCHEDULE") && said[0].contains(words),
            "{schedule}: {said:?}"
        );
    }
    for (variable, value) in [
        ("PROFILER_SCHEDULE", "active=1"),
        ("PROFILER_STEP", "environment: iteration"),
        ("PROFILER_SIGNAL", "USR2"),
        ("PROFILER_CONTROL", "DIR/control"),
    ] {
        let ran = run("macro", &[(variable, value)]);
        let said = ran.ended(0).warnings();
        assert_eq!(said.len(), 1, "{variable}: {said:?}");
        assert!(
            said[0].contains(variable) && said[0].contains("PROFILER_TRACE"),
            "{said:?}"
        );
        assert!(ran.files().is_empty());
    }
    let signal = [
        ("PROFILER_TRACE", "DIR/trace.json"),
        ("PROFILER_SIGNAL", "KILL"),
    ];
    run("macro", &signal).warned_once(&["PROFILER_SIGNAL"]);
    let rank = [("PROFILER_TRACE", "DIR/trace.json"), ("RANK", "first")];
    let ran = run("macro", &rank);
    ran.warned_once(&["RANK is `first`"]);
    assert_eq!(
        held(&ran.file("trace.json")).len(),
        10,
        "the trace is written"
    );
}

/// Returns whether this process has the thread that writes the windows of a session.
#[cfg(target_os = "linux")]
fn is_recording() -> bool {
    let threads = fs::read_dir("/proc/self/task").expect("it is Linux");
    let mut names =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("comm")).ok());
    names.any(|name| name.trim() == "profiler-export")
}

#[cfg(target_os = "linux")]
#[test]
fn a_recording_begins_when_the_program_turns_measuring_on() {
    if let Some(folder) = child::dir() {
        let command = |word| fs::write(folder.join("control"), word).expect("it can be written");
        command("start");
        for _ in 0..3 {
            scopes(1);
            step();
        }
        assert!(!is_recording(), "nothing is recorded while it is off");
        set_enabled(true);
        let end = Instant::now() + PATIENCE;
        while !folder.join("trace.json").exists() && Instant::now() < end {
            scopes(1);
            step();
            sleep(Duration::from_millis(10));
        }
        return;
    }
    for command in ["", "DIR/control"] {
        let ran = run(
            "",
            &[
                ("PROFILER_ENABLED", "0"),
                ("PROFILER_TRACE", "DIR/trace.json"),
                ("PROFILER_SCHEDULE", "active=1,repeat=1"),
                ("PROFILER_CONTROL", command),
            ],
        );
        ran.warned_once(&["the program turns it on with `set_enabled(true)`"]);
        let trace = ran.file("trace.json");
        // The thread that reads the file may begin between a scope and the step after it.
        assert!(count(&trace, SCOPE) == 1 || !command.is_empty());
    }
}

#[test]
fn a_schedule_without_a_step_is_reported() {
    if child::dir().is_some() {
        return iterations();
    }
    let variables = [
        ("PROFILER_TRACE", "DIR/trace.json"),
        ("PROFILER_SCHEDULE", "wait=1,warmup=1,active=1"),
        ("PROFILER_STEP", "no such name"),
    ];
    let ran = run("nobody", &variables);
    ran.warned_once(&["without a single `step()`", "PROFILER_STEP"]);
    assert!(ran.files().is_empty());
}

#[test]
fn a_schedule_that_reaches_no_window_is_reported() {
    if child::dir().is_some() {
        return iterations();
    }
    let variables = [
        ("PROFILER_TRACE", "DIR/trace.json"),
        ("PROFILER_SCHEDULE", "wait=10,warmup=1,active=1"),
    ];
    let ran = run("macro", &variables);
    ran.warned_once(&["after 10 steps"]);
    assert!(ran.files().is_empty());
}

#[test]
fn a_path_that_cannot_be_written_is_reported() {
    if child::dir().is_some() {
        return scopes(3);
    }
    let ran = run("", &[("PROFILER_TRACE", "/proc/no-such.json")]);
    ran.warned_once(&["/proc/no-such"]);
}

/// Turns the session on and off by `turn` until the folder holds `files_wanted` traces.
fn turn_until(files_wanted: usize, turn: impl Fn(bool)) {
    let folder = child::dir().expect("a folder");
    let traces = || {
        let files = files(&folder);
        files
            .iter()
            .filter(|file| file.extension().is_some_and(|ext| ext == "json"))
            .count()
    };
    let end = Instant::now() + PATIENCE;
    let mut is_on = false;
    // A turn may be missed where two come at once.
    while traces() < files_wanted {
        assert!(Instant::now() < end, "{} traces", traces());
        is_on = !is_on;
        turn(is_on);
        let until = Instant::now() + Duration::from_millis(500);
        while Instant::now() < until {
            scopes(1);
            sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn a_control_file_starts_and_stops_recording_repeatedly() {
    if let Some(folder) = child::dir() {
        scopes(1000);
        return turn_until(2, |on| {
            let word = if on { "start\n" } else { "stop" };
            fs::write(folder.join("control"), word).expect("it can be written");
        });
    }
    let variables = [
        ("PROFILER_TRACE", "DIR/trace.json"),
        ("PROFILER_CONTROL", "DIR/control"),
    ];
    let ran = run("", &variables);
    ran.ended(0);
    assert_eq!(ran.warnings(), [""; 0]);
    check_turns(&ran);
}

#[test]
fn a_signal_starts_and_stops_recording_repeatedly() {
    if child::dir().is_some() {
        scopes(1000);
        return turn_until(2, |_| {
            // SAFETY: the process sends itself a signal that it handles.
            assert_eq!(unsafe { libc::kill(libc::getpid(), libc::SIGUSR2) }, 0);
        });
    }
    let variables = [
        ("PROFILER_TRACE", "DIR/trace.json"),
        ("PROFILER_SIGNAL", "USR2"),
    ];
    let ran = run("", &variables);
    ran.ended(0);
    assert_eq!(ran.warnings(), [""; 0]);
    check_turns(&ran);
}

fn check_turns(ran: &Ran) {
    let traces: Vec<PathBuf> = ran
        .files()
        .into_iter()
        .filter(|file| file.extension().is_some_and(|ext| ext == "json"))
        .collect();
    assert!(traces.len() >= 2, "{traces:?}");
    for file in traces {
        let found = count(&trace(&file), SCOPE);
        assert!((1..1000).contains(&found), "{}: {found}", file.display());
    }
}

#[test]
fn an_unknown_word_in_the_control_file_is_reported() {
    if let Some(folder) = child::dir() {
        fs::write(folder.join("control"), "root:secret").expect("it can be written");
        return until_something_is_said();
    }
    let variables = [
        ("PROFILER_TRACE", "DIR/trace.json"),
        ("PROFILER_CONTROL", "DIR/control"),
    ];
    let ran = run("", &variables);
    ran.warned_once(&["PROFILER_CONTROL", "neither `start` nor `stop`"]);
    assert!(!ran.stderr().contains("secret"), "the file may be any");
}

fn until_something_is_said() {
    let end = Instant::now() + PATIENCE;
    while profiler_runtime::summary().notices.is_empty() && Instant::now() < end {
        scopes(1);
        sleep(Duration::from_millis(10));
    }
}

/// A device may never end, a pipe may never begin.
#[test]
fn a_control_path_that_is_no_regular_file_is_reported() {
    if let Some(folder) = child::dir() {
        // Where it is read to its end after all, that does not take the machine's memory.
        let bound = 8 << 30;
        rlimit::setrlimit(rlimit::Resource::AS, bound, bound).expect("it is a bound");
        if mode() == "pipe" {
            let pipe = folder.join("control").into_os_string().into_encoded_bytes();
            let pipe = std::ffi::CString::new(pipe).expect("a path");
            // SAFETY: the path ends with a zero, and is there for as long as the call.
            assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        }
        return until_something_is_said();
    }
    for (mode, control) in [("device", "/dev/zero"), ("pipe", "DIR/control")] {
        let variables = [
            ("PROFILER_TRACE", "DIR/trace.json"),
            ("PROFILER_CONTROL", control),
        ];
        run(mode, &variables).warned_once(&["not a regular file"]);
    }
}

#[test]
fn a_long_control_file_is_not_read_to_its_end() {
    if let Some(folder) = child::dir() {
        let bound = 8 << 30;
        rlimit::setrlimit(rlimit::Resource::AS, bound, bound).expect("it is a bound");
        let file = fs::File::create(folder.join("control")).expect("it can be made");
        // A hole: it takes no room.
        file.set_len(1 << 40).expect("it can be long");
        until_something_is_said();
        return fs::remove_file(folder.join("control")).expect("it can be removed");
    }
    let variables = [
        ("PROFILER_TRACE", "DIR/trace.json"),
        ("PROFILER_CONTROL", "DIR/control"),
    ];
    run("", &variables).warned_once(&["neither `start` nor `stop`"]);
}

#[test]
fn a_forked_process_leaves_the_trace_to_its_parent() {
    if child::dir().is_some() {
        scopes(5);
        // SAFETY: the child makes some scopes and exits.
        match unsafe { libc::fork() } {
            0 => {
                scopes(100);
                step!();
                std::process::exit(0);
            }
            child => {
                let mut status = 0;
                // SAFETY: this process forked the child, and `status` may be written.
                unsafe { libc::waitpid(child, &raw mut status, 0) };
                assert_eq!(status, 0);
            }
        }
        return scopes(6);
    }
    let ran = run("", &[("PROFILER_TRACE", "DIR/trace.json")]);
    ran.ended(0);
    assert_eq!(ran.files().len(), 1, "{:?}", ran.files());
    assert_eq!(count(&ran.file("trace.json"), SCOPE), 11);
}

#[test]
fn a_driver_that_hangs_costs_gpu_times_and_no_trace() {
    if gpu::is_child() {
        let profiler = (told() == "guard").then(|| init().expect("set up"));
        let gpu = Gpu::new(0);
        tell("fault cuEventQuery from 1 hang");
        let stream = gpu.stream();
        for _ in 0..10 {
            let _scope = scope!("environment: scope", stream = &stream);
            gpu.spin(&stream, 10_000);
        }
        stream.synchronize().expect("nothing failed");
        if told() == "exit" {
            std::process::exit(0);
        }
        drop(profiler);
        return;
    }
    let without_variables = |command: &mut Command| {
        for variable in VARIABLES {
            command.env_remove(variable);
        }
    };
    driver()
        .keeps_events()
        .cases(["guard", "nothing", "exit"])
        .set_up(without_variables)
        .file("PROFILER_TRACE", "trace.json")
        .then(|ran| {
            let trace = trace(&ran.file("trace.json"));
            assert_eq!(count(&trace, SCOPE), 10, "{}: {}", ran.told, ran.stderr);
            let unread = missing(&trace, "GPU times were not read");
            assert_eq!(unread, 10, "{}", ran.told);
        })
        .run_each();
}
