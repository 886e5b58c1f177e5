//! Names may hold anything: the table is drawn, JSON and CSV give back what was measured.

use std::time::Duration;

use profiler_host::diagnostics::printable;
use profiler_runtime::report::TableOptions;
use profiler_runtime::{ProfilerGuard, Summary, flush, init, scope, summary};
use profiler_tests::cells::{FORMULA, text_of};
use profiler_tests::child;
use profiler_tests::measuring;
use proptest::prelude::*;

/// Characters that move what stands beside them: a name could show as another one.
fn is_bidirectional_control(char: char) -> bool {
    matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn names_of_any_characters_are_exported_and_read_back(name in "\\PC{1,40}|[\\x00-\\x7f]{1,20}|'{0,2}[=+\\-@\\t\\r\\n＝][0-9a-z(]{0,5}|[a\u{61c}\u{200e}\u{202e}\u{2066}]{1,9}", width in 0_usize..200) {
        for _ in 0..3 {
            let _scope = scope!(&name);
        }
        let summary = summary();
        let table = summary.table(TableOptions::default().width(width));
        prop_assert!(!table.is_empty());
        prop_assert!(!table.chars().any(|char| char.is_control() && char != '\n'), "{}", table);
        prop_assert!(!table.chars().any(is_bidirectional_control), "{:?}", table);
        let json: serde_json::Value = serde_json::from_str(&summary.to_json()).unwrap();
        let csv = summary.to_csv();
        let mut csv = csv::Reader::from_reader(csv.as_bytes());
        let header = csv.headers().unwrap().clone();
        let csv_rows: Vec<_> = csv.records().map(Result::unwrap).collect();
        let json_rows = json["rows"].as_array().unwrap();
        prop_assert_eq!(summary.rows.iter().any(|row| row.name == name), measuring());
        for (index, row) in summary.rows.iter().enumerate() {
            prop_assert_eq!(json_rows[index]["name"].as_str(), Some(row.name.as_str()));
            prop_assert_eq!(json_rows[index]["calls"].as_u64(), Some(row.calls));
            prop_assert!(!csv_rows[index][0].starts_with(FORMULA), "{:?}", &csv_rows[index][0]);
            prop_assert_eq!(printable(text_of(&csv_rows[index][0])), printable(&row.name));
            let calls = header.iter().position(|column| column == "calls").unwrap();
            prop_assert_eq!(csv_rows[index][calls].parse(), Ok(row.calls));
        }
        prop_assert_eq!(json_rows.len(), csv_rows.len());
    }
}

/// The width of a `format!` is at most 65,535.
#[test]
fn a_name_of_any_length_is_drawn() {
    let Some(_) = child::dir() else {
        let dir = tempfile::tempdir().unwrap();
        let mut child = child::again(dir.path());
        let output = child.env("PROFILER_SUMMARY", "stderr").output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        assert_eq!(stderr.contains("\n…nnnn"), measuring(), "{stderr}");
        return;
    };
    let profiler: ProfilerGuard = init().unwrap();
    {
        let _scope = scope!(format!("drawn: {}", "n".repeat(65_536)));
    }
    let summary = summary();
    let tables = [
        summary.table(TableOptions::default().width(usize::MAX)),
        summary.table(TableOptions::default().width(80)),
        summary.key_averages().to_string(),
        summary.key_averages().callers().to_string(),
    ];
    assert!(tables.iter().all(|table| !table.is_empty()));
    // Its drop writes the summary, and must not unwind.
    drop(profiler);
}

/// A number below zero is none that a spreadsheet calculates with: only texts get an apostrophe.
#[test]
fn a_formula_is_a_text_in_csv() {
    {
        let _scope = scope!("=HYPERLINK(\"http://127.0.0.1/?\"&A1,\"click\")");
    }
    let csv = summary().to_csv();
    let cell = "\r\n\"'=HYPERLINK(\"\"http://127.0.0.1/?\"\"&A1,\"\"click\"\")\",";
    assert_eq!(csv.contains(cell), measuring(), "{csv}");
}

