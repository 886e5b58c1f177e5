//! Loggers that panic, block or fail are contained, counted and reported once; the others still receive entries.

#![cfg(not(feature = "strip"))]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use profiler_runtime::log::LogError;
use profiler_runtime::report::DropReason;
use profiler_runtime::{FlushReport, ScalarLogger, flush, measure_execution_time, scope, summary};
use profiler_tests::row;

/// No test gets here: it is how long one that hangs does.
const LONG: Duration = Duration::from_secs(600);

static GOOD: AtomicU64 = AtomicU64::new(0);

#[measure_execution_time(name = "loggers: good", log = |_, _, _| _ = GOOD.fetch_add(1, Relaxed))]
fn good() {}

fn dropped(reason: DropReason) -> u64 {
    dropped_for(|other| other == reason)
}

/// How many entries were dropped for such reasons.
fn dropped_for(is_such: impl Fn(DropReason) -> bool) -> u64 {
    let summary = summary();
    let such = summary.dropped.iter().filter(|(other, _)| is_such(*other));
    such.map(|(_, count)| count).sum()
}

fn notices_about(name: &str) -> usize {
    summary()
        .notices
        .iter()
        .filter(|notice| notice.contains(name))
        .count()
}

/// Has panics print no backtrace. Printing one can take longer than the second after which the profiler warns of a logger
/// that does not return, and these loggers panic.
fn without_backtraces() {
    std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
}

struct Panicking;

impl ScalarLogger for Panicking {
    fn add_scalar(&self, _tag: &str, _value: f64, _step: u64) -> Result<(), LogError> {
        PANICS.fetch_add(1, Relaxed);
        panic!("a logger that panics, as asked");
    }
}

static PANICS: AtomicU64 = AtomicU64::new(0);
static PANICKING: Panicking = Panicking;

#[measure_execution_time(name = "loggers: panics", log = &PANICKING)]
fn panics() {}

struct Failing;

impl ScalarLogger for Failing {
    fn add_scalar(&self, _tag: &str, _value: f64, step: u64) -> Result<(), LogError> {
        if step.is_multiple_of(2) {
            Err(LogError::other("the sink is full"))
        } else {
            Ok(())
        }
    }
}

static FAILING: Failing = Failing;

#[measure_execution_time(name = "loggers: fails", log = &FAILING)]
fn fails() {}

#[test(measuring)]
fn a_logger_that_fails_is_counted_and_called_again() {
    let before = (dropped(DropReason::LoggerFailed), flush(LONG).delivered);
    for _ in 0..10 {
        fails();
    }
    let report = flush(LONG);
    assert_eq!(report.left, 0);
    assert_eq!(dropped(DropReason::LoggerFailed) - before.0, 5);
    assert_eq!(report.delivered - before.1, 5);
    assert_eq!(notices_about("the sink is full"), 1);
}

/// Blocks until it is let go.
struct Blocking;

static BLOCKING: Blocking = Blocking;
static GATE: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());
static TAKEN: AtomicU64 = AtomicU64::new(0);
static ENTERED: AtomicBool = AtomicBool::new(false);

impl ScalarLogger for Blocking {
    fn add_scalar(&self, _tag: &str, _value: f64, _step: u64) -> Result<(), LogError> {
        ENTERED.store(true, Relaxed);
        let open = GATE.0.lock().map_err(LogError::other)?;
        drop(
            GATE.1
                .wait_while(open, |open| !*open)
                .map_err(LogError::other)?,
        );
        TAKEN.fetch_add(1, Relaxed);
        Ok(())
    }
}

#[measure_execution_time(name = "loggers: blocks", log = &BLOCKING)]
fn blocks() {}

fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LONG, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test(measuring)]
fn a_logger_that_blocks_delays_no_program_and_is_named_once_a_ring_is_full() {
    let (good_before, full_before) = (GOOD.load(Relaxed), dropped(DropReason::RingFull));
    let before = dropped_for(|_| true);
    blocks();
    wait_until("the logger is called", || ENTERED.load(Relaxed));
    // The logger blocks until its gate opens below: a flush that waited for it would never return.
    let report = flush(Duration::from_millis(50));
    assert!(report.left >= 1, "a flush waits no longer than its timeout");
    let mut calls = 0;
    wait_until("a warning names it", || {
        for _ in 0..1000 {
            good();
        }
        calls += 1000;
        notices_about("the logger of `loggers: blocks` has not returned") == 1
    });
    assert_eq!(GOOD.load(Relaxed), good_before, "the others wait for it");
    assert!(
        dropped(DropReason::RingFull) > full_before,
        "a ring is full"
    );

    *GATE.0.lock().unwrap() = true;
    GATE.1.notify_all();
    assert_eq!(flush(LONG).left, 0);
    assert_eq!(TAKEN.load(Relaxed), 1);
    let lost = dropped_for(|_| true) - before;
    assert_eq!(GOOD.load(Relaxed) - good_before, calls - lost);
}

/// Takes everything, then cannot bring it to safety.
struct Unsafe {
    in_flush: fn() -> Result<(), LogError>,
}

static UNSAVED_ASKED: AtomicU64 = AtomicU64::new(0);

impl ScalarLogger for Unsafe {
    fn add_scalar(&self, _tag: &str, _value: f64, _step: u64) -> Result<(), LogError> {
        Ok(())
    }

    fn flush(&self) -> Result<(), LogError> {
        (self.in_flush)()
    }

    fn unsaved(&self) -> u64 {
        UNSAVED_ASKED.fetch_add(1, Relaxed);
        panic!("in unsaved, as asked");
    }
}

static PANICS_WHEN_ASKED: Unsafe = Unsafe {
    in_flush: || Err(LogError::other("no room for it")),
};

#[measure_execution_time(name = "loggers: unsaved panics", log = &PANICS_WHEN_ASKED)]
fn unsaved_panics() {}

#[test(measuring)]
fn a_panic_in_the_flush_of_one_logger_does_not_stop_the_others() {
    without_backtraces();
    let good_before = GOOD.load(Relaxed);
    unsaved_panics();
    assert_eq!(flush(LONG).left, 0);
    assert_eq!(UNSAVED_ASKED.load(Relaxed), 1);
    for _ in 0..100 {
        good();
    }
    assert_eq!(flush(LONG).left, 0);
    assert_eq!(GOOD.load(Relaxed) - good_before, 100);
    assert_eq!(notices_about("loggers: unsaved panics"), 1);
}

/// Its destructor panics, and that of the panic's payload too.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::panic_any(Bomb);
    }
}

#[measure_execution_time(
    name = "loggers: payload panics",
    log = |_, _, _| explode()
)]
fn payload_panics() {}

fn explode() {
    std::panic::panic_any(Bomb);
}

static DEFUSED: AtomicU64 = AtomicU64::new(0);

/// Takes its entries, and panics when it is dropped.
fn explosive(then: fn()) -> Box<dyn ScalarLogger> {
    struct Explosive(fn(), #[allow(dead_code, reason = "only dropped")] Bomb);

    impl ScalarLogger for Explosive {
        fn add_scalar(&self, _tag: &str, _value: f64, _step: u64) -> Result<(), LogError> {
            DEFUSED.fetch_add(1, Relaxed);
            self.0();
            Ok(())
        }
    }

    Box::new(Explosive(then, Bomb))
}

#[measure_execution_time(name = "loggers: drop panics", log = explosive(|| ()))]
fn drop_panics() {}

#[measure_execution_time(
    name = "loggers: both panic",
    log = explosive(|| panic!("before its drop does, as asked"))
)]
fn both_panic() {}

#[test(measuring)]
fn entries_of_a_logger_that_panics_when_dropped_are_delivered() {
    without_backtraces();
    let (before, report) = (DEFUSED.load(Relaxed), flush(LONG));
    for _ in 0..10 {
        drop_panics();
    }
    let after = flush(LONG);
    assert_eq!(after.left, 0);
    assert_eq!(DEFUSED.load(Relaxed) - before, 10);
    assert_eq!(after.delivered - report.delivered, 10);
    assert_eq!(notices_about("loggers: drop panics"), 0);
}

/// An error whose text panics.
#[derive(Debug)]
struct Unspeakable;

impl std::fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("in the text of an error, as asked");
    }
}

impl std::error::Error for Unspeakable {}

struct FailsUnspeakably;

