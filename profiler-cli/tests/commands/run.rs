//! `profiler run`: the files that it keeps, the order of the runs, and how it ends.
#![cfg(unix)]

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::support::{Folder, Run, command, profiler};

/// Writes a summary, and appends a word to a log.
fn script(folder: &Folder, word: &str) -> String {
    let log = folder.path("log");
    let text = format!(
        "#!/bin/sh\necho {word} $PROFILER_THREAD_TIME >> '{log}'\necho printed\nif [ \"$PROFILER_SUMMARY\" != off ]; then echo '{{\"schema_version\":1,\"rows\":[]}}' > \"$PROFILER_SUMMARY\"; fi\n"
    );
    folder.file(word, text.as_bytes())
}

fn log(folder: &Folder) -> String {
    std::fs::read_to_string(folder.path("log")).expect("the log is there")
}

/// Runs a shell command a few times.
fn shell(folder: &Folder, more: &[&str], text: &str) -> Run {
    let output = folder.path("runs");
    let arguments = [&["run", "-o", &output][..], more, &["--", "sh", "-c", text]].concat();
    profiler(&arguments)
}

#[test]
fn each_run_keeps_its_summary_and_its_output() {
    let folder = Folder::new();
    let script = script(&folder, "new");
    let output = folder.path("runs");
    let run = profiler(&["run", "-n", "2", "-o", &output, "--", "sh", &script]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    assert!(run.stdout.starts_with("2 summaries in "), "{run:?}");
    for number in 1..=2 {
        let file = |ending: &str| std::fs::read_to_string(format!("{output}/{number}.{ending}"));
        assert!(file("json").expect("a summary").contains("schema_version"));
        assert_eq!(file("stdout").expect("its output"), "printed\n");
        assert_eq!(file("stderr").expect("its output"), "");
    }
    assert_eq!(log(&folder), "new 1\nnew 1\n");
    let more = profiler(&[
        "run", "-n", "1", "--append", "-o", &output, "--", "sh", &script,
    ]);
    assert!(more.stdout.starts_with("1 more summary in "), "{more:?}");
    let another = folder.path("another");
    let one = profiler(&["run", "-n", "1", "-o", &another, "--", "sh", &script]);
    assert!(one.stdout.starts_with("1 summary in "), "{one:?}");
}

#[test]
fn two_programs_take_turns_and_either_begins() {
    let folder = Folder::new();
    let (base, new) = (script(&folder, "base"), script(&folder, "new"));
    let output = folder.path("out");
    let other = format!("sh '{base}'");
    let arguments = [
        "run", "-n", "3", "--warmup", "-o", &output, "--vs", &other, "--", "sh", &new,
    ];
    let run = profiler(&arguments);
    assert_eq!(run.code, 0, "{run:?}");
    let words: Vec<String> = log(&folder)
        .lines()
        .map(|line| line.replace(" 1", ""))
        .collect();
    let expected = ["base", "new", "base", "new", "new", "base", "base", "new"];
    assert_eq!(words, expected);
    let again = format!("the same again: profiler diff {output}/base {output}/new\n");
    assert!(run.stdout.ends_with(&again), "{run:?}");
    // A second experiment would add to the first.
    let again = profiler(&arguments);
    assert_eq!(again.code, 3, "{again:?}");
    assert!(
        again.stderr.contains("has summaries of other runs (")
            && again.stderr.contains("add to them with --append"),
        "{again:?}"
    );
    let arguments = ["run", "-n", "1", "--append"]
        .iter()
        .chain(&arguments[4..])
        .copied()
        .collect::<Vec<&str>>();
    let more = profiler(&arguments);
    assert_eq!(more.code, 0, "{more:?}");
    for side in ["base", "new"] {
        let folder = std::path::Path::new(&output).join(side);
        assert!(folder.join("4.json").is_file() && !folder.join("5.json").exists());
    }
    let file = folder.path("log");
    let refused = profiler(&["run", "-o", &file, "--", "sh", &new]);
    assert!(
        refused.code == 3 && refused.stderr.contains("is a file: the summaries"),
        "{refused:?}"
    );
    // The fourth pair begins with the other program than the third.
    assert!(log(&folder).ends_with("new 1\nbase 1\n"), "{more:?}");
}

#[test]
fn two_programs_are_compared_at_once() {
    let folder = Folder::new();
    let script = |name: &str, ns: u32| {
        let row = format!(
            r#"{{"name":"app::f","calls":1,"cpu":{{"calls":1,"self_ns":{ns},"mean_ns":{ns}}}}}"#
        );
        let text =
            format!("echo '{{\"schema_version\":1,\"rows\":[{row}]}}' > \"$PROFILER_SUMMARY\"\n");
        folder.file(name, text.as_bytes())
    };
    let (base, new) = (script("base", 1000), script("new", 1200));
    let output = folder.path("out");
    let other = format!("sh '{base}'");
    let run = profiler(&[
        "run", "-n", "5", "-o", &output, "--vs", &other, "--", "sh", &new,
    ]);
    // A slower function is no failure of the runs.
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    let (base, new) = (format!("{output}/base"), format!("{output}/new"));
    let diff = profiler(&["diff", &base, &new]);
    assert_eq!(diff.code, 1, "{diff:?}");
    assert!(
        diff.stdout
            .starts_with("1 slower: 5 runs of the base, 5 of the new version\n"),
        "{diff:?}"
    );
    assert!(run.stdout.starts_with(&diff.stdout), "{run:?}");
}

#[test]
fn thread_times_are_measured_unless_the_user_decides() {
    let folder = Folder::new();
    let script = script(&folder, "new");
    let run = |name: &str, more: &[&str], value: Option<&str>| {
        let output = folder.path(name);
        let arguments = [
            &["run", "-n", "1", "-o", &output][..],
            more,
            &["--", "sh", &script],
        ];
        let mut command = command(&arguments.concat());
        command.env_remove("PROFILER_THREAD_TIME");
        if let Some(value) = value {
            command.env("PROFILER_THREAD_TIME", value);
        }
        assert!(command.output().expect("it starts").status.success());
    };
    run("a", &[], None);
    run("b", &["--no-thread-time"], None);
    run("c", &[], Some("0"));
    assert_eq!(log(&folder), "new 1\nnew\nnew 0\n");
}

#[test]
fn the_status_of_a_run_that_fails_is_kept() {
    let folder = Folder::new();
    let run = shell(&folder, &[], "echo reason >&2; exit 7");
    assert_eq!(run.code, 7, "{run:?}");
    assert!(
        run.stderr
            .starts_with("profiler: run 1 ended with exit status: 7: see "),
        "{run:?}"
    );
    let reason = std::fs::read_to_string(folder.path("runs/1.stderr"));
    assert_eq!(reason.expect("its output"), "reason\n");
    let run = shell(&folder, &[], "kill -TERM $$");
    assert_eq!(run.code, 128 + 15, "{run:?}");
}

#[test]
fn a_program_that_cannot_start_or_writes_no_summary_is_an_error() {
    let folder = Folder::new();
    let output = folder.path("runs");
    let run = profiler(&["run", "-o", &output, "--", "/nonexistent/program"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr
            .contains("/nonexistent/program cannot be started"),
        "{run:?}"
    );
    let run = shell(&folder, &[], "true");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("run 1 wrote no summary"), "{run:?}");
    let run = shell(&folder, &["--vs", "'open"], "true");
    assert_eq!(run.code, 3, "{run:?}");
    assert!(
        run.stderr.contains("--vs: a quote (') is not closed"),
        "{run:?}"
    );
}

#[test]
fn an_interrupt_ends_the_experiment_after_the_run() {
    let folder = Folder::new();
    let text = "kill -INT $PPID; echo '{\"schema_version\":1,\"rows\":[]}' > \"$PROFILER_SUMMARY\"";
    let run = shell(&folder, &[], text);
    assert_eq!(run.code, 130, "{run:?}");
    assert!(run.stderr.starts_with("profiler: stopped; "), "{run:?}");
    let summaries = std::fs::read_dir(folder.path("runs")).expect("the folder is there");
    let summaries = summaries.filter(|entry| {
        let path = entry.as_ref().expect("an entry").path();
        path.extension().is_some_and(|ending| ending == "json")
    });
    assert_eq!(summaries.count(), 1);
}

/// The signal is sent to `profiler` alone, as `kill` does.
#[test]
fn a_program_that_runs_is_asked_to_end_too() {
    let folder = Folder::new();
    let ended = folder.path("ended");
    // The shell waits for `sleep` before it looks at the signal, and ends by itself after some seconds.
    let text = format!(
        "trap 'echo > \"{ended}\"; exit 3' TERM; kill -TERM $PPID; for i in $(seq 200); do sleep 0.05; done"
    );
    let run = shell(&folder, &[], &text);
    assert_eq!(run.code, 128 + 15, "{run:?}");
    assert!(run.stderr.starts_with("profiler: stopped; "), "{run:?}");
    assert!(std::fs::exists(ended).expect("the folder is there"));
}

/// A program inherits which signals are blocked and which are ignored.
#[test]
fn the_end_of_a_program_is_noticed_without_its_signal() {
    let python = |text: &str| {
        std::process::Command::new("python3")
            .args(["-c", text])
            .output()
    };
    if !python("").is_ok_and(|output| output.status.success()) {
        eprintln!("left out: a program inherits signals from Python, which is not installed");
        return;
    }
    for inherited in [
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})",
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
    ] {
        let folder = Folder::new();
        let arguments = format!(
            "['profiler', 'run', '-n', '1', '-o', '{}', '--', 'sh', '-c', 'sleep 0.3; exit 7']",
            folder.path("runs")
        );
        // The alarm ends a program that waits for a signal that does not come.
        let run = python(&format!(
            "import os, signal; {inherited}; signal.alarm(60); os.execv('{}', {arguments})",
            env!("CARGO_BIN_EXE_profiler")
        ));
        let run = run.expect("it starts");
        assert_eq!(run.status.code(), Some(7), "{inherited}: {run:?}");
    }
}

