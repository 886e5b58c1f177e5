//! Averages of traces made by hand: nothing is counted twice, nothing is left out.

mod exports;
mod golden;
mod group;
mod kernels;
mod of_summary;
mod program;
mod properties;
mod restrictions;

use std::backtrace::Backtrace;

use profiler_report::internal::StreamKey;
use profiler_report::{
    CallEdge, GpuWork, GroupBy, KeyAverages, MemoryUse, Row, SliceKind, SortKey, TableOptions,
    Timeline, Verdict,
};

use super::for_tables;
use crate::clock::clock;
use crate::cuda::CudaLoss;
use crate::cuda::GpuRecord;
use crate::session::sample::Sample;
use crate::session::{RecordEnding, RecordKind, ScopeDetails, SessionOptions};

/// A stream of its own for each number.
fn stream(number: u32) -> StreamKey {
    StreamKey {
        context: number,
        ..StreamKey::NOWHERE
    }
}

/// Milliseconds in ticks.
fn ms(ms: f64) -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few milliseconds"
    )]
    let ticks = (ms * 1e6 / clock().nanoseconds(1.0)).round() as u64;
    ticks
}

/// Scopes with milliseconds for ticks.
trait InMs {
    fn ms(&mut self, name: &str, parent: u64, start: f64, elapsed: f64) -> u64;
}

impl InMs for Sample {
    #[track_caller]
    fn ms(&mut self, name: &str, parent: u64, start: f64, elapsed: f64) -> u64 {
        self.scope(name, parent, ms(start), ms(elapsed).cast_signed())
    }
}

#[track_caller]
fn row<'a>(averages: &'a KeyAverages, name: &str) -> &'a Row {
    let row = averages.rows.iter().find(|row| row.name == name);
    row.expect("a row of the name")
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e3, "{found} for {expected}");
}

/// Calls, total and self time in milliseconds.
#[track_caller]
fn assert_cpu(row: &Row, calls: (u64, u64), total: f64, own: f64) {
    let cpu = row.cpu.as_ref().expect("a CPU time");
    assert_eq!((row.calls, row.primitive_calls), calls, "{row:?}");
    close(cpu.total_ns, total * 1e6);
    close(cpu.self_ns, own * 1e6);
}

/// A future that waits most of its time: polled in `around`, with a scope inside.
fn waiting(around: &str) -> KeyAverages {
    let mut sample = Sample::new();
    let outer = sample.ms(around, 0, 0.0, 5.0);
    let poll = sample.ms("tests: fetch", outer, 1.0, 3.0);
    sample.last().kind = RecordKind::Poll { future: 1 << 40 };
    sample.ms("tests: parse", poll, 2.0, 1.0);
    sample.ms("tests: fetch", 0, 90.0, 1.0);
    sample.last().kind = RecordKind::Poll { future: 1 << 40 };
    sample.ms("tests: fetch", 0, 1.0, 90.0);
    sample.last().serial = 1 << 40;
    sample.last().kind = RecordKind::Future {
        polled: ms(4.0).cast_signed(),
    };
    sample.last().ending = RecordEnding::Dropped;
    sample.trace().key_averages()
}

#[test]
fn a_future_takes_what_its_polls_take() {
    let averages = waiting("tests: runtime");
    let fetch = row(&averages, "tests: fetch");
    assert_cpu(fetch, (1, 1), 90.0, 3.0);
    assert_cpu(row(&averages, "tests: runtime"), (1, 1), 5.0, 2.0);
    assert_eq!((fetch.futures, fetch.dropped_futures), (1, 1));
    close(fetch.polled_ns, 4e6);
    close(averages.self_cpu_time_total_ns.expect("a sum"), 6e6);
    let cpu = fetch.cpu.as_ref().expect("a CPU time");
    assert_eq!((cpu.self_percent, cpu.total_percent), (50.0, 66.67));
}

#[test]
fn the_share_of_a_future_has_its_dropped_polls_too() {
    let mut sample = Sample::new();
    sample.ms("tests: work", 0, 0.0, 6.0);
    sample.ms("tests: fetch", 0, 10.0, 90.0);
    sample.last().kind = RecordKind::Future {
        polled: ms(4.0).cast_signed(),
    };
    let trace = sample.trace();
    let averages = trace.key_averages();
    let fetch = row(&averages, "tests: fetch").cpu.expect("a CPU time");
    assert_eq!((fetch.self_percent, fetch.total_percent), (40.0, 40.0));
    let timeline = for_tables(&trace, GroupBy::new());
    let [details] = &timeline.details[..] else {
        panic!("{:?}", timeline.details);
    };
    // Within a tick of the slowest clock.
    let polled = details.polled_ns.expect("it was polled");
    assert!((polled - 4_000_000).abs() < 100, "{polled}");
}

