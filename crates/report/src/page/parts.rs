//! The bars beside a strip: busy times solid, idle times hatched.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::escape::Name;
use super::strip::{Hatchings, fill};
use crate::idle::{DeviceIdle, StripPart};
use crate::sentence::percent;

/// Less of a window is not said beside a bar that has more.
const LEAST_SAID: f64 = 0.0005;

/// Writes a bar for each function, and for each other part of the window. Together they are all of it.
pub(super) fn push(
    html: &mut String,
    device: &DeviceIdle,
    parts: &BTreeMap<StripPart, i64>,
    hatchings: &Hatchings,
) {
    let window = device.window_ns().max(1) as f64;
    let part_of = |ns: i64| 100.0 * ns as f64 / window;
    html.push_str("<ol>\n");
    let mut bar = |name: &str, busy: i64, idle: i64, part: StripPart| {
        // In the other parts, nothing was to be done, or it is not known what the device did.
        let idle_word = match part {
            StripPart::Function(_)
            | StripPart::OtherFunctions
            | StripPart::Outside
            | StripPart::Launched => " idle",
            _ => "",
        };
        let said = [(busy, " busy"), (idle, idle_word)];
        // What is as good as nothing is said only of a bar that has no more.
        let said = said.map(|(ns, word)| (ns as f64 / window, word));
        let is_said = |(share, _): &&(f64, &str)| *share >= LEAST_SAID;
        let texts = said.iter().filter(is_said);
        let mut texts: Vec<String> = texts
            .map(|(share, word)| format!("{}{word}", percent(*share)))
            .collect();
        if texts.is_empty() {
            texts.push(percent((busy + idle) as f64 / window));
        }
        let _ = writeln!(
            html,
            "<li>{name}<svg aria-hidden=true><rect class=busy width=\"{:.2}%\" height=100% />\
             <rect x=\"{:.2}%\" width=\"{:.2}%\" height=100% {} /></svg><span>{}</span>",
            part_of(busy),
            part_of(busy),
            part_of(idle),
            fill(part, hatchings).as_deref().unwrap_or("class=before"),
            texts.join(", ")
        );
    };
    let mut busy = device.busy_ns;
    for (index, function) in (0..).zip(&device.functions) {
        busy -= function.busy_ns;
        let name = Name(&function.name).to_string();
        let part = StripPart::Function(index);
        bar(&name, function.busy_ns, function.idle_ns, part);
    }
    let others = parts.get(&StripPart::OtherFunctions);
    let others = others.copied().unwrap_or_default();
    if busy > 0 || others > 0 {
        let name = if device.functions.is_empty() {
            "no function dominates"
        } else {
            "others"
        };
        let name = format!("<em>{name}</em>");
        bar(&name, busy, others, StripPart::OtherFunctions);
    }
    for (part, ns) in parts {
        if !matches!(
            part,
            StripPart::Busy | StripPart::Function(_) | StripPart::OtherFunctions
        ) {
            let name = format!("<em>{}</em>", part.label());
            bar(&name, 0, *ns, *part);
        }
    }
    html.push_str("</ol>\n");
    if !device.functions.is_empty() {
        html.push_str(
            "<p class=note>A function that is not listed counts for the one that called it.</p>\n",
        );
    }
}
