//! Checks that each arrow from a launch to the device has one start and one end.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;

use super::event::TraceEvent;
use super::rule::Rule;
use super::violations::Violations;

#[derive(Default)]
pub(super) struct Arrows(HashMap<ArrowId, Arrow>);

/// The id of an arrow. Most are whole numbers, possibly millions of them: these need no heap memory.
#[derive(PartialEq, Eq, Hash)]
enum ArrowId {
    Number(u64),
    /// The id as JSON.
    Other(Box<str>),
}

impl ArrowId {
    fn of(id: &Value) -> Self {
        let other = || Self::Other(id.to_string().into());
        id.as_u64().map_or_else(other, Self::Number)
    }
}

impl fmt::Display for ArrowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Other(text) => text.fmt(f),
        }
    }
}

#[derive(Default)]
struct Arrow {
    event: usize,
    starts: u32,
    ends: u32,
    start: f64,
    end: f64,
}

impl Arrows {
    /// Checks one end of an arrow, and remembers it.
    pub(super) fn event(&mut self, index: usize, event: &TraceEvent<'_>) -> Option<(Rule, String)> {
        let (Some(id), Some(ts)) = (event.get("id"), event.number("ts")) else {
            return Some((Rule::Arrow, "it needs `id` and `ts`".into()));
        };
        let arrow = self.0.entry(ArrowId::of(id)).or_default();
        arrow.event = index;
        if event.text("ph") == Some("s") {
            (arrow.starts, arrow.start) = (arrow.starts + 1, ts);
        } else {
            (arrow.ends, arrow.end) = (arrow.ends + 1, ts);
        }
        None
    }

    /// Checks all arrows after the last event.
    pub(super) fn finish(self, violations: &mut Violations) {
        for (id, arrow) in self.0 {
            let what = if (arrow.starts, arrow.ends) != (1, 1) {
                format!(
                    "arrow {id} has {} starts and {} ends: write one of each",
                    arrow.starts, arrow.ends
                )
            } else if arrow.end < arrow.start {
                format!("arrow {id} ends before it starts: leave it out, or move what it leads to")
            } else {
                continue;
            };
            violations.add(Rule::Arrow, Some(arrow.event), Some("ac2g"), what);
        }
    }
}
