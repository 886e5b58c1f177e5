//! The `SummaryWriter` a program already holds is a logger, and its panics stay contained.
#![cfg(all(unix, feature = "tensorboard-rs"))]

use profiler_tests::child;
use profiler_tests::event_files;
use profiler_tests::full_disk;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex};

use profiler_runtime::log::{IntoLogger, LogError};
use profiler_runtime::{ScalarLogger, TensorBoardRsLogger};
use tensorboard_rs::summary_writer::SummaryWriter;

type Outcome = Result<(), Box<dyn Error>>;

#[test]
fn a_writer_given_away_writes_everything_when_it_is_dropped() -> Outcome {
    let dir = tempfile::tempdir()?;
    let logger = TensorBoardRsLogger::new(SummaryWriter::new(dir.path()))?;
    for step in 0..1000 {
        logger.add_scalar("train/step", 1.5, step)?;
    }
    logger.flush()?;
    drop(logger);
    let scalars = event_files::only_file(dir.path()).scalars;
    assert!(scalars.iter().map(|scalar| scalar.step).eq(0..1000));
    assert!(
        scalars
            .iter()
            .all(|scalar| scalar.tag == "train/step" && scalar.value.to_bits() == 1.5_f32.to_bits())
    );
    Ok(())
}

#[test]
fn a_writer_that_is_shared_stays_the_programs() -> Outcome {
    let dir = tempfile::tempdir()?;
    let writer = Arc::new(Mutex::new(SummaryWriter::new(dir.path())));
    for step in 0..10 {
        // As an annotated function does, once a call.
        let logger = writer.clone().into_logger();
        logger.as_dyn().add_scalar("train/step", 1.5, step)?;
        writer
            .lock()
            .expect("nobody panics")
            .add_scalar("loss", 0.5, usize::try_from(step)?);
    }
    drop(writer);
    let scalars = event_files::only_file(dir.path()).scalars;
    for tag in ["train/step", "loss"] {
        let steps = scalars
            .iter()
            .filter(|scalar| scalar.tag == tag)
            .map(|scalar| scalar.step);
        assert!(steps.eq(0..10), "{tag}");
    }
    Ok(())
}

#[test]
fn a_writer_by_value_is_a_logger() -> Outcome {
    let dir = tempfile::tempdir()?;
    let logger = SummaryWriter::new(dir.path()).into_logger();
    logger.as_dyn().add_scalar("train/step", 1.5, 3)?;
    drop(logger);
    assert_eq!(event_files::only_file(dir.path()).scalars[0].step, 3);
    Ok(())
}

#[test]
fn a_writer_that_panics_is_never_touched_again() -> Outcome {
    if let Some(dir) = child::dir() {
        return panic_on_a_full_disk(&dir);
    }
    let dir = tempfile::tempdir()?;
    let output = child::again(dir.path()).output()?;
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    // The thread of the writer, the first call after it, and no other call.
    assert_eq!(errors.matches("panicked at").count(), 2, "{errors}");
    Ok(())
}

fn panic_on_a_full_disk(dir: &Path) -> Outcome {
    let writer = Arc::new(Mutex::new(SummaryWriter::new(dir)));
    let logger = TensorBoardRsLogger::shared(writer.clone())?;
    full_disk::limit_files(1000)?;
    // Its thread panics at some time after the disk is full; a call notices at some time after.
    let error = (0..).find_map(|step| match logger.add_scalar("train/step", 1.5, step) {
        Err(LogError::Refused(_)) | Ok(()) => None,
        Err(error) => Some(error),
    });
    let error = error.expect("the writer fails");
    assert!(matches!(error, LogError::Closed(_)), "{error}");
    assert!(error.to_string().contains("make a new one"), "{error}");

    for other in [
        logger.clone(),
        TensorBoardRsLogger::shared(writer.clone())?,
        logger,
    ] {
        assert!(matches!(
            other.add_scalar("train/step", 1.5, 0),
            Err(LogError::Closed(_))
        ));
        assert!(matches!(other.flush(), Err(LogError::Closed(_))));
    }
    // The program's own drop of it would panic too; it is kept from being dropped.
    drop(writer);
    Ok(())
}

#[test]
fn dropping_a_writer_that_cannot_write_is_contained() -> Outcome {
    let Some(dir) = child::dir() else {
        return Ok(full_disk::passes()?);
    };
    let logger = TensorBoardRsLogger::new(SummaryWriter::new(&dir))?;
    full_disk::limit_files(1000)?;
    for step in 0..100 {
        if logger.add_scalar("train/step", 1.5, step).is_err() {
            break;
        }
    }
    drop(logger);
    // A hundred values would take more.
    let files = event_files::paths(&dir);
    let written = std::fs::metadata(&files[0])?.len();
    assert!(written <= 1000, "{written} bytes");
    Ok(())
}
