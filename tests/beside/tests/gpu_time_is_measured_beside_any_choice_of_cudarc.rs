//! The crate builds and measures in programs that have chosen any version and features of cudarc.

use std::path::Path;

use beside::{Run, build_and_run};
use serde_json::json;

fn run(folder: &str) -> Run {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = scratch
        .parent()
        .expect("cargo puts it into the target folder");
    match build_and_run(folder, target, scratch) {
        Ok(run) => run,
        Err(failure) => panic!("{failure}"),
    }
}

/// Checks that the row of `name` contains the times of all kernels called `kernel`, according to
/// the driver.
fn assert_measured(run: &Run, name: &str, kernel: &str, expected_us: &[u64]) {
    let truth: Vec<u64> = run
        .truth
        .kernels()
        .filter(|activity| activity.name.as_deref() == Some(kernel))
        .map(|activity| activity.end - activity.start)
        .collect();
    let expected: Vec<u64> = expected_us.iter().map(|us| us * 1_000).collect();
    assert_eq!(truth, expected, "the driver ran something else");
    let row = run.row(name).expect("the name was measured");
    let cuda = &row["cuda"];
    assert_eq!(cuda["calls"], truth.len(), "{row:#}");
    let exactly = |field: &str, ns: u64| {
        let measured = cuda[field].as_f64().expect("a number");
        // Event times are milliseconds in single precision: 0.02 ms is not exactly 20000 ns.
        assert!(
            (measured - ns as f64).abs() < 0.1,
            "{field} is not {ns}: {row:#}"
        );
    };
    exactly("total_ns", truth.iter().sum());
    exactly("self_ns", truth.iter().sum());
    exactly("min_ns", truth[0]);
    exactly("max_ns", truth[0]);
}

fn assert_unharmed(run: &Run) {
    assert_eq!(run.truth.misuses, []);
    assert_eq!(run.summary["notices"], json!([]));
    assert_eq!(run.summary["cuda"]["lost"], json!({}));
}

#[test]
fn beside_cudarc_as_its_readme_says() {
    let run = run("cudarc-plain");
    assert_measured(&run, "kernel", "work_20us", &[20, 20, 20]);
    assert_unharmed(&run);
}

#[test]
fn beside_candle_whose_cudarc_links_the_driver() {
    let run = run("candle");
    assert_measured(&run, "kernel", "work_20us", &[20, 20, 20]);
    assert_unharmed(&run);
}

#[test]
fn beside_cubecl() {
    let run = run("cubecl");
    assert_measured(&run, "kernel", "work_20us", &[20, 20, 20]);
    assert_unharmed(&run);
}

#[test]
fn beside_an_older_cudarc_in_the_same_program() {
    let run = run("cudarc-0.16");
    assert_measured(&run, "older", "work_20us", &[20, 20, 20]);
    assert_measured(&run, "newest", "work_50us", &[50, 50]);
    assert_unharmed(&run);
}
