//! Traces as they are written, each held against the rules of its readers.

use std::fs::File;
use std::path::{Path, PathBuf};

use profiler_runtime::Trace;
use profiler_runtime::report::{
    KeyAverages, LaunchCategory, Row, TensorBoardTraces, Timeline, Times, Track, TrackKind,
};
use profiler_runtime_cli::input::{Input, Limits};
use profiler_trace_validator::{Rule, Violation, validate};
use serde_json::{Value, json};

/// A folder for traces that other programs are to read.
const KEEP: &str = "PROFILER_TESTS_TRACES";

/// What of a trace violates the rules. The clock of a simulated device may be virtual: work begins whenever the test says.
fn violations(path: &Path) -> Vec<Violation> {
    let mut found = validate(path).expect("a file");
    found.retain(|violation| violation.rule != Rule::BeforeLaunch);
    found
}

/// The events of a trace, written in every way that there is, and with nothing in it that a reader stumbles over.
#[track_caller]
pub fn events(trace: &Trace) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder");
    for path in written(trace, folder.path()) {
        let found = violations(&path);
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
    let path = folder.path().join("trace.json");
    assert_read_back(trace, &path);
    read(&path)
}

/// Returns the whole names of events with these names, by the table in the head of the file.
pub fn whole_names(trace: &Trace, shown: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.json");
    trace.export_chrome_trace(&path).expect("room");
    let text = std::fs::read_to_string(path).expect("it was written");
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let whole = |name: &&str| {
        let whole = file["nameTable"][name][0].as_str();
        whole.unwrap_or(name).to_owned()
    };
    shown.iter().map(whole).collect()
}

/// The rows of a trace that the command line reads are those of the window: no time is lost, and none is counted twice.
#[track_caller]
fn assert_read_back(trace: &Trace, path: &Path) {
    let line = read_back(path);
    let (own, read) = (trace.key_averages(), line.key_averages());
    for row in &own.rows {
        let Some(found) = read.row(&row.name) else {
            panic!("no row of {:?}:\n{own}\n{read}", row.name)
        };
        let counted = |row: &Row| {
            let endings = (row.panicked, row.dropped_futures, row.futures);
            (row.calls, row.primitive_calls, row.without_cuda, endings)
        };
        let is_equal = counted(row) == counted(found)
            && row.work_verdict == found.work_verdict
            && row.memory == found.memory
            && are_near(row.calls, row.cpu.as_ref(), found.cpu.as_ref())
            && are_near(row.calls, row.cuda.as_ref(), found.cuda.as_ref());
        assert!(is_equal, "{row:?}\nbecame\n{found:?}\n{own}\n{read}");
    }
    assert_eq!(own.rows.len(), read.rows.len(), "{own}\n{read}");
    let [of_own, of_read] = [&own, &read].map(callers);
    assert_eq!(of_own, of_read, "{own}\n{read}");
    assert_eq!(counters(&trace.timeline()), counters(&line));
    assert_converted(&line);
    assert_converted(&trace.timeline());
}

/// Who called whom, and how often.
fn callers(averages: &KeyAverages) -> Vec<(Option<String>, String, u64, u64)> {
    let edges = averages.callers().edges.into_iter();
    let mut callers: Vec<_> = edges
        .map(|edge| (edge.caller, edge.callee, edge.calls, edge.primitive_calls))
        .collect();
    callers.sort();
    callers
}

/// A time line is read with the same table after it was written as the command line converts it.
#[track_caller]
fn assert_converted(line: &Timeline) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("converted.json");
    line.export_chrome_trace(&path).expect("room");
    let found = violations(&path);
    assert!(found.is_empty(), "{found:#?}");
    let tables = [line, &read_back(&path)].map(|line| line.key_averages().to_json());
    assert_eq!(tables[0], tables[1]);
}

/// The names, the units and the devices of counters, in order.
pub fn counters(line: &Timeline) -> Vec<(&str, &str, Option<u32>)> {
    let counters = line.counters.iter();
    let mut counters: Vec<_> = counters
        .map(|counter| (&*counter.name, &*counter.unit, counter.device))
        .collect();
    counters.sort_unstable();
    counters
}

