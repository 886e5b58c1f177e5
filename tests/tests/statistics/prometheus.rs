//! The text for Prometheus has the numbers of the rows, and its counters never fall. With `PROFILER_TESTS_METRICS`, texts
//! stay in that folder for `promtool` (`.ci/run metrics`).

#![allow(clippy::float_cmp, reason = "counts are whole numbers")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs};

use profiler_runtime::{Summary, scope, summary};
use profiler_tests::{child, measuring};

/// The values of a text by their metric with its labels, as they are written.
type Samples = BTreeMap<String, f64>;

fn samples(text: &str) -> Samples {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let mut samples = Samples::new();
    for line in lines {
        let (series, value) = line.rsplit_once(' ').expect("a value");
        let is_new = samples.insert(series.to_owned(), value.parse().expect("a number"));
        assert_eq!(is_new, None, "{series} is there twice");
    }
    samples
}

fn keep(name: &str, text: &str) {
    if let Some(folder) = env::var_os("PROFILER_TESTS_METRICS") {
        let folder = PathBuf::from(folder);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(name), text).expect("room");
    }
}

fn close(left: f64, right: f64) -> bool {
    (left - right).abs() <= 1e-9 * left.abs().max(right.abs())
}

#[test]
fn each_value_is_that_of_its_row() {
    for _ in 0..3 {
        let _outer = scope!("prometheus: outer");
        for _ in 0..2 {
            let _inner = scope!("prometheus: inner");
            profiler_tests::work(20);
        }
    }
    let summary = summary();
    let text = summary.to_prometheus();
    keep("rows.prom", &text);
    let samples = samples(&text);
    assert_eq!(samples["profiler_unmeasured_calls_total"], 0.0);
    for (name, calls) in [("prometheus: outer", 3.0), ("prometheus: inner", 6.0)] {
        let value = |series: &str| samples.get(series).copied();
        let of = |metric: &str| value(&format!("{metric}{{name=\"{name}\"}}"));
        let Some(row) = summary.row(name) else {
            assert!(!measuring());
            continue;
        };
        let times = row.cpu.expect("finished calls");
        assert_eq!(of("profiler_calls_total"), Some(calls));
        assert_eq!(of("profiler_open_calls"), Some(0.0));
        assert_eq!(of("profiler_panicked_calls_total"), Some(0.0));
        let of = |metric: &str, last: &str| {
            value(&format!("{metric}{{name=\"{name}\",clock=\"cpu\"{last}}}")).expect(metric)
        };
        let own = of("profiler_self_seconds_total", "");
        assert!(close(own, times.self_ns / 1e9), "{own} for {times:?}");
        let sum = of("profiler_call_seconds_sum", "");
        assert!(
            close(sum, times.mean_ns * calls / 1e9),
            "{sum} for {times:?}"
        );
        assert_eq!(of("profiler_call_seconds_count", ""), calls);
        assert_eq!(of("profiler_call_seconds_bucket", ",le=\"+Inf\""), calls);
        // All calls take between 20 µs and 10 s.
        assert_eq!(of("profiler_call_seconds_bucket", ",le=\"0.00001\""), 0.0);
        assert_eq!(of("profiler_call_seconds_bucket", ",le=\"10\""), calls);
    }
}

#[test]
fn buckets_are_cumulative() {
    for _ in 0..20 {
        let _scope = scope!("prometheus: cumulative");
    }
    let text = summary().to_prometheus();
    let name = "profiler_call_seconds_bucket{name=\"prometheus: cumulative\",clock=\"cpu\",";
    let counts: Vec<f64> = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.rsplit_once(' ')?.1.parse().ok())
        .collect();
    assert_eq!(counts.len(), if measuring() { 16 } else { 0 });
    assert!(counts.is_sorted(), "{counts:?}");
    assert_eq!(counts.last(), measuring().then_some(&20.0));
}

