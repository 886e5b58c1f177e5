//! Names as they are written to a trace.

use super::event_writer::Quoted;
use crate::report::text::json::string;
use crate::session::Trace;

/// The tools treat every name that contains this word as a step; in names of scopes it is written differently.
const STEP: &str = "ProfilerStep";
const SPELLED: &str = "Profiler Step";

/// The names of a trace, as JSON strings.
pub(super) struct Names(Vec<String>);

impl Names {
    pub(super) fn new(trace: &Trace) -> Self {
        let names = trace.names.iter();
        Self(
            names
                .map(|name| string(&name.text.replace(STEP, SPELLED)))
                .collect(),
        )
    }

    pub(super) fn get(&self, id: u32) -> Quoted<'_> {
        let name = self.0.get(id as usize);
        Quoted::new(name.map_or(r#""(unknown)""#, String::as_str))
    }
}
