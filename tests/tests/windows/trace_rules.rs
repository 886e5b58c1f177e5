//! Whatever a program does, its traces are read as they are meant: by Perfetto, TensorBoard's trace plugin and HTA,
//! whose rules the checker knows.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::thread;

use profiler_runtime::report::SliceKind;
use profiler_runtime::session::{Event, ProfileBuilder};
use profiler_runtime::{
    Handle, MeasureFuture, Profile, Schedule, Trace, measure_execution_time, scope,
};
use profiler_tests::measuring;
use profiler_tests::poll;
use profiler_tests::traces::{events, kept_events, of_category, whole_names};
use profiler_tests::work;
use proptest::prelude::*;

/// A trace of what `f` does, and of nothing that other tests do.
fn traced(builder: ProfileBuilder, f: impl FnOnce(&Profile)) -> Arc<Trace> {
    builder.run(|profile| f(profile)).1.expect("a window")
}

#[measure_execution_time(name = "rules: fibonacci")]
fn fibonacci(n: u32) -> u32 {
    if n < 2 {
        n
    } else {
        fibonacci(n - 1) + fibonacci(n - 2)
    }
}

#[measure_execution_time(name = "rules: countdown")]
fn countdown(n: u32) -> u32 {
    if n == 0 { 0 } else { countdown(n - 1) }
}

#[test(measuring)]
fn recursion_threads_and_panics() {
    let trace = traced(Profile::builder().with_stack(true), |_| {
        fibonacci(8);
        countdown(6);
        thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| fibonacci(5));
            }
        });
        let panicked = catch_unwind(|| {
            let _scope = scope!("rules: panics");
            resume_unwind(Box::new(()));
        });
        assert!(panicked.is_err());
    });
    let events = kept_events(&trace, "recursion_threads_and_panics");
    let operators = of_category(&events, "cpu_op");
    assert_eq!(operators.len(), trace.len());
    let panicked: Vec<_> = operators
        .iter()
        .filter(|event| event["args"]["panicked"] == true)
        .collect();
    assert_eq!(panicked.len(), 1);
    assert_eq!(panicked[0]["name"], "rules: panics");
    let stack = panicked[0]["args"]["Call stack"].as_str().expect("a stack");
    assert!(stack.contains("trace_rules"), "{stack}");
}

#[test(measuring)]
fn parents_on_other_threads() {
    let trace = traced(Profile::builder(), |_| {
        let _outer = scope!("rules: outer");
        let parent = Handle::current();
        thread::scope(|threads| {
            for _ in 0..3 {
                threads.spawn(|| {
                    let _inside = parent.enter();
                    let _chunk = scope!("rules: chunk");
                    fibonacci(3);
                });
            }
        });
    });
    kept_events(&trace, "parents_on_other_threads");
    let line = trace.timeline();
    let chunks = line.slices.iter().filter(|slice| {
        let name = &line.names[slice.name as usize];
        &*name.text == "rules: chunk" && slice.kind == SliceKind::Call
    });
    let parents: Vec<_> = chunks
        .map(|chunk| {
            let parent = line.slices[chunk.parent.expect("a parent") as usize];
            assert_ne!(parent.track, chunk.track);
            &*line.names[parent.name as usize].text
        })
        .collect();
    assert_eq!(parents, ["rules: outer"; 3]);
}

#[test(measuring)]
fn futures_on_many_threads() {
    let trace = traced(Profile::builder(), |_| {
        thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    let inner = async {
                        poll::yields(2).await;
                        drop(scope!("rules: in a future"));
                    };
                    poll::run(inner.measure_execution_time("rules: future"));
                    let mut dropped =
                        Box::pin(poll::yields(5).measure_execution_time("rules: dropped"));
                    let _ = poll::poll_once(Pin::as_mut(&mut dropped));
                });
            }
        });
    });
    let events = kept_events(&trace, "futures_on_many_threads");
    let operators = of_category(&events, "cpu_op");
    let futures = operators
        .iter()
        .filter(|event| event["args"]["future"] == true);
    assert_eq!(futures.count(), 8);
    let dropped = operators
        .iter()
        .filter(|event| event["args"]["dropped"] == true);
    assert_eq!(dropped.count(), 4);
    assert_eq!(
        operators.len(),
        trace.len(),
        "polls are shown, and are no operators"
    );
    assert!(of_category(&events, "user_annotation").len() >= 4 * 4);
}