#[test]
fn tables_have_stacks_only_if_rows_are_grouped_by_them() {
    let mut sample = Sample::new();
    sample.options.native_stack = true;
    sample.ms("tests: work", 0, 0.0, 6.0);
    sample.extra(ScopeDetails {
        native: Some(Backtrace::force_capture()),
        ..ScopeDetails::default()
    });
    let trace = sample.trace();
    let stacks = |timeline: Timeline| {
        let details = timeline.details.first();
        details.map(|details| (details.call_stack.is_some(), details.native_stack.is_some()))
    };
    assert_eq!(stacks(trace.timeline()), Some((true, true)));
    assert_eq!(stacks(for_tables(&trace, GroupBy::new())), None);
    let by = GroupBy::new().group_by_stack(3);
    assert_eq!(stacks(for_tables(&trace, by)), Some((true, false)));
}

#[test]
fn replays_and_lost_times_are_told() {
    let mut sample = Sample::new();
    sample.ms("tests: graph", 0, 0.0, 1.0);
    sample.gpu(stream(0), 0, 70.0, 70.0);
    let replay = GpuRecord {
        is_replay: true,
        ..sample.gpu[0]
    };
    sample.ms("tests: lost", 0, 2.0, 1.0);
    sample.gpu(stream(0), 0, 5.0, 5.0);
    sample.gpu[1].loss = Some(CudaLoss::DriverRefused);
    let mut trace = sample.trace();
    trace.replays = vec![replay; 2];
    let averages = trace.key_averages();
    let graph = row(&averages, "tests: graph");
    let cuda = graph.cuda.as_ref().expect("a GPU time");
    assert_eq!((graph.calls, cuda.calls, cuda.total_ns), (1, 3, 210.0));
    let lost = row(&averages, "tests: lost");
    assert_eq!((&lost.cuda, lost.without_cuda), (&None, 1));
    assert!(
        averages
            .to_string()
            .contains("\n1 calls without a GPU time\n")
    );
}

#[test]
fn the_verdict_is_that_of_most_calls() {
    let mut sample = Sample::new();
    for (name, gpu_ns) in [("tests: launches", 1e3), ("tests: works", 1e9)] {
        sample.ms(name, 0, 0.0, 1.0);
        sample.gpu(stream(0), 0, gpu_ns, gpu_ns);
    }
    let averages = sample.trace().key_averages();
    let verdict = |name: &str| row(&averages, name).verdict().map(Verdict::as_str);
    assert_eq!(verdict("tests: launches"), Some("launch-bound"));
    assert_eq!(verdict("tests: works"), Some("device-bound"));
}

fn memory(net: i64, allocated: u64, device_net: Option<i64>) -> ScopeDetails {
    let memory = MemoryUse {
        host_net: net,
        host_allocated: allocated,
        host_peak: allocated / 2,
        host_total: 9000,
        device_net,
        device_total: device_net.map(|_| 700),
        device_reserved: device_net.map(|_| 800),
        non_exhaustive: (),
    };
    ScopeDetails {
        memory: Some(memory),
        ..ScopeDetails::default()
    }
}

#[test]
fn memory_is_counted_once() {
    let mut sample = Sample::new();
    let outer = sample.ms("tests: outer", 0, 0.0, 10.0);
    sample.extra(memory(100, 1000, Some(64)));
    let middle = sample.ms("tests: unknown", outer, 1.0, 8.0);
    let inner = sample.ms("tests: inner", middle, 2.0, 6.0);
    sample.extra(memory(-20, 300, Some(16)));
    sample.ms("tests: inner", inner, 3.0, 4.0);
    sample.extra(memory(-30, 100, None));
    let averages = sample.trace().key_averages();
    let outer = row(&averages, "tests: outer").memory.expect("memory");
    assert_eq!((outer.cpu_net, outer.self_cpu_net), (100, 120));
    assert_eq!((outer.cpu_allocated, outer.self_cpu_allocated), (1000, 700));
    assert_eq!((outer.cpu_peak, outer.cpu_in_use), (500, 9000));
    assert_eq!((outer.cuda_net, outer.self_cuda_net), (Some(64), Some(48)));
    assert_eq!(
        (outer.cuda_in_use, outer.cuda_reserved),
        (Some(700), Some(800))
    );
    let inner = row(&averages, "tests: inner").memory.expect("memory");
    assert_eq!((inner.cpu_net, inner.self_cpu_net), (-20, -20));
    assert_eq!((inner.cpu_allocated, inner.self_cpu_allocated), (300, 300));
    assert_eq!((inner.cuda_net, inner.self_cuda_net), (Some(16), Some(16)));
    assert_eq!(row(&averages, "tests: unknown").memory, None);
    let key = SortKey::CpuMemoryUsage;
    let names: Vec<String> = averages
        .sort_by(key)
        .rows
        .into_iter()
        .map(|row| row.name)
        .collect();
    assert_eq!(names, ["tests: outer", "tests: inner", "tests: unknown"]);
}

