//! The histogram of a row counts each of its calls once, between its shortest and its longest.

use profiler_runtime::report::{Histogram, Row};
use profiler_runtime::{scope, summary};
use profiler_tests::{CpuTimes, if_measuring, row, work};

fn calls(histogram: &Histogram) -> u64 {
    histogram.buckets.iter().map(|bucket| bucket.calls).sum()
}

fn measured(name: &str) -> (Row, Histogram) {
    let row = row(name);
    let histogram = row.cpu_histogram.clone().unwrap_or_default();
    (row, histogram)
}

#[test]
fn each_call_is_counted_once() {
    for call in 0..50 {
        let _scope = scope!("histograms: both");
        work(if call % 10 == 0 { 4_000 } else { 20 });
    }
    let (row, histogram) = measured("histograms: both");
    assert_eq!(calls(&histogram), if_measuring(50));
    let Some((first, last)) = histogram.buckets.first().zip(histogram.buckets.last()) else {
        assert_eq!(row.calls, 0);
        return;
    };
    let times = row.cpu();
    // Limits are rounded to a thousandth.
    assert!(first.from_ns <= times.min_ns * 1.001 && times.min_ns <= first.to_ns * 1.001);
    assert!(last.from_ns <= times.max_ns * 1.001 && times.max_ns <= last.to_ns * 1.001);
    let long = histogram.buckets.iter();
    let long = long.filter(|bucket| bucket.from_ns >= 3e6);
    let long: u64 = long.map(|bucket| bucket.calls).sum();
    assert!((5..50).contains(&long), "{histogram:?}");
}

#[test]
fn json_holds_the_buckets() {
    {
        let _scope = scope!("histograms: json");
        work(20);
    }
    let (row, histogram) = measured("histograms: json");
    let json: serde_json::Value = serde_json::from_str(&summary().to_json()).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let Some(exported) = rows.iter().find(|other| other["name"] == *row.name) else {
        assert_eq!(row.calls, 0);
        return;
    };
    let buckets = exported["cpu_histogram"]["buckets"].as_array().unwrap();
    let [from, to, calls] = [0, 1, 2].map(|value| buckets[0][value].as_f64().unwrap());
    let bucket = histogram.buckets[0];
    assert!((from - bucket.from_ns).abs() < 1e-9 && (to - bucket.to_ns).abs() < 1e-9);
    assert_eq!((buckets.len(), calls.to_string()), (1, "1".to_owned()));
    // With a GPU, its time may be read by now.
    let has_gpu_time = !exported["cuda"].is_null();
    assert_eq!(exported["cuda_histogram"].is_null(), !has_gpu_time);
}
