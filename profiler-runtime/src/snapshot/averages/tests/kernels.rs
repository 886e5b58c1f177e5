//! Kernels of windows that are built by hand.

#![allow(clippy::float_cmp, reason = "sums of whole nanoseconds are exact")]

use profiler_report::{
    GpuWork, GpuWorkKind, KernelLaunch, KernelRowKind, Kernels, MemoryCopy, MemoryFill, MemoryKind,
    ScopeKernels, SortKey, TableOptions, Verdict, WaitKind,
};

use std::time::Duration;

use crate::clock::clock;
use crate::golden::assert_golden;
use crate::session::sample::Sample;
use crate::session::{GapReason, Trace, WorkGap};

const GEMM: &str = "void cutlass::Kernel<cutlass::gemm::Tile<128, 64> >(cutlass::gemm::Params)";
const ADD: &str = "void at::native::elementwise<at::native::Add>(int, float*)";
const MUL: &str = "void at::native::elementwise<at::native::Mul>(int, float*)";

fn kernel(grid: u32, shared: u32) -> GpuWork {
    GpuWork {
        kind: GpuWorkKind::Kernel(KernelLaunch {
            grid: [grid, 4, 1],
            block: [256, 1, 1],
            registers: 32,
            static_shared_bytes: 1024,
            dynamic_shared_bytes: shared,
            non_exhaustive: (),
        }),
        ..GpuWork::default()
    }
}

fn copy(bytes: u64, from: MemoryKind, to: MemoryKind) -> GpuWork {
    GpuWork {
        kind: GpuWorkKind::Memcpy(MemoryCopy {
            bytes,
            from,
            to,
            peer: None,
            non_exhaustive: (),
        }),
        ..GpuWork::default()
    }
}

/// Adds a scope that lasts `us` microseconds. Launches of the samples take 100 ns.
fn scope(sample: &mut Sample, name: &str, parent: u64, start_us: u64, us: i64) -> u64 {
    let ticks = |us: f64| us * 1000.0 / crate::clock::clock().nanoseconds(1.0);
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "small"
    )]
    let (start, elapsed) = (ticks(start_us as f64) as u64, ticks(us as f64) as i64);
    sample.scope(name, parent, start, elapsed)
}

/// A step with two calls of a layer, a copy, and a kernel outside of all scopes.
fn step() -> Trace {
    let mut sample = Sample::new();
    let step = scope(&mut sample, "kernels: step", 0, 0, 1000);
    scope(&mut sample, "kernels: load", step, 0, 100);
    let upload = copy(1 << 20, MemoryKind::Pinned, MemoryKind::Device);
    sample.work(
        "Memcpy HtoD (Pinned -> Device)",
        true,
        1_000,
        (10_000, 60_000),
        upload,
    );
    let clear = GpuWork {
        kind: GpuWorkKind::Memset(MemoryFill {
            bytes: 4096,
            memory: MemoryKind::Device,
            non_exhaustive: (),
        }),
        ..GpuWork::default()
    };
    sample.work("Memset (Device)", true, 2_000, (60_000, 101_000), clear);
    scope(&mut sample, "kernels: layer", step, 100, 50);
    sample.work(GEMM, true, 102_000, (105_000, 205_000), kernel(8, 0));
    sample.work(ADD, true, 102_000, (205_000, 215_000), kernel(1, 0));
    scope(&mut sample, "kernels: layer", step, 200, 50);
    sample.work(GEMM, true, 201_000, (215_000, 335_000), kernel(16, 2048));
    sample.work(MUL, true, 202_000, (335_000, 345_000), kernel(1, 0));
    let wait = GpuWork {
        kind: GpuWorkKind::Synchronization(WaitKind::ContextSynchronize),
        ..GpuWork::default()
    };
    sample.work("wait", true, 203_000, (203_000, 345_000), wait);
    scope(&mut sample, "kernels: slow", step, 300, 600);
    for start in [400_000, 500_000, 600_000] {
        sample.work(
            "tiny",
            true,
            start,
            (start + 5_000, start + 6_000),
            kernel(1, 0),
        );
    }
    sample.work("stray", false, 700_000, (705_000, 707_000), kernel(1, 0));
    sample.trace()
}

