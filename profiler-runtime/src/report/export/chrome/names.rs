//! Names as they are written to a trace.

use std::collections::HashMap;
use std::io::Write;

use super::event_writer::{EventLine, Quoted};
use crate::name::{self, Origin};
use crate::report::text::json::string;
use crate::session::Trace;

/// The tools treat every name that contains this word as a step; in names of scopes it is written differently.
const STEP: &str = "ProfilerStep";
const SPELLED: &str = "Profiler Step";

/// The names of a trace. A slice has little space, so it gets the end of a function's path, as much of it as no other
/// name ends with.
pub(super) struct Names(Vec<SliceName>);

/// A name, as JSON strings.
struct SliceName {
    short: String,
    /// The full name, if it is longer.
    full: Option<String>,
}

impl Names {
    pub(super) fn new(trace: &Trace) -> Self {
        let forms: Vec<Vec<String>> = trace
            .names
            .iter()
            .map(|name| forms(name.origin, &name.text))
            .collect();
        let names = forms.iter().zip(distinct(&forms));
        Self(
            names
                .map(|(forms, short)| SliceName {
                    short: string(short),
                    full: forms
                        .last()
                        .filter(|full| *full != short)
                        .map(|full| string(full)),
                })
                .collect(),
        )
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

/// Returns what may be written for a name, shortest first. A name that the program chose is not shortened.
fn forms(origin: Origin, text: &str) -> Vec<String> {
    let text = text.replace(STEP, SPELLED);
    match origin {
        Origin::Function => name::short_forms(&text),
        Origin::Given => vec![text],
    }
}

/// Returns the shortest form of each name that is the form of no other name.
fn distinct(forms: &[Vec<String>]) -> Vec<&str> {
    let mut levels = vec![0; forms.len()];
    loop {
        let mut count = HashMap::<&str, u32>::new();
        for (forms, level) in forms.iter().zip(&levels) {
            *count.entry(&forms[*level]).or_default() += 1;
        }
        let mut is_done = true;
        for (forms, level) in forms.iter().zip(&mut levels) {
            if count[&*forms[*level]] > 1 && *level + 1 < forms.len() {
                *level += 1;
                is_done = false;
            }
        }
        if is_done {
            let chosen = forms.iter().zip(levels);
            return chosen.map(|(forms, level)| &*forms[level]).collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(names: &[(Origin, &str)]) -> Vec<String> {
        let forms: Vec<_> = names
            .iter()
            .map(|(origin, text)| forms(*origin, text))
            .collect();
        distinct(&forms).into_iter().map(str::to_owned).collect()
    }

    #[test]
    fn slices_show_the_end_of_a_path() {
        let names = [
            (Origin::Function, "app::Trainer::forward"),
            (Origin::Function, "app::Mlp::Layer::forward"),
            (Origin::Function, "app::main"),
            (Origin::Given, "app::data::load"),
        ];
        let expected = [
            "Trainer::forward",
            "Layer::forward",
            "main",
            "app::data::load",
        ];
        assert_eq!(shown(&names), expected);
    }

    #[test]
    fn names_with_equal_ends_show_as_much_as_tells_them_apart() {
        let names = [
            (Origin::Function, "app::train::Net::forward"),
            (Origin::Function, "app::test::Net::forward"),
            (Origin::Function, "app::Net::forward"),
            (Origin::Function, "app::load"),
            (Origin::Function, "data::load"),
            (Origin::Given, "load"),
            (Origin::Function, "app::Net::step"),
        ];
        let expected = [
            "train::Net::forward",
            "test::Net::forward",
            "app::Net::forward",
            "app::load",
            "data::load",
            "load",
            "Net::step",
        ];
        assert_eq!(shown(&names), expected);
    }

    #[test]
    fn no_name_looks_like_a_step() {
        let names = [
            (Origin::Given, "ProfilerStep#3"),
            (Origin::Function, "app::ProfilerStep::end"),
        ];
        assert_eq!(shown(&names), ["Profiler Step#3", "Profiler Step::end"]);
    }
}
