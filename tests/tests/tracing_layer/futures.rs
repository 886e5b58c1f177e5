//! Spans of futures, which are entered in each poll.

use std::pin::pin;

use profiler_runtime::{ProfilerLayer, builder, scope, summary};
use profiler_tests::poll::{poll_once, run, yields};
use profiler_tests::{CpuTimes, if_measuring, measuring, row, work};
use tracing::{Instrument, info_span, instrument};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry;

use crate::support::{all_lost, install};

fn install_whole() {
    let subscriber = registry().with(ProfilerLayer::new().whole_spans());
    tracing::subscriber::set_global_default(subscriber).expect("the first of this process");
}

#[instrument]
async fn load(polls: usize) {
    for _ in 0..polls {
        let inside = scope!("futures: inside");
        work(50);
        drop(inside);
        yields(1).await;
    }
}

#[test]
fn futures_are_found_out_and_are_one_call_each_from_then_on() {
    install();
    // The thread may be held up between the last exit of a span and its end, and then it shows nothing.
    for _ in 0..10_000 {
        run(load(3));
        if !measuring() || row("tracing_layer::futures::load").futures > 0 {
            break;
        }
    }
    let before = row("tracing_layer::futures::load");
    for _ in 0..10 {
        run(load(3));
    }
    let row = row("tracing_layer::futures::load");
    let (calls, futures) = (row.calls - before.calls, row.futures - before.futures);
    assert_eq!((calls, futures), (if_measuring(10), if_measuring(10)));
    assert_eq!((row.cpu().calls, row.open), (row.calls, 0));
    // Four polls, and once more when the future is dropped.
    let entered = row.calls - row.futures;
    assert_eq!(entered, 5 * row.reentered_spans);
    if measuring() {
        assert!(row.polled_ns >= 1_500_000.0);
        let cpu = row.cpu();
        let product = cpu.calls as f64 * cpu.mean_ns;
        assert!(
            (product - cpu.total_ns).abs() < 1e-6 * cpu.total_ns,
            "{cpu:?}"
        );
        let table = summary().to_string();
        let spans = row.reentered_spans;
        let is_said = table.contains(&format!("load: {spans} span"));
        assert_eq!(is_said, spans > 0, "{table}");
        let is_found_out = table.contains("seen to be those of futures");
        assert_eq!(is_found_out, spans > 0, "{table}");
    }
    assert_eq!(all_lost(), 0);
}

#[test]
fn the_first_spans_of_a_call_site_are_open_until_they_end_and_no_calls_for_each_poll() {
    install();
    let mut requests: Vec<_> = (0..40).map(|_| Box::pin(load(3))).collect();
    for _ in 0..2 {
        for request in &mut requests {
            assert!(poll_once(request.as_mut()).is_pending());
        }
        if measuring() {
            let row = row("tracing_layer::futures::load");
            assert_eq!((row.calls, row.open), (0, 40));
            assert!(summary().to_prometheus().contains("futures::load"));
        }
    }
    for mut request in requests {
        while poll_once(request.as_mut()).is_pending() {}
    }
    let row = row("tracing_layer::futures::load");
    assert_eq!(row.open, 0);
    // A thread may be held up between the last exit of a span and its end: then each of its five times is a call.
    assert_eq!(row.futures + row.reentered_spans, if_measuring(40));
    assert_eq!(row.calls, row.futures + 5 * row.reentered_spans);
    if measuring() {
        assert!(row.polled_ns >= row.futures as f64 * 150_000.0);
        assert_eq!(self::row("futures: inside").calls, 120);
    }
    assert_eq!(all_lost(), 0);
}

#[test]
fn a_span_that_is_entered_again_and_again_is_many_calls_before_it_ends() {
    install();
    let layer = info_span!("layer");
    for enters in 1..200_u64 {
        layer.in_scope(|| work(1));
        let row = measuring().then(|| row("tracing_layer::futures::layer"));
        let expected = if enters < 64 { (0, 1) } else { (enters, 0) };
        assert!(
            row.is_none_or(|row| (row.calls, row.open) == expected),
            "{enters}"
        );
    }
    // Parts of a model are no futures.
    let part = info_span!(target: "candle_nn", "part");
    part.in_scope(|| ());
    let part = measuring().then(|| self::row("candle_nn::part"));
    assert!(part.is_none_or(|part| (part.calls, part.open) == (1, 0)));
    drop(layer);
    let row = row("tracing_layer::futures::layer");
    assert_eq!(
        (row.calls, row.reentered_spans),
        (if_measuring(199), if_measuring(1))
    );
    assert_eq!(all_lost(), 0);
}

#[test]
fn polls_are_calls_if_each_enter_is_to_be_one() {
    let subscriber = registry().with(ProfilerLayer::new().entered_spans());
    tracing::subscriber::set_global_default(subscriber).expect("the first of this process");
    for _ in 0..10 {
        run(load(3));
    }
    let row = row("tracing_layer::futures::load");
    assert_eq!((row.calls, row.futures), (if_measuring(50), 0));
    assert_eq!(row.reentered_spans, if_measuring(10));
}