#[test]
fn any_name_is_one_label() {
    let names = [
        "quo\"ted\\ and {braces} 1",
        "le=\"1\"",
        "two\nlines\r\nand\ta tab",
        "zero\0and\u{1b}[31mescape",
        "# TYPE x counter",
        "日本語::e\u{301}",
        "right\u{202e}to\u{202c}left",
        "(other)",
        "",
    ];
    for name in names {
        let _scope = scope!(name);
    }
    let text = summary().to_prometheus();
    keep("hostile.prom", &text);
    let calls = samples(&text)
        .into_iter()
        .filter(|(series, _)| series.starts_with("profiler_calls_total{"));
    assert_eq!(calls.count(), if measuring() { names.len() } else { 0 });
    if measuring() {
        let expected = "profiler_calls_total{name=\"quo\\\"ted\\\\ and {braces} 1\"} 1\n";
        assert!(text.contains(expected), "{text}");
    }
}

/// Returns the sum over all names, and the value of those without a series of their own.
fn calls(summary: &Summary) -> (f64, Option<f64>) {
    let samples = samples(&summary.to_prometheus());
    let of_names = samples.iter();
    let calls = of_names.filter(|(series, _)| series.starts_with("profiler_calls_total{"));
    let other = samples.get("profiler_calls_total{name=\"(other)\"}");
    (calls.map(|(_, value)| value).sum(), other.copied())
}

#[test]
fn names_beyond_the_first_ones_share_a_series_and_no_counter_falls() {
    let mut before = Samples::new();
    for round in 0_u32..4 {
        for number in 0..100 * (round + 1) {
            let _scope = scope!(format!("prometheus: {number:03}"));
            // Times that are spread ever further.
            profiler_tests::work(u64::from(number % 7 * round * 30));
        }
        let text = summary().to_prometheus();
        let now = samples(&text);
        let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let gauges: Vec<&str> = types
            .filter_map(|line| line.strip_suffix(" gauge"))
            .collect();
        for (series, value) in &before {
            let metric = series.split('{').next().unwrap_or(series);
            let is_gauge = gauges.contains(&metric);
            assert!(is_gauge || now[series] >= *value, "{series} falls");
        }
        before = now;
    }
    let (all, other) = calls(&summary());
    if measuring() {
        assert_eq!(all, 1_000.0);
        // Numbers 256 to 299 ran twice, those from 300 on once.
        assert_eq!(other, Some(2.0 * 44.0 + 100.0));
    }
}

/// Works if it is told to, and returns early if not, which takes about as long as to read the clock.
fn work_or_return(micros: u64) {
    let _scope = scope!("prometheus: early");
    if micros > 0 {
        profiler_tests::work(micros);
    }
}

#[test]
fn no_counter_falls_while_a_function_returns_early() {
    work_or_return(2_000);
    let mut before = samples(&summary().to_prometheus());
    for scrape in 0..3_000 {
        work_or_return(0);
        let now = samples(&summary().to_prometheus());
        for (series, value) in now.iter().filter(|(series, _)| series.contains("early")) {
            let is_gauge = series.starts_with("profiler_open_calls");
            // The clock of a device begins with its first time.
            let is_kept = before.get(series).is_none_or(|before| value >= before);
            assert!(is_gauge || is_kept, "{series} falls at {scrape}");
        }
        before = now;
    }
}

#[test(env = [("PROFILER_ENABLED", "1")])]
fn a_file_for_the_collector_is_the_same_text() {
    let Some(folder) = child::dir() else {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("app.prom");
        let mut child = child::again(dir.path());
        let output = child
            .env("PROFILER_SUMMARY", &path)
            .output()
            .expect("it ran");
        assert!(output.status.success(), "{output:?}");
        let text = fs::read_to_string(&path).expect("a file");
        keep("file.prom", &text);
        let samples = samples(&text);
        let calls = samples.get("profiler_calls_total{name=\"prometheus: written\"}");
        assert_eq!(calls.copied(), measuring().then_some(2.0), "{text}");
        assert!(text.contains("# TYPE profiler_info gauge\n"), "{text}");
        return;
    };
    assert!(folder.is_dir());
    let _profiler = profiler_runtime::init().expect("set up");
    for _ in 0..2 {
        let _scope = scope!("prometheus: written");
    }
}
