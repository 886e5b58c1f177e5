//! What the profiler's threads do in a program with GPU times that is idle, and while its device falls behind.

use std::thread;
use std::time::Duration;

use bench_harness::background::{Activity, Goal, Goals, during, idle, paced};
use bench_harness::{Options, Outcome, Report, Table};

use crate::device::Gpu;
use crate::variants::on_stream;

/// Tells a process which program to be.
pub(crate) const PROGRAM: &str = "GPU_BENCH_BACKGROUND";

/// The calls in a second.
const RATE: u64 = 5_000;
const LENGTH: Duration = Duration::from_secs(10);
/// The thread that samples idle times rests some time after the last open scope.
const SETTLING: Duration = Duration::from_secs(15);

struct Program {
    name: &'static str,
    /// The variables of the process.
    environment: &'static [(&'static str, &'static str)],
    run: fn() -> Outcome<Activity>,
    goal: f64,
}

const PROGRAMS: [Program; 2] = [
    Program {
        name: "idle after the last open scope",
        environment: &[],
        run: || {
            calls(Duration::from_secs(1));
            thread::sleep(SETTLING);
            during(|| idle(LENGTH))
        },
        goal: 0.0,
    },
    Program {
        name: "5,000 calls/s with 64 pairs and kernels of 5 ms",
        environment: &[("PROFILER_CUDA_EVENTS", "64")],
        run: || {
            let gpu = Gpu::here();
            gpu.simulator.run("kernel empty_0ns 5ms")?;
            calls(Duration::from_secs(1));
            let activity = during(|| calls(LENGTH));
            let lost = profiler_runtime::summary().cuda.lost;
            if lost.iter().all(|(_, calls)| *calls == 0) {
                return Err("the device kept up with the calls".into());
            }
            activity
        },
        goal: 100.0,
    },
];

fn calls(time: Duration) -> u64 {
    let gpu = Gpu::here();
    paced(RATE, time, |call| {
        gpu.launch();
        on_stream(&gpu.stream, call);
    })
}

/// Measures each program in a process that `on_the_driver` starts, and compares it with its goal.
pub(crate) fn measure(
    options: &Options,
    on_the_driver: impl Fn(&[(&str, &str)]) -> Outcome<Activity>,
) -> Outcome<()> {
    let mut report = Report::begin();
    let mut goals = Goals::new("the threads of the profiler, beside the program's");
    for program in &PROGRAMS {
        let environment = [&[(PROGRAM, program.name)], program.environment].concat();
        let activity = on_the_driver(&environment)?;
        let goal = Goal {
            wakeups: program.goal,
            per_call: None,
        };
        goals.add(program.name, activity, Some(goal));
    }
    let (table, outcome): (Table, _) = goals.end();
    report.show(table);
    report.end(options)?;
    outcome
}

/// Runs a program in this process.
pub(crate) fn child(name: &str) -> Outcome<Activity> {
    let program = PROGRAMS.iter().find(|program| program.name == name);
    let program = program.ok_or("there is no such program")?;
    (program.run)()
}
