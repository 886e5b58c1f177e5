//! `profiler merge` on files.

use crate::support::{Folder, profiler};
use profiler_report::{Slice, SliceKind, SliceName, Timeline, Track, TrackKind};

const STEP_NS: i64 = 10_000_000;

/// A rank whose clock is ahead, and which begins each collective late. It ends on all ranks at one time.
fn rank(rank: u64, ahead_ns: i64, late_ns: i64) -> Timeline {
    let mut line = Timeline {
        start_unix_ns: 1_700_000_000_000_000_000 + ahead_ns,
        ..Timeline::default()
    };
    for text in ["train::step", "ncclDevKernel_AllReduce_Sum_f32"] {
        let name = SliceName {
            text: text.into(),
            ..SliceName::default()
        };
        line.names.push(name);
    }
    for (kind, id) in [(TrackKind::HostThread, 1), (TrackKind::GpuStream, 7)] {
        let mut track = Track::default();
        (track.kind, track.id, track.rank) = (kind, id, Some(rank));
        (track.process, track.device) = (4711, Some(0));
        track.name = format!("track {id}");
        line.tracks.push(track);
    }
    let mut work = Vec::new();
    for (number, start) in (0..10).zip((0..).step_by(10_000_000)) {
        let mut scope = Slice::default();
        (scope.start_ns, scope.duration_ns, scope.self_ns) =
            (start, STEP_NS - 1_000, STEP_NS - 1_000);
        line.slices.push(scope);
        let mut kernel = Slice {
            kind: SliceKind::GpuWork,
            ..Slice::default()
        };
        (kernel.track, kernel.name, kernel.parent) = (1, 1, Some(number));
        kernel.start_ns = start + 5_000_000 + late_ns;
        kernel.duration_ns = 2_000_000 - late_ns;
        kernel.self_ns = kernel.duration_ns;
        work.push(kernel);
    }
    line.slices.append(&mut work);
    line.duration_ns = 10 * STEP_NS;
    line
}

fn write(folder: &Folder, name: &str, line: &Timeline) -> String {
    let path = folder.path(name);
    line.export_chrome_trace(&path).expect("it is written");
    path
}

#[test]
fn ranks_come_to_one_time_line_and_the_slow_one_is_named() {
    let folder = Folder::new();
    // In another order than that of the ranks.
    let one = write(&folder, "one.json.gz", &rank(1, 3_000_000, 1_500_000));
    let zero = write(&folder, "zero.json", &rank(0, 0, 0));
    let output = folder.path("all.json");
    let run = profiler(&["merge", &one, &zero, "-o", &output]);
    let wrote = format!("profiler: wrote {output}\n");
    assert_eq!((run.code, &run.stderr), (0, &wrote), "{run:?}");
    assert!(
        run.stdout
            .contains("its clock is 3.00 ms ahead ±1.00 µs (10 collectives)"),
        "{run:?}"
    );
    let last = run.stdout.lines().last();
    assert_eq!(
        last,
        Some("Rank 1 is last in 10 of 10, by 1.50 ms in the median.")
    );

    let text = std::fs::read_to_string(&output).expect("it is written");
    let trace: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let events = trace["traceEvents"].as_array().expect("a list");
    let ends = |process: u64| -> Vec<i64> {
        let kernels = events
            .iter()
            .filter(|event| event["cat"] == "kernel" && event["pid"] == process);
        let time =
            |event: &serde_json::Value, key: &str| event[key].as_f64().expect("a number") * 1e3;
        #[allow(clippy::cast_possible_truncation, reason = "times of seconds")]
        let end =
            |event: &serde_json::Value| (time(event, "ts") + time(event, "dur")).round() as i64;
        kernels.map(end).collect()
    };
    // Each rank has a device 0: they are numbered in the order of the ranks.
    assert_eq!(ends(0).len(), 10);
    assert_eq!(ends(0), ends(1), "aligned to the nanosecond");
}

#[test]
fn the_ending_selects_the_format() {
    let folder = Folder::new();
    let files = [0, 1].map(|number| write(&folder, &format!("{number}.json"), &rank(number, 0, 0)));
    for (name, is_compressed) in [("all.pftrace", false), ("all.json.gz", true)] {
        let run = profiler(&[
            "merge",
            &files[0],
            &files[1],
            "--output",
            &folder.path(name),
        ]);
        assert_eq!(run.code, 0, "{run:?}");
        let bytes = std::fs::read(folder.path(name)).expect("it is written");
        assert_eq!(bytes.starts_with(&[0x1f, 0x8b]), is_compressed);
    }
    let run = profiler(&[
        "merge",
        &files[0],
        &files[1],
        "-o",
        &folder.path("all.html"),
    ]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(
        run.stderr.contains("`.json`, `.json.gz` or `.pftrace`"),
        "{run:?}"
    );
}

#[test]
fn ranks_that_cannot_be_aligned_are_refused_in_one_line_and_nothing_is_written() {
    let folder = Folder::new();
    let zero = write(&folder, "zero.json", &rank(0, 0, 0));
    let mut later = rank(1, 60_000_000_000, 0);
    later.slices.retain(|slice| slice.parent.is_none());
    let later = write(&folder, "later.json", &later);
    let same = write(&folder, "same.json", &rank(0, 0, 0));
    let summary = profiler_report::Summary::default().to_json();
    let summary = folder.file("summary.json", summary.as_bytes());
    for (other, reason) in [
        (&later, "later.json: begins 59.9 s after "),
        (&same, "is of rank 0, as is "),
        (&summary, "summary.json: is a summary"),
        (&folder.path("missing.json"), "cannot be read"),
    ] {
        let output = folder.path("all.json");
        let run = profiler(&["merge", &zero, other, "-o", &output]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(run.stderr.contains(reason), "{run:?}");
        assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
        assert!(!std::path::Path::new(&output).exists());
    }
    assert_eq!(profiler(&["merge", &zero, "-o", "all.json"]).code, 3);
}

#[test]
fn traces_of_different_jobs_are_merged_only_by_force() {
    let folder = Folder::new();
    // Both have ten collectives, which would be taken for the same ones.
    let days = 735_003_000_000_000;
    let mut zero = rank(0, 0, 0);
    zero.world_size = Some(8);
    let zero = write(&folder, "zero.json", &zero);
    let later = write(&folder, "later.json", &rank(1, days, 0));
    let mut of_two = rank(1, 0, 0);
    of_two.world_size = Some(2);
    let of_two = write(&folder, "two.json", &of_two);
    let output = folder.path("all.json");
    for (other, reason) in [
        (
            &later,
            "later.json: has a clock that is 8.51 days ahead of that of ",
        ),
        (&of_two, "two.json: is of a job with 2 processes, and "),
    ] {
        let run = profiler(&["merge", &zero, other, "-o", &output]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(
            run.stderr.contains(reason) && run.stderr.contains("with --force"),
            "{run:?}"
        );
        assert!(!std::path::Path::new(&output).exists());
        let run = profiler(&["merge", &zero, other, "-o", &output, "--force"]);
        let wrote = format!("profiler: wrote {output}\n");
        assert_eq!((run.code, &run.stderr), (0, &wrote), "{run:?}");
        assert!(run.stdout.starts_with("Merged with --force: "), "{run:?}");
        std::fs::remove_file(&output).expect("it was written");
    }
}