/// Traces hold whole nanoseconds, and some times are a few shorter, so that readers see them nest. A self time has the
/// errors of all children.
fn are_near(calls: u64, one: Option<&Times>, other: Option<&Times>) -> bool {
    let slack = 5.0 * calls as f64;
    match (one, other) {
        (Some(one), Some(other)) => {
            (one.total_ns - other.total_ns).abs() <= slack
                && (one.self_ns - other.self_ns).abs() <= 100.0 * slack
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}

/// Reads a trace as the command line does.
#[track_caller]
pub fn read_back(path: &Path) -> Timeline {
    let file = File::open(path).expect("a file");
    match Input::from_reader(file, "trace", Limits::DEFAULT).expect("a trace") {
        Input::Timeline(line) => *line,
        other => panic!("{other:?}"),
    }
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
        let traces = TensorBoardTraces::new(&folder);
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
        keep_for_perfetto(trace, &Path::new(&folder).join(format!("{name}-perfetto")));
        keep_for_viewers(trace, &Path::new(&folder).join("viewers"), name);
    }
    events(trace)
}

/// Writes the files of viewers, and the numbers that they must show.
fn keep_for_viewers(trace: &Trace, folder: &Path, name: &str) {
    std::fs::create_dir_all(folder).expect("room");
    let path = |ending: &str| folder.join(format!("{name}.{ending}"));
    trace.dump_stats(path("prof")).expect("room");
    trace.export_pprof(path("pb.gz")).expect("room");
    let averages = trace.key_averages();
    std::fs::write(path("rows.json"), averages.to_json()).expect("room");
    std::fs::write(path("callers.json"), averages.callers().to_json()).expect("room");
}

/// Writes a trace in Perfetto's own format, plain and compressed, and what is to be found in it.
fn keep_for_perfetto(trace: &Trace, path: &Path) {
    for ending in ["pftrace", "pftrace.gz"] {
        trace
            .export_perfetto(path.with_extension(ending))
            .expect("room");
    }
    let line = trace.timeline();
    // Perfetto knows a thread by its id, and another track by its name.
    let place = |index: u32| {
        let own = &line.tracks[index as usize];
        let is_thread = own.kind == TrackKind::HostThread;
        let is_of_thread = |track: &&Track| (track.kind, track.id) == (own.kind, own.id);
        let first = line.tracks.iter().find(is_of_thread);
        if is_thread && first.is_some_and(|first| first.name == own.name) {
            json!(own.id)
        } else {
            json!(own.name)
        }
    };
    let slices = line.slices.iter().map(|slice| {
        json!({
            "place": place(slice.track),
            "name": line.names[slice.name as usize].text.as_ref(),
            "kind": format!("{:?}", slice.kind),
            "start": slice.start_ns,
            "length": slice.duration_ns,
            "parent": slice.parent,
            "launch": slice.launch,
            "placed": slice.is_placed(),
        })
    });
    let launches = line.launches.iter().map(|launch| {
        json!({
            "name": line.names[launch.name as usize].text.as_ref(),
            "start": launch.start_ns,
            "length": launch.duration_ns,
        })
    });
    let counters = line.counters.iter().map(|counter| {
        let sum: f64 = counter.samples.iter().map(|(_, value)| value).sum();
        json!({ "name": counter.name, "samples": counter.samples.len(), "sum": sum })
    });
    let steps = line.steps.iter();
    let steps = steps.map(|step| json!([step.number, step.start_ns, step.end_ns - step.start_ns]));
    let wanted = json!({
        "start": line.start_unix_ns.to_string(),
        "slices": slices.collect::<Vec<_>>(),
        "launches": launches.collect::<Vec<_>>(),
        "counters": counters.collect::<Vec<_>>(),
        "steps": steps.collect::<Vec<_>>(),
        "replays": line.replays.len(),
        "missing": line.missing.len(),
    });
    let file = path.with_extension("timeline.json");
    std::fs::write(file, wanted.to_string()).expect("room");
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