#[test]
fn a_trace_without_an_activity_has_none_of_its_columns() {
    let sample = || {
        let mut sample = Sample::new();
        sample.options = SessionOptions::DEFAULT;
        sample.ms("tests: work", 0, 0.0, 1.0);
        sample
    };
    let mut cpu_only = sample();
    cpu_only.options.cuda = false;
    let cpu_only = cpu_only.trace().key_averages().to_string();
    assert!(
        cpu_only.contains("Self CPU") && !cpu_only.contains("CUDA"),
        "{cpu_only}"
    );
    assert!(
        !cpu_only.contains("Mem") && !cpu_only.contains("Shapes"),
        "{cpu_only}"
    );

    let mut cuda_only = sample();
    cuda_only.options.cpu = false;
    cuda_only.gpu(stream(0), 0, 5e3, 5e3);
    let averages = cuda_only.trace().key_averages();
    assert_eq!(averages.self_cpu_time_total_ns, None);
    assert_eq!(row(&averages, "tests: work").cpu, None);
    let cuda_only = averages.to_string();
    assert!(
        cuda_only.contains("Self CUDA") && !cuda_only.contains("CPU"),
        "{cuda_only}"
    );
}

#[test]
fn what_a_window_lacks_stands_under_the_table() {
    let mut trace = Sample::new().trace();
    trace.meta.truncation.over_capacity = 12;
    trace.meta.truncation.cut_short = true;
    trace.meta.no_cuda_reason = Some("the CUDA driver found no device".to_owned());
    let table = format!("{:#}", trace.key_averages());
    for line in [
        "\n12 scopes came after the window was full: raise its capacity (PROFILER_TRACE_CAPACITY, or `capacity` in the code), or record fewer steps\n",
        "\nthe session ended before the window was complete: it has fewer steps than the schedule asks for\n",
        "\nno GPU times: the CUDA driver found no device\n",
        "\nno scope began and ended in the window: measure what runs in it, and see that measuring is on\n",
    ] {
        assert!(table.contains(line), "{table}");
    }
}

#[test]
fn an_empty_window_says_why_measuring_was_off() {
    let reason = "PROFILER_ENABLED turns measuring off: set PROFILER_ENABLED=1";
    let mut trace = Sample::new().trace();
    trace.meta.why_off = Some(reason);
    let expected = format!("no scope began and ended in the window: {reason}");
    let table = format!("{:#}", trace.key_averages());
    assert_eq!(table.matches("no scope began").count(), 1, "{table}");
    assert!(table.contains(&format!("\n{expected}\n")), "{table}");
    assert!(trace.timeline().missing.contains(&(expected, 0)));
}

fn edges(edges: &[CallEdge]) -> Vec<(Option<&str>, &str, u64, u64)> {
    edges
        .iter()
        .map(|edge| {
            let caller = edge.caller.as_deref();
            (
                caller,
                edge.callee.as_str(),
                edge.calls,
                edge.primitive_calls,
            )
        })
        .collect()
}

#[test]
fn callers_and_callees_are_told_with_their_times() {
    let mut sample = Sample::new();
    let main = sample.ms("tests: main", 0, 0.0, 100.0);
    let walk = sample.ms("tests: walk", main, 10.0, 50.0);
    let walk = sample.ms("tests: walk", walk, 20.0, 30.0);
    sample.ms("tests: walk", walk, 25.0, 20.0);
    sample.gpu(stream(0), 0, 7.0, 7.0);
    let averages = sample.trace().key_averages();
    let walk = averages.clone().restrict("walk").expect("a pattern");
    let callers = walk.callers().edges;
    assert_eq!(
        edges(&callers),
        [
            (Some("tests: main"), "tests: walk", 1, 1),
            (Some("tests: walk"), "tests: walk", 2, 1),
        ]
    );
    let [from_main, from_itself] = [&callers[0], &callers[1]].map(|edge| edge.cpu.expect("times"));
    close(from_main.total_ns, 50e6);
    close(from_main.self_ns, 20e6);
    close(from_itself.total_ns, 30e6);
    close(from_itself.self_ns, 30e6);
    assert_eq!(callers[0].cuda, None);
    assert_eq!(callers[1].cuda.map(|cuda| cuda.total_ns), Some(7.0));
    let main = averages.restrict("main").expect("a pattern");
    assert_eq!(edges(&main.callers().edges), [(None, "tests: main", 1, 1)]);
    assert_eq!(
        edges(&main.callees().edges),
        [(Some("tests: main"), "tests: walk", 1, 1)]
    );
}

