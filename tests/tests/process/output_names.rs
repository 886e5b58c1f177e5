//! What the name of a file in a variable may do, and what is said of the files.

#![cfg(all(unix, not(feature = "strip")))]

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const OTHER_USER: u32 = 12_345;

/// A program that measures some calls, in a folder.
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
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

/// Runs it, and returns what it wrote to standard error.
fn said(folder: &Path, steps: &str, variables: &[(&str, &str)]) -> String {
    let mut command = program(&["steps", steps], folder, variables);
    // GPU times have a file of their own in some formats.
    command.env_remove("PROFILER_CUDA_STREAM");
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

/// Returns the names in a folder that begin so.
fn names(folder: &Path, beginning: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("it is there");
    let names = entries.map(|entry| {
        entry
            .expect("an entry")
            .file_name()
            .into_string()
            .expect("text")
    });
    names.filter(|name| name.starts_with(beginning)).collect()
}

fn file(folder: &Path, name: &str, text: &str, mode: u32) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).expect("room");
    fs::set_permissions(&path, Permissions::from_mode(mode)).expect("its own");
    path
}

#[test(measuring)]
fn a_program_or_a_file_that_is_not_the_profilers_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (variable, name, text, mode) in [
        ("PROFILER_SUMMARY", "app", "#!/bin/sh\n", 0o755),
        ("PROFILER_SUMMARY", "notes.txt", "do not forget\n", 0o644),
        ("PROFILER_SUMMARY", "data.json", "{\"a\": 1}", 0o644),
        ("PROFILER_SUMMARY", "table.csv", "name,age\n", 0o644),
        ("PROFILER_TRACE", "model.json", "{\"a\": 1}", 0o644),
        ("PROFILER_SUMMARY", "empty", "", 0o700),
    ] {
        let path = file(folder, name, text, mode);
        let stderr = said(folder, "3", &[(variable, name)]);
        assert_eq!(fs::read_to_string(&path).expect("it is there"), text);
        assert!(stderr.contains("and is not replaced: the "), "{stderr}");
        let stem = name.split('.').next().unwrap_or_default();
        assert_eq!(names(folder, stem).len(), 2, "and the output is beside it");
    }
    // A second file is not replaced either.
    let second = file(folder, "run.cuda.prof", "theirs", 0o644);
    said(folder, "3", &[("PROFILER_SUMMARY", "run.prof")]);
    assert_eq!(fs::read_to_string(second).expect("it is there"), "theirs");
    assert!(!folder.join("run.prof").exists());
}

#[test(measuring)]
fn an_empty_file_and_what_the_profiler_wrote_are_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for name in [
        "s.json", "s.csv", "s.html", "s.prof", "s.pb.gz", "s.folded", "s.prom", "s.txt", "s",
    ] {
        file(folder, name, "", 0o600);
        for _ in 0..2 {
            let stderr = said(folder, "3", &[("PROFILER_SUMMARY", name)]);
            assert_eq!(stderr, format!("profiler: wrote {name}\n"));
        }
        let about = fs::metadata(folder.join(name)).expect("it is there");
        assert_eq!(about.permissions().mode() & 0o777, 0o600, "{name}");
    }
    for name in ["t.json", "t.json.gz", "t.pftrace", "t.pftrace.gz"] {
        for _ in 0..2 {
            let stderr = said(folder, "3", &[("PROFILER_TRACE", name)]);
            assert_eq!(stderr, format!("profiler: wrote {name}\n"));
        }
    }
    assert_eq!(names(folder, "").len(), 13);
}

#[test(measuring)]
fn the_files_that_variables_asked_for_are_named_in_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let variables = [("PROFILER_SUMMARY", "s.json"), ("PROFILER_TRACE", "t.json")];
    let stderr = said(folder.path(), "3", &variables);
    assert_eq!(stderr, "profiler: wrote t.json and s.json\n");
    assert_eq!(said(folder.path(), "3", &[]), "");
    let stderr = said(folder.path(), "3", &[("PROFILER_TRACE", "traces/")]);
    assert!(stderr.starts_with("profiler: wrote traces/"), "{stderr}");
}

#[test(measuring)]
fn a_missing_folder_is_created_and_one_in_a_missing_folder_is_said_at_the_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let variables = [
        ("PROFILER_SUMMARY", "one/s.json"),
        ("PROFILER_TRACE", "two/t.json"),
    ];
    let stderr = said(folder, "3", &variables);
    assert_eq!(stderr, "profiler: wrote two/t.json and one/s.json\n");

    // Nothing ends by itself here: what is said was said at the start.
    for (variable, otherwise) in [
        ("PROFILER_SUMMARY", "the table goes to standard error"),
        ("PROFILER_TRACE", "no trace is written"),
    ] {
        let mut command = program(
            &["ready-until", "1", "never"],
            folder,
            &[(variable, "no/folder/out.json")],
        );
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it runs");
        let mut ready = [0; 6];
        let stdout = child.stdout.as_mut().expect("a pipe");
        stdout.read_exact(&mut ready).expect("it is ready");
        child.kill().expect("it is ours");
        let output = child.wait_with_output().expect("it has ended");
        let stderr = String::from_utf8_lossy(&output.stderr);
        let expected = format!("{variable}: the folder ");
        assert!(
            stderr.contains(&expected) && stderr.contains(otherwise),
            "{stderr}"
        );
    }
    let stderr = said(folder, "3", &[("PROFILER_SUMMARY", "no/folder/out.json")]);
    assert!(
        stderr.contains("the table goes to standard error instead"),
        "{stderr}"
    );
    assert!(stderr.contains("train/step"), "{stderr}");
}

