use std::num::NonZero;

use super::*;
use crate::cuda::context::Context;
use crate::cuda::ffi::fake::{FakeDriver, event};

const READ: &str = "cuEventElapsedTime";

/// The captured scopes of one context, and their driver.
struct Fixture {
    driver: FakeDriver,
    context: &'static Context,
    scopes: CapturedScopes,
}

fn anchor() -> Event {
    event(1)
}

/// Returns the two events of a scope.
fn events(key: u64) -> [Event; 2] {
    let key = usize::try_from(key).expect("it is small");
    [event(10 * key), event(10 * key + 1)]
}

impl Fixture {
    fn new() -> Self {
        let driver = FakeDriver::new();
        driver.pass(anchor(), 0.0);
        Self {
            driver,
            context: Context::for_test(),
            scopes: CapturedScopes::default(),
        }
    }

    /// Adds a scope of the one capture, inside another scope, or inside none if that is zero.
    fn capture(&mut self, key: u64, inside: u64) {
        let [begin, end] = events(key);
        let mut measurement = GpuMeasurement::new(None);
        measurement.scope.key = key;
        measurement.parent = NonZero::new(inside);
        measurement.capture = 7;
        let pair = Pair::for_test(self.context, begin, end);
        self.scopes.add(measurement, pair);
    }

    /// Replays the events of a scope, at these times in milliseconds.
    fn replay(&self, key: u64, times: [f32; 2]) {
        for (event, time) in events(key).into_iter().zip(times) {
            self.driver.pass(event, time);
        }
    }

    /// As [`replay`](Self::replay), after `reads` further reads of times.
    fn replay_after(&self, reads: usize, key: u64, times: [f32; 2]) {
        for (event, time) in events(key).into_iter().zip(times) {
            self.driver.pass_after(reads, event, time);
        }
    }

    /// Returns the key, the time and the own time, in microseconds, of each scope that has been replayed.
    fn poll(&mut self) -> Vec<(u64, u32, u32)> {
        let mut replays = Vec::new();
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "they are small"
        )]
        let microseconds = |ns: f64| (ns / 1e3).round() as u32;
        let add = |replay: ReplayedScope<'_>| {
            let key = replay.measurement.scope.key;
            replays.push((key, microseconds(replay.ns), microseconds(replay.own)));
        };
        self.scopes.poll(&self.driver, anchor(), true, add);
        replays
    }

    /// Polls until no replay is left. Returns the keys of the scopes that have been replayed, in order.
    fn poll_all(&mut self) -> Vec<u64> {
        let mut keys: Vec<_> = (0..4)
            .flat_map(|_| self.poll())
            .map(|(key, ..)| key)
            .collect();
        keys.sort_unstable();
        keys
    }

    /// Runs `f` and returns how many times it read from the driver.
    fn reads(&mut self, f: impl FnOnce(&mut Self)) -> usize {
        let before = self.driver.calls(READ);
        f(self);
        self.driver.calls(READ) - before
    }
}

#[test]
fn one_scope_is_queried_for_its_group_and_children_are_subtracted() {
    let mut fixture = Fixture::new();
    fixture.capture(2, 1);
    fixture.capture(3, 1);
    fixture.capture(1, 0);
    assert_eq!(fixture.poll(), []);
    for round in 0..2_u8 {
        let at = 10.0 * f32::from(round);
        fixture.replay(1, [at + 1.0, at + 8.0]);
        fixture.replay(2, [at + 1.0, at + 3.0]);
        fixture.replay(3, [at + 4.0, at + 5.0]);
        let all = [(2, 2_000, 2_000), (3, 1_000, 1_000), (1, 7_000, 4_000)];
        assert_eq!(fixture.poll(), all);
        let reads = fixture.reads(|fixture| assert_eq!(fixture.poll(), []));
        assert_eq!(reads, 2, "the first member, and another one");
    }
}

#[test]
fn a_replay_in_progress_is_read_as_far_as_the_device_has_come() {
    let mut fixture = Fixture::new();
    (1..=9).for_each(|key| fixture.capture(key, 0));
    fixture.replay(1, [1.0, 2.0]);
    fixture.replay(2, [2.0, 3.0]);
    assert_eq!(fixture.poll(), [(1, 1_000, 1_000), (2, 1_000, 1_000)]);
    let reads = fixture.reads(|fixture| assert_eq!(fixture.poll(), []));
    assert!(reads <= 6, "{reads} reads");
    (3..=9).for_each(|key| fixture.replay(key, [3.0, 4.0]));
    assert_eq!(fixture.poll().len(), 7);
}

#[test]
fn a_scope_that_arrives_after_its_replay_was_noticed_is_read() {
    let mut fixture = Fixture::new();
    (1..=2).for_each(|key| fixture.capture(key, 0));
    (1..=5).for_each(|key| fixture.replay(key, [1.0, 2.0]));
    assert_eq!(fixture.poll().len(), 2);
    (3..=5).for_each(|key| fixture.capture(key, 0));
    let late = [3, 4, 5].map(|key| (key, 1_000, 1_000));
    assert_eq!(fixture.poll(), late);
    assert_eq!(fixture.poll(), []);
}