#[test]
fn no_more_than_a_hundred_rows_are_shown_unless_all_are_wanted() {
    let mut sample = Sample::new();
    for number in 0..120_u64 {
        sample.scope(&format!("tests: row {number}"), 0, number * 10, 5);
    }
    let averages = sample.trace().key_averages();
    let shown = |options: &TableOptions| averages.table(options).matches("tests: row ").count();
    assert_eq!(shown(&TableOptions::new()), 100);
    assert!(averages.to_string().contains("\n… and 20 more\n"));
    assert_eq!(shown(&TableOptions::new().row_limit(None)), 120);
    assert_eq!(shown(&TableOptions::new().row_limit(7)), 7);
}

#[test]
fn calls_without_cpu_times_are_calls() {
    let mut sample = Sample::new();
    let outer = sample.ms("tests: untimed", 0, 0.0, 10.0);
    sample.last().has_cpu = false;
    sample.gpu(stream(0), 0, 100.0, 40.0);
    let middle = sample.ms("tests: plain", outer, 1.0, 8.0);
    sample.last().has_cpu = false;
    sample.extra(memory(10, 20, None));
    sample.ms("tests: untimed", middle, 2.0, 6.0);
    sample.last().has_cpu = false;
    sample.gpu(stream(0), 0, 60.0, 60.0);
    let trace = sample.trace();
    let averages = trace.key_averages();
    let untimed = row(&averages, "tests: untimed");
    let cuda = untimed.cuda.expect("a GPU time");
    assert_eq!((untimed.calls, untimed.primitive_calls), (2, 1));
    assert_eq!((cuda.total_ns, cuda.self_ns), (100.0, 100.0));
    let plain = row(&averages, "tests: plain");
    assert_eq!((plain.calls, &plain.cpu, &plain.cuda), (1, &None, &None));
    assert_eq!(plain.memory.map(|memory| memory.cpu_net), Some(10));
    let callers = averages.callers().edges;
    assert!(callers.iter().all(|edge| edge.cpu.is_none()));
    assert!(
        edges(&callers).contains(&(Some("tests: plain"), "tests: untimed", 1, 1)),
        "{callers:?}"
    );
    assert!(
        trace
            .timeline()
            .slices
            .iter()
            .all(|slice| slice.kind == SliceKind::GpuScope),
        "no file shows them"
    );
}

#[test]
fn work_counts_once_in_a_gpu_time_in_its_call_or_in_a_row() {
    let mut sample = Sample::new();
    let outer = sample.ms("tests: outer", 0, 0.0, 1.0);
    sample.work("kernel", true, 0, (1_000, 1_500), GpuWork::default());
    sample.ms("tests: timed", outer, 0.1, 0.5);
    sample.gpu(stream(0), 2_000, 400.0, 400.0);
    sample.work("inside", true, 150_000, (2_100, 2_300), GpuWork::default());
    sample.work(
        "other stream",
        true,
        160_000,
        (3_000, 3_070),
        GpuWork::default(),
    );
    sample.work.work.last_mut().expect("work").stream_key = Some(stream(1));
    sample.ms("tests: untimed", outer, 0.7, 0.2);
    sample.work("kernel", true, 750_000, (4_000, 4_030), GpuWork::default());
    sample.work(
        "outside",
        false,
        990_000,
        (5_000, 5_020),
        GpuWork::default(),
    );
    let trace = sample.trace();
    let averages = trace.key_averages();
    let mut rows: Vec<_> = averages
        .rows
        .iter()
        .map(|row| {
            (
                &*row.name,
                row.cuda.map(|cuda| (cuda.total_ns, cuda.self_ns)),
            )
        })
        .collect();
    rows.sort_by_key(|row| row.0);
    assert_eq!(
        rows,
        [
            ("other stream", Some((70.0, 70.0))),
            ("outside", Some((20.0, 20.0))),
            ("tests: outer", Some((600.0, 500.0))),
            ("tests: timed", Some((400.0, 400.0))),
            ("tests: untimed", Some((30.0, 30.0))),
        ]
    );
    assert_eq!(averages.self_cuda_time_total_ns, Some(1_020.0));
    let calls = ["tests: outer", "tests: untimed"].map(|name| {
        let row = row(&averages, name);
        (row.calls, row.cuda.map(|cuda| cuda.calls))
    });
    assert_eq!(calls, [(1, Some(1)); 2]);
}
