//! A trace of a window with many scopes holds each of them, keeps the rules of its readers, and stays small.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use profiler_runtime::{Activity, Profile, measure_execution_time, scope};
use profiler_trace_validator::validate;

/// A folder for traces that other programs are to read; they are to open many scopes.
const KEEP: &str = "PROFILER_TESTS_TRACES";

/// Scopes between two rests: no more than the ring of a thread holds.
const BURST: usize = 4000;

#[measure_execution_time(name = "many: leaf")]
fn leaf() {}

fn scopes(count: usize) {
    for number in 0..count / 2 {
        let _branch = scope!("many: branch");
        leaf();
        if number % (BURST / 2) == 0 {
            thread::sleep(Duration::from_millis(2));
        }
    }
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).expect("a file").len()
}

#[test(measuring)]
fn a_large_window_has_each_scope() {
    let keep = std::env::var_os(KEEP);
    let count = if keep.is_some() { 200_000 } else { 50_000 };
    // Wherever the test runs, this is of the CPU: a GPU time takes as much again, and more.
    let ((), trace) = Profile::builder()
        .activities([Activity::Cpu])
        .capacity(2 * count)
        .run(|_| scopes(count));
    let trace = trace.expect("a window");
    let held = trace
        .events()
        .filter(|event| event.name().starts_with("many: "));
    let missing = trace.truncation();
    // On a machine that is busy the rings may be emptied too late, which the window says.
    assert_eq!(
        held.count() as u64 + missing.ring_full + missing.late,
        count as u64
    );
    let folder = tempfile::tempdir().expect("a folder");
    let [plain, packed] = ["trace.json", "trace.json.gz"].map(|name| folder.path().join(name));
    for path in [&plain, &packed] {
        trace.export_chrome_trace(path).expect("room");
        assert_eq!(validate(path).expect("a trace"), [], "{}", path.display());
    }
    let text = fs::read_to_string(&plain).expect("text");
    assert_eq!(text.matches("\"cpu_op\"").count(), trace.len());
    let each = |path: &Path| size(path) / trace.len() as u64;
    assert!(each(&plain) <= 200, "{} bytes a scope", each(&plain));
    assert!(each(&packed) <= 40, "{} bytes a scope", each(&packed));
    let [own, own_packed] =
        ["trace.pftrace", "trace.pftrace.gz"].map(|name| folder.path().join(name));
    trace.export_perfetto(&own).expect("room");
    assert!(
        3 * size(&own) <= size(&plain),
        "{} bytes a scope",
        each(&own)
    );
    if count < 100_000 {
        trace.export_perfetto(&own_packed).expect("room");
        assert!(
            each(&own_packed) <= each(&packed),
            "{} bytes a scope",
            each(&own_packed)
        );
    }
    if let Some(folder) = keep {
        let folder = Path::new(&folder);
        fs::create_dir_all(folder).expect("room");
        fs::copy(&packed, folder.join("many-canonical.json.gz")).expect("room");
        fs::copy(&own, folder.join("many-canonical.pftrace")).expect("room");
    }
}
