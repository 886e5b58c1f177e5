//! Twelve programs with one fault each: the verdict names the function and the cause. Nine of them are real programs too, in
//! `tests/tests/gpu/idle_causes.rs`; the default stream, the second device and the ranks are only drawn.

use super::tests::Drawn;
use crate::gpu_work::{GpuWorkKind, MemoryCopy};
use crate::timeline::Timeline;

/// A program: a thread and a stream of one device, in microseconds.
struct Program {
    drawn: Drawn,
    main: u32,
    stream: u32,
}

impl Program {
    fn new() -> Self {
        let mut drawn = Drawn::new(0);
        let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
        Self {
            drawn,
            main,
            stream,
        }
    }

    fn scope(&mut self, name: &str, span: (i64, i64)) -> u32 {
        let call = self.drawn.scope(self.main, name, span, None);
        let name = self.drawn.0.slices[call as usize].name;
        self.drawn.0.names[name as usize].location = format!("src/main.rs:{name}").into();
        call
    }

    /// A call of CUDA in a scope.
    fn call(&mut self, name: &str, scope: u32, span: (i64, i64)) -> u32 {
        let launch = self.drawn.launch(self.main, span);
        let name = self.drawn.name(name);
        let call = &mut self.drawn.0.launches[launch as usize];
        (call.name, call.parent) = (name, Some(scope));
        launch
    }

    /// A kernel that a call of five microseconds in a scope launches.
    fn kernel(&mut self, name: &str, scope: u32, called: i64, span: (i64, i64)) {
        let launch = self.call("cuLaunchKernel", scope, (called, called + 5));
        self.work(name, launch, span);
    }

    fn work(&mut self, name: &str, launch: u32, span: (i64, i64)) {
        self.drawn.work(self.stream, span, Some(launch));
        let name = self.drawn.name(name);
        let parent = self.drawn.0.launches[launch as usize].parent;
        let slice = self.drawn.0.slices.last_mut().expect("the work");
        (slice.name, slice.parent) = (name, parent);
    }

    /// The thread slept, or waited for something, in all of a span, and ran until the next one at another time.
    fn off_processor(&mut self, spans: &[(i64, i64)]) {
        let mut samples = vec![(0, 0, 0)];
        for (from, to) in spans {
            let (at, running, _) = samples[samples.len() - 1];
            let running = running + from - at;
            samples.extend([(*from, running, 0), (*to, running, 0)]);
        }
        self.drawn.processor(self.main, &samples);
    }

    /// The text of `profiler explain`.
    fn explained(self) -> String {
        let Timeline { slices, .. } = &self.drawn.0;
        let ends = slices
            .iter()
            .map(|slice| slice.start_ns + slice.duration_ns);
        let duration_ns = ends.max().expect("slices");
        let idle = Timeline {
            duration_ns,
            ..self.drawn.0
        }
        .gpu_idle();
        idle.table(&crate::TableOptions::new())
    }
}

/// A span that comes again.
fn times(many: i64, every: i64, (from, to): (i64, i64)) -> Vec<(i64, i64)> {
    let begins = (0..many).map(|step| step * every);
    begins.map(|at| (at + from, at + to)).collect()
}

fn slow_loader() -> String {
    let mut program = Program::new();
    for at in (0..10).map(|step| step * 1000) {
        program.scope("load_batch", (at, at + 600));
        let forward = program.scope("forward", (at + 600, at + 650));
        program.kernel("gemm", forward, at + 610, (at + 620, at + 970));
    }
    program.off_processor(&times(10, 1000, (10, 590)));
    program.explained()
}

fn tiny_launches() -> String {
    let mut program = Program::new();
    for at in (0..50).map(|step| step * 20) {
        let layer = program.scope("layer", (at, at + 18));
        let launch = program.call("cuLaunchKernel", layer, (at + 2, at + 16));
        program.work("add", launch, (at + 16, at + 19));
    }
    program.explained()
}

