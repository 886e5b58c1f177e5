//! The program prints each violation on a line and ends with a status that a script can test.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const GOOD: &str = r#"{"traceEvents": []}"#;
const BAD: &str = r#"{"traceEvents": [{"ph": "X", "name": "forward", "ts": 1.5, "dur": -2}]}"#;

fn trace(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("room");
    path
}

fn run(arguments: &[&Path]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_profiler-trace-validator"))
        .args(arguments)
        .output()
        .expect("the program");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn a_good_trace_is_silent() {
    let path = trace("silent.json", GOOD);
    assert_eq!(run(&[&path]), (Some(0), String::new(), String::new()));
}

#[test]
fn violations_are_printed_with_their_file() {
    let (good, bad) = (trace("good.json", GOOD), trace("bad.json", BAD));
    let (status, output, errors) = run(&[&good, &bad]);
    let expected = format!(
        "{}: error: rule 6 (Slice), event 0 `forward`: it needs `cat`, `ts`, and a `dur` that is not negative\n",
        bad.display()
    );
    assert_eq!((status, output), (Some(1), expected));
    assert_eq!(errors, "");
}

#[test]
fn what_the_tools_survive_is_a_remark_unless_that_is_an_error() {
    // An arrow without an end.
    let arrow =
        r#"{"traceEvents": [{"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 7, "ts": 1}]}"#;
    let path = trace("arrow.json", arrow);
    let (status, output, errors) = run(&[&path]);
    let expected = format!("{}: remark: rule 20 (Arrow), event 0 ", path.display());
    assert!(output.starts_with(&expected), "{output}");
    assert_eq!((status, errors.as_str()), (Some(0), ""));
    let (status, output, _) = run(&["--strict".as_ref(), &path]);
    assert!(output.contains(": error: rule 20 (Arrow)"), "{output}");
    assert_eq!(status, Some(1));
}

#[test]
fn escape_sequences_in_names_do_not_reach_the_terminal() {
    let path = trace(
        "escapes.json",
        &BAD.replace("forward", r"\u001b[2J\u001b[31m"),
    );
    let (_, output, _) = run(&[&path]);
    assert!(output.contains("`\\u{1b}[2J\\u{1b}[31m`"), "{output}");
    assert!(!output.contains('\x1b'), "{output}");
}

#[test]
fn a_trace_that_cannot_be_read_is_an_error_and_the_others_are_checked() {
    let bad = trace("beside.json", BAD);
    let missing = bad.with_file_name("missing.json");
    let (status, output, errors) = run(&[&missing, &bad]);
    assert_eq!(status, Some(2));
    assert!(output.contains("rule 6"), "{output}");
    let expected = format!("error: cannot read the trace {}: ", missing.display());
    assert!(errors.starts_with(&expected), "{errors}");
}

#[test]
fn the_limit_can_be_set() {
    let path = trace("long.json", GOOD);
    let (status, _, errors) = run(&["--max-bytes".as_ref(), "10".as_ref(), &path]);
    assert_eq!(status, Some(2));
    assert!(errors.contains("has more than 10 bytes"), "{errors}");
    assert_eq!(
        run(&["--max-bytes".as_ref(), "19".as_ref(), &path]).0,
        Some(0)
    );
}

#[test]
fn a_command_line_that_is_not_understood_prints_the_usage() {
    for arguments in [
        &[][..],
        &["--unknown"],
        &["--max-bytes"],
        &["--max-bytes", "much", "a"],
    ] {
        let arguments: Vec<&Path> = arguments.iter().map(Path::new).collect();
        let (status, output, errors) = run(&arguments);
        assert_eq!((status, output.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(errors.starts_with("usage: profiler-trace-validator "));
    }
}
