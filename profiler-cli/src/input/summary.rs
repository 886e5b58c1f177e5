//! Reading a summary.

use profiler_report::Summary;
use serde::de::Deserialize;

use super::source::Source;
use super::weighed::{Scales, Weighed};
use super::{InputError, Limits};

pub(super) fn read(source: Source<'_>) -> Result<Summary, InputError> {
    let text = source.text(Limits::SUMMARY_BYTES)?;
    let scales = Scales::new(Limits::SUMMARY_MEMORY);
    let mut json = serde_json::Deserializer::from_str(&text);
    let summary = Summary::deserialize(Weighed::new(&mut json, &scales));
    let summary = summary.and_then(|summary| json.end().map(|()| summary));
    summary.map_err(|error| match scales.are_tipped() {
        true => InputError::TooHeavy {
            max_bytes: Limits::SUMMARY_MEMORY,
        },
        false => InputError::of_json(error),
    })
}
