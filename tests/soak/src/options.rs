//! The command line.

use std::time::Duration;

use thiserror::Error;

/// How long the program runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) length: Duration,
}

#[derive(Debug, Error)]
#[error("usage: soak [--seconds N], with N from 1 to 604800; the default is 60")]
pub(crate) struct UsageError;

impl Options {
    pub(crate) fn from_arguments(
        mut arguments: impl Iterator<Item = String>,
    ) -> Result<Self, UsageError> {
        let mut length = Duration::from_secs(60);
        while let Some(argument) = arguments.next() {
            if argument != "--seconds" {
                return Err(UsageError);
            }
            let seconds = arguments.next().and_then(|value| value.parse().ok());
            let seconds = seconds.filter(|seconds| (1..=604_800).contains(seconds));
            length = Duration::from_secs(seconds.ok_or(UsageError)?);
        }
        Ok(Self { length })
    }
}
