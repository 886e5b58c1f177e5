//! Folders where files are expected.

use std::fs::File;
use std::time::{Duration, SystemTime};

#[cfg(target_os = "linux")]
use crate::support::Run;
use crate::support::{Folder, profiler};

const SUMMARY: &[u8] = br#"{"schema_version": 1, "rows": []}"#;

/// Returns a trace of one rank with a single call of a function.
fn trace(function: &str, rank: u64) -> Vec<u8> {
    format!(
        r#"{{"baseTimeNanoseconds": 1700000000000000000, "distributedInfo": {{"rank": {rank}}}, "traceEvents": [
        {{"ph": "X", "cat": "cpu_op", "name": "{function}", "pid": 1, "tid": 1, "ts": 1, "dur": 5}}]}}"#
    )
    .into_bytes()
}

/// Writes a file that seems to be this many seconds old.
fn aged(folder: &Folder, name: &str, content: &[u8], seconds: u64) {
    let path = folder.file(name, content);
    let written = SystemTime::now() - Duration::from_secs(seconds);
    let file = File::options().write(true).open(path).expect("it is there");
    file.set_modified(written).expect("it has a time");
}

/// A folder with two traces, a newer summary, and a newest file that is neither.
fn mixed() -> Folder {
    let folder = Folder::new();
    folder.folder("in");
    aged(&folder, "in/a.json", &trace("older", 0), 40);
    aged(&folder, "in/b.json", &trace("newer", 1), 30);
    aged(&folder, "in/c.json", SUMMARY, 20);
    aged(&folder, "in/package.json", br#"{"name": "app"}"#, 10);
    folder.file("in/log.txt", b"[INFO] done");
    folder
}

/// Runs the program with so much memory that a file of any content fits, and not much more.
#[cfg(target_os = "linux")]
fn with_a_gibibyte(arguments: &[&str]) -> Run {
    let limited = r#"ulimit -v 1300000 && exec "$0" "$@""#;
    let mut command = std::process::Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_profiler")]);
    let output = command.args(arguments).output();
    output.expect("there is a shell").into()
}

/// A summary with so many rows, of which none has a value: three bytes each.
fn empty_rows(count: usize) -> Vec<u8> {
    format!(r#"{{"rows":[{{}}{}]}}"#, ",{}".repeat(count)).into_bytes()
}

#[cfg(target_os = "linux")]
#[test]
fn a_small_file_cannot_take_all_memory() {
    let folder = Folder::new();
    let file = folder.file("rows.json", &empty_rows(1_000_000));
    for command in ["report", "validate", "top", "html", "explain"] {
        let run = with_a_gibibyte(&[command, &file]);
        assert_eq!((run.code, run.stderr.lines().count()), (2, 1), "{run:?}");
        assert!(run.stderr.contains("bytes of memory"), "{run:?}");
    }
}

#[cfg(all(target_os = "linux", feature = "top"))]
#[test]
fn a_file_that_cannot_be_read_costs_top_its_own_row_only() {
    let folder = Folder::new();
    folder.folder("in");
    folder.file("in/a.json", &empty_rows(1_000_000));
    folder.file(
        "in/b.json",
        br#"{"rows": [{"name": "f", "calls": 7}], "wall_ns": 1e9, "is_last": true}"#,
    );
    folder.file("in/c.json", br#"{"rows": ["#);
    let run = with_a_gibibyte(&["top", &folder.path("in")]);
    assert_eq!((run.code, &*run.stderr), (0, ""), "{run:?}");
    let line = |name: &str| run.stdout.lines().find(|line| line.contains(name));
    assert!(
        line("b.json").is_some_and(|line| line.contains("ended")),
        "{run:?}"
    );
    assert!(
        line("a.json").is_some() && line("c.json").is_some(),
        "{run:?}"
    );
}

#[test]
fn a_command_for_one_file_takes_the_newest_and_says_which() {
    let folder = mixed();
    let path = folder.path("in");
    let run = profiler(&["report", &path]);
    let line = format!("profiler: {path}: takes c.json, the newest of 3 files\n");
    assert_eq!((run.code, run.stderr), (0, line));
    let line = format!("profiler: {path}: takes b.json, the newest of 2 files\n");
    let run = profiler(&["convert", &path, "--to", "perfetto"]);
    let wrote = format!("profiler: wrote {path}/b.pftrace\n");
    assert_eq!((run.code, run.stderr), (0, line + &wrote));
    let run = profiler(&["html", &path, "--baseline", &path]);
    assert_eq!((run.code, run.stderr.lines().count()), (0, 3), "{run:?}");
    assert!(
        run.stderr.contains("c.json, the only summary in it"),
        "{run:?}"
    );
    for written in ["in/b.pftrace", "in/c.html"] {
        assert!(File::open(folder.path(written)).is_ok(), "{written}");
    }
}

#[test]
fn a_command_for_several_files_takes_all_and_names_those_that_it_leaves_out() {
    let folder = mixed();
    let path = folder.path("in");
    folder.folder("new");
    folder.file("new/1.json", SUMMARY);
    let other = folder.path("new");
    let run = profiler(&["diff", &path, &other]);
    let taken = "takes all 3 files: a.json, b.json, c.json; leaves out package.json";
    let line = format!("profiler: {path}: {taken}\n");
    let lines = format!("{line}profiler: {other}: takes 1.json\n");
    assert_eq!((run.code, run.stderr), (0, lines));
    let run = profiler(&["validate", &path]);
    assert_eq!(run.stderr, line);
    // A second time, the output is in the folder.
    for _ in 0..2 {
        let output = folder.path("in/all.json");
        let run = profiler(&["merge", &path, "-o", &output, "--force"]);
        let taken = "takes all 2 files: a.json, b.json; leaves out c.json, package.json";
        assert!(run.stderr.contains(taken), "{run:?}");
    }
}

#[test]
fn runs_are_taken_in_the_order_of_their_numbers() {
    let folder = Folder::new();
    for run in 1..=11 {
        folder.file(&format!("{run}.json"), SUMMARY);
    }
    let run = profiler(&["validate", &folder.path("")]);
    assert!(
        run.stderr.contains("takes all 11 files, 1.json to 11.json"),
        "{run:?}"
    );
}

#[test]
fn a_folder_without_a_file_to_take_is_refused_with_a_way_on() {
    let folder = Folder::new();
    folder.folder("empty");
    folder.folder("runs/base");
    folder.folder("runs/new");
    folder.file("runs/base/1.json", SUMMARY);
    folder.file("runs/new/1.json", SUMMARY);
    let (empty, runs, base) = (
        folder.path("empty"),
        folder.path("runs"),
        folder.path("runs/base"),
    );
    let output = folder.path("all.json");
    for (arguments, reason) in [
        (
            &["report", &empty][..],
            "is a folder without files ending in .json or .json.gz; give a summary or trace",
        ),
        (&["report", &runs], "give a folder inside it: base, new"),
        (&["html", &runs], "give a folder inside it: base, new"),
        (
            &["diff", &runs, &runs],
            "give a folder inside it: base, new",
        ),
        (
            &["merge", &base, "-o", &output],
            "is a folder without a trace: it has 1.json; give a trace",
        ),
    ] {
        let run = profiler(arguments);
        assert_eq!((run.code, run.stderr.lines().count()), (2, 1), "{run:?}");
        assert!(run.stderr.contains(reason), "{run:?}");
    }
}

#[test]
fn one_trace_cannot_be_merged() {
    let folder = Folder::new();
    let file = folder.file("a.json", &trace("step", 0));
    let run = profiler(&["merge", &file, "-o", &folder.path("all.json")]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(
        run.stderr
            .contains("is the trace of one rank: give those of two or more"),
        "{run:?}"
    );
}

#[test]
fn an_output_that_is_a_folder_gets_a_file_named_after_the_input() {
    let folder = Folder::new();
    folder.folder("out");
    let file = folder.file("run.pt.trace.json", &trace("step", 0));
    let output = folder.path("out");
    for (arguments, name) in [
        (&["html", &file, "-o", &output][..], "out/run.html"),
        (
            &["convert", &file, "--to", "pftrace", "-o", &output],
            "out/run.pftrace",
        ),
        (
            &["convert", &file, "--to", "folded", "-o", &output],
            "out/run.folded",
        ),
    ] {
        let run = profiler(arguments);
        let wrote = format!("profiler: wrote {}\n", folder.path(name));
        assert_eq!((run.code, &run.stderr), (0, &wrote), "{run:?}");
        assert!(File::open(folder.path(name)).is_ok(), "{name}");
    }
}
