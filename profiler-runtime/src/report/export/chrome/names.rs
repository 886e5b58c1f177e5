//! Names as a trace may have them.

use super::json::Quoted;
use crate::report::export::json::string;
use crate::session::Trace;

/// The tools take this word for the steps of the run wherever they find it in a name; a scope's is spelled otherwise.
const STEP: &str = "ProfilerStep";
const SPELLED: &str = "Profiler Step";

/// The names of a trace.
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
