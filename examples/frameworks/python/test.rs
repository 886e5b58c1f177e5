//! Python code opens ranges in threads and in tasks that take turns, and calls the extension below them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use profiler_report::{Slice, SliceKind, Timeline, TrackKind};
use tempfile::TempDir;

/// A name, and that of its caller.
type Call = (String, Option<String>);

/// What Python says that it did.
#[derive(serde::Deserialize)]
struct Said {
    /// Ranges and calls of Rust, in the order of each thread, by the system's number of the thread.
    threads: BTreeMap<u64, Vec<Call>>,
    /// The ranges of tasks, each with a name of its own.
    tasks: Vec<Call>,
}

/// Runs a script next to this file with the extension. Returns what it printed, and its whole run.
fn run(script: &str) -> (String, Timeline) {
    let folder = TempDir::new().expect("a folder");
    let test = std::env::current_exe().expect("the path of this test");
    let extension = test.with_file_name("libpython_ranges.so");
    std::fs::copy(extension, folder.path().join("profiler.so")).expect("the extension");
    let trace = folder.path().join("trace.json");
    let output = Command::new("python3")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(script))
        .env("PYTHONPATH", folder.path())
        .env("PROFILER_TRACE", &trace)
        .output()
        .expect("Python 3");
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr, format!("profiler: wrote {}\n", trace.display()));
    (stdout, check::trace(&trace))
}

fn name<'t>(timeline: &'t Timeline, slice: &Slice) -> &'t str {
    &timeline.names[slice.name as usize].text
}

/// Returns the name of a slice and that of its caller.
fn call(timeline: &Timeline, slice: &Slice) -> Call {
    let caller = slice.parent.map(|parent| &timeline.slices[parent as usize]);
    let caller = caller.map(|caller| name(timeline, caller).to_owned());
    (name(timeline, slice).to_owned(), caller)
}

/// Returns what ran on the thread with a number, in order: calls, or polls too.
fn on_thread(timeline: &Timeline, thread: u64, kinds: &[SliceKind]) -> Vec<Slice> {
    let is_on_it = |slice: &&Slice| {
        let track = &timeline.tracks[slice.track as usize];
        track.kind == TrackKind::HostThread && track.id == thread && kinds.contains(&slice.kind)
    };
    let mut slices: Vec<_> = timeline.slices.iter().filter(is_on_it).copied().collect();
    slices.sort_by_key(|slice| (slice.start_ns, -slice.duration_ns));
    slices
}

const CALLS: &[SliceKind] = &[SliceKind::Call];
const CALLS_AND_POLLS: &[SliceKind] = &[SliceKind::Call, SliceKind::FuturePoll];

#[test]
fn each_call_has_the_caller_that_python_gave_it() {
    let (said, timeline) = run("calls.py");
    let said: Said = serde_json::from_str(&said).expect("JSON");
    let mut count = 0;
    for (thread, expected) in &said.threads {
        let slices = on_thread(&timeline, *thread, CALLS);
        let calls: Vec<_> = slices.iter().map(|slice| call(&timeline, slice)).collect();
        for (call, expected) in calls.iter().zip(expected) {
            assert_eq!(call, expected, "on thread {thread}");
        }
        assert_eq!(calls.len(), expected.len(), "on thread {thread}");
        count += calls.len();
    }
    let ranges = timeline
        .slices
        .iter()
        .filter(|slice| slice.kind == SliceKind::AsyncCall);
    let ranges: BTreeMap<_, _> = ranges.map(|slice| call(&timeline, slice)).collect();
    assert_eq!(ranges, said.tasks.iter().cloned().collect());
    assert!(
        count > 1000 && ranges.len() > 500,
        "{count} calls, {} ranges",
        ranges.len()
    );
    let calls = timeline
        .slices
        .iter()
        .filter(|slice| slice.kind == SliceKind::Call);
    assert_eq!(calls.count(), count, "there are no others");
}

#[test]
fn self_times_add_up() {
    let (said, timeline) = run("calls.py");
    let said: Said = serde_json::from_str(&said).expect("JSON");
    let track_of = |slice: &Slice| &timeline.tracks[slice.track as usize];
    for thread in said.threads.keys() {
        let slices = on_thread(&timeline, *thread, CALLS_AND_POLLS);
        let (mut outermost, mut end) = (0, i64::MIN);
        for slice in &slices {
            if slice.start_ns >= end {
                outermost += slice.duration_ns;
                end = slice.start_ns + slice.duration_ns;
            }
        }
        // While a range of this thread waits for calls on another one, it has no time of its own.
        let is_awaited = |slice: &&Slice| {
            let caller = slice.parent.map(|parent| &timeline.slices[parent as usize]);
            let here = caller.filter(|caller| track_of(caller).id == *thread);
            here.is_some_and(|caller| caller.kind == SliceKind::Call)
                && track_of(slice).id != *thread
        };
        let calls = timeline
            .slices
            .iter()
            .filter(|slice| slice.kind == SliceKind::Call);
        let awaited: i64 = calls
            .filter(is_awaited)
            .map(|slice| slice.duration_ns)
            .sum();
        let own: i64 = slices.iter().map(|slice| slice.self_ns).sum();
        // Each time is rounded to a nanosecond.
        let difference = (own + awaited - outermost).unsigned_abs();
        assert!(
            difference <= slices.len() as u64,
            "on thread {thread}: {own} + {awaited} of {outermost}"
        );
    }
    let mut polled: BTreeMap<u32, i64> = BTreeMap::new();
    for poll in timeline
        .slices
        .iter()
        .filter(|slice| slice.kind == SliceKind::FuturePoll)
    {
        *polled.entry(poll.parent.expect("a range")).or_default() += poll.duration_ns;
    }
    for (range, polled) in polled {
        let range = &timeline.slices[range as usize];
        assert!((range.self_ns - polled).abs() <= 2, "{range:?}: {polled}");
    }
}

#[test]
fn a_range_that_its_thread_never_leaves_ends_with_the_thread() {
    let (table, _) = run("left_open.py");
    for name in ["left-later", "never-left"] {
        let mut rows = table.lines().map(str::split_whitespace);
        let calls = rows.find_map(|mut row| (row.next() == Some(name)).then(|| row.next()));
        assert_eq!(calls, Some(Some("1")), "{table}");
    }
}

#[test]
fn the_service_has_rows_for_its_ranges_and_for_rust() {
    let (table, timeline) = run("service.py");
    let averages = timeline.key_averages();
    for (name, calls) in [("request", 20), ("order", 20), ("python_ranges::words", 20)] {
        let row = averages.rows.iter().find(|row| row.name == name);
        assert_eq!(row.map(|row| row.calls), Some(calls), "{name}");
        assert!(table.contains(name), "{table}");
    }
}
