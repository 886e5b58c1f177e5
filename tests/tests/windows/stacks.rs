//! With `with_stack` each scope has the chain of all scopes around it with where they stand, also of those that the
//! window does not hold; with `native_stack` the frames of the program; without, nothing of either.

use profiler_tests::poll;
use profiler_tests::stop;
use std::pin::pin;
use std::sync::mpsc;
use std::thread;

use profiler_runtime::session::{Event, ProfileBuilder};
use profiler_runtime::{MeasureFuture, Profile, Schedule, Trace, measure_execution_time, scope};

fn with_stack() -> ProfileBuilder {
    Profile::builder().with_stack(true)
}

fn stack<'t>(event: &Event<'t>) -> Vec<&'t str> {
    event.stack().map(|frame| frame.name).collect()
}

fn of<'t>(trace: &'t Trace, name: &str) -> Vec<Event<'t>> {
    trace
        .events()
        .filter(|event| event.name() == name)
        .collect()
}

/// The stacks of the scopes of a name.
fn stacks<'t>(trace: &'t Trace, name: &str) -> Vec<Vec<&'t str>> {
    let events = trace.events().filter(|event| event.name() == name);
    events.map(|event| stack(&event)).collect()
}

#[test(measuring)]
fn scopes_that_began_before_the_window_are_in_it_where_they_are_asked_for() {
    let _first = scope!("stacks: first");
    let _second = scope!("stacks: second");
    let inside = || {
        let _third = scope!("stacks: third");
        drop(scope!("stacks: fourth"));
    };
    let ((), trace) = with_stack().run(|_| inside());
    let trace = trace.expect("a window");
    assert_eq!(
        stacks(&trace, "stacks: third"),
        [["stacks: second", "stacks: first"]]
    );
    assert_eq!(
        stacks(&trace, "stacks: fourth"),
        [["stacks: third", "stacks: second", "stacks: first"]]
    );
    let ((), trace) = Profile::builder().run(|_| inside());
    let trace = trace.expect("a window");
    assert_eq!(stacks(&trace, "stacks: third"), [[""; 0]]);
    assert_eq!(stacks(&trace, "stacks: fourth"), [["stacks: third"]]);
}

#[test(measuring)]
fn scopes_that_outlive_the_window_are_in_it_too() {
    let (sender, seen) = mpsc::channel();
    let profile = with_stack()
        .schedule(Schedule::new().active(1))
        .on_trace_ready(move |trace: &Trace| {
            let inside = stacks(trace, "outlived: inside").concat().join(" < ");
            sender.send((inside, stacks(trace, "outlived: epoch").len()))
        })
        .start()
        .expect("started");
    {
        let _epoch = scope!("outlived: epoch");
        for _ in 0..2 {
            drop(scope!("outlived: inside"));
            profile.step();
        }
    }
    stop(&profile);
    let window = ("outlived: epoch".to_owned(), 0);
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        [window.clone(), window, (String::new(), 0)]
    );
}

#[test(measuring)]
fn frames_say_where_their_names_stand() {
    let line = line!() + 1;
    let _outer = scope!("located: outer");
    let ((), trace) = with_stack().run(|_| drop(scope!("located: inner")));
    let trace = trace.expect("a window");
    let event = trace
        .events()
        .find(|event| event.name() == "located: inner");
    let frames: Vec<_> = event.expect("it is there").stack().collect();
    assert_eq!(frames.len(), 1);
    let location = frames[0].location.expect("it is known");
    assert_eq!((location.file(), location.line()), (file!(), line));
}

#[measure_execution_time(name = "recursive")]
fn recursive(depth: u32) {
    if depth > 0 {
        recursive(depth - 1);
    } else {
        drop(scope!("recursive: bottom"));
    }
}

#[test(measuring)]
fn each_call_of_a_recursion_is_there() {
    let ((), trace) = with_stack().run(|_| {
        let _outer = scope!("recursive: top");
        recursive(4);
    });
    let trace = trace.expect("a window");
    let mut expected = vec!["recursive"; 5];
    expected.push("recursive: top");
    assert_eq!(stacks(&trace, "recursive: bottom"), [expected.clone()]);
    let calls = stacks(&trace, "recursive");
    assert_eq!(calls.len(), 5);
    for (depth, call) in calls.iter().enumerate() {
        assert_eq!(call[..], expected[5 - depth..]);
    }
}

#[test(measuring)]
fn of_a_recursion_before_the_window_the_outermost_call_is_there() {
    fn nest(depth: u32) -> Vec<String> {
        let _scope = scope!("early recursion");
        if depth > 0 {
            return nest(depth - 1);
        }
        let _within = scope!("early recursion: within");
        let ((), trace) = with_stack().run(|_| drop(scope!("early recursion: traced")));
        let trace = trace.expect("a window");
        let stacks = stacks(&trace, "early recursion: traced").concat();
        stacks.into_iter().map(str::to_owned).collect()
    }

    let mut stack = nest(6);
    // Where another session records the scopes around it, it is there as often as it was called.
    stack.dedup();
    assert_eq!(stack, ["early recursion: within", "early recursion"]);
}

