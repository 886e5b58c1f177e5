use std::future::{Future, poll_fn};
use std::panic::Location;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;

use super::*;
use crate::clock::{self, mock::MockClock};
use crate::local::{self, Innermost};
use crate::name::{self, Name};
use crate::stats::Totals;

fn name(text: &str) -> &'static Name {
    name::declared(text, Location::caller())
}

fn decision_of(name: &Name) -> SiteDecision {
    SiteDecision::new(name.id).with(SiteDecision::SYSTEM_CLOCK, !clock::has_counter())
}

fn scope_of(name: &Name) -> FutureScopeWithArgs {
    ScopeBuilder::new(Some(decision_of(name)), 1).task()
}

/// Runs `f` on a thread of its own, and returns what it counted for the name. Then runs it where the name has a cell, so
/// that ordinary polls take the fast path, and checks that it counts the same.
fn counted(text: &str, f: impl Fn(&'static Name) + Copy + Send + 'static) -> Totals {
    let count = |text: &str, has_cell: bool| {
        let name = name(text);
        let run = move || {
            if has_cell {
                let _ = local::cell(name.id);
            }
            f(name);
        };
        thread::spawn(run).join().expect("does not panic");
        name.totals()
    };
    let counts = |totals: &Totals| {
        [
            totals.calls(),
            totals.recursive_calls,
            totals.futures_begun,
            totals.futures,
            totals.dropped_futures,
            totals.panicked,
            totals.open,
            totals.out_of_order,
        ]
    };
    let (slow, fast) = (count(text, false), count(&format!("{text}, fast"), true));
    assert_eq!(counts(&slow), counts(&fast));
    fast
}

fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A future that is pending for the given number of polls.
fn pending_for(mut polls: u32) -> impl Future<Output = ()> {
    poll_fn(move |_| {
        if polls == 0 {
            return Poll::Ready(());
        }
        polls -= 1;
        Poll::Pending
    })
}

#[test]
fn a_future_is_counted_once_for_all_its_polls() {
    let totals = counted("future: polled", |name| {
        let mut future = pin!(measure(scope_of(name), pending_for(2)));
        assert!(poll_once(future.as_mut()).is_pending());
        assert_eq!(
            name.totals().open,
            0,
            "between polls it is open on no thread"
        );
        assert!(poll_once(future.as_mut()).is_pending());
        assert!(poll_once(future.as_mut()).is_ready());
    });
    assert_eq!(
        (totals.calls(), totals.futures, totals.futures_begun),
        (1, 1, 1)
    );
    assert_eq!((totals.dropped_futures, totals.panicked), (0, 0));
    assert!(totals.polled <= totals.total);
}

#[test]
fn a_poll_is_the_innermost_scope_while_it_runs() {
    let totals = counted("future: innermost", |name| {
        let inside = poll_fn(move |_| Poll::Ready(local::innermost().serial()));
        let mut future = pin!(measure(scope_of(name), inside));
        assert!(matches!(poll_once(future.as_mut()), Poll::Ready(serial) if serial != 0));
        assert_eq!(local::innermost(), Innermost::NONE);
    });
    assert_eq!(totals.out_of_order, 0);
}

#[test]
fn futures_that_are_polled_in_turn_are_not_nested() {
    let totals = counted("future: in turn", |name| {
        let clock = MockClock::at(1_000);
        let takes = |ticks| {
            let clock = &clock;
            let mut is_ready = false;
            poll_fn(move |_| {
                clock.advance(ticks);
                if std::mem::replace(&mut is_ready, true) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
        };
        let mut one = pin!(measure(scope_of(name), takes(1)));
        let mut other = pin!(measure(scope_of(name), takes(10)));
        for _ in 0..2 {
            let _ = poll_once(one.as_mut());
            let _ = poll_once(other.as_mut());
            clock.advance(100);
        }
    });
    assert_eq!((totals.calls(), totals.recursive_calls), (2, 0));
    // From its first poll to its last, each future has two polls of its own, one of the other and 100 ticks between.
    assert_eq!(totals.polled, (1 + 1) + (10 + 10));
    assert_eq!(totals.total, (1 + 10 + 100 + 1) + (10 + 100 + 1 + 10));
    assert_eq!(totals.own, totals.polled);
}

#[test]
fn a_future_in_place_is_counted_as_any_other() {
    let totals = counted("future: in place", |name| {
        let mut scope = FutureScope::new(Some(decision_of(name)));
        {
            let inner = pin!(pending_for(1));
            let mut future = measure_in_place(&mut scope, inner);
            assert!(poll_once(pin!(&mut future)).is_pending());
            assert!(poll_once(pin!(&mut future)).is_ready());
        }
    });
    assert_eq!((totals.calls(), totals.futures), (1, 1));
}

#[test]
fn arguments_have_no_effect_after_the_first_poll() {
    let name = name("future: arguments");
    let mut scope = scope_of(name);
    assert!(scope.builder_before_first_poll().is_some());
    poll::PollGuard::new(scope.parts()).enter();
    assert!(scope.builder_before_first_poll().is_none());
}

#[test]
fn a_guard_that_a_poll_leaves_open_does_not_stay_innermost() {
    use crate::scope::{OpenScope, Scope, ScopeArgs};

    let totals = counted("future: leaves a guard", |name| {
        let mut kept = None;
        let leaves = poll_fn(|_| {
            let decision = SiteDecision::new(name.id);
            let open = OpenScope::slow(decision, None, &mut ScopeArgs::default());
            kept = Some(Scope::from(open));
            Poll::Ready(())
        });
        assert!(poll_once(pin!(measure(scope_of(name), leaves))).is_ready());
        assert_eq!(local::innermost(), Innermost::NONE);
        drop(kept);
        assert_eq!(local::innermost(), Innermost::NONE);
    });
    assert_eq!((totals.calls(), totals.open), (2, 0));
}
