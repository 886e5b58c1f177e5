//! JSON and CSV say what the rows say.

use profiler_report::{GroupBy, KeyAverages};

use super::{InMs, memory, stream};
use crate::session::sample::Sample;

/// Whatever a name may hold.
const NAME: &str = "a \"quoted\", name\\ with\nlines;é";

fn averages() -> KeyAverages {
    let mut sample = Sample::new();
    let outer = sample.ms(NAME, 0, 0.0, 10.0);
    sample.gpu(stream(0), 0, 5e6, 5e6);
    sample.extra(memory(-5, 10, Some(3)));
    sample.ms("exports: plain", outer, 1.0, 2.0);
    let by = GroupBy::new().group_by_stack(1).group_by_input_shape(true);
    sample.trace().key_averages_by(by)
}

#[test]
fn what_there_is_not_is_null_in_json_and_empty_in_csv() {
    let averages = averages();
    let json = averages.to_json();
    let plain = json.lines().last().expect("a line for each row");
    assert!(
        plain.contains("\"input_shapes\":null") && plain.contains("\"stack\":[\""),
        "{plain}"
    );
    assert!(plain.contains("\"verdict\":null"), "{plain}");
    assert!(
        plain.contains("\"cuda\":null,\"gpu_ranges\":null,\"gpu\":null,\"memory\":null,"),
        "{plain}"
    );
    assert!(
        json.contains("\"verdict\":\"launch-bound\"") && json.contains("\"stack\":[]"),
        "{json}"
    );
    assert!(
        json.contains("\"self_cuda_net\":3,") && json.contains("\"cpu_net\":-5,"),
        "{json}"
    );
    let csv = averages.to_csv();
    let plain = csv.lines().last().expect("a line for each row");
    assert!(plain.ends_with(&",".repeat(28)), "{plain}");
    let callers = averages.callers();
    assert!(callers.to_json().contains("\"caller\":null"));
    assert!(callers.to_csv().contains("\r\n,\"a "));
}

#[test]
fn every_field_of_a_row_is_exported() {
    let averages = averages();
    let json = averages.to_json();
    // `Debug` names every field: none may be forgotten when one is added.
    let row = averages.rows.iter().find(|row| row.name == NAME);
    let debug = format!("{:?}", row.expect("the row"));
    let fields = debug
        .split(", ")
        .filter_map(|field| field.rsplit_once(": "));
    let mut seen = 0;
    for (field, _) in fields {
        let field = field.rsplit([' ', '{', '(']).next().unwrap_or_default();
        if ["number", "counters", "non_exhaustive"].contains(&field) {
            continue;
        }
        assert!(
            json.contains(&format!("\"{field}\":")),
            "{field} is not exported: {debug}"
        );
        seen += 1;
    }
    assert!(seen > 40, "{seen} fields: {debug}");
}

/// JSON has the keys of serde, and numbers with one decimal.
#[cfg(feature = "serde")]
#[test]
fn a_row_in_json_is_a_row_for_serde() {
    use profiler_report::Row;

    let averages = averages();
    let rounded = |row: &Row| {
        let mut row = row.clone();
        for times in [&mut row.cpu, &mut row.cuda].into_iter().flatten() {
            for ns in [&mut times.total_ns, &mut times.self_ns, &mut times.mean_ns] {
                *ns = ns.round();
            }
            (times.std_ns, times.min_ns, times.max_ns) = (0.0, 0.0, 0.0);
            (times.p50_ns, times.p95_ns, times.p99_ns) = (0.0, 0.0, 0.0);
        }
        row
    };
    let json: serde_json::Value = serde_json::from_str(&averages.to_json()).expect("JSON");
    let read: Vec<Row> = serde_json::from_value(json["rows"].clone()).expect("rows");
    let read: Vec<Row> = read.iter().map(rounded).collect();
    let rows: Vec<Row> = averages.rows.iter().map(rounded).collect();
    assert_eq!(read, rows);

    for row in &averages.rows {
        let text = serde_json::to_string(row).expect("a row is serializable");
        let read: Row = serde_json::from_str(&text).expect("a row");
        assert_eq!(&read, row);
    }
}
