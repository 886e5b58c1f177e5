//! Statistics and logs do not depend on sessions: on their number, nor on the data that they record.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use profiler_runtime::report::Row;
use profiler_runtime::session::ProfileBuilder;
use profiler_runtime::{MeasureFuture, Profile, Schedule, Trace, flush, scope, summary};
use profiler_tests::kept::Kept;
use profiler_tests::poll;
use profiler_tests::stop;
use profiler_tests::work;

const PATIENCE: Duration = Duration::from_secs(60);

fn recurse(label: &str, depth: u32) {
    let _scope = scope!(format!("{label}: recursive"));
    if depth > 0 {
        recurse(label, depth - 1);
    }
}

/// Makes an identical series of calls each time, under separate names.
fn program(label: &str, logger: &Arc<Kept>, step: impl Fn()) {
    for round in 0..30_u64 {
        let _outer = scope!(
            format!("{label}: outer"),
            log = Arc::clone(logger),
            log_every = 3
        );
        recurse(label, 4);
        poll::run(
            async { poll::yields(3).await }.measure_execution_time(format!("{label}: future")),
        );
        let never_done = poll::yields(5).measure_execution_time(format!("{label}: dropped"));
        let mut never_done = Box::pin(never_done);
        let _ = poll::poll_once(never_done.as_mut());
        let panics = std::panic::catch_unwind(|| {
            let _scope = scope!(format!("{label}: panics"));
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panics.is_err());
        let own = label.to_owned();
        let thread = thread::spawn(move || {
            let _scope = scope!(format!("{own}: on a thread"), global_step = round);
            work(20);
        });
        thread.join().expect("it ends");
        step();
    }
}

const NAMES: [&str; 6] = [
    "outer",
    "recursive",
    "future",
    "dropped",
    "panics",
    "on a thread",
];

/// All that does not depend on how long things took.
fn counts(label: &str) -> Vec<(String, [u64; 6])> {
    let summary = summary();
    let of = |row: &Row| {
        [
            row.calls,
            row.panicked,
            row.dropped_futures,
            row.dropped_entries,
            row.out_of_order,
            row.without_cuda,
        ]
    };
    NAMES
        .iter()
        .map(|name| {
            let row = summary.row(&format!("{label}: {name}"));
            ((*name).to_owned(), row.map_or([0; 6], of))
        })
        .collect()
}

fn everything() -> ProfileBuilder {
    Profile::builder()
        .record_shapes(true)
        .profile_memory(true)
        .with_stack(true)
}

#[test(measuring)]
fn counts_and_logs_are_the_same_beside_any_sessions() {
    let mut seen = Vec::new();
    let quick = |_: &Trace| ();
    for (label, builders) in [
        ("none", vec![]),
        ("one", vec![Profile::builder()]),
        (
            "several",
            vec![
                everything(),
                everything()
                    .capacity(10)
                    .schedule(Schedule::new().wait(1).warmup(1).active(2)),
                Profile::builder()
                    .schedule(Schedule::new().active(1))
                    .on_trace_ready(quick),
                Profile::builder()
                    .schedule(Schedule::new().active(3))
                    .on_trace_ready(|_: &Trace| -> () { panic!("as asked") }),
            ],
        ),
        ("none again", vec![]),
    ] {
        let sessions: Vec<Profile> = builders
            .into_iter()
            .map(|builder| builder.start().expect("started"))
            .collect();
        let logger = Arc::new(Kept::default());
        program(label, &logger, || sessions.iter().for_each(Profile::step));
        for session in &sessions {
            stop(session);
        }
        assert_eq!(flush(PATIENCE).left, 0);
        seen.push((counts(label), logger.steps(&format!("{label}: outer"))));
    }
    let without = seen[0].clone();
    assert_eq!(without.0[0].1[0], 30, "{without:?}");
    assert_eq!(without.1.len(), 10, "{without:?}");
    for with in &seen[1..] {
        assert_eq!(*with, without);
    }
}

#[test(measuring)]
fn a_session_beside_others_has_what_it_would_have_alone() {
    let made = |label: &str, beside: usize| {
        let others: Vec<Profile> = (0..beside)
            .map(|index| everything().capacity(index + 1).start().expect("started"))
            .collect();
        let logger = Arc::new(Kept::default());
        let ((), trace) = Profile::builder().run(|_| program(label, &logger, || ()));
        let trace = trace.expect("a window");
        drop(others);
        let mut events: Vec<String> = trace
            .events()
            .map(|event| {
                let parents: Vec<&str> = event.stack().map(|frame| frame.name).collect();
                assert_eq!(
                    (event.memory(), event.shapes()),
                    (None, None),
                    "not asked for"
                );
                format!("{} in {parents:?}, {}", event.name(), event.has_panicked())
                    .replace(label, "")
            })
            .collect();
        // Threads are numbered by the system.
        events.sort();
        assert!(trace.truncation().is_complete(), "{:?}", trace.truncation());
        events
    };
    let by_itself = made("by itself", 0);
    assert_eq!(by_itself.len(), 30 * 10);
    assert_eq!(made("beside", 3), by_itself);
}

#[test(measuring)]
fn sessions_that_come_and_go_on_many_threads_have_their_own_scopes() {
    let threads: Vec<_> = (0..6)
        .map(|thread| {
            thread::spawn(move || {
                for round in 0..40_usize {
                    let name = format!("come and go: {thread}");
                    let ((), trace) = Profile::builder().run(|_| {
                        for _ in 0..round {
                            drop(scope!(&name));
                        }
                    });
                    let trace = trace.expect("a window");
                    let own = trace.events().filter(|event| event.name() == name);
                    assert_eq!(own.count(), round);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("each had its own");
    }
}
