//! Each argument keeps its promise, as seen by a logger: on, off, stripped.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use profiler_runtime::log::LogError;
use profiler_runtime::{
    ScalarLogger, flush, measure, measure_execution_time, measure_execution_time_context, scope,
};
use profiler_tests::counts::{calls, expected};
use profiler_tests::kept;

/// Keeps the steps that it receives, with their tags.
#[derive(Default)]
struct Told(Mutex<Vec<(String, u64)>>);

impl ScalarLogger for Told {
    fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
        assert!(value >= 0.0, "{value} ms");
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((tag.to_owned(), step));
        Ok(())
    }
}

impl Told {
    /// The steps told so far, in order.
    fn steps(&self) -> Vec<u64> {
        let report = flush(Duration::from_secs(59));
        assert_eq!(report.left, 0, "{report:?}");
        let mut steps: Vec<u64> = self.all().into_iter().map(|(_, step)| step).collect();
        steps.sort_unstable();
        steps
    }

    fn all(&self) -> Vec<(String, u64)> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// These steps, or none where nothing is measured.
fn expected_steps(steps: impl IntoIterator<Item = u64>) -> Vec<u64> {
    steps.into_iter().filter(|_| expected(1) > 0).collect()
}

/// Counts how often it was cloned.
#[derive(Default)]
struct Clones(Arc<AtomicU64>);

impl Clone for Clones {
    fn clone(&self) -> Self {
        self.0.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&self.0))
    }
}

#[test]
fn a_logger_in_a_variable_is_cloned_only_for_calls_that_are_logged() {
    let clones = Clones::default();
    let counted = Arc::clone(&clones.0);
    // Mentions the whole value, so that the closure captures it, and not its field.
    let logger = move |_: &str, _: f64, _: u64| _ = &clones;
    for step in 0..10_u64 {
        let _guard = measure!("clones", log = logger, log_every = 5, global_step = step);
        measure!(
            format!("clones {}", "bypassed"),
            log = logger,
            bypass = true,
            {}
        );
    }
    assert_eq!(counted.load(Ordering::Relaxed), expected(2));
}

struct Trainer {
    told: Arc<Told>,
    epoch: u32,
}

impl Trainer {
    #[measure_execution_time(name = "train", log = self.told.clone(), global_step = self.epoch)]
    fn train(&mut self) {
        self.epoch += 10;
    }

    #[measure_execution_time(name = "consume", log = self.told.clone())]
    fn consume(self) -> u32 {
        self.epoch
    }
}

#[test]
fn the_step_is_the_one_before_the_body_changes_it() {
    let told = Arc::new(Told::default());
    let mut trainer = Trainer {
        told: told.clone(),
        epoch: 1,
    };
    trainer.train();
    trainer.train();
    assert_eq!(trainer.consume(), 21);
    assert_eq!(told.steps(), expected_steps([0, 1, 11]));
}

#[test]
fn bypass_is_asked_at_each_call() {
    #[measure_execution_time(name = "bypassed", log = told.clone(), bypass = step & 1 == 0, global_step = step)]
    fn step(told: &Arc<Told>, step: u64) -> u64 {
        step
    }

    let told = Arc::new(Told::default());
    assert_eq!((0..6).map(|number| step(&told, number)).sum::<u64>(), 15);
    assert_eq!(told.steps(), expected_steps([1, 3, 5]));
    assert_eq!(calls("bypassed"), expected(3));
}

#[test]
fn arguments_are_evaluated_only_for_a_call_that_is_logged() {
    #[measure_execution_time(
        name = "evaluated",
        log = { evaluated.set(evaluated.get() + 1); told.clone() },
        log_every = 5,
        bypass = bypassed
    )]
    fn run(told: &Arc<Told>, evaluated: &std::cell::Cell<u64>, bypassed: bool) {}

    let (told, evaluated) = (Arc::new(Told::default()), std::cell::Cell::new(0));
    (0..20).for_each(|_| run(&told, &evaluated, false));
    (0..20).for_each(|_| run(&told, &evaluated, true));
    assert_eq!(evaluated.get(), expected(4));
}

#[test]
fn a_closure_gets_a_tag_with_its_unit_the_milliseconds_and_the_step() {
    #[measure_execution_time(name = "to a closure", log = {
        let told = told.clone();
        move |tag: &str, milliseconds: f64, step: u64| told.add_scalar(tag, milliseconds, step)
    })]
    fn block(told: &Arc<Told>) {}

    // An assertion in a logger would not fail the test: the profiler catches its panics.
    static INFERRED: Mutex<Vec<(String, bool, u64)>> = Mutex::new(Vec::new());

    #[measure_execution_time(log = |tag, milliseconds, step| {
        let mut inferred = INFERRED.lock().unwrap_or_else(PoisonError::into_inner);
        inferred.push((tag.to_owned(), milliseconds >= 0.0, step));
    })]
    fn inferred() {}

    let told = Arc::new(Told::default());
    block(&told);
    inferred();
    assert_eq!(told.steps(), expected_steps([0]));
    assert!(
        told.all()
            .iter()
            .all(|(tag, _)| kept::without_unit(tag) == Some("to a closure")),
        "{:?}",
        told.all()
    );
    let inferred = INFERRED.lock().unwrap_or_else(PoisonError::into_inner);
    let values: Vec<_> = inferred
        .iter()
        .map(|(tag, is_positive, step)| (kept::without_unit(tag), *is_positive, *step))
        .collect();
    assert_eq!(values.len(), expected_steps([0]).len());
    for (tag, is_positive, step) in values {
        assert!(tag.is_some_and(|tag| tag.ends_with("inferred")), "{tag:?}");
        assert!(is_positive && step == 0);
    }
}

#[test]
fn sections_take_the_same_arguments() {
    let told = Arc::new(Told::default());
    for step in 0..4_u64 {
        let _guard = scope!(
            "a guard",
            log = told.clone(),
            global_step = step,
            bypass = step == 3
        );
        let name = format!("a block {step}");
        let value =
            measure_execution_time_context!(name, log = told.clone(), global_step = 10 + step, {
                step
            });
        assert_eq!(value, step);
    }
    assert_eq!(told.steps(), expected_steps([0, 1, 2, 10, 11, 12, 13]));
}
