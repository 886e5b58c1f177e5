//! A program that has only annotations gets a table and a log by its environment. A value that cannot be understood
//! is reported once.

#![cfg(not(feature = "strip"))]

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use profiler_runtime::{SummaryTarget, builder, init, scope, set_enabled, summary};
use profiler_tests::child;

const VARIABLES: [&str; 7] = [
    "PROFILER_ENABLED",
    "PROFILER_FILTER",
    "PROFILER_SUMMARY",
    "PROFILER_TENSORBOARD",
    "PROFILER_TRACE",
    "PROFILER_MAX_NAMES",
    "PROFILER_RING",
];

fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_measured-program"));
    for variable in VARIABLES {
        command.env_remove(variable);
    }
    command
        .args(arguments)
        .envs(variables.iter().copied())
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn row<'a>(summary: &'a serde_json::Value, name: &str) -> &'a serde_json::Value {
    let rows = summary["rows"].as_array().unwrap();
    rows.iter()
        .find(|row| row["name"] == name)
        .unwrap_or(&serde_json::Value::Null)
}

#[test]
fn a_table_comes_at_the_end_whatever_the_end() {
    for (mode, code) in [
        ("steps", Some(0)),
        ("guard", Some(0)),
        ("exit", Some(7)),
        ("panic", Some(101)),
    ] {
        let output = run(&[mode, "50"], &[("PROFILER_SUMMARY", "stderr")]);
        assert_eq!(output.status.code(), code, "{mode}: {}", stderr(&output));
        let table = stderr(&output);
        assert_eq!(
            table.matches("train/step").count(),
            1,
            "{mode}, once: {table}"
        );
        assert!(
            table.contains("measured_program::load") && table.contains("Self %"),
            "{table}"
        );
        assert_eq!(
            table.contains("doomed: 1 call ended with a panic"),
            mode == "panic",
            "{table}"
        );
    }
    assert!(
        run(&["steps"], &[]).stderr.is_empty(),
        "nothing is said unasked"
    );
}

