//! Flushed values are in the log, however the process ends.
#![cfg(unix)]

use profiler_tests::child;
use profiler_tests::event_files;
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use profiler_runtime::TensorBoardLogger;

type Outcome = Result<(), Box<dyn Error>>;

const FLUSHED: u64 = 2_500;

#[test]
fn what_was_flushed_survives_kill_9_mid_run() -> Outcome {
    if let Some(dir) = child::dir() {
        let logger = TensorBoardLogger::new(dir)?;
        for step in 0.. {
            logger.add_scalar("step", 1.0, step)?;
            if step + 1 == FLUSHED {
                logger.flush()?;
                println!("\nflushed");
            }
        }
    }
    let dir = tempfile::tempdir()?;
    let mut child = child::again(dir.path()).stdout(Stdio::piped()).spawn()?;
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let flushed = output
        .lines()
        .map_while(Result::ok)
        .any(|line| line == "flushed");
    // This is signal 9; the child is in the middle of logging.
    child.kill()?;
    child.wait()?;
    assert!(flushed);

    let file = event_files::read(&event_files::paths(dir.path())[0]);
    assert!(file.scalars.len() as u64 >= FLUSHED);
    assert!(
        file.scalars
            .iter()
            .map(|scalar| scalar.step)
            .eq(0..file.scalars.len().try_into()?)
    );
    Ok(())
}

#[test]
fn a_logger_that_is_never_dropped_keeps_what_was_flushed() -> Outcome {
    if let Some(dir) = child::dir() {
        let logger = Box::leak(Box::new(TensorBoardLogger::new(dir)?));
        logger.add_scalar("step", 1.0, 0)?;
        logger.flush()?;
        std::process::exit(0);
    }
    let dir = tempfile::tempdir()?;
    assert!(child::again(dir.path()).output()?.status.success());
    assert_eq!(event_files::only_file(dir.path()).scalars.len(), 1);
    Ok(())
}