#[test]
fn every_number_of_a_row_stands_in_json_and_csv() {
    {
        let _scope = scope!("every number");
        profiler_tests::work(50);
    }
    // Where there is a GPU, its times are read by now.
    assert_eq!(flush(Duration::from_secs(20)).unread, 0);
    let summary = summary();
    let Some(row) = summary.row("every number") else {
        assert!(!measuring());
        return;
    };
    let json: serde_json::Value = serde_json::from_str(&summary.to_json()).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let exported = rows
        .iter()
        .find(|row| row["name"] == "every number")
        .unwrap();
    let times = row.cpu.unwrap();
    for (key, value) in [
        ("total_ns", times.total_ns),
        ("self_ns", times.self_ns),
        ("mean_ns", times.mean_ns),
        ("std_ns", times.std_ns),
        ("min_ns", times.min_ns),
        ("max_ns", times.max_ns),
        ("p50_ns", times.p50_ns),
        ("p95_ns", times.p95_ns),
        ("p99_ns", times.p99_ns),
    ] {
        let exported = exported["cpu"][key].as_f64().unwrap();
        assert!(
            (exported - value).abs() <= 0.06,
            "{key}: {exported} for {value}"
        );
    }
    for field in fields(&format!("{row:?}")) {
        assert!(exported.get(&field).is_some(), "{field} is not exported");
    }
    for field in fields(&format!("{times:?}")) {
        let cpu = &exported["cpu"];
        assert!(cpu.get(&field).is_some(), "{field} is not exported");
    }
    let csv = summary.to_csv();
    let mut csv = csv::Reader::from_reader(csv.as_bytes());
    let header = csv.headers().unwrap().clone();
    let line = csv
        .records()
        .map(Result::unwrap)
        .find(|line| &line[0] == "every number")
        .unwrap();
    let mut columns = numbers(exported, "");
    columns.extend(numbers(&exported["cpu"], "cpu_"));
    columns.extend(numbers(&exported["cuda"], "cuda_"));
    assert!(columns.len() > 20);
    for (key, value) in columns {
        let column = header.iter().position(|column| column == key);
        let column = column.unwrap_or_else(|| panic!("{key} has no column"));
        let written: serde_json::Value = serde_json::from_str(&line[column]).unwrap();
        assert_eq!(written, value, "{key}");
    }
}

#[test]
fn a_summary_says_where_it_was_measured() {
    let Some(_) = child::dir() else {
        let dir = tempfile::tempdir().unwrap();
        let mut child = child::again(dir.path());
        child.env("PROFILER_CALLERS", "0").env("RANK", "3");
        let output = child.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    };
    {
        let _scope = scope!("somewhere");
    }
    let summary = summary();
    let environment = &summary.environment;
    assert_eq!(environment.process, std::process::id());
    assert_eq!(environment.rank, Some(3));
    let program = std::env::current_exe().unwrap();
    assert_eq!(program.file_name().unwrap(), &*environment.program);
    assert_eq!(environment.driver.is_some(), summary.cuda.ready);
    assert_eq!(environment.devices.is_empty(), !summary.cuda.ready);
    let callers = ("PROFILER_CALLERS".to_owned(), "0".to_owned());
    assert!(environment.settings.contains(&callers), "{environment:?}");
    // One beginning for all summaries of a process.
    assert_eq!(environment, &profiler_runtime::summary().environment);
    let read: Summary = serde_json::from_str(&summary.to_json()).unwrap();
    assert_eq!(&read.environment, environment);
    assert_eq!(read.to_json(), summary.to_json());
}

/// The names of the fields of a struct, as its `Debug` has them: none may be forgotten when one is added. Those of a
/// struct inside it are its own.
fn fields(debug: &str) -> Vec<String> {
    let (_, body) = debug.split_once(" { ").unwrap();
    let mut depth = 0;
    let outermost: String = body
        .chars()
        .filter(|char| {
            depth += i32::from("{[(".contains(*char));
            depth -= i32::from("}])".contains(*char));
            depth == 0
        })
        .collect();
    let names: Vec<String> = outermost
        .split(", ")
        .map(|field| field.split(':').next().unwrap().to_owned())
        .filter(|field| !["number", "counters", "non_exhaustive"].contains(&field.as_str()))
        .collect();
    assert!(names.len() > 10, "{names:?}");
    names
}

/// Returns the numbers and booleans of a JSON object, by the names of their columns in CSV.
fn numbers(object: &serde_json::Value, prefix: &str) -> Vec<(String, serde_json::Value)> {
    let fields = object.as_object().into_iter().flatten();
    fields
        .filter(|(_, value)| value.is_number() || value.is_boolean())
        .map(|(key, value)| (format!("{prefix}{key}"), value.clone()))
        .collect()
}