#[test(measuring)]
fn a_minus_is_standard_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = program(&["steps", "3"], folder.path(), &[("PROFILER_SUMMARY", "-")]);
    let output = command.stdout(Stdio::piped()).output().expect("it runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("train/step"), "{stdout}");
    assert!(names(folder.path(), "").is_empty());
}

#[test(measuring)]
fn what_a_trace_lacks_is_said_with_the_variable_that_changes_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let trace = ("PROFILER_TRACE", "t.json");
    let variables = [
        trace,
        ("PROFILER_SUMMARY", "s.json"),
        ("PROFILER_TRACE_CAPACITY", "1000"),
    ];
    // A step is two or three scopes.
    let stderr = said(folder, "400", &variables);
    let lacks = "PROFILER_TRACE: 200 scopes came after the window was full: raise its capacity (PROFILER_TRACE_CAPACITY";
    assert!(stderr.contains(lacks), "{stderr}");
    let summary = fs::read_to_string(folder.join("s.json")).expect("it is there");
    assert!(summary.contains(lacks), "the table repeats it: {summary}");

    let stderr = said(folder, "400", &[trace, ("PROFILER_TRACE_CAPACITY", "1200")]);
    assert_eq!(stderr, "profiler: wrote t.json\n");
    let stderr = said(folder, "400", &[trace, ("PROFILER_TRACE_CAPACITY", "1")]);
    let refused = "PROFILER_TRACE_CAPACITY=1 is not understood: it takes a number from 1000 to";
    assert_eq!(stderr.matches(refused).count(), 1, "{stderr}");
}

/// Only root can make files of other users; elsewhere the unit tests of the rules must do.
#[test(measuring)]
fn nothing_goes_to_what_another_user_put_into_a_shared_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let shared = folder.join("shared");
    fs::create_dir(&shared).expect("a folder");
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).expect("its own");
    let precious = file(folder, "precious", "", 0o600);
    symlink(&precious, shared.join("link.json")).expect("a link");
    symlink(folder.join("created"), shared.join("dangling.json")).expect("a link");
    file(&shared, "file.json", "{\"schema_version\":1}", 0o666);
    let made = Command::new("mkfifo")
        .arg(shared.join("fifo.json"))
        .status();
    assert!(made.is_ok_and(|made| made.success()));
    for stem in ["link", "dangling", "file", "fifo"] {
        let entry = shared.join(format!("{stem}.json"));
        if lchown(entry, Some(OTHER_USER), None).is_err() {
            return;
        }
        for (variable, what) in [("PROFILER_SUMMARY", "summary"), ("PROFILER_TRACE", "trace")] {
            let name = format!("shared/{stem}.json");
            let stderr = said(folder, "3", &[(variable, &name)]);
            let expected = format!("in a folder that others can write to: the {what} goes to ");
            assert!(stderr.contains("belongs to another user"), "{stderr}");
            assert!(stderr.contains(&expected), "{stderr}");
        }
        assert_eq!(names(&shared, stem).len(), 3, "{stem}");
    }
    assert_eq!(fs::read_to_string(precious).expect("it is there"), "");
    assert!(!folder.join("created").exists());
}

/// Returns all bytes of the files in a folder, with their names.
fn everything(folder: &Path) -> String {
    let mut all = String::new();
    for name in names(folder, "") {
        let path = folder.join(&name);
        all += &name;
        if path.is_dir() {
            all += &everything(&path);
        } else {
            all += &String::from_utf8_lossy(&fs::read(path).expect("it is there"));
        }
    }
    all
}

#[cfg(target_os = "linux")]
#[test(measuring)]
fn an_anonymous_program_names_neither_its_machine_nor_its_settings() {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let host = format!(":\"{}\"", host.trim());
    for (anonymous, expected) in [("0", true), ("1", false)] {
        let folder = tempfile::tempdir().expect("a folder");
        for (summary, trace) in [
            ("s.json", "t.json"),
            ("s.html", "traces/"),
            ("s.prom", "t.pftrace"),
        ] {
            let variables = [
                ("PROFILER_ANONYMOUS", anonymous),
                ("PROFILER_SUMMARY", summary),
                ("PROFILER_TRACE", trace),
                ("PROFILER_TENSORBOARD", "board"),
                ("PROFILER_FILTER", "train*,unmatched-secret*"),
            ];
            said(folder.path(), "3", &variables);
        }
        let summary = fs::read_to_string(folder.path().join("s.json")).expect("it is there");
        assert_eq!(summary.contains(&host), expected, "{summary}");
        assert_eq!(summary.contains("unmatched-secret"), expected, "{summary}");
        assert_eq!(
            summary.contains("PROFILER_FILTER\":"),
            expected,
            "{summary}"
        );
        let machine = host.trim_matches([':', '"']);
        let is_in_names = ["board", "traces"].map(|inner| {
            names(&folder.path().join(inner), "")
                .iter()
                .all(|name| name.contains(machine))
        });
        // The name of this machine may be the one that stands for no name.
        if machine != "localhost" {
            assert_eq!(is_in_names, [expected; 2]);
        }
        // A short name of a machine may be part of anything.
        if !expected && machine.len() > 8 {
            assert!(!everything(folder.path()).contains(machine));
        }
    }
}

#[test(measuring)]
fn a_second_run_gets_a_tensorboard_folder_beside_that_of_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (number, name) in ["runs/first", "runs/first_2", "runs/first_3"]
        .into_iter()
        .enumerate()
    {
        let stderr = said(folder, "3", &[("PROFILER_TENSORBOARD", "runs/first")]);
        assert_eq!(stderr, format!("profiler: wrote {name}\n"));
        assert_eq!(names(&folder.join("runs"), "").len(), number + 1);
        assert_eq!(names(&folder.join(name), "events.out.tfevents.").len(), 1);
    }
}