fn blocking_copies() -> String {
    let mut program = Program::new();
    for at in (0..10).map(|step| step * 500) {
        let forward = program.scope("forward", (at, at + 50));
        program.kernel("gemm", forward, at + 10, (at + 20, at + 120));
        let download = program.scope("download", (at + 50, at + 300));
        let copy = program.call("cuMemcpyDtoH_v2", download, (at + 60, at + 290));
        program.work("Memcpy DtoH", copy, (at + 120, at + 285));
        let work = program.drawn.0.work.last_mut().expect("the copy");
        work.kind = GpuWorkKind::Memcpy(MemoryCopy::default());
        program.scope("metrics", (at + 300, at + 490));
    }
    program.explained()
}

fn lock() -> String {
    let mut program = Program::new();
    let other = program.drawn.thread(2);
    for at in (0..10).map(|step| step * 1000) {
        program.scope("cached", (at, at + 800));
        program.drawn.scope(other, "evict", (at, at + 790), None);
        let forward = program.scope("forward", (at + 800, at + 850));
        program.kernel("gemm", forward, at + 810, (at + 820, at + 980));
    }
    program.off_processor(&times(10, 1000, (5, 795)));
    program.explained()
}

fn one_long_kernel() -> String {
    let mut program = Program::new();
    for at in (0..10).map(|step| step * 1000) {
        let forward = program.scope("forward", (at, at + 50));
        program.kernel("softmax", forward, at, (at + 10, at + 20));
        program.kernel("attention", forward, at + 5, (at + 20, at + 1000));
    }
    program.explained()
}

fn default_stream() -> String {
    let mut program = Program::new();
    let streams = [program.stream, program.drawn.stream(0, 8)];
    for at in (0..10).map(|step| 50 + step * 100) {
        let encode = program.scope("encode", (at - 40, at));
        for (place, stream) in streams.into_iter().enumerate() {
            program.stream = stream;
            let begin = at + 50 * i64::try_from(place).expect("few");
            program.kernel("resize", encode, at - 30, (begin, begin + 50));
        }
    }
    program.explained()
}

fn starved_second_device() -> String {
    let mut program = Program::new();
    let streams = [program.stream, program.drawn.stream(1, 7)];
    for at in (0..10).map(|step| step * 1000) {
        let forward = program.scope("forward", (at, at + 50));
        program.stream = streams[0];
        program.kernel("gemm", forward, at, (at + 10, at + 1010));
        program.scope("next_shard", (at + 60, at + 900));
        let second = program.scope("second", (at + 900, at + 920));
        program.stream = streams[1];
        program.kernel("gemm", second, at + 905, (at + 912, at + 1000));
    }
    program.explained()
}

fn checkpoint_every_few_steps() -> String {
    let mut program = Program::new();
    let mut at = 0;
    for step in 0..30 {
        let forward = program.scope("forward", (at, at + 90));
        program.kernel("gemm", forward, at, (at + 5, at + 100));
        at += 100;
        if step % 10 == 9 && step < 29 {
            program.scope("save_checkpoint", (at, at + 1500));
            at += 1500;
        }
    }
    program.explained()
}

fn synchronisation_in_the_loop() -> String {
    let mut program = Program::new();
    for at in (0..10).map(|step| step * 230) {
        let update = program.scope("update", (at, at + 100));
        program.kernel("adam", update, at + 85, (at + 95, at + 200));
        let log = program.scope("log_loss", (at + 100, at + 215));
        program.call("cuStreamSynchronize", log, (at + 110, at + 205));
    }
    program.explained()
}

/// Two processes: the second one has twice the work, and the first one waits for it in a collective.
fn imbalance_of_ranks() -> String {
    let mut program = Program::new();
    let mut tracks = vec![(program.main, program.stream)];
    tracks.push((program.drawn.thread(1), program.drawn.stream(0, 7)));
    for (rank, (main, stream)) in (0..).zip(&tracks) {
        for track in [*main, *stream] {
            program.drawn.0.tracks[track as usize].rank = Some(rank);
        }
    }
    for at in (0..10).map(|step| step * 1000) {
        for ((main, stream), computes) in tracks.iter().zip([400, 900]) {
            (program.main, program.stream) = (*main, *stream);
            let backward = program.scope("backward", (at, at + 20));
            program.kernel("gemm", backward, at, (at + 10, at + computes));
            let reduce = program.scope("all_reduce", (at + 20, at + 40));
            let span = (at + computes, at + 1000);
            program.kernel("ncclDevKernel_AllReduce_Sum", reduce, at + 25, span);
        }
    }
    program.explained()
}

