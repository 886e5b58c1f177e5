//! Names may hold anything: the table is drawn, JSON and CSV give back what was measured.

use profiler_runtime::{TableOptions, scope, summary};
use profiler_tests::measuring;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn whatever_it_is(name in "\\PC{1,40}|[\\x00-\\x7f]{1,20}", width in 0_usize..200) {
        for _ in 0..3 {
            let _scope = scope!(&name);
        }
        let summary = summary();
        let table = summary.table(&TableOptions::default().width(width));
        prop_assert!(!table.is_empty());
        prop_assert!(!table.chars().any(|char| char.is_control() && char != '\n'), "{}", table);
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
            prop_assert_eq!(&csv_rows[index][0], row.name.as_str());
            let calls = header.iter().position(|column| column == "calls").unwrap();
            prop_assert_eq!(csv_rows[index][calls].parse(), Ok(row.calls));
        }
        prop_assert_eq!(json_rows.len(), csv_rows.len());
    }
}

#[test]
fn every_number_of_a_row_stands_in_json_and_csv() {
    {
        let _scope = scope!("every number");
        profiler_tests::work(50);
    }
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
    for (key, value) in [
        ("total_ns", row.total_ns),
        ("self_ns", row.self_ns),
        ("mean_ns", row.mean_ns),
        ("std_ns", row.std_ns),
        ("min_ns", row.min_ns),
        ("max_ns", row.max_ns),
        ("p50_ns", row.p50_ns),
        ("p95_ns", row.p95_ns),
        ("p99_ns", row.p99_ns),
    ] {
        let exported = exported[key].as_f64().unwrap();
        assert!(
            (exported - value).abs() <= 0.06,
            "{key}: {exported} for {value}"
        );
    }
    // `Debug` names every field: none may be forgotten when one is added.
    let debug = format!("{row:?}");
    let fields = debug
        .split(", ")
        .filter_map(|field| field.split(": ").next());
    for field in fields.map(|field| field.trim_start_matches("Row { ")) {
        assert!(exported.get(field).is_some(), "{field} is not exported");
    }
}
