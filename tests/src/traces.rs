//! Traces as they are written, each held against the rules of its readers.

use std::path::{Path, PathBuf};

use profiler_runtime::Trace;
use profiler_runtime::report::{LaunchCategory, TensorBoardTraces};
use profiler_trace_validator::validate;
use serde_json::Value;

/// A folder for traces that other programs are to read.
const KEEP: &str = "PROFILER_TESTS_TRACES";

/// The events of a trace, written in every way that there is, and with nothing in it that a reader stumbles over.
#[track_caller]
pub fn events(trace: &Trace) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    for path in written(trace, folder.path()) {
        let found = validate(&path).expect("a file");
        if !found.is_empty()
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            // The lines that the numbers in the report refer to.
            for (number, line) in text
                .lines()
                .filter(|line| line.starts_with("{\"ph"))
                .enumerate()
            {
                println!("{number} {line}");
            }
        }
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
    }
    read(&folder.path().join("trace.json"))
}

/// The events of a file.
#[track_caller]
pub fn read(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a file");
    let mut whole: Value = serde_json::from_str(&text).expect("JSON");
    serde_json::from_value(whole["traceEvents"].take()).expect("a list")
}

/// Like [`events`]; also keeps the trace for other programs if a variable names a folder for it.
#[track_caller]
pub fn kept_events(trace: &Trace, name: &str) -> Vec<Value> {
    if let Some(folder) = std::env::var_os(KEEP) {
        let traces = TensorBoardTraces::new(folder);
        let flavours = [
            ("canonical", LaunchCategory::CudaRuntime),
            ("older", LaunchCategory::Runtime),
        ];
        for (flavour, launches) in flavours {
            let worker = format!("{name}-{flavour}");
            let traces = traces.clone().worker_name(worker).gzip(true);
            traces
                .launch_category(launches)
                .export(trace)
                .expect("room");
        }
    }
    events(trace)
}

fn written(trace: &Trace, folder: &Path) -> Vec<PathBuf> {
    let mut paths = vec![folder.join("trace.json"), folder.join("trace.json.gz")];
    for path in &paths {
        trace.export_chrome_trace(path).expect("room");
    }
    for launches in [LaunchCategory::CudaRuntime, LaunchCategory::Runtime] {
        let traces = TensorBoardTraces::new(folder)
            .launch_category(launches)
            .gzip(true);
        paths.push(traces.export(trace).expect("room"));
    }
    paths
}

pub fn of_category<'e>(events: &'e [Value], category: &str) -> Vec<&'e Value> {
    events
        .iter()
        .filter(|event| event["cat"] == category)
        .collect()
}

/// Returns the total duration of the events of a category with this name, in nanoseconds.
pub fn total_ns(events: &[Value], category: &str, name: &str) -> f64 {
    let events = of_category(events, category)
        .into_iter()
        .filter(|event| event["name"] == name);
    let lengths = events.filter_map(|event| event["dur"].as_f64());
    lengths.map(|us| (us * 1000.0).round()).sum()
}