impl ScalarLogger for FailsUnspeakably {
    fn add_scalar(&self, _tag: &str, _value: f64, _step: u64) -> Result<(), LogError> {
        Err(LogError::Other(Box::new(Unspeakable)))
    }
}

#[measure_execution_time(name = "loggers: unspeakable", log = &FailsUnspeakably)]
fn unspeakable() {}

#[test(measuring)]
fn a_logger_that_panics_is_contained_and_not_called_again() {
    without_backtraces();
    let cases: [(&str, fn()); 4] = [
        ("loggers: panics", panics),
        ("loggers: payload panics", payload_panics),
        ("loggers: both panic", both_panic),
        ("loggers: unspeakable", unspeakable),
    ];
    for (name, call) in cases {
        let (before, good_before) = (dropped(DropReason::LoggerPanicked), GOOD.load(Relaxed));
        for _ in 0..10 {
            call();
            good();
        }
        assert_eq!(flush(LONG).left, 0, "{name}");
        assert_eq!(dropped(DropReason::LoggerPanicked) - before, 10, "{name}");
        let others = GOOD.load(Relaxed) - good_before;
        assert_eq!(others, 10, "{name}: the others go on");
        assert_eq!(row(name).calls, 10, "{name}: every call is counted");
        assert_eq!(notices_about(name), 1, "{name}");
    }
    assert_eq!(PANICS.load(Relaxed), 1);
}

/// A subscriber that panics whenever it is asked.
struct PanickingSubscriber;