#[test]
fn a_whole_span_is_measured_from_the_first_enter_to_the_last_exit() {
    install_whole();
    for _ in 0..10 {
        let mut future = pin!(load(3));
        while poll_once(future.as_mut()).is_pending() {
            work(100);
        }
    }
    let row = row("tracing_layer::futures::load");
    assert_eq!(
        (row.calls, row.futures, row.open),
        (if_measuring(10), if_measuring(10), 0)
    );
    assert_eq!(row.cpu().calls, if_measuring(10));
    if measuring() {
        let cpu = row.cpu();
        assert!(
            cpu.min_ns >= 450_000.0,
            "three polls and the waits between them: {cpu:?}"
        );
        assert!(row.polled_ns >= 1_500_000.0);
        assert!(
            row.polled_ns <= cpu.total_ns - 3_000_000.0,
            "without the waits"
        );
        let inside = self::row("futures: inside");
        assert_eq!(inside.calls, 30);
        assert!((cpu.self_ns - (row.polled_ns - inside.cpu().total_ns)).abs() < 1.0);
    }
    assert_eq!(all_lost(), 0);
}

#[test]
fn whole_spans_have_one_edge_from_their_caller_for_each_call() {
    let _profiler = builder().callers(true).init().expect("set up");
    install_whole();
    for _ in 0..5 {
        let _caller = scope!("futures: caller");
        run(load(2));
    }
    let edges = summary().callers().edges;
    let calls = |caller: &str, callee: &str| {
        let of_pair = |edge: &&profiler_runtime::report::CallEdge| {
            edge.caller.as_deref() == Some(caller) && edge.callee == callee
        };
        edges.iter().find(of_pair).map_or(0, |edge| edge.calls)
    };
    assert_eq!(
        calls("futures: caller", "tracing_layer::futures::load"),
        if_measuring(5)
    );
    assert_eq!(
        calls("tracing_layer::futures::load", "futures: inside"),
        if_measuring(10)
    );
}

#[test]
fn futures_that_take_turns_are_not_each_others_parents() {
    for whole in [false, true] {
        let layer = ProfilerLayer::new();
        let layer = if whole {
            layer.whole_spans()
        } else {
            layer.entered_spans()
        };
        let subscriber = registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            let turn = |text| async move {
                for _ in 0..3 {
                    yields(1).await;
                    drop(scope!(text));
                }
            };
            let mut one = pin!(turn("futures: in one").instrument(info_span!("one")));
            let mut other = pin!(turn("futures: in other").instrument(info_span!("other")));
            while poll_once(one.as_mut()).is_pending() {
                assert!(poll_once(other.as_mut()).is_pending());
            }
            assert!(poll_once(other.as_mut()).is_ready());
        });
    }
    for name in ["one", "other"] {
        let row = row(&format!("tracing_layer::futures::{name}"));
        assert_eq!(
            (row.calls, row.primitive_calls),
            // Four polls and the drop, and one whole.
            (if_measuring(6), if_measuring(6))
        );
        assert_eq!((row.out_of_order, row.open), (0, 0));
        assert_eq!(
            self::row(&format!("futures: in {name}")).calls,
            if_measuring(6)
        );
    }
    assert_eq!(all_lost(), 0);
}

#[test]
fn a_future_that_is_dropped_early_is_counted() {
    for whole in [false, true] {
        let layer = ProfilerLayer::new();
        let layer = if whole {
            layer.whole_spans()
        } else {
            layer.entered_spans()
        };
        tracing::subscriber::with_default(registry().with(layer), || {
            let mut future = Box::pin(load(3));
            assert!(poll_once(future.as_mut()).is_pending());
            drop(future);
        });
    }
    let row = row("tracing_layer::futures::load");
    // A poll and the drop, and one whole.
    assert_eq!((row.calls, row.open), (if_measuring(3), 0));
    assert_eq!(all_lost(), 0);
}

#[test]
fn tasks_that_move_between_threads_are_counted_exactly() {
    install_whole();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(3)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let tasks: Vec<_> = (0..200).map(|_| tokio::spawn(load(5))).collect();
        for task in tasks {
            task.await.expect("it ends");
        }
    });
    drop(runtime);
    let row = row("tracing_layer::futures::load");
    assert_eq!(
        (row.calls, row.futures, row.open),
        (if_measuring(200), if_measuring(200), 0)
    );
    assert_eq!(self::row("futures: inside").calls, if_measuring(1_000));
    assert_eq!(all_lost(), 0);
}

#[test]
fn a_guard_that_is_held_across_an_await_is_counted_and_repaired() {
    install();
    let held = |name: &'static str| async move {
        let span = info_span!("held");
        let _entered = span.enter();
        yields(1).await;
        drop(scope!(name));
    };
    {
        let (mut one, mut other) = (pin!(held("futures: one")), pin!(held("futures: other")));
        assert!(poll_once(one.as_mut()).is_pending() && poll_once(other.as_mut()).is_pending());
        assert!(poll_once(one.as_mut()).is_ready() && poll_once(other.as_mut()).is_ready());
    }
    let row = row("tracing_layer::futures::held");
    assert_eq!((row.calls, row.open), (if_measuring(2), 0));
    assert_eq!(row.out_of_order, if_measuring(2), "the guards did not nest");
    drop(scope!("futures: next"));
    assert_eq!(self::row("futures: next").out_of_order, 0);
    assert_eq!(all_lost(), 0);
}