#[test(measuring)]
fn steps_that_end_inside_of_scopes() {
    let three = Schedule::new().active(3).repeat(1);
    let trace = traced(Profile::builder().schedule(three), |profile| {
        for _ in 0..3 {
            let _batch = scope!("rules: batch");
            work(50);
            profile.step();
        }
    });
    let events = kept_events(&trace, "steps_that_end_inside_of_scopes");
    let steps = of_category(&events, "user_annotation");
    let names: Vec<_> = steps
        .iter()
        .filter_map(|step| step["name"].as_str())
        .collect();
    assert_eq!(
        names[..3],
        ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]
    );
    let batches = of_category(&events, "cpu_op");
    let batches = batches
        .iter()
        .filter(|event| event["name"] == "rules: batch");
    assert_eq!(batches.count(), 2, "the third ended after the window");
}

#[test(measuring)]
fn names_that_mean_something_to_a_reader() {
    const NAMES: [&str; 8] = [
        "ProfilerStep#1",
        "app::ProfilerStep",
        "[memory]",
        "Memcpy HtoD",
        "\"rank\": 7",
        "]}",
        "Optimizer.step#Adam",
        "enumerate(DataLoader)#Digits.__next__",
    ];
    let trace = traced(Profile::builder(), |profile| {
        profile.add_metadata("distributedInfo", "\"rank\": 9");
        for name in NAMES {
            drop(scope!(name));
        }
    });
    assert_eq!(of_category(&events(&trace), "cpu_op").len(), NAMES.len());
}

/// An action of one thread.
#[derive(Clone, Copy, Debug)]
enum Act {
    Open,
    CloseLast,
    CloseFirst,
    Work,
    Step,
    Panic,
}

fn act(acts: &[Act], profile: &Profile) {
    let mut guards = Vec::new();
    for act in acts {
        match act {
            Act::Open => guards.push(scope!("rules: random")),
            Act::CloseLast => drop(guards.pop()),
            Act::CloseFirst if guards.is_empty() => {}
            Act::CloseFirst => drop(guards.remove(0)),
            Act::Work => work(1),
            Act::Step => profile.step(),
            Act::Panic => {
                let _ = catch_unwind(AssertUnwindSafe(|| {
                    let _scope = scope!("rules: random");
                    resume_unwind(Box::new(()));
                }));
            }
        }
    }
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => Just(Act::Open),
        3 => Just(Act::CloseLast),
        1 => Just(Act::CloseFirst),
        2 => Just(Act::Work),
        1 => Just(Act::Step),
        1 => Just(Act::Panic),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn random_programs(threads in prop::collection::vec(prop::collection::vec(any_act(), 0..60), 1..4)) {
        if !measuring() {
            return Ok(());
        }
        let trace = traced(Profile::builder(), |profile| {
            thread::scope(|scope| {
                for acts in &threads {
                    scope.spawn(|| act(acts, profile));
                }
            });
        });
        prop_assert_eq!(of_category(&events(&trace), "cpu_op").len(), trace.len());
    }
}

/// A function whose name ends as that of [`named::load`] does.
#[measure_execution_time]
fn load() {}

mod named {
    use profiler_runtime::measure_execution_time;

    #[measure_execution_time]
    pub(super) fn load() {}

    pub(super) struct Batch;

    pub(super) trait Next {
        fn next(&self);
    }

    impl Next for Batch {
        #[measure_execution_time]
        fn next(&self) {}
    }
}

#[test(measuring)]
fn slices_show_the_ends_of_names_and_no_two_look_alike() {
    use named::Next;

    let trace = traced(Profile::builder(), |_| {
        load();
        named::load();
        named::Batch.next();
        drop(scope!("rules::given::name"));
    });
    let events = events(&trace);
    let operators = of_category(&events, "cpu_op");
    let shown: Vec<&str> = operators
        .iter()
        .filter_map(|event| event["name"].as_str())
        .collect();
    let expected = [
        "trace_rules::load",
        "named::load",
        "Next::next",
        "rules::given::name",
    ];
    assert_eq!(shown, expected);
    // With the table they are the names of all other reports.
    let whole = whole_names(&trace, &shown);
    assert!(whole.iter().eq(trace.events().map(Event::name)));
}
