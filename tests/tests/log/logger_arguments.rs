//! `log = …` takes the loggers people hold, and what a closure returns is heeded.

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use profiler_runtime::log::{IntoLogger, LogError, LogFn, LogOutcome, Logger};
use profiler_runtime::{ScalarLogger, TensorBoardLogger, TracingLogger};
use profiler_tests::event_files;

type Outcome = Result<(), Box<dyn Error>>;

/// Adds up the steps it is given.
#[derive(Default)]
struct Adder(AtomicU64);

impl ScalarLogger for Adder {
    fn add_scalar(&self, _tag: &str, _value: f64, step: u64) -> Result<(), LogError> {
        self.0.fetch_add(step, Ordering::Relaxed);
        Ok(())
    }
}

impl Adder {
    fn sum(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Takes a logger as the crate's own functions do.
fn log<Marker>(logger: impl IntoLogger<Marker>, step: u64) -> Result<(), LogError> {
    let logger: Logger = logger.into_logger();
    // Loggers are called on a thread of the profiler.
    std::thread::scope(|scope| {
        let call = scope.spawn(|| logger.as_dyn().add_scalar("tag", 1.5, step));
        call.join().expect("the logger does not panic")
    })
}

#[test]
fn shared_loggers_are_taken() -> Outcome {
    let adder = Arc::new(Adder::default());
    let object: Arc<dyn ScalarLogger> = adder.clone();
    log(adder.clone(), 1)?;
    log(object.clone(), 10)?;
    log(object.into_logger(), 100)?;
    assert_eq!(adder.sum(), 111);
    Ok(())
}

#[test]
fn static_loggers_are_taken() -> Outcome {
    static ADDER: Adder = Adder(AtomicU64::new(0));
    static OBJECT: &dyn ScalarLogger = &ADDER;
    log(&ADDER, 1)?;
    log(OBJECT, 10)?;
    assert_eq!(ADDER.sum(), 11);
    Ok(())
}

#[test]
fn boxed_loggers_and_those_of_the_crate_are_taken() -> Outcome {
    let dir = tempfile::tempdir()?;
    let boxed: Box<dyn ScalarLogger> = Box::new(TensorBoardLogger::new(dir.path())?);
    log(boxed, 3)?;
    log(TensorBoardLogger::new(dir.path())?, 4)?;
    log(TracingLogger, 0)?;
    let files = event_files::paths(dir.path()).into_iter();
    let mut steps: Vec<i64> = files
        .flat_map(|path| event_files::read(&path).scalars)
        .map(|scalar| scalar.step)
        .collect();
    steps.sort_unstable();
    assert_eq!(steps, [3, 4]);
    Ok(())
}

#[test]
fn closures_and_functions_are_taken() -> Outcome {
    fn function(tag: &str, value: f64, step: u64) -> Result<(), String> {
        if (tag, value, step) == ("tag", 1.5, 7) {
            Ok(())
        } else {
            Err(format!("{tag} {step}"))
        }
    }
    let (sender, receiver) = mpsc::channel();
    let shared = sender.clone();
    log(|_: &str, _: f64, _: u64| {}, 1)?;
    log(
        move |tag: &str, value: f64, step: u64| sender.send((tag.to_owned(), value, step)),
        2,
    )?;
    log(
        Arc::new(move |tag: &str, _: f64, step: u64| shared.send((tag.into(), 0.0, step))),
        3,
    )?;
    log(function, 7)?;
    assert_eq!(
        log(function, 8).map_err(|error| error.to_string()),
        Err("tag 8".to_owned())
    );
    let calls: Vec<_> = receiver.iter().collect();
    assert_eq!(
        calls,
        [("tag".to_owned(), 1.5, 2), ("tag".to_owned(), 0.0, 3)]
    );
    Ok(())
}

#[test]
fn a_wrapped_closure_needs_no_types() -> Outcome {
    let longest = Arc::new(Mutex::new(0.0_f64));
    let seen = longest.clone();
    let wrapped: Arc<dyn ScalarLogger> = Arc::new(LogFn::new(move |_, milliseconds, _| {
        let mut longest = seen.lock().expect("nobody panics");
        *longest = longest.max(milliseconds);
    }));
    log(wrapped, 0)?;
    log(LogFn::new(|_, _, _| Err("the queue is full")), 0).expect_err("what the closure returned");
    assert!((*longest.lock().expect("nobody panics") - 1.5).abs() < f64::EPSILON);
    Ok(())
}

#[test]
fn an_error_that_a_closure_returns_is_an_error_of_the_logger() {
    let failed = log(|_: &str, _: f64, _: u64| Err::<(), _>("no room"), 0);
    assert_eq!(
        failed.map_err(|error| error.to_string()),
        Err("no room".to_owned())
    );
    assert!(().into_result().is_ok());
}
