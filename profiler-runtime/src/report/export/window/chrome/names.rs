//! Names as they are written to a trace.

use std::io::Write;

use crate::report::export::chrome::STEP_NAMES;
use crate::report::export::chrome::event_writer::{EventLine, Quoted};
use crate::report::export::window::short_names::short_names;
use crate::report::text::json::string;
use crate::session::Trace;

/// The names of a trace, which are short where a slice has little space.
pub(super) struct Names(Vec<SliceName>);

/// A name, as JSON strings.
struct SliceName {
    short: String,
    /// The full name, if it is longer.
    full: Option<String>,
}

impl Names {
    pub(super) fn new(trace: &Trace) -> Self {
        let names = short_names(&trace.names, |text| {
            text.replace(STEP_NAMES.0, STEP_NAMES.1)
        });
        let names = names.into_iter().map(|name| SliceName {
            short: string(&name.short),
            full: name.full.map(|full| string(&full)),
        });
        Self(names.collect())
    }

    /// Returns the name of slices. Their events are completed [`with_full_name`](Self::with_full_name).
    pub(super) fn get(&self, id: u32) -> Quoted<'_> {
        let name = self.0.get(id as usize);
        Quoted::new(name.map_or(r#""(unknown)""#, |name| &name.short))
    }

    /// Adds the full name to an event, if that of slices is shorter.
    pub(super) fn with_full_name<'w, W: Write>(
        &self,
        event: EventLine<'w, W>,
        id: u32,
    ) -> EventLine<'w, W> {
        let name = self.0.get(id as usize);
        match name.and_then(|name| name.full.as_deref()) {
            Some(full) => event.quoted("full name", Quoted::new(full)),
            None => event,
        }
    }
}
