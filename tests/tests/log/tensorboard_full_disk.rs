//! A disk that takes nothing more is an error that says so; the log stays readable and continues
//! when there is space again, and every value is in it or counted.
#![cfg(unix)]

use profiler_tests::child;
use profiler_tests::event_files;
use profiler_tests::full_disk;
use std::error::Error;
use std::fs;
use std::path::Path;

use profiler_runtime::log::LogError;
use profiler_runtime::TensorBoardLogger;

type Outcome = Result<(), Box<dyn Error>>;

#[test]
fn values_wait_for_room_or_are_refused_and_counted() -> Outcome {
    match child::dir() {
        Some(dir) => fill_the_disk_and_free_it(&dir),
        None => Ok(full_disk::passes()?),
    }
}

fn fill_the_disk_and_free_it(dir: &Path) -> Outcome {
    const VALUES: u64 = 100_000;
    const ROOM: u64 = 100_000;
    let logger = TensorBoardLogger::new(dir)?;
    full_disk::limit_files(ROOM)?;
    let mut taken = Vec::new();
    let mut errors = Vec::new();
    for step in 0..VALUES {
        match logger.add_scalar("step", 1.0, step) {
            Ok(()) => taken.push(step.cast_signed()),
            Err(error) => errors.push(error),
        }
    }
    assert!(!taken.is_empty() && !errors.is_empty());
    assert!(
        errors
            .iter()
            .all(|error| matches!(error, LogError::Io { .. })),
        "{:?}",
        errors[0]
    );
    assert_eq!(logger.lost(), errors.len() as u64);

    let error = logger.flush().expect_err("there is no room");
    assert!(
        error
            .to_string()
            .contains("check that the folder can be written"),
        "{error}"
    );
    let prefix = event_files::only_file(dir);
    assert!(!prefix.scalars.is_empty(), "what had room is in the file");
    let steps = prefix.scalars.iter().map(|scalar| scalar.step);
    assert!(steps.eq(taken[..prefix.scalars.len()].iter().copied()));

    full_disk::limit_files(u64::MAX)?;
    logger.flush()?;
    for step in VALUES..2 * VALUES {
        logger.add_scalar("step", 1.0, step)?;
        taken.push(step.cast_signed());
    }
    drop(logger);
    let steps: Vec<_> = event_files::only_file(dir)
        .scalars
        .iter()
        .map(|scalar| scalar.step)
        .collect();
    assert!(
        steps == taken,
        "all that was taken is in the file, once and in order"
    );
    Ok(())
}

#[test]
fn dropping_a_logger_on_a_full_disk_leaves_a_readable_file() -> Outcome {
    let Some(dir) = child::dir() else {
        return Ok(full_disk::passes()?);
    };
    let logger = TensorBoardLogger::new(&dir)?;
    logger.add_scalar("step", 1.0, 0)?;
    logger.flush()?;
    let room = fs::metadata(logger.path())?.len() + 20;
    full_disk::limit_files(room)?;
    logger.add_scalar("step", 1.0, 1)?;
    drop(logger);
    assert_eq!(event_files::only_file(&dir).scalars.len(), 1);
    Ok(())
}

#[test]
fn a_logger_that_can_write_nothing_is_an_error_and_leaves_no_file() -> Outcome {
    let Some(dir) = child::dir() else {
        return Ok(full_disk::passes()?);
    };
    full_disk::limit_files(0)?;
    let error = TensorBoardLogger::new(&dir).expect_err("there is no room");
    assert!(matches!(error, LogError::Io { .. }), "{error}");
    assert_eq!(event_files::paths(&dir).len(), 0);
    Ok(())
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_that_names_it() -> Outcome {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("a file");
    fs::write(&file, "no folder")?;
    let folder = file.join("runs");
    let error = TensorBoardLogger::new(&folder).expect_err("a file is no folder");
    assert!(
        error.to_string().contains(&folder.display().to_string()),
        "{error}"
    );
    Ok(())
}
