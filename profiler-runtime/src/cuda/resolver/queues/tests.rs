use proptest::prelude::*;

use super::*;
use crate::cuda::context::Context;
use crate::cuda::ffi::fake::FakeDriver;
use crate::cuda::resolver::test_scopes::{TestScope, counts, driver, name};
use crate::name::Name;

/// Queues of one context, their driver, and the name of all scopes.
struct Fixture {
    driver: &'static FakeDriver,
    completion: Completion<FakeDriver>,
    context: &'static Context,
    queues: StreamQueues,
    name: &'static Name,
}

impl Fixture {
    fn new(text: &'static str) -> Self {
        let driver = driver();
        Self {
            driver,
            completion: Completion::new(driver),
            context: Context::for_test(),
            queues: StreamQueues::default(),
            name: name(text),
        }
    }

    /// Adds a scope whose events the device has not passed. Returns them.
    fn push(&mut self, scope: TestScope) -> Pair {
        self.driver.hold();
        let measurement = scope.measure(self.driver, self.context, self.name);
        let pair = measurement.pair.expect("it has events");
        self.queues.push(measurement);
        pair
    }

    fn pass(&self, pair: Pair) {
        self.driver.pass(pair.begin, 1.0);
        self.driver.pass(pair.end, 2.0);
    }

    fn read(&mut self) -> Result<bool, Fault> {
        self.queues.read(&mut self.completion, None)
    }

    fn queries(&self) -> usize {
        self.driver.calls("cuEventQuery")
    }
}

#[test]
fn one_query_finds_that_all_scopes_of_a_stream_are_complete() {
    let mut fixture = Fixture::new("queues: all");
    for key in 1..=100 {
        let pair = fixture.push(TestScope::numbered(key));
        fixture.pass(pair);
    }
    assert_eq!(fixture.queues.oldest_end(), 1);
    assert_eq!(fixture.read(), Ok(true));
    assert_eq!(fixture.queries(), 1);
    assert_eq!(counts(fixture.name), (100, 0));
    assert!(fixture.queues.is_empty() && fixture.queues.oldest_end() == u64::MAX);
}

#[test]
fn two_queries_find_that_no_scope_of_a_stream_is_complete() {
    let mut fixture = Fixture::new("queues: none");
    for key in 1..=100 {
        fixture.push(TestScope::numbered(key));
    }
    assert_eq!(fixture.read(), Ok(false));
    assert_eq!((fixture.queries(), fixture.queues.len()), (2, 100));
}

#[test]
fn a_stream_does_not_wait_for_another_one() {
    let mut fixture = Fixture::new("queues: two streams");
    let slow = TestScope::numbered(1);
    let fast = TestScope {
        stream: 0x20,
        ..TestScope::numbered(2)
    };
    fixture.push(slow);
    let fast = fixture.push(fast);
    fixture.pass(fast);
    assert_eq!(fixture.read(), Ok(true));
    assert_eq!((fixture.queues.len(), fixture.queues.oldest_end()), (1, 1));
}

#[test]
fn a_scope_whose_begin_is_not_passed_stays_in_the_queue() {
    let mut fixture = Fixture::new("queues: begin");
    let pair = fixture.push(TestScope::numbered(1));
    fixture.driver.pass(pair.end, 2.0);
    assert_eq!(fixture.read(), Ok(true));
    assert_eq!((fixture.queues.len(), counts(fixture.name)), (1, (0, 0)));
    fixture.pass(pair);
    assert_eq!(fixture.read(), Ok(true));
    assert_eq!(counts(fixture.name), (1, 0));
}

#[test]
fn a_refused_query_loses_its_scope_and_no_other() {
    let mut fixture = Fixture::new("queues: refused");
    fixture.push(TestScope::numbered(1));
    let pair = fixture.push(TestScope::numbered(2));
    // The driver does not know the event, as if its stream had been destroyed.
    fixture.driver.destroy_event(pair.end);
    assert_eq!(fixture.read(), Ok(false));
    assert_eq!((fixture.queues.len(), counts(fixture.name)), (1, (0, 1)));
    fixture.driver.release();
    assert_eq!(fixture.read(), Ok(true));
    assert_eq!(counts(fixture.name), (1, 1));
}

#[test]
fn an_event_that_was_captured_is_lost_and_a_query_during_a_capture_is_repeated() {
    let mut fixture = Fixture::new("queues: captured");
    fixture.push(TestScope::numbered(1));
    // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
    fixture.driver.break_call("cuEventQuery", 900);
    assert_eq!(fixture.read(), Ok(false));
    assert_eq!(fixture.queues.len(), 1);
    // CUDA_ERROR_CAPTURED_EVENT
    fixture.driver.break_call("cuEventQuery", 907);
    assert_eq!(fixture.read(), Ok(false));
    assert_eq!((fixture.queues.len(), counts(fixture.name)), (0, (0, 1)));
}

#[test]
fn a_fault_of_the_context_is_reported() {
    // Launch failed; context destroyed; driver shut down.
    for (code, fault) in [
        (719, Fault::Sticky),
        (709, Fault::ContextGone),
        (4, Fault::NoDriver),
    ] {
        let mut fixture = Fixture::new("queues: fault");
        fixture.push(TestScope::numbered(1));
        fixture.push(TestScope::numbered(2));
        fixture.driver.break_call("cuEventQuery", code);
        assert_eq!(fixture.read(), Err(fault));
        // The scope that was queried is complete. The caller decides about the other one.
        assert_eq!(fixture.queues.len(), 1);
        fixture
            .queues
            .lose_all(&mut fixture.completion, CudaLoss::ContextGone);
        assert!(fixture.queues.is_empty());
    }
}

#[test]
fn an_impossible_time_is_lost() {
    let mut fixture = Fixture::new("queues: impossible");
    let pair = fixture.push(TestScope::numbered(1));
    fixture.driver.pass(pair.begin, 2.0);
    fixture.driver.pass(pair.end, 1.0);
    assert_eq!(fixture.read(), Ok(true));
    assert_eq!(counts(fixture.name), (0, 1));
}

proptest! {
    #[test]
    fn the_boundary_is_found_with_few_queries(all in 1..200_usize, passed in 0..200_usize) {
        let passed = passed.min(all);
        let mut fixture = Fixture::new("queues: boundary");
        for key in 1..=all {
            let pair = fixture.push(TestScope::numbered(key as u64));
            if key <= passed {
                fixture.pass(pair);
            }
        }
        prop_assert_eq!(fixture.read(), Ok(passed > 0));
        prop_assert_eq!(fixture.queues.len(), all - passed);
        let bound = 2 + all.ilog2() as usize + 1;
        prop_assert!(fixture.queries() <= bound, "{} queries", fixture.queries());
    }
}
