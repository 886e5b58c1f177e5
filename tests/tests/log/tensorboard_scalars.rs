//! Every scalar stands in the event file: tag, value, step, wall time, checksums.

use profiler_tests::event_files;
use std::error::Error;
use std::time::{Duration, SystemTime};

use profiler_runtime::log::{LogError, Scalar};
use profiler_runtime::{ScalarLogger, TensorBoardLogger};

type Outcome = Result<(), Box<dyn Error>>;

/// The largest 32-bit error of a value near it: half a unit in the 24th binary place.
fn rounds_to(stored: f32, value: f64) -> bool {
    (f64::from(stored) - value).abs() <= value.abs() * 2_f64.powi(-24)
}

#[test]
fn tags_values_steps_and_wall_times_are_read_back() -> Outcome {
    let dir = tempfile::tempdir()?;
    let start = SystemTime::now();
    let scalars: Vec<_> = (0..1000_u32)
        .map(|i| {
            let tag = format!("model/größe/{}", i % 7);
            let wall_time = start + Duration::from_millis(3) * i;
            (tag, f64::from(i) * 1.1, u64::from(i) * 1_000_003, wall_time)
        })
        .collect();

    let logger = TensorBoardLogger::new(dir.path())?;
    for (tag, value, step, wall_time) in &scalars {
        logger.add(&Scalar::new(tag, *value, *step, *wall_time))?;
    }
    logger.flush()?;

    let file = event_files::only_file(dir.path());
    assert_eq!(file.scalars.len(), scalars.len());
    for (read, (tag, value, step, wall_time)) in file.scalars.iter().zip(&scalars) {
        assert_eq!(&read.tag, tag);
        assert!(rounds_to(read.value, *value), "{} for {value}", read.value);
        assert_eq!(u64::try_from(read.step)?, *step);
        let seconds = wall_time
            .duration_since(SystemTime::UNIX_EPOCH)?
            .as_secs_f64();
        assert!((read.wall_time - seconds).abs() < 1e-6);
    }
    Ok(())
}

#[test]
fn values_of_one_step_share_an_event_only_within_a_millisecond() -> Outcome {
    let dir = tempfile::tempdir()?;
    let start = SystemTime::now();
    let logger = TensorBoardLogger::new(dir.path())?;
    // Three times so close that they share an event, one too late, one of another step.
    for (micros, step) in [(0, 5), (400, 5), (900, 5), (1_600, 5), (1_700, 6)] {
        let wall_time = start + Duration::from_micros(micros);
        logger.add(&Scalar::new(&format!("at/{micros}"), 1.0, step, wall_time))?;
    }
    logger.flush()?;

    let file = event_files::only_file(dir.path());
    assert_eq!(file.events, 1 + 3, "the first record and three events");
    let start = start.duration_since(SystemTime::UNIX_EPOCH)?.as_secs_f64();
    for scalar in &file.scalars {
        let micros: f64 = scalar.tag["at/".len()..].parse()?;
        let error = (scalar.wall_time - start - micros * 1e-6).abs();
        assert!(error <= 0.001, "{} is {error} s off", scalar.tag);
    }
    Ok(())
}

#[test]
fn several_values_of_one_call_share_an_event() -> Outcome {
    let dir = tempfile::tempdir()?;
    let logger = TensorBoardLogger::new(dir.path())?;
    logger.add_scalars(&[("train/loss", 0.25), ("train/accuracy", 0.5)], 17)?;
    drop(logger);

    let file = event_files::only_file(dir.path());
    assert_eq!(file.events, 2);
    let read: Vec<_> = file
        .scalars
        .iter()
        .map(|scalar| (scalar.tag.as_str(), scalar.value, scalar.step))
        .collect();
    assert_eq!(
        read,
        [("train/loss", 0.25, 17), ("train/accuracy", 0.5, 17)]
    );
    Ok(())
}

#[test]
fn values_that_are_no_numbers_are_kept() -> Outcome {
    let dir = tempfile::tempdir()?;
    let logger = TensorBoardLogger::new(dir.path())?;
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0] {
        logger.add_scalar("odd", value, 0)?;
    }
    drop(logger);

    let values: Vec<_> = event_files::only_file(dir.path())
        .scalars
        .iter()
        .map(|scalar| scalar.value)
        .collect();
    assert!(values[0].is_nan());
    assert_eq!(values[1..3], [f32::INFINITY, f32::NEG_INFINITY]);
    assert!(values[3] == 0.0 && values[3].is_sign_negative());
    Ok(())
}

#[test]
fn scalars_that_no_event_file_can_hold_are_refused_and_counted() -> Outcome {
    let dir = tempfile::tempdir()?;
    let logger = TensorBoardLogger::new(dir.path())?;
    logger.add_scalar("step", 1.0, i64::MAX.cast_unsigned())?;
    let step = logger
        .add_scalar("step", 1.0, 1_u64 << 63)
        .expect_err("over i64::MAX");
    let tag = logger
        .add_scalar(&"x".repeat(1 << 20), 1.0, 0)
        .expect_err("a tag of 1 MiB");
    assert!(matches!(step, LogError::Refused(_)), "{step}");
    assert!(
        step.to_string()
            .contains("give a `global_step` up to 9223372036854775807"),
        "{step}"
    );
    assert!(matches!(tag, LogError::Refused(_)), "{tag}");
    assert!(
        tag.to_string().contains("give a `name` with at most"),
        "{tag}"
    );
    assert_eq!(logger.lost(), 2);
    drop(logger);

    let file = event_files::only_file(dir.path());
    assert_eq!(file.scalars.len(), 1);
    assert_eq!(file.scalars[0].step, i64::MAX);
    Ok(())
}

#[test]
fn threads_that_share_a_logger_lose_nothing() -> Outcome {
    const EACH: u64 = 5_000;
    let dir = tempfile::tempdir()?;
    let logger = TensorBoardLogger::new(dir.path())?;
    let tags = ["a", "b", "c", "d"];
    std::thread::scope(|scope| {
        for tag in tags {
            let logger = &logger;
            scope.spawn(move || {
                for step in 0..EACH {
                    logger
                        .add_scalar(tag, step as f64, step)
                        .expect("the disk has room");
                }
            });
        }
    });
    drop(logger);

    let file = event_files::only_file(dir.path());
    for tag in tags {
        let steps = file
            .scalars
            .iter()
            .filter(|scalar| scalar.tag == tag)
            .map(|scalar| scalar.step);
        assert!(
            steps.eq(0..EACH.cast_signed()),
            "the steps of {tag} are contiguous"
        );
    }
    Ok(())
}
