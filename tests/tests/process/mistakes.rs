//! A setting or an argument that cannot have the effect that it asks for is reported once, with what to write instead.

#![cfg(all(unix, not(feature = "strip")))]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use profiler_runtime::report::SortKey;
use profiler_runtime::session::{ProfileError, Schedule, ScheduleError};
use profiler_runtime::{
    Activity, Backend, InitError, Profile, SummaryTarget, builder, flush, measure, pause,
    set_enabled, summary,
};
use profiler_tests::child;

const VARIABLES: [&str; 11] = [
    "PROFILER_BACKEND",
    "PROFILER_CUDA_STREAM",
    "PROFILER_ENABLED",
    "PROFILER_FILTER",
    "PROFILER_SUMMARY",
    "PROFILER_TRACE",
    "PROFILER_SCHEDULE",
    "PROFILER_STEP",
    "PROFILER_CONTROL",
    "PROFILER_SIGNAL",
    "PROFILER_RING",
];

/// The results of this test when it ran again with variables.
struct Ran {
    folder: tempfile::TempDir,
    stderr: String,
}

/// Runs this test again with variables; `DIR` in their values is a folder.
fn run(variables: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = child::again(folder.path());
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    for (name, value) in variables {
        if *value == "backend" {
            // There may be a driver.
            command.env("PROFILER_CUDA_LIBRARY", "/nowhere/libcuda.so.1");
        }
        command.env(
            name,
            value.replace("DIR", &folder.path().display().to_string()),
        );
    }
    let output = command.output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    Ran { folder, stderr }
}