#[test]
fn relative_paths_of_outputs_are_relative_to_the_first_working_directory() {
    let (here, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let output = Command::new(env!("CARGO_BIN_EXE_measured-program"))
        .env_remove("PROFILER_ENABLED")
        .env("PROFILER_SUMMARY", "summary.json")
        .env("PROFILER_TENSORBOARD", "board")
        .env("PROFILER_TRACE", "trace.json")
        .current_dir(here.path())
        .args(["elsewhere", "50"])
        .arg(elsewhere.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let summary = json(&here.path().join("summary.json"));
    assert_eq!(row(&summary, "train/step")["calls"], 50);
    assert!(here.path().join("board").is_dir());
    assert!(here.path().join("trace.json").is_file());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn the_summary_goes_to_standard_output_or_a_file_in_its_format() {
    let dir = tempfile::tempdir().unwrap();
    let table = run(&["steps"], &[("PROFILER_SUMMARY", "stdout")]);
    assert!(String::from_utf8_lossy(&table.stdout).contains("train/step"));

    let path = dir.path().join("summary.json");
    run(
        &["steps", "50"],
        &[("PROFILER_SUMMARY", path.to_str().unwrap())],
    );
    let summary = json(&path);
    assert_eq!(row(&summary, "train/step")["calls"], 50);
    assert_eq!(row(&summary, "measured_program::load")["calls"], 100);

    let path = dir.path().join("summary.csv");
    run(
        &["steps", "50"],
        &[("PROFILER_SUMMARY", path.to_str().unwrap())],
    );
    let csv = fs::read_to_string(path).unwrap();
    assert!(
        csv.starts_with("name,tag,location,calls,") && csv.contains("\r\ntrain/step,train/step,")
    );

    let path = dir.path().join("summary.txt");
    run(
        &["steps", "50"],
        &[("PROFILER_SUMMARY", path.to_str().unwrap())],
    );
    let table = fs::read_to_string(path).unwrap();
    // After the title; the second line, if there are groups of columns.
    assert!(table.starts_with("Summary by profiler-runtime of measured-program\n\n"));
    let mut lines = table.lines().skip(2).take(2);
    assert!(lines.any(|line| line.starts_with("Name  ")), "{table}");
}

#[test]
fn a_program_with_measuring_off_writes_nothing_and_says_how_to_turn_it_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let all = [
        ("PROFILER_SUMMARY", path("summary.json")),
        ("PROFILER_TENSORBOARD", path("board")),
        ("PROFILER_TRACE", path("trace.json")),
    ];
    let names = all.each_ref().map(|(name, _)| *name);
    let each = all.each_ref().map(std::slice::from_ref);
    for outputs in each.into_iter().chain([&all[..]]) {
        for (off, mode) in [
            ("0", "steps"),
            ("false", "guard"),
            ("OFF", "exit"),
            ("no", "steps"),
        ] {
            let variables = outputs.iter().map(|(name, path)| (*name, path.as_str()));
            let variables: Vec<_> = variables.chain([("PROFILER_ENABLED", off)]).collect();
            let text = stderr(&run(&[mode, "50"], &variables));
            let asked: Vec<_> = names
                .into_iter()
                .filter(|name| outputs.iter().any(|(output, _)| output == name))
                .collect();
            let expected = format!(
                "profiler: warning: PROFILER_ENABLED turns measuring off, so nothing is written for {}: set \
                 PROFILER_ENABLED=1, or call `set_enabled(true)`\n",
                asked.join(", ")
            );
            assert_eq!(text, expected, "{mode}");
            assert_eq!(
                fs::read_dir(dir.path()).unwrap().count(),
                0,
                "{asked:?}, {mode}"
            );
        }
    }
    let silent = run(&["guard"], &[("PROFILER_ENABLED", "0")]);
    assert!(silent.stderr.is_empty(), "nothing was asked for");
}

#[test]
fn a_program_with_measuring_off_hears_that_the_outputs_of_its_builder_are_not_written() {
    if let Some(folder) = child::dir() {
        let summary = SummaryTarget::File(folder.join("summary.json"));
        // No log is opened, so that nothing says that this one cannot be.
        let board = folder.join("a file/board");
        let builder = builder().summary(summary).tensorboard(board);
        let _profiler = builder.init().expect("set up");
        return drop(scope!("environment: off"));
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a file"), "in the way").unwrap();
    let variable = folder.path().join("other board");
    for (board, named) in [
        ("", "`Builder::tensorboard`"),
        (variable.to_str().unwrap(), "PROFILER_TENSORBOARD"),
    ] {
        let output = child::again(folder.path())
            .env("PROFILER_ENABLED", "0")
            .env("PROFILER_TENSORBOARD", board)
            .output()
            .unwrap();
        let expected = format!(
            "profiler: warning: PROFILER_ENABLED turns measuring off, so nothing is written for `Builder::summary`, {named}: set \
             PROFILER_ENABLED=1, or call `set_enabled(true)`\n"
        );
        assert_eq!(stderr(&output), expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

#[test]
fn a_program_that_turns_measuring_on_later_writes_its_outputs() {
    if child::dir().is_some() {
        let _profiler = init().expect("set up");
        drop(scope!("environment: while off"));
        set_enabled(true);
        drop(scope!("environment: on"));
        set_enabled(false);
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let output = child::again(folder.path())
        .env("PROFILER_ENABLED", "0")
        .env("PROFILER_SUMMARY", path("summary.json"))
        .env("PROFILER_TENSORBOARD", path("board"))
        .env("PROFILER_TRACE", path("trace.json"))
        .output()
        .unwrap();
    let text = stderr(&output);
    assert!(
        output.status.success() && !text.contains("nothing is written"),
        "{text}"
    );
    assert_eq!(
        row(&json(&path("summary.json")), "environment: on")["calls"],
        1
    );
    let trace = fs::read_to_string(path("trace.json")).unwrap();
    assert!(trace.contains("environment: on") && !trace.contains("environment: while off"));
    assert_eq!(fs::read_dir(path("board")).unwrap().count(), 1);
}

#[test]
fn a_summary_that_the_program_asks_for_says_that_measuring_is_off() {
    if child::dir().is_some() {
        drop(scope!("environment: off"));
        println!("{}", summary());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = child::again(folder.path())
        .env("PROFILER_ENABLED", "0")
        .env("PROFILER_SUMMARY", "stdout")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = text.matches("nothing was measured: PROFILER_ENABLED turns measuring off");
    assert_eq!(said.count(), 1, "{text}");
    assert_eq!(
        stderr(&output)
            .matches("nothing is written for PROFILER_SUMMARY")
            .count(),
        1
    );
}

#[test]
fn a_summary_before_the_first_call_leaves_the_notice_that_measuring_is_off() {
    if child::dir().is_some() {
        // Reads the settings, and does not start the profiler.
        assert!(profiler_runtime::summary().rows.is_empty());
        drop(scope!("environment: off"));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = child::again(folder.path())
        .env("PROFILER_ENABLED", "0")
        .env("PROFILER_SUMMARY", "stderr")
        .output()
        .unwrap();
    let text = stderr(&output);
    assert!(
        text.contains("nothing is written for PROFILER_SUMMARY"),
        "{text}"
    );
}

#[test]
fn an_empty_summary_distinguishes_no_annotation_from_a_filter_that_excludes_all() {
    let text = stderr(&run(
        &["nothing"],
        &[("PROFILER_SUMMARY", "stderr"), ("PROFILER_RING", "x")],
    ));
    assert!(
        text.is_empty() || text.contains("nothing that is annotated has run"),
        "{text}"
    );
    let text = stderr(&run(&["guard", "0"], &[("PROFILER_SUMMARY", "stderr")]));
    assert!(text.contains("nothing that is annotated has run"), "{text}");
    let text = stderr(&run(
        &["steps"],
        &[
            ("PROFILER_SUMMARY", "stderr"),
            ("PROFILER_FILTER", "elsewhere::*"),
        ],
    ));
    assert!(
        text.contains("the filter `elsewhere::*` leaves nothing of the 2 names"),
        "{text}"
    );
}

#[test]
fn a_filter_measures_only_the_names_that_it_includes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("summary.json");
    for (filter, step, load) in [
        ("train/*", true, false),
        ("-train/*", false, true),
        ("*,-*::load", true, false),
        ("nomatch,*load", false, true),
    ] {
        run(
            &["steps"],
            &[
                ("PROFILER_FILTER", filter),
                ("PROFILER_SUMMARY", path.to_str().unwrap()),
            ],
        );
        let summary = json(&path);
        assert_eq!(!row(&summary, "train/step").is_null(), step, "{filter}");
        assert_eq!(
            !row(&summary, "measured_program::load").is_null(),
            load,
            "{filter}"
        );
    }
}

#[test]
fn an_invalid_value_is_reported_once_and_the_default_is_used() {
    let text = stderr(&run(
        &["steps"],
        &[
            ("PROFILER_SUMMARY", "stderr"),
            ("PROFILER_ENABLED", "perhaps"),
            ("PROFILER_RING", "1"),
            ("PROFILER_SUMARY", "x"),
        ],
    ));
    assert_eq!(
        text.matches("PROFILER_ENABLED=perhaps is not understood")
            .count(),
        1,
        "{text}"
    );
    assert_eq!(
        text.matches("PROFILER_RING=1 is not understood").count(),
        1,
        "{text}"
    );
    assert!(text.contains("did you mean `PROFILER_SUMMARY`?"), "{text}");
    assert!(
        text.contains("train/step"),
        "it is measured all the same: {text}"
    );
}

#[test]
fn without_a_subscriber_and_a_summary_warnings_go_to_standard_error() {
    let text = stderr(&run(&["steps"], &[("PROFILER_ENABLED", "flase")]));
    assert_eq!(
        text.matches("PROFILER_ENABLED=flase is not understood")
            .count(),
        1,
        "{text}"
    );
    let text = stderr(&run(
        &["steps"],
        &[("PROFILER_TENSORBOARD", "/dev/null/log")],
    ));
    assert_eq!(text.matches("cannot write the log").count(), 1, "{text}");
}

#[test]
fn a_program_ends_while_a_thread_holds_the_lock_of_standard_output() {
    let child = Command::new(env!("CARGO_BIN_EXE_measured-program"))
        .args(["stdout-held", "10"])
        .envs([("PROFILER_SUMMARY", "stdout"), ("PROFILER_ENABLED", "1")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // If it waited, this would hang.
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("train/step"));
}

#[cfg(unix)]
#[test]
fn a_forked_process_prints_no_summary() {
    let output = run(&["fork", "10"], &[("PROFILER_SUMMARY", "stderr")]);
    assert!(output.status.success());
    assert_eq!(
        stderr(&output).matches("train/step").count(),
        1,
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_guard_that_is_dropped_early_does_not_suppress_the_summary() {
    let text = stderr(&run(
        &["guard-lost", "10"],
        &[("PROFILER_SUMMARY", "stderr")],
    ));
    assert_eq!(text.matches("train/step").count(), 1, "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_names_stay_within_the_stated_bound() {
    // Of the further ones, since the first names also bring the threads and the driver into memory.
    let (few, many) = (2_000, 10_000);
    let grown = memory_of_names(many).saturating_sub(memory_of_names(few));
    let names = many - few;
    // With GPU times, where there is a GPU.
    let on_gpu = if env::var_os("PROFILER_CUDA_LIBRARY").is_some() {
        6
    } else {
        0
    };
    // 3 KiB for the thread that calls, 6 KiB once it has ended, and 1 KiB for the names themselves.
    assert!(
        grown > names && grown < names * (3 + 6 + 1 + on_gpu),
        "{grown} KiB"
    );
}

/// Returns by how many KiB a program grows that calls this many names on two threads after each other.
#[cfg(target_os = "linux")]
fn memory_of_names(names: u64) -> u64 {
    let output = run(
        &["names", &names.to_string()],
        &[("PROFILER_MAX_NAMES", "60000")],
    );
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap()
}

#[cfg(unix)]
#[test]
fn a_process_without_descriptors_still_gives_its_table() {
    let script = "ulimit -n 64; exec \"$0\" descriptors 10";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_measured-program")])
        .envs([("PROFILER_SUMMARY", "stderr"), ("PROFILER_ENABLED", "1")])
        .output()
        .unwrap();
    assert!(
        stderr(&output).contains("train/step"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn default_loggers_do_not_depend_on_each_other() {
    let output = run(&["two-loggers", "10"], &[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "30\n");
}

#[test]
fn a_variable_alone_writes_a_tensorboard_log() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(
        &["steps", "200"],
        &[("PROFILER_TENSORBOARD", dir.path().to_str().unwrap())],
    );
    let said = profiler_tests::without_names_of_files(&stderr(&output));
    assert!(output.status.success() && said.is_empty(), "{said}");
    let files: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let bytes = fs::read(&files[0]).unwrap();
    let count = |tag: &[u8]| {
        bytes
            .windows(tag.len())
            .filter(|window| *window == tag)
            .count()
    };
    let loads = count(b"\x0bload/cpu_ms") + count(b"\x0cload/cuda_ms");
    assert_eq!((count(b"train/step"), loads), (200, 400));
}

#[test]
fn a_log_that_cannot_be_written_is_an_error_of_init_and_else_a_notice() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a file");
    fs::write(&file, "in the way").unwrap();
    let log = file.join("log");
    let variables = [
        ("PROFILER_TENSORBOARD", log.to_str().unwrap()),
        ("PROFILER_SUMMARY", "stderr"),
    ];
    let output = run(&["guard"], &variables);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("cannot be opened"),
        "{}",
        stderr(&output)
    );
    let output = run(&["steps", "10"], &variables);
    assert!(output.status.success(), "the program goes on");
    let text = stderr(&output);
    assert!(
        text.contains("30 log entries dropped: logger failed"),
        "{text}"
    );
    assert_eq!(text.matches("cannot write").count(), 1, "said once: {text}");
}

/// The user who starts a set-user-ID program controls its variables, but must not gain its privileges.
#[cfg(target_os = "linux")]
#[test]
fn a_program_with_raised_privileges_ignores_paths() {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;

    // Neither of them is anybody's.
    const OWNER: u32 = 54_321;
    const STARTED_BY: u32 = 54_322;

    let folder = tempfile::tempdir().unwrap();
    let open = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode));
    open(0o777).unwrap();
    let program = folder.path().join("program");
    fs::copy(env!("CARGO_BIN_EXE_measured-program"), &program).unwrap();
    let path = |name: &str| folder.path().join(name);
    let set_user_id = chown(&program, Some(OWNER), Some(OWNER))
        .and_then(|()| fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)));
    let mut command = Command::new(&program);
    command
        .arg("privileges")
        .env_remove("PROFILER_ENABLED")
        .env("PROFILER_SUMMARY", path("summary.json"))
        .env("PROFILER_TENSORBOARD", path("board"))
        .env("PROFILER_TRACE", path("trace.json"))
        .env("PROFILER_CONTROL", path("control"))
        .env("PROFILER_CUDA_LIBRARY", path("library.so"))
        .current_dir("/")
        .uid(STARTED_BY)
        .gid(STARTED_BY);
    let output = match set_user_id {
        Ok(()) => command.output(),
        Err(error) => Err(error),
    };
    let is_raised = |output: &Output| output.stdout.starts_with(b"raised true");
    let Some(output) = output.ok().filter(is_raised) else {
        eprintln!(
            "not asked: only root can make a set-user-ID program, where the file system allows for one"
        );
        return;
    };
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stderr(&output);
    assert_eq!(text.matches("raised privileges").count(), 1, "{text}");
    for name in ["SUMMARY", "TENSORBOARD", "TRACE", "CONTROL", "CUDA_LIBRARY"] {
        assert_eq!(
            text.matches(&format!("PROFILER_{name}")).count(),
            1,
            "{text}"
        );
    }
    // The program alone.
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