fn scope_of<'k>(kernels: &'k Kernels, name: &str) -> &'k ScopeKernels {
    let mut scopes = kernels.scopes.iter();
    scopes
        .find(|scope| scope.scope.as_deref() == Some(name))
        .expect("a scope")
}

fn near(value: f64, expected: f64) -> bool {
    (value - expected).abs() <= 100.0
}

fn is_near(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| near(value, expected))
}

#[test]
fn work_counts_for_the_scope_that_launched_it() {
    let kernels = step().key_averages().kernels();
    let names: Vec<Option<&str>> = kernels
        .scopes
        .iter()
        .map(|scope| scope.scope.as_deref())
        .collect();
    assert_eq!(
        names,
        [
            Some("kernels: layer"),
            Some("kernels: load"),
            Some("kernels: slow"),
            None
        ]
    );
    let layer = scope_of(&kernels, "kernels: layer");
    assert_eq!((layer.calls, layer.launches), (2, Some(4)));
    assert_eq!(layer.launches_per_call(), Some(2.0));
    assert_eq!((layer.busy_ns, layer.copy_ns), (240_000.0, 0.0));
    // The memory was filled until 101 µs; the first kernel was launched until 102.1 µs and began at 105 µs.
    assert_eq!(
        (layer.idle_ns, layer.launch_gap_ns),
        (Some(4_000.0), Some(1_100.0))
    );
    assert_eq!(layer.verdict(), Some(Verdict::DeviceBound));
    let gemm = &layer.rows[0];
    assert_eq!((gemm.times.calls, gemm.times.total_ns), (2, 220_000.0));
    assert_eq!(
        (gemm.times.p95_ns, gemm.times.total_percent),
        (120_000.0, 91.67)
    );
    let KernelRowKind::Kernel(used) = gemm.kind else {
        panic!("a kernel")
    };
    assert_eq!((used.grid.min, used.grid.max), ([8, 4, 1], [16, 4, 1]));
    assert_eq!((used.shared_bytes.min, used.shared_bytes.max), (1024, 3072));
    let short: Vec<&str> = layer.rows.iter().map(|row| &*row.short).collect();
    assert_eq!(short, ["Kernel", "elementwise<Add>", "elementwise<Mul>"]);
    let none = kernels.scopes.last().expect("a stray kernel");
    assert_eq!(
        (none.verdict(), none.idle_ns, none.busy_ns),
        (None, None, 2_000.0)
    );
}

#[test]
fn calls_that_began_before_launches_were_recorded_are_not_counted() {
    let mut trace = step();
    // When the second call of the layer begins.
    trace.work.gaps.push(WorkGap {
        span: (0, trace.scopes[3].start),
        reason: GapReason::Starting,
    });
    let kernels = trace.key_averages().kernels();
    let layer = scope_of(&kernels, "kernels: layer");
    assert_eq!((layer.calls, layer.launches), (1, Some(2)));
    assert_eq!(layer.launches_per_call(), Some(2.0));
    let load = scope_of(&kernels, "kernels: load");
    assert_eq!((load.calls, load.launches), (0, Some(0)));
    assert_eq!(load.launches_per_call(), None);
    // Their work ran all the same.
    assert_eq!(load.rows.len(), 2);
}

#[test]
fn copies_have_bytes_and_speeds() {
    let kernels = step().key_averages().kernels();
    let load = scope_of(&kernels, "kernels: load");
    assert_eq!(load.verdict(), Some(Verdict::CopyBound));
    assert_eq!(load.copy_ns, 91_000.0);
    let [upload, fill] = &load.rows[..] else {
        panic!("two rows")
    };
    assert_eq!((upload.bytes(), fill.bytes()), (Some(1 << 20), Some(4096)));
    assert!((upload.gigabytes_per_second().expect("a copy") - 20.97).abs() < 0.01);
}