impl Ran {
    /// Returns the warnings on standard error; the folder is `DIR` in them.
    fn warnings(&self) -> Vec<String> {
        let folder = self.folder.path().display().to_string();
        let lines = self.stderr.lines();
        let warnings = lines.filter_map(|line| line.strip_prefix("profiler: warning: "));
        warnings.map(|line| line.replace(&folder, "DIR")).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn train() {
    for _ in 0..3 {
        measure!("train::forward", {});
        measure!("train::backward", {});
        measure!("train::step", {});
    }
}

/// Returns whether there is a table with the names of [`train`], whose common beginning stands below it.
fn has_table_of_train(text: &str) -> bool {
    // `~` is before a row whose calls are too short to be timed one by one.
    let mut rows = text.lines().map(|line| line.trim_start_matches("~ "));
    text.contains("names begin with `train::`") && rows.any(|row| row.starts_with("step "))
}

#[test]
fn a_filter_that_matches_nothing_suggests_a_name() {
    if child::dir().is_some() {
        return train();
    }
    for (filter, expected) in [
        (
            "train::forward,train::bakcward",
            "PROFILER_FILTER: `train::bakcward` matches none of the names that ran; did you mean `train::backward`?",
        ),
        (
            "tarin::*",
            "PROFILER_FILTER: `tarin::*` matches none of the names that ran; did you mean `train::*`?",
        ),
        (
            "backward",
            "PROFILER_FILTER: `backward` matches none of the names that ran; did you mean `train::backward`?",
        ),
        (
            "-train::forwrad",
            "PROFILER_FILTER: `-train::forwrad` excludes none of the names that ran; did you mean `-train::forward`?",
        ),
    ] {
        assert_eq!(run(&[("PROFILER_FILTER", filter)]).warnings(), [expected]);
    }
    for fitting in ["train::*", "train::s*,-train::step", "-hyper::*"] {
        assert_eq!(run(&[("PROFILER_FILTER", fitting)]).warnings(), [""; 0]);
    }
}

#[test]
fn a_filter_of_the_program_is_named_as_such() {
    if child::dir().is_some() {
        let _profiler = builder().filter("tarin*").init().expect("set up");
        return train();
    }
    let expected =
        "`Builder::filter`: `tarin*` matches none of the names that ran; did you mean `train*`?";
    assert_eq!(run(&[]).warnings(), [expected]);
}

#[test]
fn a_step_that_no_name_has_suggests_one() {
    if child::dir().is_some() {
        return train();
    }
    let run_with = |variables: &[(&str, &str)]| {
        let trace = ("PROFILER_TRACE", "DIR/trace.json");
        run(&[&[trace], variables].concat()).warnings()
    };
    let schedule = ("PROFILER_SCHEDULE", "warmup=1,active=1");
    for (step, name) in [("step", "train::step"), ("train::setp", "train::step")] {
        let reason = format!(
            "PROFILER_STEP is `{step}`, and nothing of that name ran; did you mean `{name}`?"
        );
        let warnings = run_with(&[schedule, ("PROFILER_STEP", step)]);
        let expected =
            format!("a session with a schedule ended without a single `step()`: {reason}");
        assert_eq!(warnings, [expected]);
        let warnings = run_with(&[("PROFILER_STEP", step)]);
        let expected =
            format!("the recording of PROFILER_TRACE ended without a single `step()`: {reason}");
        assert_eq!(warnings, [expected]);
    }
    let fitting = run_with(&[schedule, ("PROFILER_STEP", "train::step")]);
    assert_eq!(fitting, [""; 0]);
    let excluded = run_with(&[
        schedule,
        ("PROFILER_STEP", "train::step"),
        ("PROFILER_FILTER", "-train::step"),
    ]);
    let expected = "a session with a schedule ended without a single `step()`: PROFILER_STEP is `train::step`, and the filter \
                    excludes that name: let PROFILER_FILTER include it";
    assert_eq!(excluded, [expected]);
}

#[test]
fn a_program_that_overrides_the_variable_is_reported_with_its_place() {
    if child::dir().is_some() {
        for _ in 0..2 {
            set_enabled(false);
            train();
        }
        set_enabled(true);
        return;
    }
    let place = |line: &str| {
        let file = fs::read_to_string("tests/process/mistakes.rs").expect("this file");
        let number = file.lines().position(|text| text.trim() == line);
        number.expect("the line") + 1
    };
    let warnings = run(&[("PROFILER_ENABLED", "1")]).warnings();
    let expected = format!(
        "PROFILER_ENABLED turns measuring on, but the program turns it off with `set_enabled(false)` \
         (tests/tests/process/mistakes.rs:{}): the call takes precedence; remove it to let the variable decide",
        place("set_enabled(false);")
    );
    assert_eq!(warnings, [expected]);
    let warnings = run(&[("PROFILER_ENABLED", "0")]).warnings();
    let expected = format!(
        "PROFILER_ENABLED turns measuring off, but the program turns it on with `set_enabled(true)` \
         (tests/tests/process/mistakes.rs:{}): the call takes precedence; remove it to let the variable decide",
        place("set_enabled(true);")
    );
    assert_eq!(warnings, [expected]);
    assert_eq!(run(&[]).warnings(), [""; 0]);
}

#[test]
fn an_empty_summary_says_which_setting_left_it_empty() {
    if child::dir().is_some() {
        let _profiler = match std::env::var(MODE).as_deref() {
            Ok("builder") => Some(builder().enabled(false).init().expect("set up")),
            Ok("program") => {
                set_enabled(false);
                None
            }
            Ok("filter") => Some(builder().filter("eval::*").init().expect("set up")),
            Ok("bypass") => {
                measure!("bypassed", bypass = true, {});
                return print_summary();
            }
            Ok("left out") => {
                pause(train);
                return print_summary();
            }
            Ok("pause") => {
                pause(train);
                return pause(print_summary);
            }
            _ => None,
        };
        train();
        return print_summary();
    }
    for (variables, expected) in [
        (
            &[(MODE, "builder")][..],
            "`Builder::enabled(false)` turns measuring off: remove it, call `set_enabled(true)`, or set PROFILER_ENABLED=1",
        ),
        (
            &[(MODE, "program")],
            "the program has called `set_enabled(false)`: remove the call, or call `set_enabled(true)`",
        ),
        (
            &[(MODE, "program"), ("PROFILER_ENABLED", "1")],
            "the program has called `set_enabled(false)`, which overrides PROFILER_ENABLED: remove the call, or call \
             `set_enabled(true)`",
        ),
        (
            &[(MODE, "filter")],
            "the filter `eval::*` leaves nothing of the 3 names that ran: widen `Builder::filter`; `eval::*` matches none \
             of the names that ran",
        ),
        (
            &[(MODE, "bypass")],
            "nothing that is annotated has run, or `bypass` left out all of it: put #[measure_execution_time] on a function that \
             runs",
        ),
        (
            &[(MODE, "left out")],
            "nothing that is annotated has run, or `pause` or `bypass` left out all of it: put #[measure_execution_time] on a \
             function that runs",
        ),
        (
            &[(MODE, "pause")],
            "a `pause` is running: measuring goes on after it",
        ),
        (
            &[("PROFILER_ENABLED", "0")],
            "PROFILER_ENABLED turns measuring off: set PROFILER_ENABLED=1, or call `set_enabled(true)`",
        ),
        (
            &[("PROFILER_FILTER", "eval::*")],
            "the filter `eval::*` leaves nothing of the 3 names that ran: widen PROFILER_FILTER; \
             `eval::*` matches none of the names that ran",
        ),
    ] {
        let ran = run(variables);
        let line = format!("nothing was measured: {expected}");
        assert!(
            ran.stderr.lines().any(|text| text == line),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn what_the_program_set_is_not_called_a_variable() {
    if let Some(folder) = child::dir() {
        let interval = builder().summary_interval(Duration::from_secs(60));
        let _profiler = match std::env::var(MODE).as_deref() {
            Ok("interval") => interval.init(),
            Ok("stream") => interval.summary(SummaryTarget::Stderr).init(),
            Ok("backend") => {
                let refused = builder().backend(Backend::Cuda).init();
                eprintln!("error: {}", refused.expect_err("there is no device"));
                return;
            }
            _ => {
                let target = SummaryTarget::File(folder.join("missing/folder/out.json"));
                builder().summary(target).init()
            }
        };
        return train();
    }
    for (mode, expected) in [
        (
            "interval",
            "`Builder::summary_interval` is set and `Builder::summary` is not, so nothing was written: set it to a file",
        ),
        (
            "stream",
            "`Builder::summary_interval`: the summary goes to standard error, where each one would follow the one before, so it is \
             written at the end only; set `Builder::summary` to a file,",
        ),
        ("file", "; set `Builder::summary` to a file that can be"),
        (
            "backend",
            "error: GPU times were requested by the backend `cuda`, and cannot be measured: ",
        ),
    ] {
        let ran = run(&[(MODE, mode)]);
        assert!(ran.stderr.contains(expected), "{mode}: {}", ran.stderr);
        assert!(!ran.stderr.contains("PROFILER_SUMMARY"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("PROFILER_BACKEND"), "{}", ran.stderr);
    }
}

/// The variable that says how a child turns measuring off.
const MODE: &str = "PROFILER_TESTS_MODE";

fn print_summary() {
    eprintln!("{}", summary());
}

#[test]
fn a_program_without_a_gpu_hears_nothing_of_one() {
    if child::dir().is_some() {
        train();
        return print_summary();
    }
    let ran = run(&[]);
    assert!(has_table_of_train(&ran.stderr), "{}", ran.stderr);
    for word in ["CUDA", "GPU"] {
        assert!(!ran.stderr.contains(word), "{}", ran.stderr);
    }
    let ran = run(&[("PROFILER_CUDA_STREAM", "per-thread")]);
    let expected = "times are CPU times: the program has not loaded the CUDA driver";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}

#[test]
fn calls_that_cost_less_than_measuring_them_are_named() {
    if child::dir().is_some() {
        for _ in 0..2_000_000 {
            measure!("tiny", {});
        }
        return print_summary();
    }
    let ran = run(&[]);
    let line = |start: &str| {
        let mut lines = ran.stderr.lines();
        lines
            .find(|line| line.starts_with(start))
            .unwrap_or_else(|| panic!("{}", ran.stderr))
    };
    // On a busy machine, the median may be just long enough for the clock: then nothing is marked.
    let is_marked = ran.stderr.lines().any(|line| line.starts_with("~ tiny"));
    let is_explained = ran.stderr.contains(
        "~ most calls are too short to be timed one by one: totals, means and long single times are right",
    );
    assert_eq!(is_marked, is_explained, "{}", ran.stderr);
    assert!(line("the profiler itself: ").contains(" % of the measured threads' time (about "));
    let remedy = line("measuring takes ");
    assert!(
        remedy.contains("`tiny` was called 2000000 times, most of them for less than the ")
            && remedy.ends_with(
                "measure the loop around it, or leave it out with PROFILER_FILTER=-tiny"
            ),
        "{remedy}"
    );
}

/// How a refused file is answered, up to the list of known endings.
const REFUSED: &str = "the summary cannot go to DIR/out.xyz, so the table goes to standard error: `.xyz` names no format: \
                       end the name in `.json`, `.csv`,";

#[test]
fn a_summary_with_an_unknown_ending_is_refused_and_goes_to_standard_error() {
    if child::dir().is_some() {
        return train();
    }
    let ran = run(&[("PROFILER_SUMMARY", "DIR/out.xyz")]);
    let warnings = ran.warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    let expected = format!("PROFILER_SUMMARY: {REFUSED}");
    assert!(warnings[0].starts_with(&expected), "{warnings:?}");
    assert!(!ran.path("out.xyz").exists());
    assert!(has_table_of_train(&ran.stderr), "{}", ran.stderr);
    let ran = run(&[("PROFILER_SUMMARY", "DIR/stder")]);
    let expected =
        "PROFILER_SUMMARY: the summary goes to the file DIR/stder; did you mean `stderr`?";
    assert_eq!(ran.warnings(), [expected]);
    for ending in [
        "out.txt",
        "out.log",
        "out",
        "out.prof",
        "out.pb.gz",
        "out.folded",
    ] {
        let ran = run(&[("PROFILER_SUMMARY", &format!("DIR/{ending}"))]);
        assert_eq!(ran.warnings(), [""; 0]);
        assert!(ran.path(ending).exists());
    }
}

#[test]
fn a_summary_that_the_program_asks_for_with_an_unknown_ending_is_an_error() {
    if let Some(folder) = child::dir() {
        let target = SummaryTarget::File(folder.join("out.xyz"));
        match builder().summary(target).init() {
            Err(error @ InitError::Summary(_)) => eprintln!("error: {error}"),
            Err(error) => panic!("another error: {error}"),
            Ok(_profiler) => {}
        }
        // A program that continues is measured, and loses nothing.
        return train();
    }
    let ran = run(&[]);
    let folder = ran.folder.path().display().to_string();
    let stderr = ran.stderr.replace(&folder, "DIR");
    assert!(stderr.contains(&format!("error: {REFUSED}")), "{stderr}");
    assert!(has_table_of_train(&stderr), "{stderr}");
    assert!(!ran.path("out.xyz").exists());
    // The variable takes precedence, so the file of the program is not used.
    let ran = run(&[("PROFILER_SUMMARY", "off")]);
    assert!(!ran.stderr.contains("cannot go to"), "{}", ran.stderr);
}

#[test]
fn a_trace_with_an_unknown_ending_goes_to_a_folder() {
    if child::dir().is_some() {
        return train();
    }
    let ran = run(&[("PROFILER_TRACE", "DIR/trace.jsn")]);
    let expected = "PROFILER_TRACE: DIR/trace.jsn does not end in `.json`, `.json.gz`, `.pftrace` or `.pftrace.gz`, so it is a \
                    folder, which gets a file for each window: end the name so for a file, or in `/` for a folder";
    assert_eq!(ran.warnings(), [expected]);
    assert!(ran.path("trace.jsn").is_dir());
    for folder in ["DIR/traces", "DIR/trace.v2", "DIR/trace.jsn/"] {
        assert_eq!(run(&[("PROFILER_TRACE", folder)]).warnings(), [""; 0]);
    }
}

#[test]
fn a_recording_that_was_never_started_is_reported() {
    if child::dir().is_some() {
        return train();
    }
    let trace = ("PROFILER_TRACE", "DIR/trace.json");
    let file = ("PROFILER_CONTROL", "DIR/control");
    let signal = ("PROFILER_SIGNAL", "USR1");
    let no_file = "`start` was never written to the file in PROFILER_CONTROL";
    for (variables, reason) in [
        (vec![trace, file], no_file.to_owned()),
        (
            vec![trace, signal],
            "the signal in PROFILER_SIGNAL never came".to_owned(),
        ),
        (
            vec![trace, file, signal],
            format!("{no_file}, nor did the signal in PROFILER_SIGNAL come"),
        ),
    ] {
        let expected = format!("PROFILER_TRACE: nothing was recorded, since {reason}");
        assert_eq!(run(&variables).warnings(), [expected]);
    }
}

#[test]
fn a_window_without_the_gpu_times_that_were_asked_for_says_why() {
    if let Some(folder) = child::dir() {
        let _ = Profile::builder().run(|_| train());
        let cpu = Profile::builder().activities([Activity::Cpu]);
        let _ = cpu.run(|_| train());
        assert!(summary().notices.is_empty(), "nothing asked for GPU times");
        for _ in 0..2 {
            let activities = [Activity::Cpu, Activity::Cuda];
            let ((), trace) = Profile::builder().activities(activities).run(|_| train());
            let trace = trace.expect("a window");
            let file = folder.join("trace.json");
            trace.export_chrome_trace(&file).expect("written");
            let reason = trace.no_cuda_reason().expect("it has no GPU times");
            let file = fs::read_to_string(file).expect("written");
            let file: serde_json::Value = serde_json::from_str(&file).expect("JSON");
            let missing = &file["profiler"]["missing"];
            assert_eq!(missing[0][0], format!("no GPU times: {reason}"));
        }
        return;
    }
    let expected = "`Activity::Cuda` was given, and a window has no GPU times: the program has not loaded the CUDA driver: leave \
                    out `Activity::Cuda` if the program does not use CUDA";
    assert_eq!(run(&[]).warnings(), [expected]);
}

#[test]
fn options_of_a_session_that_have_no_effect_are_reported() {
    if child::dir().is_some() {
        let profile = Profile::builder()
            .activities([Activity::Cpu])
            .capacity(0)
            .profile_memory(true)
            .start()
            .expect("started");
        profile.toggle_collection(true, [Activity::Cuda]);
        measure!("alone", {});
        profile.stop();
        assert!(profile.wait(Duration::from_secs(60)));
        return;
    }
    let expected = [
        "the session's `capacity` is 0, which counts as 1: set it to the number of scopes that a window holds",
        "collection of `Activity::Cuda` cannot be turned on, since the session was started without it: add it to \
         `ProfileBuilder::activities`",
        "`profile_memory` was set, and no host memory is counted, since the program has another global allocator: write \
         `#[global_allocator] static ALLOCATOR: ProfilerAllocator = ProfilerAllocator::system();`",
    ];
    assert_eq!(run(&[]).warnings(), expected);
}

#[test]
fn a_negative_step_counts_as_zero_and_is_reported_once() {
    if let Some(folder) = child::dir() {
        let (steps, logged) = std::sync::mpsc::channel();
        for number in -2..2_i32 {
            let steps = steps.clone();
            measure!(
                "batch",
                global_step = number,
                log = move |_, _, step| steps.send(step),
                {}
            );
        }
        assert_eq!(flush(Duration::from_secs(60)).left, 0);
        let logged: Vec<u64> = logged.try_iter().collect();
        fs::write(folder.join("steps"), format!("{logged:?}")).expect("written");
        return;
    }
    let ran = run(&[]);
    let expected = "`batch` gave a `global_step` that is negative or beyond 64 bits, which counts as the nearest step: steps \
                    start at 0, so shift them if they begin below";
    assert_eq!(ran.warnings(), [expected]);
    let steps = fs::read_to_string(ran.path("steps")).expect("written");
    assert_eq!(steps, "[0, 0, 0, 1]", "nothing is lost");
}

#[test]
fn the_first_lost_log_entry_is_reported_without_a_summary() {
    if child::dir().is_some() {
        let (release, blocked) = std::sync::mpsc::channel::<()>();
        let blocked = std::sync::Arc::new(std::sync::Mutex::new(blocked));
        for _ in 0..10_000 {
            let blocked = std::sync::Arc::clone(&blocked);
            measure!(
                "logged",
                log = move |_, _, _| {
                    // Until the program has logged everything.
                    let _ = blocked.lock().map(|blocked| blocked.recv());
                },
                {}
            );
        }
        drop(release);
        flush(Duration::from_secs(60));
        assert!(summary().row("logged").expect("a row").dropped_entries > 0);
        return;
    }
    let expected = "log entries are dropped (ring full): raise PROFILER_RING, log fewer calls with `log_every`, or use a faster \
                    logger; the summary counts them, and its times include their calls";
    let ran = run(&[("PROFILER_RING", "16")]);
    let about_drops = |warning: &String| warning.starts_with("log entries are dropped");
    let warnings = ran.warnings().into_iter().filter(about_drops);
    assert_eq!(warnings.collect::<Vec<_>>(), [expected]);
}

/// A `main` that returns an error prints it with `Debug`.
#[test(env = [("PROFILER_ENABLED", "1")])]
fn debug_of_an_error_has_its_type_and_its_message() {
    let folder = Path::new("/proc/no/such/folder");
    let init: InitError = builder().tensorboard(folder).init().expect_err("no folder");
    let schedule: ScheduleError = Schedule::parse("wiat=1").expect_err("no such key");
    let profile: ProfileError = Profile::builder()
        .activities([Activity::Cpu; 0])
        .start()
        .expect_err("no activity");
    let log = profiler_runtime::log::LogError::other("gone");
    let ((), trace) = Profile::builder().run(|_| ());
    let export = trace.map(|trace| trace.export_chrome_trace(folder));
    let export = export.expect("a window").expect_err("no folder");
    let restriction = summary().restrict("(").expect_err("no expression");
    let sort_key = "size".parse::<SortKey>().expect_err("no such key");
    for (name, debug, display) in [
        ("InitError::Log", format!("{init:?}"), init.to_string()),
        (
            "ScheduleError::UnknownKey",
            format!("{schedule:?}"),
            schedule.to_string(),
        ),
        (
            "ProfileError::NoActivity",
            format!("{profile:?}"),
            profile.to_string(),
        ),
        ("LogError::Other", format!("{log:?}"), log.to_string()),
        ("ExportError::Io", format!("{export:?}"), export.to_string()),
        (
            "RestrictionError::Pattern",
            format!("{restriction:?}"),
            restriction.to_string(),
        ),
        (
            "SortKeyError",
            format!("{sort_key:?}"),
            sort_key.to_string(),
        ),
    ] {
        assert_eq!(debug, format!("{name}({display:?})"));
    }
}
