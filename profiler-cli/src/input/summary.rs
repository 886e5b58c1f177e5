//! Reading a summary.

use profiler_report::Summary;

use super::source::Source;
use super::{InputError, Limits};

pub(super) fn read(source: Source<'_>) -> Result<Summary, InputError> {
    let text = source.text(Limits::SUMMARY_BYTES)?;
    serde_json::from_str(&text).map_err(InputError::of_json)
}
