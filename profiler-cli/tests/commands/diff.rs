//! `profiler diff`: its verdicts, formats, budgets and exit statuses.

use std::fmt::Write;

use crate::support::{Folder, Run, profiler};

const THREE: [&str; 3] = ["app::slow", "app::same|`<b>", "app::other\u{1b}[2J"];

/// Writes the summaries of a program with three functions into a new folder. `factor` is that of `app::slow`.
fn side(folder: &Folder, name: &str, runs: u32, factor: f64, environment: &str) -> String {
    let first_ns = 1 + u32::from(name == "new");
    let functions: Vec<(&str, f64)> = THREE.into_iter().zip([factor, 1.0, 1.0]).collect();
    write_side(folder, name, runs, &functions, first_ns, environment)
}

/// Writes the summaries of a program into a new folder; runs start at `first_ns`, with a turn of the other side in between.
fn write_side(
    folder: &Folder,
    name: &str,
    runs: u32,
    functions: &[(&str, f64)],
    first_ns: u32,
    environment: &str,
) -> String {
    folder.folder(name);
    for run in 0..runs {
        let mut rows = String::new();
        for (index, (function, factor)) in (0_u32..).zip(functions) {
            let noise = 1.0 + 0.002 * f64::from((run * 7 + 3 * index) % 5);
            let own = 1e6 * noise * factor;
            let separator = if index == 0 { "" } else { "," };
            let name = function.escape_default();
            let name = name.to_string().replace("\\u{1b}", "\\u001b");
            write!(
                rows,
                r#"{separator}{{"name":"{name}","calls":100,"cpu":{{"calls":100,"self_ns":{},"mean_ns":{own},"p95_ns":{own}}}}}"#,
                100.0 * own,
            )
            .expect("to a string");
        }
        let json = format!(
            r#"{{"schema_version":1,"environment":{{"system":"linux x86_64","start_unix_ns":{}{environment}}},"percentile_error":0.03,"rows":[{rows}]}}"#,
            first_ns + 2 * run,
        );
        folder.file(&format!("{name}/{run}.json"), json.as_bytes());
    }
    folder.path(name)
}

/// Compares a program with ten functions with one where seven of them take 20 % longer, and the others as long as before.
fn compare_most_slower(in_turns: bool, more: &[&str]) -> Run {
    let names: Vec<String> = (0..10).map(|index| format!("app::f{index}")).collect();
    let functions = |slow: usize| -> Vec<(&str, f64)> {
        let factor = |index: usize| if index < slow { 1.2 } else { 1.0 };
        let names = names.iter().enumerate();
        names
            .map(|(index, name)| (name.as_str(), factor(index)))
            .collect()
    };
    let folder = Folder::new();
    let base = write_side(&folder, "base", 7, &functions(0), 1, "");
    let first_ns = if in_turns { 2 } else { 100 };
    let new = write_side(&folder, "new", 7, &functions(7), first_ns, "");
    profiler(&[&["diff", &base, &new][..], more].concat())
}

/// Compares two versions with five runs each.
fn compare(factor: f64, more: &[&str]) -> Run {
    let folder = Folder::new();
    folder.folder("base");
    folder.folder("new");
    let base = side(&folder, "base", 5, 1.0, "");
    let new = side(&folder, "new", 5, factor, "");
    profiler(&[&["diff", "--base", &base, "--new", &new][..], more].concat())
}

#[test]
fn a_function_that_is_slower_is_found_and_exits_with_1() {
    let run = compare(1.2, &[]);
    assert_eq!((run.code, run.stderr.lines().count()), (1, 2), "{run:?}");
    let mut lines = run.stdout.lines();
    let headline = lines.next().unwrap_or_default();
    assert!(headline.starts_with("1 slower, 2 same: "), "{run:?}");
    let row = lines
        .find(|line| line.starts_with("app::slow "))
        .unwrap_or_default();
    assert!(
        row.contains("1.00 ms") && row.contains("1.20 ms"),
        "{run:?}"
    );
    assert!(
        row.contains("+20.0 %") && row.ends_with("slower"),
        "{run:?}"
    );
    assert!(run.stdout.contains("2 more figures: same"), "{run:?}");
}

