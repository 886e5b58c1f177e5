//! The command line: what it accepts, what it prints, and how it ends.

use profiler_host::diagnostics::is_harmful;

use crate::support::{Folder, Run, command, profiler};

#[test]
fn a_command_line_that_is_not_valid_exits_with_3_and_says_why() {
    for (arguments, message) in [
        (&["frobnicate"][..], "unrecognized subcommand 'frobnicate'"),
        (&["validate"], "<FILE>"),
        (
            &["validate", "--max-bytes", "many", "x.json"],
            "invalid value 'many'",
        ),
        (&["validat", "x.json"], "validate"),
    ] {
        let run = profiler(arguments);
        assert_eq!(run.code, 3, "{arguments:?}: {run:?}");
        assert!(run.stderr.contains(message), "{arguments:?}: {run:?}");
        assert_eq!(run.stdout, "", "{arguments:?}");
    }
}

#[test]
fn arguments_reach_no_terminal_as_they_are() {
    let word = "b\u{1b}]0;PWN\u{7}\u{202e}\u{feff}.json";
    for arguments in [
        &["report", "a.json", word][..],
        &[word],
        &["help", word],
        &["report", "a.json", "--sort", word],
        &["convert", "a.json", "--to", word],
        &["completions", word],
    ] {
        let run = profiler(arguments);
        assert_eq!(run.code, 3, "{arguments:?}: {run:?}");
        let is_shown = |char: char| char == '\n' || !is_harmful(char);
        assert!(run.stderr.chars().all(is_shown), "{arguments:?}: {run:?}");
        assert!(run.stderr.contains("PWN"), "{arguments:?}: {run:?}");
    }
}

#[test]
fn a_file_without_a_command_is_told_which_prints_it() {
    let folder = Folder::new();
    let file = folder.file("run.json", b"{}");
    let run = profiler(&[&file]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(
        run.stderr.ends_with(&format!(
            "profiler: to print the table of a file: profiler report {file}\n"
        )),
        "{run:?}"
    );
    assert!(!profiler(&["frobnicate"]).stderr.contains("to print"));
}

#[test]
fn without_arguments_the_help_is_shown_as_an_error() {
    let run = profiler(&[]);
    assert_eq!(run.code, 3);
    assert!(
        run.stderr.contains("validate") && run.stderr.contains("Exit status"),
        "{run:?}"
    );
}

#[test]
fn help_and_version_are_answers() {
    for arguments in [&["--help"][..], &["validate", "--help"], &["--version"]] {
        let run = profiler(arguments);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
        assert!(run.stdout.contains("profiler"), "{run:?}");
    }
}

#[test]
fn validate_prints_each_violation_and_exits_with_1() {
    let folder = Folder::new();
    let good = folder.file("good.json", br#"{"traceEvents": []}"#);
    let bad = folder.file(
        "bad.json",
        br#"{"traceEvents": [{"ph": "X", "name": "f\u001b[2J", "ts": 1, "dur": -1}]}"#,
    );
    let run = profiler(&["validate", &good]);
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (0, "", "")
    );
    let run = profiler(&["validate", &good, &bad]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout
            .starts_with(&format!("{bad}: error: rule 6 (Slice), event 0 ")),
        "{run:?}"
    );
    assert!(!run.stdout.contains('\u{1b}'), "{run:?}");
}

#[test]
fn validate_exits_with_0_for_remarks_unless_it_is_strict() {
    let folder = Folder::new();
    let odd = folder.file(
        "odd.json",
        br#"{"traceEvents": [{"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 7, "ts": 1}]}"#,
    );
    let run = profiler(&["validate", &odd]);
    let remark = format!("{odd}: remark: rule 20 (Arrow), event 0 ");
    assert!(run.code == 0 && run.stdout.starts_with(&remark), "{run:?}");
    let run = profiler(&["validate", "--strict", &odd]);
    let error = remark.replace("remark", "error");
    assert!(run.code == 1 && run.stdout.starts_with(&error), "{run:?}");
}

#[test]
fn validate_exits_with_2_for_a_file_that_is_no_trace_and_no_summary() {
    let folder = Folder::new();
    for (content, reason) in [
        (&b""[..], "is empty"),
        (b"Name  Calls\n", "is neither a summary nor a trace"),
        (b"<!doctype html>", "is a page: open it in a browser"),
        (br#"{"name": "app"}"#, "is neither a summary nor a trace"),
    ] {
        let file = folder.file("file.json", content);
        let run = profiler(&["validate", &file]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(run.stderr.contains(reason), "{run:?}");
    }
}

#[test]
fn validate_exits_with_2_if_a_file_cannot_be_read() {
    let run = profiler(&["validate", "/nonexistent/trace.json"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.starts_with("profiler: ") && run.stderr.contains("/nonexistent/trace.json"));
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
}

/// The commands that users see.
fn commands() -> Vec<String> {
    let help = profiler(&["--help"]).stdout;
    let (_, commands) = help.split_once("Commands:\n").expect("a list of commands");
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let names = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.retain(|name| !name.is_empty() && name != "help");
    assert!(names.len() >= 6, "{help}");
    names
}

#[test]
fn completions_know_all_commands_and_are_valid() {
    for shell in ["bash", "zsh", "fish"] {
        let run = profiler(&["completions", shell]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{shell}");
        for command in commands() {
            assert!(run.stdout.contains(&command), "{shell}: {command}");
        }
        // Syntax can be checked where the shell is installed.
        let folder = Folder::new();
        let file = folder.file("completions", run.stdout.as_bytes());
        match std::process::Command::new(shell)
            .args(["-n", &file])
            .status()
        {
            Ok(status) => assert!(status.success(), "{shell}"),
            Err(error) => eprintln!("left out: the syntax of {shell} is not checked: {error}"),
        }
    }
    assert_eq!(profiler(&["completions", "tcsh"]).code, 3);
}

#[test]
fn the_manual_page_has_a_section_for_each_command() {
    let run = profiler(&["man"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert!(run.stdout.contains(".TH profiler 1"), "{}", run.stdout);
    for command in commands() {
        assert!(
            run.stdout.contains(&format!(".SH \"profiler {command}\"")),
            "{command}"
        );
    }
    assert!(run.stdout.contains("Exit status"));
}

#[test]
fn smi_without_a_library_has_one_line_and_exits_with_2() {
    let run = command(&["smi"])
        .env("PROFILER_NVML_LIBRARY", "/nowhere/libnvidia-ml.so.1")
        .output();
    let run = Run::from(run.expect("the program starts"));
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    let lines: Vec<&str> = run.stderr.lines().collect();
    let [line] = lines[..] else {
        panic!("one line: {run:?}");
    };
    assert!(
        line.starts_with("profiler: /nowhere/libnvidia-ml.so.1 cannot be loaded (")
            && line
                .ends_with("it comes with NVIDIA's driver; PROFILER_NVML_LIBRARY takes its path"),
        "{line}"
    );
}