#[test(measuring)]
fn stacks_are_those_of_each_thread() {
    let _here = scope!("threads: here");
    let ((), trace) = with_stack().run(|_| {
        let thread = thread::spawn(|| {
            let _there = scope!("threads: there");
            drop(scope!("threads: inside"));
        });
        thread.join().expect("it ends");
    });
    let trace = trace.expect("a window");
    assert_eq!(stacks(&trace, "threads: there"), [[""; 0]]);
    assert_eq!(stacks(&trace, "threads: inside"), [["threads: there"]]);
}

#[test(measuring)]
fn a_scope_in_a_future_has_the_future_and_its_poller_on_the_stack() {
    let ((), trace) = with_stack().run(|_| {
        let inner = async {
            poll::yields(1).await;
            drop(scope!("futures: inside"));
        };
        let outer = async { inner.measure_execution_time("futures: inner").await };
        let mut outer = pin!(outer.measure_execution_time("futures: outer"));
        {
            let _first = scope!("futures: first poll");
            assert!(poll::poll_once(outer.as_mut()).is_pending());
        }
        let _second = scope!("futures: second poll");
        assert!(poll::poll_once(outer.as_mut()).is_ready());
    });
    let trace = trace.expect("a window");
    assert_eq!(
        stacks(&trace, "futures: inside"),
        [["futures: inner", "futures: outer", "futures: second poll"]]
    );
    assert_eq!(
        stacks(&trace, "futures: inner"),
        [["futures: outer", "futures: first poll"]]
    );
    assert_eq!(stacks(&trace, "futures: outer"), [["futures: first poll"]]);
}

#[test(measuring)]
fn guards_that_are_dropped_in_another_order_leave_a_chain_that_ends() {
    let ((), trace) = with_stack().run(|_| {
        for _ in 0..100 {
            let first = scope!("out_of_order: first");
            let second = scope!("out_of_order: second");
            drop(first);
            drop(scope!("out_of_order: inside"));
            drop(second);
            std::mem::forget(scope!("out_of_order: forgotten"));
        }
        let _later = scope!("out_of_order: later");
        drop(scope!("out_of_order: last"));
    });
    let trace = trace.expect("a window");
    for (name, events) in [
        ("first", 100),
        ("second", 100),
        ("inside", 100),
        ("forgotten", 0),
        ("later", 1),
    ] {
        let stacks = stacks(&trace, &format!("out_of_order: {name}"));
        assert_eq!(stacks.len(), events, "{name}");
    }
    assert_eq!(
        stacks(&trace, "out_of_order: last")[0][0],
        "out_of_order: later"
    );
}

#[inline(never)]
fn a_function_of_the_program() {
    let _scope = scope!("native: inside");
    std::hint::black_box(0);
}

#[test(measuring)]
fn native_frames_are_those_of_the_program() {
    let ((), trace) = Profile::builder()
        .native_stack(true)
        .run(|_| a_function_of_the_program());
    let trace = trace.expect("a window");
    let event = trace
        .events()
        .find(|event| event.name() == "native: inside");
    let native = event
        .and_then(Event::native_stack)
        .expect("it was asked for");
    assert!(native.contains("a_function_of_the_program"), "{native}");
    assert!(
        native.contains("native_frames_are_those_of_the_program"),
        "{native}"
    );
}

#[test(measuring)]
fn a_session_beside_one_with_stacks_has_none() {
    // Another session asks.
    let asks = with_stack().native_stack(true).start().expect("started");
    let _around = scope!("unasked: around");
    let ((), trace) = Profile::builder().run(|_| drop(scope!("unasked: inside")));
    let trace = trace.expect("a window");
    drop(asks);
    let event = trace
        .events()
        .find(|event| event.name() == "unasked: inside");
    let event = event.expect("it is there");
    assert_eq!(stack(&event), [""; 0]);
    assert_eq!(event.native_stack(), None);
}

#[test(measuring)]
fn a_recursion_deeper_than_the_remembered_stack_is_recorded() {
    // More than are remembered at once.
    const DEPTH: usize = 6000;

    fn nest(depth: usize) {
        let _scope = scope!("deep");
        if depth > 1 {
            nest(depth - 1);
        }
    }

    let deep = thread::Builder::new().stack_size(64 << 20).spawn(|| {
        let builder = with_stack().profile_memory(true);
        let ((), trace) = builder.run(|_| nest(DEPTH));
        let trace = trace.expect("a window");
        let deep: Vec<_> = of(&trace, "deep");
        assert_eq!(deep.len(), DEPTH);
        for depth in [0, 1, 2, 511, 512, 513, 2047, 2048, 4095, 4096, DEPTH - 1] {
            // Of too many that are open the outer half is forgotten, and has what the window holds.
            let expected = if depth < 2048 { depth } else { 512 };
            assert_eq!(deep[depth].stack().count(), expected);
        }
    });
    deep.expect("a thread").join().expect("each has its stack");
}