#[test]
fn an_idle_device_waits_for_launches_or_for_something_else() {
    let kernels = step().key_averages().kernels();
    let slow = scope_of(&kernels, "kernels: slow");
    assert_eq!(slow.busy_ns, 3_000.0);
    // From 345 µs to 405 µs, from 406 µs to 505 µs, and from 506 µs to 605 µs; launched 4.9 µs before the ends.
    assert!(is_near(slow.idle_ns, 258_000.0), "{:?}", slow.idle_ns);
    assert!(
        slow.launch_gap_ns
            .is_some_and(|gap| near(gap, 258_000.0 - 3.0 * 4_900.0))
    );
    assert_eq!(slow.verdict(), Some(Verdict::LaunchBound));

    let mut sample = Sample::new();
    scope(&mut sample, "kernels: waits", 0, 0, 1000);
    sample.work("first", true, 1_000, (2_000, 3_000), kernel(1, 0));
    sample.work("second", true, 2_000, (90_000, 91_000), kernel(1, 0));
    // A pause before the call is no time of the call.
    scope(&mut sample, "kernels: after a pause", 0, 500, 100);
    sample.work("third", true, 502_000, (510_000, 511_000), kernel(1, 0));
    let averages = sample.trace().key_averages();
    let kernels = averages.kernels();
    let after = scope_of(&kernels, "kernels: after a pause");
    assert!(is_near(after.idle_ns, 10_000.0), "{:?}", after.idle_ns);
    let row = averages.row("kernels: waits").expect("it was called");
    assert_eq!(row.verdict(), Some(Verdict::GapBound));
}

#[test]
fn a_device_is_not_idle_where_nothing_was_recorded() {
    let mut trace = step();
    let idle_of = |trace: &Trace| {
        let kernels = trace.key_averages().kernels();
        let slow = scope_of(&kernels, "kernels: slow");
        slow.idle_ns.zip(slow.launch_gap_ns).expect("launches")
    };
    let (idle, launch_gap) = idle_of(&trace);
    // From 350 µs to 400 µs, and from 430 µs to 440 µs: in the gaps before the first and the second kernel.
    for from in [350_000, 430_000] {
        let length = if from == 350_000 { 50_000 } else { 10_000 };
        let ticks = |ns: u64| trace.meta.opened + clock().in_ticks(Duration::from_nanos(ns));
        let span = (ticks(from), ticks(from + length));
        trace.work.gaps.push(WorkGap {
            span,
            reason: GapReason::Off,
        });
    }
    let (without, launch_gap_without) = idle_of(&trace);
    assert!(near(idle - without, 60_000.0), "{idle} {without}");
    let moved = launch_gap - launch_gap_without;
    assert!(near(moved, 60_000.0), "{launch_gap} {launch_gap_without}");
    let kernels = trace.key_averages().kernels();
    assert!(near(kernels.unrecorded_ns, 60_000.0), "{kernels:?}");
}

#[test]
fn work_of_several_streams_counts_once_and_devices_are_idle_for_themselves() {
    let mut sample = Sample::new();
    scope(&mut sample, "kernels: two streams", 0, 0, 100);
    let mut run = |device, span| {
        let work = GpuWork {
            device,
            ..kernel(1, 0)
        };
        sample.work("kernel", true, 0, span, work);
    };
    run(0, (10_000, 20_000));
    run(0, (15_000, 30_000));
    run(0, (16_000, 17_000));
    run(0, (35_000, 40_000));
    run(1, (10_000, 20_000));
    let kernels = sample.trace().key_averages().kernels();
    let scope = scope_of(&kernels, "kernels: two streams");
    assert_eq!(scope.busy_ns, 35_000.0);
    // Each device waited 10 µs for its first work, which took 100 ns to launch.
    assert!(is_near(scope.idle_ns, 25_000.0), "{:?}", scope.idle_ns);
    assert!(scope.launch_gap_ns.is_some_and(|gap| near(gap, 200.0)));
    assert_eq!(scope.rows[0].times.total_ns, 41_000.0);
}