#[test]
fn a_signal_after_the_last_run_is_not_lost() {
    let folder = Folder::new();
    let script = script(&folder, "new");
    let output = folder.path("runs");
    // The output cannot be written until the signal has been sent.
    let (mut stdout, mut reader) = UnixStream::pair().expect("a pair of sockets");
    stdout.set_nonblocking(true).expect("an option");
    while stdout.write(&[b'.'; 1024]).is_ok() {}
    while stdout.write(b".").is_ok() {}
    stdout.set_nonblocking(false).expect("an option");
    let mut child = command(&["run", "-n", "1", "-o", &output, "--", "sh", &script])
        .stdout(Stdio::from(OwnedFd::from(stdout)))
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    while !std::fs::exists(format!("{output}/1.json")).expect("a folder") {
        thread::sleep(Duration::from_millis(10));
    }
    // By now it waits for the output. If it does not yet, the signal is noticed earlier.
    thread::sleep(Duration::from_millis(300));
    let kill = format!("kill -TERM {}", child.id());
    let sent = std::process::Command::new("sh")
        .args(["-c", &kill])
        .status();
    assert!(sent.expect("it starts").success());
    let reading = thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    let status = child.wait().expect("it ends");
    let read = reading.join().expect("it does not panic");
    assert!(read.is_ok_and(|bytes| bytes > 0));
    assert_eq!(status.code(), Some(128 + 15));
}

