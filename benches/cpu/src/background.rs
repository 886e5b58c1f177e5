//! What the profiler's threads do while a program logs calls, or is idle: how often they wake up, and for how long they run.

use std::env;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use bench_harness::background::{Activity, Goal, Goals, during, idle, paced};
use bench_harness::process::{again, hand_over, measured};
use bench_harness::{Options, Outcome, Report, median};
use profiler_runtime::log::LogError;
use profiler_runtime::{Profile, ScalarLogger, TensorBoardLogger, measure_execution_time};

/// Tells a process which program to be.
const CHILD: &str = "CPU_BENCH_BACKGROUND";
/// The folder of the TensorBoard log.
const FOLDER: &str = "CPU_BENCH_FOLDER";

/// The calls in a second.
const RATE: u64 = 10_000;
const LENGTH: Duration = Duration::from_secs(10);
/// How long the threads may take to come to rest.
const SETTLING: Duration = Duration::from_secs(3);
/// The processes of each program, unless `--rounds` is given.
const PROCESSES: usize = 3;

struct Program {
    name: &'static str,
    run: fn() -> Outcome<Activity>,
    goal: Goal,
}

const ASLEEP: Goal = Goal {
    wakeups: 0.0,
    per_call: None,
};

const PROGRAMS: [Program; 5] = [
    Program {
        name: "idle, a session records",
        run: || idle_in_session(1 << 20),
        goal: ASLEEP,
    },
    Program {
        name: "idle, the session's window is full",
        run: || idle_in_session(10),
        goal: ASLEEP,
    },
    Program {
        name: "idle after the last logged call",
        run: || {
            paced(RATE, Duration::from_secs(1), to_nothing);
            thread::sleep(SETTLING);
            during(|| idle(LENGTH))
        },
        goal: ASLEEP,
    },
    Program {
        name: "10,000 calls/s to a logger that does nothing",
        run: || at_the_rate(to_nothing),
        goal: Goal {
            wakeups: 25.0,
            per_call: Some(200.0),
        },
    },
    Program {
        name: "10,000 calls/s to TensorBoard",
        run: || at_the_rate(to_tensorboard),
        goal: Goal {
            wakeups: 25.0,
            per_call: Some(450.0),
        },
    },
];

/// Measures each program in processes of its own, and compares the medians with the goals.
pub(crate) fn measure(options: &Options) -> Outcome<()> {
    if let Ok(name) = env::var(CHILD) {
        let program = PROGRAMS.iter().find(|program| program.name == name);
        let program = program.ok_or("there is no such program")?;
        return hand_over(&(program.run)()?);
    }
    let mut report = Report::begin();
    let processes = options.rounds.unwrap_or(PROCESSES);
    let folder = env::temp_dir().join(format!("cpu-bench-{}", std::process::id()));
    let mut goals = Goals::new("the threads of the profiler, beside the program's");
    for program in &PROGRAMS {
        let mut command = again()?;
        // Without a search for a driver.
        command
            .env(CHILD, program.name)
            .env(FOLDER, &folder)
            .env("PROFILER_BACKEND", "cpu");
        let activities: Outcome<Vec<Activity>> =
            (0..processes).map(|_| measured(&mut command)).collect();
        let activities = activities?;
        let of = |figure: fn(&Activity) -> f64| {
            median(&activities.iter().map(figure).collect::<Vec<_>>())
        };
        let per_call: Option<Vec<f64>> = activities.iter().map(|of| of.per_call).collect();
        let activity = Activity {
            wakeups: of(|activity| activity.wakeups),
            microseconds: of(|activity| activity.microseconds),
            per_call: per_call.map(|figures| median(&figures)),
        };
        goals.add(program.name, activity, Some(program.goal));
    }
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let (table, outcome) = goals.end();
    report.show(table);
    report.end(options)?;
    outcome
}

fn idle_in_session(capacity: usize) -> Outcome<Activity> {
    let session = Profile::builder().capacity(capacity).start()?;
    paced(RATE, Duration::from_secs(1), unlogged);
    thread::sleep(SETTLING);
    let activity = during(|| idle(LENGTH));
    session.stop();
    activity
}

fn at_the_rate(call: fn(u64)) -> Outcome<Activity> {
    paced(RATE, Duration::from_secs(1), call);
    let activity = during(|| paced(RATE, LENGTH, call));
    let dropped = profiler_runtime::flush(Duration::from_secs(10)).dropped;
    if dropped > 0 {
        return Err(format!("{dropped} entries were dropped").into());
    }
    activity
}

#[inline(never)]
#[measure_execution_time]
fn unlogged(_: u64) {}

/// A logger that does nothing.
struct Nothing;

impl ScalarLogger for Nothing {
    fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
        std::hint::black_box((tag, value, step));
        Ok(())
    }
}

static NOTHING: Nothing = Nothing;

#[inline(never)]
#[measure_execution_time(log = &NOTHING)]
fn to_nothing(_: u64) {}

static TENSORBOARD: LazyLock<Arc<TensorBoardLogger>> = LazyLock::new(|| {
    let folder = env::var_os(FOLDER).expect("the first process sets it");
    Arc::new(TensorBoardLogger::new(folder).expect("a folder of the bench's own"))
});

#[inline(never)]
#[measure_execution_time(log = TENSORBOARD)]
fn to_tensorboard(_: u64) {}