#[test]
fn the_time_before_the_first_work_of_a_window_is_idle() {
    let mut sample = Sample::new();
    scope(&mut sample, "kernels: prepares", 0, 0, 1000);
    sample.work("only", true, 900_000, (910_000, 920_000), kernel(1, 0));
    let trace = sample.trace();
    let kernels = trace.key_averages().kernels();
    let prepares = scope_of(&kernels, "kernels: prepares");
    assert!(
        is_near(prepares.idle_ns, 910_000.0),
        "{:?}",
        prepares.idle_ns
    );
    assert_eq!(prepares.verdict(), Some(Verdict::LaunchBound));
    let mut without_launches = prepares.clone();
    without_launches.launch_gap_ns = None;
    assert_eq!(without_launches.verdict(), None);
}

#[test]
fn rows_that_are_filtered_have_no_kernels() {
    let averages = step().key_averages();
    let layers = averages.restrict("layer").expect("a pattern").kernels();
    assert_eq!(layers.scopes.len(), 1);
    let without = Sample::new().trace().key_averages().kernels();
    assert!(!without.is_recorded);
    assert!(without.to_string().starts_with("no kernels were recorded"));
}

#[test]
fn the_time_line_has_the_same_kernels() {
    let trace = step();
    let of_trace = trace.key_averages().kernels();
    let of_timeline = trace.timeline().key_averages().kernels();
    for (one, other) in of_trace.scopes.iter().zip(&of_timeline.scopes) {
        assert_eq!((&one.rows, one.launches), (&other.rows, other.launches));
        assert!(one.idle_ns.is_none_or(|ns| is_near(other.idle_ns, ns)));
    }
    assert_eq!(of_trace.scopes.len(), of_timeline.scopes.len());
}

#[test]
fn notes_of_the_window_are_below_the_table() {
    let mut sample = Sample::new();
    scope(&mut sample, "kernels: noted", 0, 0, 100);
    sample.work("kernel", true, 1_000, (20_000, 30_000), kernel(1, 0));
    sample.work.notes = vec!["the clocks differ".to_owned()];
    sample.work.lost.dropped = 3;
    let text = sample.trace().key_averages().kernels().to_string();
    let lines: Vec<&str> = text.lines().rev().take(2).collect();
    assert_eq!(lines[0], "the clocks differ");
    assert!(
        lines[1].starts_with("3 records of kernels and copies were dropped"),
        "{text}"
    );

    let mut sample = Sample::new();
    sample.work.missing = Some("CUPTI was not found".to_owned());
    let kernels = sample.trace().key_averages().kernels();
    assert_eq!(kernels.to_string(), "no kernels: CUPTI was not found\n");
}

#[test]
fn tables_have_a_line_for_each_kernel_below_its_scope() {
    let kernels = step().key_averages().kernels();
    let options = TableOptions::new().width(160);
    let by_mean = options
        .clone()
        .sort_by(SortKey::CudaTime)
        .row_limit(3)
        .statistics(true);
    let narrow = TableOptions::new().width(80).sort_by("cpu_time");
    // Where a call began is rounded to ticks, so times of idling differ by some nanoseconds: three digits do not.
    let tables = [
        kernels.table(&options),
        kernels.table(&by_mean),
        kernels.table(&narrow),
    ];
    assert_golden(
        "snapshot/averages/tests/golden/kernels.txt",
        &tables.join("\n"),
    );
}

#[test]
fn json_and_csv_have_all_values() {
    let kernels = step().key_averages().kernels();
    let json: serde_json::Value = serde_json::from_str(&kernels.to_json()).expect("JSON");
    let scope = &json["scopes"][0];
    assert_eq!(scope["scope"], "kernels: layer");
    assert_eq!(scope["verdict"], "device-bound");
    let row = &scope["rows"][0];
    assert_eq!(
        (&row["kind"], &row["name"]),
        (&"kernel".into(), &GEMM.into())
    );
    assert_eq!(row["grid_max"], serde_json::json!([16, 4, 1]));
    assert_eq!(row["total_ns"], 220_000.0);
    assert_eq!(json["scopes"][1]["rows"][0]["direction"], "HtoD");
    let csv = kernels.to_csv();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 7);
    assert!(
        lines[0].starts_with("scope,scope_calls,scope_launches,"),
        "{}",
        lines[0]
    );
    assert!(lines[1].contains("16x4x1"), "{}", lines[1]);
}