/// A shell command that writes a summary of a process to a file beside that of the run.
fn writes(suffix: &str, environment: &str) -> String {
    format!(
        "echo '{{\"schema_version\":1,\"environment\":{{{environment}}},\"rows\":[]}}' > \
         \"${{PROFILER_SUMMARY%.json}}{suffix}.json\""
    )
}

fn kept(folder: &Folder, file: &str) -> String {
    std::fs::read_to_string(folder.path(&format!("runs/{file}"))).expect("it is there")
}

#[test]
fn the_summary_of_the_program_counts_and_not_that_of_a_process_that_it_started() {
    let folder = Folder::new();
    let (child, own) = (
        writes("", "\"process\":1"),
        writes("_own", "\"process\":'$$'"),
    );
    let run = shell(&folder, &["-n", "2"], &format!("{child}; {own}; echo $$"));
    assert_eq!(run.code, 0, "{run:?}");
    for number in 1..=2 {
        let process = kept(&folder, &format!("{number}.stdout"));
        let summary = kept(&folder, &format!("{number}.json"));
        let expected = format!("\"process\":{}", process.trim());
        assert!(summary.contains(&expected), "{summary}");
        let other = kept(&folder, &format!("others/{number}.json"));
        assert!(other.contains("\"process\":1}"), "{other}");
        let remark = format!(
            "run {number}: 2 processes wrote summaries; that of process {} counts, and the others are in ",
            process.trim()
        );
        assert!(run.stderr.contains(&remark), "{run:?}");
    }
}

#[test]
fn of_the_ranks_that_a_launcher_starts_the_lowest_counts() {
    let folder = Folder::new();
    let ranks = [
        ("_rank1", "\"process\":1,\"rank\":1"),
        ("_rank0", "\"process\":2,\"rank\":0"),
    ];
    let text = ranks
        .map(|(suffix, environment)| writes(suffix, environment))
        .join("; ");
    let run = shell(&folder, &["-n", "1"], &text);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(kept(&folder, "1.json").contains("\"rank\":0"));
    assert!(kept(&folder, "others/1_rank1.json").contains("\"rank\":1"));
}

#[test]
fn a_summary_with_a_rank_alone_gets_the_name_of_the_run() {
    let folder = Folder::new();
    let run = shell(&folder, &["-n", "1"], &writes("_rank0", "\"rank\":0"));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    assert!(kept(&folder, "1.json").contains("\"rank\":0"));
}
