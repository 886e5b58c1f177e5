use std::panic::panic_any;

use profiler_host::diagnostics::user_code;

use super::*;

use crate::cuda::ffi::fake::FakeDriver;
use crate::cuda::loss;
use crate::cuda::resolver::test_scopes::{TestScope, counts, driver, name};
use crate::log_record::LogRequest;
use crate::name::Name;

fn lost(name: &Name) -> Box<GpuMeasurement> {
    let mut measurement = GpuMeasurement::without(CudaLoss::Captured);
    measurement.scope.name = name.id;
    measurement
}

/// The state of a resolver, its driver, and a context with one name.
struct Fixture {
    driver: &'static FakeDriver,
    context: &'static Context,
    name: &'static Name,
    state: ResolverState<FakeDriver>,
}

impl Fixture {
    fn new(text: &'static str) -> Self {
        let driver = driver();
        Self {
            driver,
            context: Context::for_test(),
            name: name(text),
            state: ResolverState::new(driver),
        }
    }

    /// Adds a scope as if it came out of a ring.
    fn drain(&mut self, scope: TestScope) {
        let measurement = scope.measure(self.driver, self.context, self.name);
        self.state.drained.push(measurement);
    }

    fn poll(&mut self) -> bool {
        self.state.poll_contexts(false)
    }
}

#[test]
fn scopes_that_a_panic_destroys_are_counted_for_their_names() {
    let name = name("state: panics");
    let panicked = || {
        let counted = loss::counted();
        let of = |(reason, _): &&(CudaLoss, u64)| *reason == CudaLoss::ThreadPanicked;
        counted.iter().find(of).map_or(0, |(_, count)| *count)
    };
    let before = panicked();
    let caught = user_code::call(|| {
        let mut state = ResolverState::new(driver());
        state.drained.push(lost(name));
        state.ordered.extend([lost(name), lost(name)]);
        state.completion.current_name = Some(name.id);
        panic_any("a test panics");
    });
    assert!(caught.is_none());
    // Another test that fails at the same time counts here too.
    assert!(panicked() - before >= 4);
    assert_eq!(counts(name), (0, 4));
}

#[test]
fn scopes_that_are_left_at_exit_are_not_counted_as_lost() {
    let name = name("state: ends");
    let mut state = ResolverState::new(driver());
    state.drained.push(lost(name));
    drop(state);
    assert!(name.cuda.read().is_none());
}

#[test]
fn of_scopes_that_end_together_the_inner_one_is_read_first() {
    let mut fixture = Fixture::new("state: together");
    for (key, times) in [(1, [1.0, 9.0]), (2, [2.0, 5.0])] {
        fixture.drain(TestScope {
            inside: key - 1,
            end: 20,
            times,
            ..TestScope::numbered(key)
        });
    }
    fixture.state.enqueue_until(20);
    assert!(fixture.poll());
    let times = fixture.name.cuda.read().expect("it has GPU times");
    assert_eq!((times.calls, times.own), (2, 8e6));
}

#[test]
fn a_scope_that_ended_too_late_waits_for_the_next_round() {
    let mut fixture = Fixture::new("state: late");
    (1..=3).for_each(|key| fixture.drain(TestScope::numbered(key)));
    fixture.state.enqueue_until(2);
    assert_eq!(fixture.state.next_sequence(), 2);
    assert!(fixture.poll());
    assert_eq!(counts(fixture.name), (2, 0));
    assert_eq!(fixture.state.oldest_unread_end(), 3, "it is not forgotten");
    fixture.state.enqueue_until(3);
    assert!(fixture.poll());
    assert_eq!(counts(fixture.name), (3, 0));
    assert_eq!(fixture.state.oldest_unread_end(), u64::MAX);
}

#[test]
fn a_flush_can_tell_which_scopes_it_waits_for() {
    let mut fixture = Fixture::new("state: sequence");
    fixture.driver.hold();
    (1..=2).for_each(|key| fixture.drain(TestScope::numbered(key)));
    fixture.state.enqueue_until(2);
    let end = fixture.state.next_sequence();
    assert!(!fixture.poll() && fixture.state.waiting() == Waiting::Some);
    assert!(fixture.state.oldest_pending() < end);
    fixture.driver.release();
    fixture.driver.hold();
    fixture.drain(TestScope::numbered(3));
    fixture.state.enqueue_until(3);
    assert!(fixture.poll());
    assert_eq!(fixture.state.oldest_pending(), end, "a later scope waits");
}

#[test]
fn the_anchor_is_not_destroyed_while_a_scope_waits() {
    let mut fixture = Fixture::new("state: anchor");
    fixture.driver.hold();
    let scope = TestScope::numbered(1);
    let mut measurement = scope.measure(fixture.driver, fixture.context, fixture.name);
    // A log entry tells when the GPU time began, which takes an anchor.
    measurement.log = Some(LogRequest::new(1));
    fixture.state.drained.push(measurement);
    fixture.state.enqueue_until(1);
    assert!(!fixture.poll());
    assert_eq!(fixture.driver.calls("cuStreamCreate"), 1);
    fixture.state.destroy_events();
    assert_eq!(fixture.driver.calls("cuStreamDestroy_v2"), 0);
}

#[test]
fn events_are_not_destroyed_while_a_scope_uses_them() {
    let mut fixture = Fixture::new("state: events");
    fixture.driver.hold();
    fixture.drain(TestScope::numbered(1));
    fixture.state.enqueue_until(1);
    assert!(!fixture.poll());
    fixture.state.destroy_events();
    assert_eq!(fixture.driver.calls("cuEventDestroy_v2"), 0);
    fixture.driver.release();
    assert!(fixture.poll());
    fixture.state.destroy_events();
    // Those of its pair, and those of the anchor.
    assert_eq!(fixture.driver.calls("cuEventDestroy_v2"), 4);
    assert_eq!(fixture.driver.events(), 0);
}
