//! Each kernel, copy and fill of a window stands under the scope that launched it, with the times of the device.

use std::sync::Arc;
use std::thread;

use cudarc::driver::{CudaGraph, CudaSlice, CudaStream};
use profiler_runtime::cuda::{KernelStatus, kernel_status};
use profiler_runtime::{MeasureFuture, Trace, init, scope};
use profiler_tests::gpu::{OnDriver, cupti_of_driver, driver, on_threads};
use profiler_tests::poll;

use crate::support::kernels::{Program, Work, assert_scopes, assert_times, found};

/// Larger than any copy or fill.
const BYTES: usize = 1 << 20;

/// Runs the test with the simulated CUPTI of each release, whose records have different layouts.
fn with_cupti<const N: usize>(releases: [&'static str; N]) -> OnDriver {
    // The records are then on one time line with the scopes.
    let driver = driver().script("clock real").set_up(cupti_of_driver);
    let driver = driver.each(releases, |driver, release| {
        let release = *release;
        driver.installed(move |of| of.cupti_release(release))
    });
    driver.then(|ran| {
        let (cupti, told) = (&ran.report.cupti, &ran.told);
        assert!(!cupti.subscribed, "{told}: {cupti:?}");
        let enabled = (cupti.callbacks_enabled, cupti.kinds_enabled.len());
        assert_eq!(enabled, (0, 0), "{told}");
        assert_eq!(ran.report.calls.get("cuptiFinalize"), None, "{told}");
    })
}

fn assert_complete(trace: &Trace) {
    assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
    assert!(trace.lost_work().is_complete(), "{:?}", trace.lost_work());
}

/// A source of numbers that look random and are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// The objects that one thread of a program works with.
struct Lane<'p> {
    program: &'p Program,
    dice: Dice,
    streams: [Arc<CudaStream>; 2],
    memory: CudaSlice<u8>,
    graph: CudaGraph,
    nodes: Vec<u64>,
}

impl<'p> Lane<'p> {
    fn new(program: &'p Program, seed: u64) -> Self {
        let streams = [(); 2].map(|()| program.gpu.stream());
        let (graph, nodes) = program.capture(&streams[0], 3);
        // SAFETY: the device writes it, and nothing reads it.
        let memory = unsafe { streams[0].alloc(BYTES) };
        Self {
            program,
            dice: Dice(seed),
            memory: memory.expect("there is memory"),
            streams,
            graph,
            nodes,
        }
    }

    /// Launches something, or opens a scope and launches more inside, until `depth` scopes are open.
    fn work(&mut self, scope: Option<&'static str>, depth: u32) {
        let rounds = 2 + self.dice.roll(4);
        for _ in 0..rounds {
            let stream = Arc::clone(&self.streams[usize::from(self.dice.roll(2) == 0)]);
            match self.dice.roll(9) {
                0 | 1 => self.program.kernel(&stream, scope),
                2 => self.program.copy(&stream, &mut self.memory, scope),
                3 => self.program.fill(&stream, &mut self.memory, scope),
                4 => self.program.replay(&self.graph, &self.nodes, scope),
                5 if depth > 0 => {
                    let _open = scope!("forward");
                    self.work(Some("forward"), depth - 1);
                }
                6 if depth > 0 => {
                    let _open = scope!("backward", stream = &stream);
                    self.work(Some("backward"), depth - 1);
                }
                7 if depth > 0 => {
                    let _open = scope!("optimizer");
                    self.work(Some("optimizer"), depth - 1);
                }
                _ => stream.synchronize().expect("nothing failed"),
            }
        }
    }
}

#[test(on = with_cupti(["11.8", "12.0", "12.4", "12.9", "13.0", "13.5"]))]
fn threads_streams_graphs_and_copies_in_nested_scopes_are_told_apart() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let trace = program.record(|program| {
        on_threads(0..4, |seed| {
            let bound = program.gpu.context.bind_to_thread();
            bound.expect("nothing failed");
            let mut lane = Lane::new(program, seed);
            for _ in 0..8 {
                lane.work(None, 4);
            }
            lane.streams
                .iter()
                .for_each(|stream| stream.synchronize().expect("nothing failed"));
        });
    });
    assert_complete(&trace);
    let found = found(&trace);
    assert!(found.len() > 100, "{}", found.len());
    assert_scopes(&found, &program);
    assert_times(&found);
}