#[test]
fn a_common_movement_is_a_finding_and_functions_without_it_are_the_same() {
    let run = compare_most_slower(true, &["--all"]);
    assert_eq!(run.code, 1, "{run:?}");
    let headline = "most functions got 19.5 % slower together (CPU), 7 slower, 3 same: ";
    assert!(run.stdout.starts_with(headline), "{run:?}");
    let row = |name: &str| {
        let mut lines = run.stdout.lines();
        let line = lines
            .find(|line| line.starts_with(name))
            .unwrap_or_default();
        line.to_owned()
    };
    assert!(
        row("Function").contains("  Change   ") && row("Function").contains("  Against others  ")
    );
    assert!(row("f0 ").contains("1.00 ms  1.20 ms  +20.") && row("f0 ").ends_with("slower"));
    let same = row("f9 ");
    assert!(
        same.contains("1.00 ms  1.00 ms   +0.0 %") && same.contains("  -16.3 %  "),
        "{run:?}"
    );
    assert!(same.ends_with("same within 3 %"), "{run:?}");
    let left_out = "\nall names begin with `app::`, which is left out\n";
    assert!(run.stdout.contains(left_out), "{run:?}");
    let note = "most functions got 19.5 % slower together: each is judged by its own change\n";
    assert!(run.stdout.contains(note), "{run:?}");
    let markdown = compare_most_slower(true, &["--format", "markdown"]);
    let head = "| Function | Figure | Base | New | Change | 95 % interval | Against others | 95 % interval | Verdict |\n\
                |---|---|---:|---:|---:|---:|---:|---:|---|\n";
    assert!(markdown.stdout.contains(head), "{markdown:?}");
}

