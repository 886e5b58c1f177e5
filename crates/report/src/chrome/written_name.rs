//! Names as events and the head of the file write them.

use std::collections::{HashMap, HashSet};
use std::io::Write;

use super::RECURSION;
use super::event_writer::{EventLine, Quoted, write_list};
use crate::text::json::string;
use crate::well_known::{NO_STEP, STEP};
use crate::{SliceName, Timeline};

/// The name of a slice without one, as a JSON string.
pub(super) const UNKNOWN: &str = r#""(unknown)""#;

/// A name as JSON strings.
pub(super) struct WrittenName {
    /// The name of its events.
    pub(super) short: String,
    /// The whole name, if it is another one.
    full: Option<String>,
    /// The source location, if it is known.
    location: Option<String>,
    /// The table in the head of the file says the rest, so that events do not.
    is_in_table: bool,
}

impl WrittenName {
    fn new(name: &SliceName) -> Self {
        let short = if name.short.is_empty() {
            &name.text
        } else {
            &name.short
        };
        let short = short.replace(STEP, NO_STEP);
        Self {
            full: (*short != *name.text).then(|| string(&name.text)),
            short: string(&short),
            location: (!name.location.is_empty()).then(|| string(&name.location)),
            is_in_table: false,
        }
    }

    /// Returns the names of a time line. Those are in the table that say more than their events show, unless events of another
    /// name look alike.
    pub(super) fn all(timeline: &Timeline) -> Vec<Self> {
        let mut names: Vec<Self> = timeline.names.iter().map(Self::new).collect();
        let mut known: HashMap<&str, [Option<&str>; 2]> = HashMap::new();
        // Slices that have none of these names may look so.
        let mut ambiguous: HashSet<&str> = HashSet::from([RECURSION, UNKNOWN]);
        for name in &names {
            let about = name.about();
            if *known.entry(&name.short).or_insert(about) != about {
                ambiguous.insert(&name.short);
            }
        }
        let is_in_table =
            |name: &Self| name.about() != [None, None] && !ambiguous.contains(name.short.as_str());
        let are_in_table: Vec<bool> = names.iter().map(is_in_table).collect();
        for (name, is_in_table) in names.iter_mut().zip(are_in_table) {
            name.is_in_table = is_in_table;
        }
        names
    }

    /// Returns the whole name, if it is another one than the short one, and the location.
    fn about(&self) -> [Option<&str>; 2] {
        [&self.full, &self.location].map(Option::as_deref)
    }

    /// Returns the whole name.
    pub(super) fn whole(&self) -> Quoted<'_> {
        Quoted::new(self.full.as_deref().unwrap_or(&self.short))
    }
}

/// Adds what the table does not say of a name.
pub(super) fn with_name<'w, W: Write>(
    mut line: EventLine<'w, W>,
    name: Option<&WrittenName>,
) -> EventLine<'w, W> {
    let Some(name) = name.filter(|name| !name.is_in_table) else {
        return line;
    };
    if let Some(full) = &name.full {
        line = line.quoted("full name", Quoted::new(full));
    }
    with_location(line, name)
}

/// Adds the location of a name, if it is known.
pub(super) fn with_location<'w, W: Write>(
    line: EventLine<'w, W>,
    name: &WrittenName,
) -> EventLine<'w, W> {
    match &name.location {
        Some(location) => line.quoted("location", Quoted::new(location)),
        None => line,
    }
}

/// Writes the table of names: for the name of events, the whole name and the location, or `null`.
pub(super) fn write_table(names: &[WrittenName], out: &mut Vec<u8>) {
    let mut written = HashSet::new();
    let names = names.iter();
    let names = names.filter(|name| name.is_in_table && written.insert(name.short.as_str()));
    out.push(b'{');
    for (index, name) in names.enumerate() {
        out.extend(if index > 0 { &b",\n"[..] } else { b"\n" });
        out.extend(name.short.as_bytes());
        out.push(b':');
        write_list(out, name.about(), |out, text| {
            out.extend(text.unwrap_or("null").as_bytes());
        });
    }
    out.push(b'}');
}
