//! Names may hold anything: tables of averages are drawn, JSON and CSV give back what was measured.

use profiler_host::diagnostics::printable;
use profiler_runtime::report::TableOptions;
use profiler_runtime::{Profile, scope, summary};
use profiler_tests::cells::{FORMULA, text_of};
use profiler_tests::{if_measuring, measuring};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn averages_of_names_of_any_characters_are_exported_and_read_back(name in "\\PC{1,40}|[\\x00-\\x7f]{1,20}|'{0,2}[=+\\-@\\t\\r\\n＝][0-9a-z(]{0,5}", width in 0_usize..200) {
        let ((), trace) = Profile::builder().run(|_| {
            for _ in 0..3 {
                let _scope = scope!(&name);
                let _inner = scope!(format!("inner: {name}"));
            }
        });
        let trace = trace.unwrap();
        for averages in [trace.key_averages(), summary().key_averages()] {
            let options = TableOptions::new().width(width).statistics(true).row_limit(None);
            let table = averages.table(&options);
            prop_assert!(!table.chars().any(|char| char.is_control() && char != '\n'), "{}", table);
            let json: serde_json::Value = serde_json::from_str(&averages.to_json()).unwrap();
            let csv = averages.to_csv();
            let mut csv = csv::Reader::from_reader(csv.as_bytes());
            let header = csv.headers().unwrap().clone();
            let csv_rows: Vec<_> = csv.records().map(Result::unwrap).collect();
            let json_rows = json["rows"].as_array().unwrap();
            prop_assert_eq!(json_rows.len(), averages.rows.len());
            prop_assert_eq!(csv_rows.len(), averages.rows.len());
            prop_assert_eq!(averages.rows.iter().any(|row| row.name == name), measuring());
            for (index, row) in averages.rows.iter().enumerate() {
                prop_assert_eq!(json_rows[index]["name"].as_str(), Some(row.name.as_str()));
                prop_assert_eq!(json_rows[index]["calls"].as_u64(), Some(row.calls));
                prop_assert!(!csv_rows[index][0].starts_with(FORMULA));
                prop_assert_eq!(printable(text_of(&csv_rows[index][0])), printable(&row.name));
                let column = |key: &str| header.iter().position(|column| column == key).unwrap();
                let total = row.cpu.as_ref().map(|cpu| cpu.total_ns).unwrap();
                let in_csv: f64 = csv_rows[index][column("cpu_total_ns")].parse().unwrap();
                let in_json = json_rows[index]["cpu"]["total_ns"].as_f64().unwrap();
                prop_assert!((in_csv - total).abs() <= 0.06 && (in_json - total).abs() <= 0.06);
            }
        }
        let callers = trace.key_averages().callers();
        let json: serde_json::Value = serde_json::from_str(&callers.to_json()).unwrap();
        let called = json.as_array().unwrap().iter().filter(|edge| edge["caller"] == name.as_str());
        let calls: u64 = called.filter_map(|edge| edge["calls"].as_u64()).sum();
        prop_assert_eq!(calls, if_measuring(3));
        let csv = callers.to_csv();
        let mut csv = csv::Reader::from_reader(csv.as_bytes());
        let called = csv.records().map(Result::unwrap).filter(|edge| printable(text_of(&edge[0])) == printable(&name));
        prop_assert_eq!(called.count() as u64, if_measuring(1));
        prop_assert!(!callers.to_string().chars().any(|char| char.is_control() && char != '\n'));
    }
}