#[test]
fn without_turns_a_common_movement_may_be_the_machines_and_nothing_is_faster() {
    let run = compare_most_slower(false, &[]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.starts_with("0 slower, 10 unclear: "), "{run:?}");
    assert_eq!(
        run.stdout.matches("unclear: machine or program").count(),
        11,
        "{run:?}"
    );
    assert!(!run.stdout.contains("faster"), "{run:?}");
    let note = "the sides did not run in turns: a change of the machine cannot be told from one of the program";
    assert!(run.stdout.contains(note), "{run:?}");
    assert_eq!(compare_most_slower(false, &["--strict"]).code, 2);
    let json = compare_most_slower(false, &["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("it is JSON");
    assert_eq!(
        (&json["in_turns"], &json["unclear"]),
        (&false.into(), &10.into())
    );
    assert_eq!(json["overall"][0]["turns_needed"], true);
    let mut rows = json["rows"].as_array().expect("an array").iter();
    let row = rows.find(|row| row["name"] == "app::f9").expect("a row");
    assert_eq!(
        (&row["verdict"], &row["judged_by"]),
        (&"unclear".into(), &"both".into())
    );
    let estimate = |of: &str| row[of]["estimate"].as_f64().expect("a number");
    let ratio = row["new"]
        .as_f64()
        .zip(row["base"].as_f64())
        .map(|(new, base)| new / base - 1.0);
    assert!(
        (estimate("change") - ratio.expect("numbers")).abs() < 1e-9,
        "{row}"
    );
    assert!(estimate("against_others") < -0.1, "{row}");
}

#[test]
fn single_files_and_folders_are_compared_without_options() {
    let folder = Folder::new();
    let base = side(&folder, "base", 7, 1.0, "");
    let new = side(&folder, "new", 7, 1.2, "");
    let run = profiler(&["diff", &base, &new]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout
            .starts_with("1 slower, 2 same: 7 runs of the base, 7 of"),
        "{run:?}"
    );
    let (old, newer) = (format!("{base}/0.json"), format!("{new}/0.json"));
    let run = profiler(&["diff", &old, &newer]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stdout.contains("+20.0 %              –  no verdict"),
        "{run:?}"
    );
    // A file and a folder can be mixed, and each of the other forms is a mistake.
    assert!(
        profiler(&["diff", &old, &new])
            .stdout
            .starts_with("3 figures: 1 run of the base, 7 ")
    );
    for mistake in [
        &["diff"][..],
        &["diff", &old],
        &["diff", &old, &newer, &new],
        &["diff", "--base", &old],
        &["diff", &old, &newer, "--base", &old, "--new", &newer],
    ] {
        assert_eq!(profiler(mistake).code, 3, "{mistake:?}");
    }
}

#[test]
fn how_many_runs_find_a_change_is_one_line() {
    let run = compare(1.0, &[]);
    let line = "to find a change of 5 % in 9 of 10 cases takes about 5 runs a side (CPU, 0.";
    assert!(run.stdout.contains(line), "{run:?}");
    let run = compare(1.0, &["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    let power = &json["power"][0];
    assert_eq!(
        (&power["change"], &power["runs"]),
        (&0.05.into(), &5.into())
    );
    assert_eq!(power["metric"], "elapsed");
    assert!(
        power["noise"].as_f64().is_some_and(|noise| noise > 0.0),
        "{power}"
    );
}

#[test]
fn a_function_that_is_faster_or_the_same_exits_with_0() {
    let run = compare(0.8, &["--strict"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stdout.starts_with("0 slower, 1 faster, 2 same: "),
        "{run:?}"
    );
    let run = compare(1.0, &["--strict", "--all", "--p95"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(run.stdout.matches("same within 3 %").count(), 3, "{run:?}");
    assert_eq!(run.stdout.matches("CPU p95").count(), 3, "{run:?}");
}

#[test]
fn few_runs_have_differences_and_no_verdict() {
    let folder = Folder::new();
    folder.folder("base");
    folder.folder("new");
    side(&folder, "base", 1, 1.0, "");
    side(&folder, "new", 1, 3.0, "");
    let (base, new) = (folder.path("base/0.json"), folder.path("new/0.json"));
    let arguments = ["diff", "--base", &base, "--new", &new];
    let run = profiler(&arguments);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stdout.contains("+200 %") && run.stdout.contains("no verdict"),
        "{run:?}"
    );
    assert!(
        run.stdout
            .contains("no verdicts: 1 and 1 runs, and 5 on each side are needed"),
        "{run:?}"
    );
    let strict = profiler(&[&arguments[..], &["--strict"]].concat());
    assert_eq!(strict.code, 2, "{strict:?}");
}

#[test]
fn another_build_is_not_comparable() {
    let folder = Folder::new();
    folder.folder("base");
    folder.folder("new");
    let base = side(&folder, "base", 5, 1.0, "");
    let new = side(&folder, "new", 5, 3.0, r#","debug_build":true"#);
    let run = profiler(&["diff", "--base", &base, "--new", &new]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stdout
            .contains("not comparable: the build differs: debug and release"),
        "{run:?}"
    );
    let strict = profiler(&["diff", "--strict", "--base", &base, "--new", &new]);
    assert_eq!(strict.code, 2, "{strict:?}");
}

#[test]
fn json_has_every_figure() {
    let run = compare(1.2, &["--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    assert_eq!(
        (json["slower"].as_u64(), json["same"].as_u64()),
        (Some(1), Some(2))
    );
    let row = &json["rows"][0];
    assert_eq!(row["name"], "app::slow");
    assert_eq!(row["metric"], "elapsed");
    assert_eq!(row["verdict"], "slower");
    let change = row["change"]["estimate"].as_f64().expect("a number");
    assert!((change - 0.2).abs() < 0.02, "{run:?}");
    let names = json["rows"].as_array().expect("an array").iter();
    let names: Vec<&str> = names.filter_map(|row| row["name"].as_str()).collect();
    assert!(names.contains(&"app::other\u{1b}[2J"), "{names:?}");
}

#[test]
fn markdown_has_a_marker_and_harmless_names() {
    let run = compare(1.2, &["--format", "markdown", "--all"]);
    assert_eq!(run.code, 1);
    assert!(
        run.stdout
            .starts_with("<!-- profiler-diff -->\n### ❌ 1 slower"),
        "{run:?}"
    );
    assert!(run.stdout.contains("| `app::slow` | CPU | "), "{run:?}");
    assert!(run.stdout.contains("| `app::same¦'<b>` |"), "{run:?}");
    assert!(!run.stdout.contains('\u{1b}'), "{run:?}");
    let cells = run.stdout.lines().filter(|line| line.starts_with("| `"));
    for line in cells {
        assert_eq!(line.matches('|').count(), 8, "{line}");
    }
}

#[test]
fn budgets_are_absolute_limits() {
    let folder = Folder::new();
    let budget = folder.file(
        "budget.toml",
        b"\"app::slow\" = { cpu_p95 = \"1.1 ms\", calls = 100 }\n",
    );
    let run = compare(1.0, &["--budget", &budget]);
    assert_eq!(run.code, 0, "{run:?}");
    let run = compare(1.2, &["--budget", &budget]);
    assert_eq!(run.code, 1, "{run:?}");
    let over = "over budget: cpu_p95 of app::slow is 1.20 ms, and its limit is 1.1 ms";
    assert!(run.stdout.contains(over), "{run:?}");
}

#[test]
fn mistakes_in_a_budget_are_named() {
    let folder = Folder::new();
    let misspelt = folder.file(
        "misspelt.toml",
        b"\n\"app::slow\" = { cpu_p59 = \"2 ms\" }\n",
    );
    let run = compare(1.0, &["--budget", &misspelt]);
    assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{run:?}");
    assert!(
        run.stderr
            .contains("misspelt.toml, line 2: `cpu_p59` of `app::slow`")
            && run
                .stderr
                .contains("did you mean `cpu_p50` or `cpu_p95` or `cpu_p99`?"),
        "{run:?}"
    );
    let missing = folder.file("missing.toml", b"\"app::slwo\" = { cpu_p95 = \"2 ms\" }\n");
    let run = compare(1.0, &["--budget", &missing, "--strict"]);
    assert_eq!(run.code, 2, "{run:?}");
    let line = "budget, line 1: app::slwo was not called in any run; did you mean `app::slow`?";
    assert!(run.stdout.contains(line), "{run:?}");
    let gone = folder.path("gone.toml");
    let run = compare(1.0, &["--budget", &gone]);
    assert_eq!((run.code, run.stderr.lines().count()), (2, 1), "{run:?}");
}

#[test]
fn traces_are_compared_too() {
    let folder = Folder::new();
    let trace = |name: &str, length: u32| {
        let events = format!(
            r#"{{"traceEvents":[{{"ph":"X","name":"step","cat":"cpu_op","pid":1,"tid":1,"ts":1,"dur":{length}}}]}}"#
        );
        folder.file(name, events.as_bytes())
    };
    let (base, new) = (
        trace("a.pt.trace.json", 1000),
        trace("b.pt.trace.json", 2000),
    );
    let run = profiler(&["diff", "--base", &base, "--new", &new]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stdout.contains("step ") && run.stdout.contains("+100 %"),
        "{run:?}"
    );
}

#[test]
fn a_run_is_compared_with_another_one_and_counts_once() {
    let folder = Folder::new();
    let environment = r#","process":7,"host":"node""#;
    folder.folder("base");
    let base = side(&folder, "base", 2, 1.0, environment);
    let [first, second] = [0, 1].map(|run| format!("{base}/{run}.json"));
    let copy = folder.path("copy.json");
    std::fs::copy(&first, &copy).expect("it is there");
    let other_side = "on the other side: a comparison needs runs of two versions";
    let twice = "and would count as two runs: give one file of each run";
    for (base, new, what, why) in [
        (&[&*base][..], &[&*base][..], "is given twice", other_side),
        (&[&*base], &[&*second], "is given twice", other_side),
        // Sides that are one folder are so whatever else is wrong in it.
        (&[&*first, &*copy], &[&*first], "is given twice", other_side),
        (&[&*first], &[&*copy], "is of the same run as", other_side),
        (
            &[&*first, &*copy],
            &[&*second],
            "is of the same run as",
            twice,
        ),
        (&[&*first, &*first], &[&*second], "is given twice", twice),
    ] {
        let arguments = [&["diff", "--base"], base, &["--new"], new].concat();
        let run = profiler(&arguments);
        assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{run:?}");
        let last = run.stderr.lines().last().unwrap_or_default();
        assert!(last.contains(what) && last.ends_with(why), "{run:?}");
    }
    assert_eq!(profiler(&["diff", &first, &second]).code, 0);
}

#[test]
fn a_folder_without_files_and_a_file_that_is_gone_are_named() {
    let folder = Folder::new();
    let file = folder.file("a.json", br#"{"schema_version":1,"rows":[]}"#);
    folder.folder("empty");
    let empty = folder.path("empty");
    let run = profiler(&["diff", "--base", &file, "--new", &empty]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr
            .contains("is a folder without files ending in .json"),
        "{run:?}"
    );
    let run = profiler(&["diff", "--base", &file, "--new", "/nonexistent.json"]);
    assert_eq!(run.code, 2, "{run:?}");
    let newer = folder.file("newer.json", br#"{"schema_version":9,"rows":[]}"#);
    let run = profiler(&["diff", "--base", &file, "--new", &newer]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("schema version 9"), "{run:?}");
}
