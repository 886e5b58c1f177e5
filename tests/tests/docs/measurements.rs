//! Figures in documents are those that were measured: `checks/measurements.json` keeps them, by the run that measured
//! them, and `benches/*/expected.txt` the counts of instructions.
//!
//! `<!--=NAME-->19.3<!--=-->` in a document is the figure of that name, or a table, which stands on lines of its own; `runs`
//! is the table of the runs. `<!--=cpu:on-->` is a count.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::panic;

use serde_json::Value;

use super::links::documents;
use super::repository::root;

/// The begin of the comments around a figure.
const MARK: &str = "<!--=";

/// Units of what is measured, as they follow a number.
const UNITS: [&str; 13] = [
    "ns",
    "µs",
    "ms",
    "s",
    "bytes",
    "KiB",
    "kB",
    "MiB",
    "MB",
    "GiB",
    "instructions",
    "×",
    "%",
];

/// Returns what is written for each name, and the names that a document must have.
fn kept(runs: &Value) -> (BTreeMap<String, String>, BTreeSet<String>) {
    let (mut written, mut needed) = (BTreeMap::new(), BTreeSet::new());
    let mut add = |name: &str, value: String| {
        assert!(
            written.insert(name.to_owned(), value).is_none(),
            "{name} is kept twice"
        );
    };
    let mut table =
        "\n| run | command | date | commit | rustc | on |\n|---|---|---|---|---|---|\n".to_owned();
    for (run, of) in runs.as_object().unwrap() {
        let [command, date, commit, rustc, on] = ["command", "date", "commit", "rustc", "on"]
            .map(|what| of[what].as_str().unwrap_or_else(|| panic!("{run}: {what}")));
        let row = [&**run, &format!("`{command}`"), date, commit, rustc, on].join(" | ");
        table.extend(["| ", &row, " |\n"]);
        for (name, value) in of["figures"].as_object().unwrap() {
            let lines = value.as_array().into_iter().flatten();
            let lines = lines.map(|line| format!("\n{}", line.as_str().unwrap()));
            let value = value.as_str().map_or_else(
                || lines.chain(["\n".to_owned()]).collect(),
                ToOwned::to_owned,
            );
            add(name, value);
            needed.insert(name.clone());
        }
    }
    add("runs", table);
    for bench in ["cpu", "gpu"] {
        let counts = fs::read_to_string(root().join(format!("benches/{bench}/expected.txt")));
        for line in counts
            .unwrap()
            .lines()
            .filter(|line| !line.starts_with('#'))
        {
            let (name, count) = line.split_once(' ').unwrap();
            let count: f64 = count.parse().unwrap();
            add(&format!("{bench}:{name}"), format!("{count:.0}"));
        }
    }
    (written, needed)
}

/// Returns a document with the figures that are kept, and adds the names of these to a set.
///
/// # Errors
///
/// Returns what is wrong with a figure's comments.
fn with_figures(
    text: &str,
    kept: &BTreeMap<String, String>,
    names: &mut BTreeSet<String>,
) -> Result<String, String> {
    let mut parts = text.split(MARK);
    let mut written = parts.next().unwrap_or_default().to_owned();
    while let Some(begin) = parts.next() {
        let (name, _) = begin
            .split_once("-->")
            .ok_or_else(|| format!("no end of the comment: {begin}"))?;
        let value = kept
            .get(name)
            .ok_or_else(|| format!("no figure `{name}` is kept"))?;
        let after = parts
            .next()
            .and_then(|end| end.strip_prefix("-->"))
            .ok_or_else(|| format!("no comment at the end of `{name}`"))?;
        names.insert(name.to_owned());
        written.extend([MARK, name, "-->", value, MARK, "-->", after]);
    }
    Ok(written)
}

/// Returns the text without what is between a mark and the next one.
///
/// # Panics
///
/// Panics if a mark has no other one.
fn outside(text: &str, mark: &str) -> String {
    let parts: Vec<&str> = text.split(mark).collect();
    assert!(parts.len() % 2 == 1, "a `{mark}` without another: {text}");
    parts.into_iter().step_by(2).collect::<Vec<_>>().join(" ")
}