#[test(on = with_cupti(["12.8"]))]
fn a_future_that_moves_between_threads_has_the_kernels_of_all_its_polls() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let trace = program.record(|program| {
        let mut future = Box::pin(
            async {
                for _ in 0..4 {
                    program.kernel(&stream, Some("future"));
                    {
                        let _inside = scope!("inside");
                        program.kernel(&stream, Some("inside"));
                    }
                    poll::yields(1).await;
                }
            }
            .measure_execution_time("future"),
        );
        let mut is_over = false;
        while !is_over {
            std::thread::scope(|threads| {
                let poll = || {
                    program
                        .gpu
                        .context
                        .bind_to_thread()
                        .expect("nothing failed");
                    let _caller = scope!("executor");
                    program.kernel(&stream, Some("executor"));
                    poll::poll_once(future.as_mut()).is_ready()
                };
                is_over = threads.spawn(poll).join().expect("no panic");
            });
            program.kernel(&stream, None);
        }
    });
    assert_complete(&trace);
    let found = found(&trace);
    assert_scopes(&found, &program);
    assert_times(&found);
}

#[test(on = with_cupti(["12.8", "13.0"]))]
fn each_replay_of_a_graph_stands_under_the_scope_that_replayed_it() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let stream = program.gpu.stream();
    let (graph, nodes) = program.capture(&stream, 5);
    let trace = program.record(|program| {
        for _ in 0..3 {
            let _scope = scope!("first");
            program.replay(&graph, &nodes, Some("first"));
        }
        {
            let _scope = scope!("second");
            program.replay(&graph, &nodes, Some("second"));
        }
        program.replay(&graph, &nodes, None);
    });
    assert_complete(&trace);
    let found = found(&trace);
    assert_eq!(found.len(), 25);
    assert!(found.iter().all(|found| found.is_of_graph));
    assert_scopes(&found, &program);
    assert_times(&found);
}

#[test(on = with_cupti(["12.8"]))]
fn threads_without_scopes_that_launch_much_are_named() {
    let _profiler = init().expect("set up");
    let notes_of = |kernels: usize| {
        let program = Program::new();
        let trace = program.record(|program| {
            let stream = program.gpu.stream();
            {
                let _scope = scope!("measured");
                (0..10).for_each(|_| program.kernel(&stream, Some("measured")));
            }
            thread::scope(|threads| {
                let feeder = thread::Builder::new().name("feeder".to_owned());
                let feed = || (0..kernels).for_each(|_| program.kernel(&stream, None));
                feeder.spawn_scoped(threads, feed).expect("a thread");
            });
        });
        let notes: Vec<String> = trace.kernel_notes().map(str::to_owned).collect();
        notes
    };
    let notes = notes_of(10);
    let [note] = &notes[..] else {
        panic!("{notes:?}")
    };
    assert!(
        note.contains(" % of the device's time was launched by threads that no scope")
            && note.contains(": `feeder` ("),
        "{note}"
    );
    assert_eq!(notes_of(0), [""; 0]);
}

#[test(on = with_cupti(["12.8"]))]
fn a_function_that_launches_on_a_stream_that_no_scope_names_is_noted() {
    let _profiler = init().expect("set up");
    let program = Program::new();
    let trace = program.record(|program| {
        let (named, other) = (program.gpu.stream(), program.gpu.stream());
        for _ in 0..3 {
            let _scope = scope!("noted: names its stream", stream = &named);
            program.kernel(&named, Some("noted: names its stream"));
            let _scope = scope!("noted: names none");
            program.kernel(&named, Some("noted: names none"));
            program.kernel(&other, Some("noted: names none"));
        }
    });
    assert_complete(&trace);
    let notes = trace.key_averages().notes;
    let [note] = &notes[..] else {
        panic!("{notes:?}");
    };
    let begin = "`noted: names none` launched 3 kernels, copies and fills (";
    assert!(note.starts_with(begin), "{note}");
    assert!(!note.contains("noted: names its stream"), "{note}");
}

#[test(on = with_cupti(["12.8"]))]
fn the_second_window_of_a_process_is_as_complete_as_the_first() {
    let _profiler = init().expect("set up");
    let mut all = Vec::new();
    let (program, stream);
    {
        program = Program::new();
        stream = program.gpu.stream();
    }
    for _ in 0..3 {
        let trace = program.record(|program| {
            let _scope = scope!("window");
            (0..50).for_each(|_| program.kernel(&stream, Some("window")));
        });
        assert_complete(&trace);
        assert_eq!(trace.kernel_notes().count(), 0);
        assert!(matches!(kernel_status(), KernelStatus::Ready { .. }));
        all.extend(found(&trace));
        // No session records this.
        program.gpu.spin(&stream, 77);
    }
    assert_scopes(&all, &program);
    assert!(!all.iter().any(|found| found.work == Work::Kernel(77)));
}