impl tracing::Subscriber for PanickingSubscriber {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        SUBSCRIBER_ASKED.fetch_add(1, Relaxed);
        std::panic::panic_any(Bomb)
    }

    fn register_callsite(
        &self,
        _: &'static tracing::Metadata<'static>,
    ) -> tracing::subscriber::Interest {
        tracing::subscriber::Interest::sometimes()
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {
        std::panic::panic_any(Bomb)
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

static SUBSCRIBER_ASKED: AtomicU64 = AtomicU64::new(0);

#[test(measuring)]
fn a_panicking_tracing_subscriber_does_not_affect_the_program() {
    tracing::subscriber::with_default(PanickingSubscriber, || {
        // It is warned of that no step was made, on this thread.
        let schedule = profiler_runtime::Schedule::new().wait(5).active(1);
        let profile = profiler_runtime::Profile::builder().schedule(schedule);
        let profile = profile.start().expect("it starts");
        assert_eq!(scope_returns(), 7);
        drop(profile);
    });
    assert!(SUBSCRIBER_ASKED.load(Relaxed) > 0, "it was asked");
    assert_eq!(notices_about("without a single `step()`"), 1);
}

#[measure_execution_time(name = "loggers: beside a subscriber")]
fn scope_returns() -> u32 {
    7
}

static FLUSH_GATE: AtomicBool = AtomicBool::new(false);

fn wait_for_the_gate() {
    while !FLUSH_GATE.load(Relaxed) {
        thread::sleep(Duration::from_millis(5));
    }
}

static BLOCKS_IN_FLUSH: Unsafe = Unsafe {
    in_flush: || {
        wait_for_the_gate();
        Ok(())
    },
};

#[measure_execution_time(name = "loggers: flush blocks", log = &BLOCKS_IN_FLUSH)]
fn flush_blocks() {}

#[test(measuring)]
fn entries_of_a_logger_whose_flush_blocks_count_as_left() {
    let good_before = GOOD.load(Relaxed);
    flush_blocks();
    assert!(
        flush(Duration::from_millis(300)).left >= 1,
        "it is not safe"
    );
    good();
    let report = flush(Duration::from_millis(50));
    assert!(report.left >= 2, "the other waits for it");
    assert_eq!(GOOD.load(Relaxed), good_before);
    FLUSH_GATE.store(true, Relaxed);
    assert_eq!(flush(LONG).left, 0);
    assert_eq!(GOOD.load(Relaxed) - good_before, 1);
}

struct Shared;

static SHARED_GATE: AtomicBool = AtomicBool::new(false);

impl ScalarLogger for Shared {
    fn add_scalar(&self, _tag: &str, _value: f64, _step: u64) -> Result<(), LogError> {
        while !SHARED_GATE.load(Relaxed) {
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

static SHARED: Shared = Shared;

#[test(measuring)]
fn entries_of_a_shared_logger_that_blocks_arrive_once_it_returns() {
    let before = flush(LONG);
    for number in 0..12 {
        drop(scope!(format!("loggers: shared {number}"), log = &SHARED));
    }
    good();
    let report = flush(Duration::from_millis(50));
    assert_eq!(report.left, 13);
    SHARED_GATE.store(true, Relaxed);
    let report = flush(LONG);
    assert_eq!((report.left, report.delivered - before.delivered), (0, 13));
}

/// Returns the number of all entries of this process: each is in one of the three counts.
fn all(report: &FlushReport) -> u64 {
    report.delivered + report.dropped + report.left
}

/// Takes everything, and can save only what it is allowed to.
struct Saving {
    taken: AtomicU64,
    is_allowed: AtomicBool,
}

impl ScalarLogger for Saving {
    fn add_scalar(&self, _tag: &str, _value: f64, _step: u64) -> Result<(), LogError> {
        self.taken.fetch_add(1, Relaxed);
        Ok(())
    }

    fn flush(&self) -> Result<(), LogError> {
        if !self.is_allowed.load(Relaxed) {
            return Err(LogError::other("the disk is full"));
        }
        self.taken.store(0, Relaxed);
        Ok(())
    }

    fn unsaved(&self) -> u64 {
        self.taken.load(Relaxed)
    }
}

static SAVING: Saving = Saving {
    taken: AtomicU64::new(0),
    is_allowed: AtomicBool::new(false),
};

#[measure_execution_time(name = "loggers: saves later", log = &SAVING)]
fn saves_later() {}

#[test(measuring)]
fn each_entry_is_delivered_or_dropped_or_left() {
    let before = flush(LONG);
    assert_eq!(before.left, 0);
    // Entries that the program logs directly do not count as the profiler's.
    SAVING.add_scalar("its own", 1.0, 0).unwrap();
    for _ in 0..5 {
        saves_later();
        fails();
    }
    let report = flush(LONG);
    assert_eq!(all(&report), all(&before) + 10);
    assert_eq!(report.left, 5, "taken, and not saved");
    assert_eq!(summary().unsaved, 5);
    for _ in 0..2 {
        saves_later();
    }
    // Each flush asks the loggers for these entries again.
    let report = flush(LONG);
    assert_eq!((all(&report), report.left), (all(&before) + 12, 7));
    SAVING.is_allowed.store(true, Relaxed);
    let report = flush(LONG);
    assert_eq!((all(&report), report.left), (all(&before) + 12, 0));
    assert_eq!(
        report.delivered - before.delivered,
        7 + report_of_fails(&report, &before)
    );
}

/// How many entries of a logger that fails now and then were delivered.
fn report_of_fails(report: &FlushReport, before: &FlushReport) -> u64 {
    5 - (report.dropped - before.dropped)
}

static HELD_GATE: AtomicBool = AtomicBool::new(false);
static IN_FLUSH: AtomicBool = AtomicBool::new(false);

static HELD_IN_FLUSH: Unsafe = Unsafe {
    in_flush: || {
        IN_FLUSH.store(true, Relaxed);
        while !HELD_GATE.load(Relaxed) {
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    },
};

#[measure_execution_time(name = "loggers: held in flush", log = &HELD_IN_FLUSH)]
fn held_in_flush() {}

#[test(measuring)]
fn entries_taken_by_a_blocked_logger_count_as_left_and_not_as_delivered() {
    let before = flush(LONG);
    assert_eq!(before.left, 0);
    for _ in 0..5 {
        held_in_flush();
    }
    // Some may have been taken before it is flushed, and the rest waits behind that.
    wait_until("it is flushed", || IN_FLUSH.load(Relaxed));
    let report = flush(Duration::from_millis(50));
    assert_eq!(all(&report), all(&before) + 5);
    assert_eq!(report.delivered, before.delivered, "none is safe");
    assert!(report.left >= 1);
    HELD_GATE.store(true, Relaxed);
    let report = flush(LONG);
    assert_eq!((report.left, all(&report)), (0, all(&before) + 5));
}
