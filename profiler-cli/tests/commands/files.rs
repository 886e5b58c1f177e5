//! Files that are written, and those that cannot be read or written.

use std::path::Path;
use std::process::Stdio;

use crate::support::{Folder, command, profiler};

/// A trace with this many calls.
fn trace(calls: u32) -> Vec<u8> {
    let event = |call: u32| {
        let start = 10 * call;
        format!(
            r#"{{"ph": "X", "cat": "cpu_op", "name": "f{}", "pid": 1, "tid": 1, "ts": {start}, "dur": 5}}"#,
            call % 99
        )
    };
    let events: Vec<String> = (0..calls).map(event).collect();
    format!(r#"{{"traceEvents": [{}]}}"#, events.join(",\n")).into_bytes()
}

#[test]
fn a_file_that_cannot_be_read_is_one_line_and_2() {
    let folder = Folder::new();
    let missing = folder.path("missing.json");
    let cut = folder.file("cut.json", br#"{"traceEvents": [{"ph":"#);
    let table = folder.file("table.txt", b"Name  Calls\nf  3\n");
    let misspelt = folder.path("tabel.txt");
    let unrelated = folder.file("package.json", br#"{"name": "app", "version": 1}"#);
    let empty = folder.file("empty.json", b"");
    let broken = folder.file("a\u{1b}[2J\nb.json", b"{\"rows\": 3}");
    folder.folder("unrelated");
    folder.file("unrelated/package.json", br#"{"name": "app"}"#);
    let folder_path = folder.path("unrelated");
    for (file, message) in [
        (&missing, "cannot be read: No such file"),
        (
            &missing,
            "give a file that PROFILER_SUMMARY=FILE.json or PROFILER_TRACE wrote",
        ),
        (&misspelt, "; did you mean `table.txt`?"),
        (&unrelated, "is neither a summary nor a trace"),
        (&cut, "is cut off: copy it again"),
        (&table, "is neither a summary nor a trace"),
        (&empty, "is empty"),
        (&broken, "line 1, column "),
        (&folder_path, "is a folder without a "),
    ] {
        for command in [&["report"][..], &["html"], &["convert", "--to", "prof"]] {
            let arguments: Vec<&str> = command.iter().copied().chain([file.as_str()]).collect();
            let run = profiler(&arguments);
            assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
            let [line] = &run.stderr.lines().collect::<Vec<_>>()[..] else {
                panic!("{run:?}");
            };
            assert!(
                line.starts_with("profiler: ") && line.contains(message),
                "{run:?}"
            );
            assert!(!line.contains('\u{1b}'), "{run:?}");
        }
    }
    assert_eq!(
        folder.names().len(),
        6,
        "nothing was written: {:?}",
        folder.names()
    );
}

#[test]
fn an_output_that_cannot_be_written_is_one_line_and_2() {
    let folder = Folder::new();
    let good = folder.file("good.json", &trace(3));
    let nowhere = folder.path("no/folder/out.html");
    let run = profiler(&["html", &good, "-o", &nowhere]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("cannot be written: "), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    assert_eq!(folder.names(), ["good.json"]);
}

#[test]
fn files_for_other_programs_are_refused_with_what_shows_them() {
    let folder = Folder::new();
    let trace = folder.file("trace.json", &trace(3));
    for (format, message) in [
        ("prof", "python3 -m pstats"),
        ("pprof", "go tool pprof -top"),
        ("perfetto", "https://ui.perfetto.dev"),
        ("otlp", "OpenTelemetry"),
        ("html", "open it in a browser"),
    ] {
        let output = folder.path("out");
        assert_eq!(
            profiler(&["convert", &trace, "--to", format, "-o", &output]).code,
            0
        );
        let run = profiler(&["report", &output]);
        assert_eq!((run.code, run.stderr.lines().count()), (2, 1), "{run:?}");
        assert!(
            run.stderr.contains(message)
                && run
                    .stderr
                    .contains("or give the summary or trace that it was made from"),
            "{run:?}"
        );
    }
}

#[test]
fn a_summary_without_callers_is_refused_with_how_to_count_them() {
    let folder = Folder::new();
    let summary = folder.file("run.json", br#"{"schema_version": 1, "rows": []}"#);
    for option in ["--callers", "--callees"] {
        for format in ["text", "json", "csv"] {
            let run = profiler(&["report", &summary, option, "--format", format]);
            assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
            assert!(
                run.stderr
                    .contains("run.json: has no callers: run the program with PROFILER_CALLERS=1"),
                "{run:?}"
            );
        }
    }
}

#[test]
fn arguments_that_do_not_fit_together_exit_with_3() {
    let folder = Folder::new();
    let trace = folder.file("trace.json", &trace(3));
    let other = folder.path("other.out");
    let for_speedscope = folder.path("run.speedscope.json");
    for (arguments, message) in [
        (&["convert", &trace][..], "give --to FORMAT"),
        (&["convert", &trace, "-o", &other], "give --to FORMAT"),
        (
            &["convert", &trace, "-o", &for_speedscope],
            "give --to FORMAT",
        ),
        (
            &["convert", &trace, "--to", "json", "-o", &trace],
            "would replace an input",
        ),
        (&["convert", &trace, "--to", "xml"], "invalid value 'xml'"),
        (
            &["convert", &trace, "--to", "folded", "--metric", "cuda"],
            "invalid value 'cuda'",
        ),
        (&["html", &trace, &trace], "one summary and one trace"),
        (&["html", &trace, "-o", "-"], "give one, or /dev/stdout"),
        (
            &["report", &trace, &trace],
            "to compare two runs: profiler diff",
        ),
        (
            &["html", &trace, "--baseline", &trace],
            "the baseline is a trace",
        ),
        (
            &["report", &trace, "--restrict", "("],
            "is not a regular expression",
        ),
        (
            &["report", &trace, "--restrict", "1.5"],
            "is not a fraction",
        ),
        (&["report", &trace, "--sort", "self"], "did you mean"),
        (
            &["report", &trace, "--callers", "--callees"],
            "cannot be used with",
        ),
    ] {
        let run = profiler(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{run:?}");
        assert!(run.stderr.contains(message), "{arguments:?}: {run:?}");
    }
    assert_eq!(folder.names(), ["trace.json"]);
}

#[test]
fn a_page_of_a_summary_and_a_trace_is_of_one_run() {
    let folder = Folder::new();
    let summary = |name: &str, process: u32| {
        let environment = format!(r#"{{"program": "app", "process": {process}}}"#);
        let text = format!(r#"{{"schema_version": 1, "environment": {environment}, "rows": []}}"#);
        folder.file(name, text.as_bytes())
    };
    let (own, other) = (summary("own.json", 1), summary("other.json", 2));
    let unnamed = folder.file("unnamed.json", &trace(3));
    let name =
        r#"{"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "app"}}"#;
    let call =
        r#"{"ph": "X", "cat": "cpu_op", "name": "f", "pid": 1, "tid": 1, "ts": 1, "dur": 5}"#;
    let trace = format!(r#"{{"traceEvents": [{name}, {call}]}}"#);
    let trace = folder.file("trace.json", trace.as_bytes());
    let page = folder.path("page.html");
    for pair in [[&other, &trace], [&trace, &other]] {
        let run = profiler(&["html", pair[0], pair[1], "-o", &page]);
        assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{run:?}");
        let reason = format!("trace.json: is of another run than {other}: process 1 (");
        assert!(
            run.stderr.contains(&reason) && run.stderr.contains(") instead of process 2 (app); "),
            "{run:?}"
        );
        assert!(!std::path::Path::new(&page).exists());
    }
    // The id of a process without a name may be made up.
    for pair in [[&own, &trace], [&other, &unnamed]] {
        let run = profiler(&["html", pair[0], pair[1], "-o", &page]);
        let wrote = format!("profiler: wrote {page}\n");
        assert_eq!((run.code, run.stderr), (0, wrote));
    }
}

#[cfg(unix)]
#[test]
fn standard_output_gets_nothing_but_the_file_and_a_link_keeps_its_name() {
    let folder = Folder::new();
    let trace = folder.file("trace.json", &trace(3));
    let run = profiler(&["html", &trace, "-o", "/dev/stdout"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.starts_with("<!doctype html>"));
    let (target, link) = (folder.file("target.html", b""), folder.path("link.html"));
    std::os::unix::fs::symlink(&target, &link).expect("a link");
    let run = profiler(&["html", &trace, "-o", &link]);
    assert_eq!(
        (run.code, run.stderr),
        (0, format!("profiler: wrote {link}\n"))
    );
    let page = std::fs::read(&target).expect("it is there");
    assert!(page.starts_with(b"<!doctype html>"), "the link leads to it");
    assert_eq!(folder.names(), ["link.html", "target.html", "trace.json"]);
}

#[cfg(unix)]
#[test]
fn files_beside_what_a_link_leads_to_are_named_where_they_are() {
    let folder = Folder::new();
    let summary = r#"{"schema_version": 1, "rows": [{"name": "f", "calls": 1,
        "cpu": {"calls": 1, "total_ns": 5, "self_ns": 5}, "cuda": {"calls": 1, "total_ns": 5, "self_ns": 5}}]}"#;
    let summary = folder.file("run.json", summary.as_bytes());
    let (links, link) = (folder.path("links"), folder.path("links/run.prof"));
    std::fs::create_dir(&links).expect("a folder");
    std::os::unix::fs::symlink(folder.file("target.prof", b""), &link).expect("a link");
    let run = profiler(&["convert", &summary, "-o", &link]);
    assert_eq!(run.code, 0, "{run:?}");
    let wrote: Vec<&str> = run
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("profiler: wrote "))
        .collect();
    assert_eq!(wrote, [&*link, &*folder.path("run.cuda.prof")], "{run:?}");
    assert!(wrote.iter().all(|file| Path::new(file).exists()));
}

#[test]
fn a_value_that_nothing_has_is_no_stack() {
    let folder = Folder::new();
    let trace = folder.file("trace.json", &trace(3));
    let run = profiler(&[
        "convert",
        &trace,
        "--to",
        "folded",
        "--metric",
        "self_cuda_time_total",
    ]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr
            .contains("trace.folded: no call has `self_cuda_time_total`"),
        "{run:?}"
    );
    assert_eq!(folder.names(), ["trace.json"]);
}

#[test]
fn limits_are_options() {
    let folder = Folder::new();
    let path = folder.file("trace.json", &trace(100));
    let run = profiler(&["report", &path, "--max-events", "99"]);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr
            .contains("has more than 99 events: raise --max-events"),
        "{run:?}"
    );
    let run = profiler(&["report", &path, "--max-bytes", "1000"]);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr
            .contains("has more than 1000 bytes after decompression: raise --max-bytes"),
        "{run:?}"
    );
    assert_eq!(profiler(&["report", &path, "--max-events", "100"]).code, 0);
}

#[test]
fn a_closed_output_is_no_failure() {
    let folder = Folder::new();
    let path = folder.file("trace.json", &trace(1000));
    let mut child = command(&["report", &path, "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(output.stderr, b"");
}

#[test]
fn a_file_that_exists_is_replaced_when_the_new_one_is_whole() {
    let folder = Folder::new();
    let path = folder.file("trace.json", &trace(3));
    let output = folder.file("out.folded", b"before");
    let failed = profiler(&["convert", &path, "-o", &output, "--max-events", "1"]);
    assert_eq!(failed.code, 2);
    assert_eq!(std::fs::read(&output).expect("it is there"), b"before");
    assert_eq!(profiler(&["convert", &path, "-o", &output]).code, 0);
    assert!(
        std::fs::read(&output)
            .expect("it is there")
            .starts_with(b"f0 5000")
    );
    assert_eq!(folder.names(), ["out.folded", "trace.json"]);
}

#[cfg(unix)]
mod signals {
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command};
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;

    fn names_without(folder: &Folder, name: &str) -> Vec<String> {
        let mut names = folder.names();
        names.retain(|found| found != name);
        names
    }

    /// Waits until something besides the input is in the folder: the program has begun to write.
    fn wait_for_output(child: &mut Child, folder: &Folder) {
        while names_without(folder, "pipe").is_empty() {
            assert!(
                child.try_wait().expect("it is a child").is_none(),
                "it ended by itself"
            );
            sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn an_interrupt_leaves_no_half_written_file() {
        for (signal, number) in [("INT", 2), ("TERM", 15)] {
            let folder = Folder::new();
            // Reading waits until the other end of the pipe writes, which it never does.
            let pipe = folder.path("pipe");
            let made = Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .expect("mkfifo runs");
            assert!(made.success());
            let output = folder.path("out.html");
            let mut child = command(&["html", &pipe, "-o", &output])
                .spawn()
                .expect("the program starts");
            wait_for_output(&mut child, &folder);
            let id = child.id().to_string();
            let sent = Command::new("kill")
                .args(["-s", signal, &id])
                .status()
                .expect("kill runs");
            assert!(sent.success());
            let status = child.wait().expect("it ends");
            assert_eq!(status.signal(), Some(number), "{status:?}");
            assert_eq!(folder.names(), ["pipe"]);
        }
    }
}

/// A kernel, its launch, and the operator around it, as PyTorch writes them.
const EVENTS: [&str; 3] = [
    r#"{"ph": "X", "cat": "cpu_op", "name": "mm", "pid": 1, "tid": 1, "ts": 10, "dur": 9, "args": {"External id": 1}}"#,
    r#"{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 12, "dur": 2, "args": {"External id": 1, "correlation": 5}}"#,
    r#"{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 20, "dur": 30, "args": {"External id": 1, "correlation": 5, "device": 0, "stream": 7}}"#,
];

#[test]
fn every_command_reads_what_others_read_and_says_what_was_wrong() {
    let events = EVENTS.join(",");
    let object = |events: &str| format!(r#"{{"traceEvents": [{events}]}}"#);
    let utf16 = |text: &str| {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect::<Vec<u8>>()
    };
    let folder = Folder::new();
    let whole = folder.file("whole.json", object(&events).as_bytes());
    let rows = |file: &str| {
        let run = profiler(&["report", file, "--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("valid JSON");
        report["rows"].clone()
    };
    let expected = rows(&whole);
    assert_eq!(expected.as_array().map(Vec::len), Some(3));
    let broken = [events.as_str(), r#"{"ph": nul}"#].join(",");
    for (name, bytes, said) in [
        ("mark", format!("\u{feff}[{events}]").into_bytes(), ""),
        ("utf16", utf16(&format!("[{events}]")), ""),
        (
            "nested",
            format!(r#"{{"data": {}}}"#, object(&events)).into_bytes(),
            "",
        ),
        ("lines", EVENTS.join("\n").into_bytes(), ""),
        ("unclosed", format!("[{events}").into_bytes(), "passed over"),
        (
            "comma",
            object(&format!("{events},")).into_bytes(),
            "trailing comma",
        ),
        (
            "nan",
            object(&events.replacen("{\"Ext", "{\"loss\": NaN, \"Ext", 1)).into_bytes(),
            "expected value",
        ),
        (
            "path",
            object(&events.replacen("{\"Ext", r#"{"file": "C:\python", "Ext"#, 1)).into_bytes(),
            "invalid escape",
        ),
        (
            "control",
            object(&events.replacen("{\"Ext", "{\"a\": \"\u{1}\", \"Ext", 1)).into_bytes(),
            "control character",
        ),
        (
            "broken",
            object(&broken).into_bytes(),
            "1 events cannot be read and are left out",
        ),
        (
            "cut",
            object(&events).replace("]}", ", {").into_bytes(),
            "the rest of the file is not read",
        ),
    ] {
        let file = folder.file(&format!("{name}.json"), &bytes);
        let [page, copy] =
            ["html", "copy.json"].map(|ending| folder.path(&format!("{name}.{ending}")));
        for (arguments, output) in [
            (&["report", &*file][..], None),
            (&["explain", &file], None),
            (&["html", &file, "-o", &page], Some(&page)),
            (&["convert", &file, "--to", "chrome", "-o", &copy], None),
        ] {
            let run = profiler(arguments);
            assert_eq!(run.code, 0, "{arguments:?}: {run:?}");
            let written = output.map(|path| std::fs::read_to_string(path).expect("a page"));
            let shown = [run.stdout, run.stderr, written.unwrap_or_default()].concat();
            assert!(shown.contains(said), "{arguments:?}: {shown}");
            let says_something = ["passed over (", "left out (", "rest of the file is"]
                .iter()
                .any(|word| shown.contains(word));
            assert_eq!(says_something, !said.is_empty(), "{arguments:?}: {shown}");
        }
        assert_eq!(
            (rows(&file), rows(&copy)),
            (expected.clone(), expected.clone()),
            "{name}"
        );
    }
}

#[test]
fn a_comparison_takes_no_file_that_lacks_something_unless_it_is_told_to() {
    let folder = Folder::new();
    let of_rank = |rank: u32, calls| {
        let base = r#"{"baseTimeNanoseconds": 1700000000000000000, "#;
        let head = format!(r#"{base}"distributedInfo": {{"rank": {rank}}}, "#);
        let text = String::from_utf8(trace(calls)).expect("UTF-8");
        text.replacen('{', &head, 1).into_bytes()
    };
    let whole = folder.file("whole.json", &of_rank(0, 300));
    let other = folder.file("other.json", &of_rank(1, 298));
    let mut text = of_rank(1, 300);
    text.truncate(text.len() - 30);
    let cut = folder.file("cut.json", &text);
    let budget = folder.file("budget.toml", b"\"f1\" = { cpu_p95 = \"1 s\" }\n");
    let merged = folder.path("merged.json");
    for arguments in [
        &["diff", &*whole, &*cut][..],
        &["diff", &whole, &cut, "--budget", &budget],
        &["merge", &whole, &cut, "--force", "-o", &merged],
    ] {
        let refused = profiler(arguments);
        assert_eq!(refused.code, 2, "{arguments:?}: {refused:?}");
        assert!(
            refused.stderr.contains("cut.json: is not whole: "),
            "{refused:?}"
        );
        assert!(
            refused.stderr.contains("--partial takes what can be read"),
            "{refused:?}"
        );
        let partial = profiler(&[arguments, &["--partial"]].concat());
        assert!(partial.stderr.contains("cut.json: "), "{partial:?}");
        assert_eq!(partial.code, 0, "{arguments:?}: {partial:?}");
        assert!(
            partial.stderr.contains("the rest of the file is not read"),
            "{partial:?}"
        );
    }
    let complete = profiler(&["diff", &whole, &other]);
    assert_eq!((complete.code, complete.stderr.as_str()), (0, ""));
}