#[test]
fn scopes_that_do_not_run_together_are_read() {
    let mut fixture = Fixture::new();
    (1..=4).for_each(|key| fixture.capture(key, 0));
    // The node of the first one is disabled.
    for at in [1.0, 2.0] {
        (2..=4).for_each(|key| fixture.replay(key, [at, at + 0.5]));
        assert_eq!(fixture.poll_all(), [2, 3, 4]);
    }
    // The node of one in the middle is disabled.
    for key in [1, 2, 4] {
        fixture.replay(key, [3.0, 4.0]);
    }
    assert_eq!(fixture.poll_all(), [1, 2, 4]);
}

#[test]
fn a_time_that_a_further_replay_overwrites_is_not_counted() {
    let mut fixture = Fixture::new();
    fixture.capture(1, 0);
    // The next replay has recorded the begin, and not the end.
    fixture.replay(1, [5.0, 2.0]);
    assert_eq!(fixture.poll(), []);
    fixture.replay(1, [5.0, 6.0]);
    assert_eq!(fixture.poll(), [(1, 1_000, 1_000)]);
}

#[test]
fn a_replay_between_the_reads_of_two_members_leaves_them_together() {
    let mut fixture = Fixture::new();
    (1..=2).for_each(|key| {
        fixture.capture(key, 0);
        fixture.replay(key, [1.0, 2.0]);
    });
    assert_eq!(fixture.poll().len(), 2);
    // The first member has not moved when it is read, and the other one has.
    (1..=2).for_each(|key| fixture.replay_after(1, key, [3.0, 4.0]));
    assert_eq!(fixture.poll(), []);
    assert_eq!(fixture.scopes.groups.len(), 1);
    assert_eq!(fixture.poll(), [(1, 1_000, 1_000), (2, 1_000, 1_000)]);
}

#[test]
fn a_replay_while_another_one_is_read_is_counted_once() {
    let mut fixture = Fixture::new();
    fixture.capture(1, 0);
    fixture.replay(1, [1.0, 2.0]);
    // The end has been located twice when the next replay overwrites both events.
    fixture.replay_after(2, 1, [3.0, 6.0]);
    assert_eq!(fixture.poll(), []);
    assert_eq!(fixture.poll(), [(1, 3_000, 3_000)]);
    assert_eq!(fixture.poll(), []);
}

/// Returns which of these scopes are outermost in a replay: each with its name, its capture, its begin and its end.
fn outermost(spans: [(u32, u64, u64, u64); 3]) -> [bool; 3] {
    let mut fixture = Fixture::new();
    for (key, (name, capture, begin, end)) in (1..).zip(spans) {
        let [begin_event, end_event] = events(key);
        let mut measurement = GpuMeasurement::new(None);
        measurement.scope.key = key;
        measurement.scope.name = name;
        measurement.capture = capture;
        measurement.span.end = end;
        measurement.span.elapsed = i64::try_from(end - begin).expect("it is small");
        let pair = Pair::for_test(fixture.context, begin_event, end_event);
        fixture.scopes.add(measurement, pair);
        fixture.replay(key, [1.0, 2.0]);
    }
    let mut outermost = [false; 3];
    let add = |replay: ReplayedScope<'_>| {
        let at = usize::try_from(replay.measurement.scope.key - 1).expect("it is small");
        outermost[at] = replay.outermost;
    };
    fixture.scopes.poll(&fixture.driver, anchor(), true, add);
    outermost
}

#[test]
fn a_scope_inside_one_of_its_name_and_capture_is_not_outermost() {
    let around = (5, 7, 10, 40);
    let others = |name, capture| [around, (5, 7, 20, 30), (name, capture, 21, 29)];
    assert_eq!(outermost(others(5, 7)), [true, false, false]);
    assert_eq!(outermost(others(6, 7)), [true, false, true], "another name");
    assert_eq!(
        outermost(others(5, 8)),
        [true, false, true],
        "another capture"
    );
    assert_eq!(
        outermost(others(5, 0)),
        [true, false, true],
        "no number of a capture"
    );
    let after = [around, (5, 7, 41, 50), (5, 7, 30, 60)];
    assert_eq!(
        outermost(after),
        [true; 3],
        "one after another, or overlapping"
    );
}

#[test]
fn a_renewed_anchor_is_no_replay() {
    let mut fixture = Fixture::new();
    (1..=2).for_each(|key| fixture.capture(key, 0));
    (1..=2).for_each(|key| fixture.replay(key, [1.0, 2.0]));
    assert_eq!(fixture.poll().len(), 2);
    // The second scope is replayed before the anchor is renewed, and the replay is not noticed until after that.
    fixture.replay(2, [3.0, 5.0]);
    let renewed = event(2);
    fixture.driver.pass(renewed, 4.0);
    fixture
        .scopes
        .rebase(&fixture.driver, anchor(), Some(renewed));
    let mut replays = Vec::new();
    for _ in 0..2 {
        let add =
            |replay: ReplayedScope<'_>| replays.push((replay.measurement.scope.key, replay.ns));
        fixture.scopes.poll(&fixture.driver, renewed, true, add);
    }
    assert_eq!(replays, [(2, 2e6)]);
}

#[test]
fn cleared_scopes_are_not_polled() {
    let mut fixture = Fixture::new();
    fixture.capture(1, 0);
    assert!(!fixture.scopes.were_replayed_lately());
    fixture.replay(1, [1.0, 2.0]);
    assert_eq!(fixture.poll().len(), 1);
    assert!(fixture.scopes.are_due(false) && fixture.scopes.are_expected());
    fixture.scopes.clear();
    assert!(fixture.scopes.is_empty() && !fixture.scopes.are_due(true));
}