fn recompilation() -> String {
    let mut program = Program::new();
    let mut at = 0;
    for step in 0..20 {
        let takes = if step % 7 == 5 { 150_000 } else { 5 };
        let forward = program.scope("forward", (at, at + takes + 5));
        let launch = program.call("cuLaunchKernel", forward, (at, at + takes));
        at += takes + 5;
        program.work("gemm", launch, (at, at + 90));
        at += 90;
    }
    program.explained()
}

fn sleeping() -> String {
    let mut program = Program::new();
    for at in (0..10).map(|step| step * 1000) {
        program.scope("poll_queue", (at, at + 900));
        let forward = program.scope("forward", (at + 900, at + 950));
        program.kernel("gemm", forward, at + 910, (at + 920, at + 990));
    }
    program.off_processor(&times(10, 1000, (20, 890)));
    program.explained()
}

/// What is wrong, the program, and what its explanation contains.
type Case = (&'static str, fn() -> String, &'static [&'static str]);

const CASES: [Case; 12] = [
    (
        "a slow loader",
        slow_loader,
        &[
            "GPU 0: `load_batch` keeps the GPU waiting: the GPU was idle for 63 % of the time",
            "(src/main.rs:0)",
            "While the GPU waited for `load_batch`, the thread was off the processor for at least 97 % of the time: it slept, or \
             waited, as for a lock or for I/O.",
        ],
    ),
    (
        "tiny launches",
        tiny_launches,
        &[
            "`layer` keeps the GPU waiting",
            "most of it is in the calls that launch work.",
        ],
    ),
    (
        "blocking copies",
        blocking_copies,
        &[
            "Before 98 % of its idle time, the thread waited in `cuMemcpyDtoH_v2` in `download` (src/main.rs:3), ",
        ],
    ),
    (
        "a lock",
        lock,
        &[
            "`cached` keeps the GPU waiting",
            "While the GPU waited for `cached`, the thread was off the processor for at least 99 % of the time",
            "Meanwhile, another thread was in `evict` for 99 % of that time.",
        ],
    ),
    (
        "one long kernel",
        one_long_kernel,
        &[
            "The GPU limits the program",
            "`attention` in `forward` (src/main.rs:0) took 99 % of its busy time.",
        ],
    ),
    (
        "the default stream",
        default_stream,
        &[
            "The GPU limits the program",
            "`resize` in `encode`",
            "work of another stream had been launched and waited",
            "default stream",
        ],
    ),
    (
        "a starved second device",
        starved_second_device,
        &[
            "GPU 0: The GPU limits the program",
            "GPU 1: `next_shard` keeps the GPU waiting",
        ],
    ),
    (
        "a checkpoint every few steps",
        checkpoint_every_few_steps,
        &[
            "`save_checkpoint` keeps the GPU waiting",
            "half of it in 1 of 29 waits",
        ],
    ),
    (
        "synchronisation in the loop",
        synchronisation_in_the_loop,
        &[
            "`update` keeps the GPU waiting",
            "the thread waited in `cuStreamSynchronize` in `log_loss`",
        ],
    ),
    (
        "imbalance of ranks",
        imbalance_of_ranks,
        &[
            "GPU 0 of rank 1 comes last: it was in collectives for 1.00 ms, ",
            "`ncclDevKernel_AllReduce_Sum` in `all_reduce`",
        ],
    ),
    (
        "recompilation",
        recompilation,
        &[
            "`forward` keeps the GPU waiting",
            "half of it in 2 of 19 waits",
            "150 ms the longest: such a call loads or compiles code",
        ],
    ),
    (
        "sleeping",
        sleeping,
        &[
            "`poll_queue` keeps the GPU waiting",
            "While the GPU waited for `poll_queue`, the thread was off the processor for at least 97 % of the time: it slept, or \
             waited, as for a lock or for I/O.",
        ],
    ),
];

#[test]
fn the_function_and_the_cause_are_named() {
    let mut wrong = Vec::new();
    for (name, program, expected) in CASES {
        let text = program();
        for part in expected.iter().filter(|part| !text.contains(**part)) {
            wrong.push(format!("{name}: no “{part}” in\n{text}"));
        }
        let words = text.split_whitespace().count();
        assert!(words < 1_500, "{name}: {words} words");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
