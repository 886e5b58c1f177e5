//! Histograms and texts stand in the event file beside the scalars, and what cannot is refused and counted.
#![allow(
    clippy::float_cmp,
    reason = "what is written is read back to the last bit"
)]

use profiler_tests::event_files;
use std::error::Error;
use std::sync::Arc;

use profiler_runtime::log::LogError;
use profiler_runtime::{ScalarLogger, TensorBoardLogger};

type Outcome = Result<(), Box<dyn Error>>;

#[test]
fn the_numbers_of_a_histogram_are_those_of_its_values() -> Outcome {
    let dir = tempfile::tempdir()?;
    let logger = TensorBoardLogger::new(dir.path())?;
    // Spread over nine powers of ten on both sides of zero.
    let values: Vec<f64> = (0..2000)
        .map(|i| f64::from(i % 7 - 3) * 1.01_f64.powi(i))
        .collect();
    logger.add_histogram("weights/größe", values.iter().copied(), 17)?;
    drop(logger);

    let file = event_files::only_file(dir.path());
    let [read] = &file.histograms[..] else {
        panic!("one histogram: {:?}", file.histograms);
    };
    assert_eq!((read.tag.as_str(), read.step), ("weights/größe", 17));
    assert_eq!(read.count, values.len() as f64);
    assert_eq!(read.sum, values.iter().sum::<f64>());
    assert_eq!(
        read.sum_of_squares,
        values.iter().map(|value| value * value).sum::<f64>()
    );
    assert_eq!(
        read.smallest,
        values.iter().copied().fold(f64::MAX, f64::min)
    );
    assert_eq!(
        read.largest,
        values.iter().copied().fold(f64::MIN, f64::max)
    );
    let mut lower = f64::NEG_INFINITY;
    for (limit, count) in &read.buckets {
        let inside = values
            .iter()
            .filter(|value| (lower..*limit).contains(*value));
        assert_eq!(inside.count() as f64, *count, "from {lower} to {limit}");
        // A reader knows each value to a tenth, or to 10⁻¹².
        let width = (lower.abs().max(limit.abs()) * 0.1).max(1e-12);
        assert!(*count == 0.0 || lower.is_infinite() || limit - lower <= width);
        lower = *limit;
    }
    Ok(())
}

#[test]
fn a_text_is_the_one_that_was_given() -> Outcome {
    let dir = tempfile::tempdir()?;
    let logger = TensorBoardLogger::new(dir.path())?;
    let table = "| größe | `rate` |\n|---|---|\n| 1 < 2 | \0 |\n".to_owned();
    let texts = [table, String::new(), "x".repeat(256 * 1024)];
    for (step, text) in (0..).zip(&texts) {
        logger.add_text("notes/all & every", text, step)?;
    }
    drop(logger);

    let file = event_files::only_file(dir.path());
    assert_eq!(file.texts.len(), texts.len());
    for ((read, text), step) in file.texts.iter().zip(&texts).zip(0..) {
        assert_eq!((read.tag.as_str(), read.step), ("notes/all & every", step));
        assert!(read.text == *text, "text {step}");
    }
    Ok(())
}

#[test]
fn scalars_histograms_and_texts_can_share_a_step() -> Outcome {
    let dir = tempfile::tempdir()?;
    let logger = TensorBoardLogger::new(dir.path())?;
    for step in 0..100 {
        logger.add_scalar("loss", 0.5, step)?;
        logger.add_histogram("weights", [1.0, 2.0], step)?;
        logger.add_text("note", "**on**", step)?;
        logger.add_scalar("accuracy", 0.75, step)?;
    }
    assert!(logger.unsaved() > 0);
    logger.flush()?;
    assert_eq!(logger.unsaved(), 0);

    let file = event_files::only_file(dir.path());
    let counts = (file.scalars.len(), file.histograms.len(), file.texts.len());
    assert_eq!(counts, (200, 100, 100));
    assert!(file.histograms.iter().map(|read| read.step).eq(0..100));
    assert!(file.texts.iter().map(|read| read.step).eq(0..100));
    let twice = (0..100).flat_map(|step| [step, step]);
    assert!(file.scalars.iter().map(|read| read.step).eq(twice));
    Ok(())
}

#[test]
fn invalid_histograms_and_texts_are_refused_and_counted() -> Outcome {
    let dir = tempfile::tempdir()?;
    let logger = TensorBoardLogger::new(dir.path())?;
    let long = "x".repeat(1 << 20);
    let refused = [
        (logger.add_histogram("empty", [], 0), "has no values"),
        (
            logger.add_histogram("nan", [1.0, f64::NAN], 0),
            "one of its values is NaN",
        ),
        (
            logger.add_histogram("infinite", [f64::INFINITY], 0),
            "one of its values is inf",
        ),
        (
            logger.add_histogram("step", [1.0], 1 << 63),
            "give a `global_step`",
        ),
        (
            logger.add_histogram(&long, [1.0], 0),
            "give a `name` with at most",
        ),
        (
            logger.add_text("long", &long, 0),
            "give it in parts of at most",
        ),
        (
            logger.add_text(&long, "text", 0),
            "give a `name` with at most",
        ),
    ];
    assert_eq!(logger.lost(), refused.len() as u64);
    for (outcome, reason) in refused {
        let error = outcome.expect_err(reason);
        assert!(matches!(error, LogError::Refused(_)), "{error}");
        assert!(error.to_string().contains(reason), "{error}");
        assert!(error.to_string().len() < 300, "{error}");
    }
    logger.add_histogram("good", [1.0], 0)?;
    drop(logger);
    let file = event_files::only_file(dir.path());
    assert_eq!((file.histograms.len(), file.texts.len()), (1, 0));
    Ok(())
}

#[test]
fn values_may_come_from_code_that_logs_itself() -> Outcome {
    let dir = tempfile::tempdir()?;
    let logger = Arc::new(TensorBoardLogger::new(dir.path())?);
    let values = (0..5_u32).map(|value| {
        let taken = logger.add_scalar("inside", value, value);
        taken.map_or(-1.0, |()| value.into())
    });
    logger.add_histogram("outside", values, 0)?;
    logger.flush()?;
    let file = event_files::only_file(dir.path());
    assert_eq!((file.scalars.len(), file.histograms[0].smallest), (5, 0.0));
    Ok(())
}