/// Returns the numbers with a unit that stand neither between comments nor in italics, which goals and limits are in.
fn unkept(text: &str) -> Vec<String> {
    let text = outside(&outside(text, "```"), MARK).replace("**", "");
    let paragraphs = text.split("\n\n");
    let paragraphs = paragraphs.map(|paragraph| outside(&outside(paragraph, "`"), "*"));
    let text = paragraphs.collect::<Vec<_>>().join("\n\n");
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_unit = |word: &str| UNITS.contains(&word.trim_end_matches([',', '.', ';', ':', ')']));
    let is_number = |word: &str| word.ends_with(|c: char| c.is_ascii_digit());
    let pairs = words.windows(2);
    pairs
        .filter(|pair| is_number(pair[0]) && is_unit(pair[1]))
        .map(|pair| pair.join(" "))
        .collect()
}

#[test]
fn figures_in_documents_are_those_that_are_kept() {
    let runs = fs::read_to_string(root().join("checks/measurements.json")).unwrap();
    let (kept, needed) = kept(&serde_json::from_str(&runs).unwrap());
    let mut names = BTreeSet::new();
    for (path, text) in documents() {
        let written = with_figures(&text, &kept, &mut names)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if env::var_os("PROFILER_TESTS_BLESS").is_some() {
            fs::write(&path, &written).unwrap();
        } else {
            assert!(
                written == text,
                "{} has other figures; PROFILER_TESTS_BLESS=1 writes those that are kept",
                path.display()
            );
        }
    }
    let missing: Vec<_> = needed.difference(&names).collect();
    assert!(missing.is_empty(), "in no document: {missing:?}");
}

#[test]
fn the_page_on_performance_and_the_readme_have_no_other_figures() {
    for page in ["docs/performance.md", "README.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        let unkept = unkept(&text);
        assert!(
            unkept.is_empty(),
            "{page}: keep {unkept:?}, or leave it out"
        );
    }
}

#[test]
fn another_figure_and_a_wrong_comment_are_found() {
    let kept = BTreeMap::from([("a".to_owned(), "2".to_owned())]);
    let with_figures = |text| with_figures(text, &kept, &mut BTreeSet::new());
    let written = with_figures("of <!--=a-->1<!--=--> and");
    assert_eq!(written.as_deref(), Ok("of <!--=a-->2<!--=--> and"));
    assert!(with_figures("<!--=b-->1<!--=-->").is_err());
    assert!(with_figures("<!--=a-->1").is_err());
    let text = "*4 ns*, **5 ns**, <!--=a-->6 ns<!--=-->, `7 ns`, 8 calls, 1.9 µs, and <!--=a-->1<!--=--> ns";
    assert_eq!(unkept(text), ["5 ns,", "1.9 µs,"]);
}

#[test]
fn a_mark_without_another_in_its_paragraph_is_found() {
    for text in ["4 * 5\n\n6 * 7", "a `b\n\nc` d"] {
        assert!(panic::catch_unwind(|| unkept(text)).is_err(), "{text}");
    }
    assert_eq!(unkept("*4 ns*\n\n5 ns\n\n*6 ns*"), ["5 ns"]);
}

#[test]
fn a_run_is_a_row_and_a_table_stands_on_lines_of_its_own() {
    let run = serde_json::json!({ "r": {
        "command": "x", "date": "d", "commit": "c", "on": "o", "rustc": "1", "figures": { "t": ["| a |", "|---|"] },
    } });
    let (kept, needed) = kept(&run);
    assert!(kept["runs"].ends_with("---|\n| r | `x` | d | c | 1 | o |\n"));
    assert_eq!(kept["t"], "\n| a |\n|---|\n");
    assert_eq!(needed, BTreeSet::from(["t".to_owned()]));
}
