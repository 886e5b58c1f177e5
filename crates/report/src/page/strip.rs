//! The strip of a device: when it was busy, and which functions kept it waiting. `parts` has the functions beside it.
//!
//! Both are SVG that needs no script. Hatchings are tiles in pixels, so that they look alike at any width: a path of all
//! columns cuts each part out of a surface that has its hatching.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::escape::Text;
use super::parts;
use crate::idle::{DeviceIdle, IdleStrip, StripPart};
use crate::sentence::percent;
use crate::text::units::time;

/// The columns of a strip.
const COLUMNS: usize = 300;
/// The height of a strip in the units of its paths.
const HEIGHT: i64 = 1000;
/// What stands above the bars of a device.
const BARS: &str = "Busy with its work, or idle because of it";
/// The tints of a hue that distinguish names. The script has the same.
const TINTS: u32 = 5;
/// A name is written into a strip if its function has half of each of so many columns in a row.
const LABELLED: usize = COLUMNS / 12;

/// Lines on a tile of 8 by 8 pixels, one for each function.
const HATCHINGS: [&str; 8] = [
    "M-2 2l4-4M0 8l8-8M6 10l4-4",
    "M-2 6l4 4M0 0l8 8M6-2l4 4",
    "M0 4h8",
    "M4 0v8",
    "M0 8l8-8M0 0l8 8",
    "M1 2h2M5 6h2",
    "M0 4h8M4 0v8",
    "M0 2h4M4 6h4",
];

/// The hatching of each function of a device, and its tint.
pub(super) type Hatchings = Vec<(usize, u32)>;

/// The bars of a device of many can be folded.
#[derive(Clone, Copy)]
pub(super) struct Fold {
    pub(super) is_open: bool,
}

/// Chooses the hatchings. No two functions of a device have the same one, as far as there are enough, and a function has the same
/// one at all devices where that is free.
pub(super) fn hatchings(devices: &[&DeviceIdle]) -> Vec<Hatchings> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let mut chosen = Vec::new();
    for device in devices {
        let functions = device.functions.iter();
        let mut used: Vec<Option<usize>> = Vec::new();
        for function in functions.clone() {
            let kept = known.get(&*function.name).copied();
            used.push(kept.filter(|kept| !used.contains(&Some(*kept))));
        }
        for (place, function) in functions.clone().enumerate() {
            if used[place].is_none() {
                let free = (0..HATCHINGS.len()).find(|free| !used.contains(&Some(*free)));
                let free = free.unwrap_or(place % HATCHINGS.len());
                used[place] = Some(free);
                known.entry(&function.name).or_insert(free);
            }
        }
        let tints = functions.map(|function| tint(&function.name));
        chosen.push(used.into_iter().flatten().zip(tints).collect());
    }
    chosen
}

/// Writes the hatchings, which all strips and bars refer to.
pub(super) fn push_tiles(html: &mut String, hatchings: &[Hatchings]) {
    html.push_str("<svg class=tiles aria-hidden=true><defs>");
    let mut tile = |id: &str, class: &str, lines: &str| {
        let _ = write!(
            html,
            "<pattern id={id} class=\"{class}\" width=8 height=8 patternUnits=userSpaceOnUse><rect width=8 height=8 />\
             <path d=\"{lines}\" /></pattern>"
        );
    };
    for (number, tint) in hatchings.iter().flatten().collect::<BTreeSet<_>>() {
        let class = format!("tint{tint}");
        tile(&format!("h{number}-{tint}"), &class, HATCHINGS[*number]);
    }
    tile("h-other", "grey", HATCHINGS[0]);
    tile("h-outside", "grey", HATCHINGS[5]);
    tile("h-launched", "launched", HATCHINGS[3]);
    tile("h-missing", "grey", HATCHINGS[4]);
    html.push_str("</defs></svg>\n");
}

pub(super) fn push_device(
    html: &mut String,
    device: &DeviceIdle,
    number: usize,
    hatchings: &Hatchings,
    fold: Option<Fold>,
) {
    let strip = device.strip(COLUMNS);
    let parts: BTreeMap<StripPart, i64> = strip.whole().parts.into_iter().collect();
    let share = |ns: i64| percent(ns as f64 / device.window_ns().max(1) as f64);
    let _ = write!(
        html,
        "<div class=device>\n<div class=window><h2>{} <span>{} busy</span></h2>\n\
         <svg class=strip role=img aria-label=\"{}, {}\">",
        Text(&device.title()),
        share(device.busy_ns),
        Text(&device.title()),
        Text(&spoken(device, &parts, share)),
    );
    for (part, ns) in &parts {
        let Some(fill) = fill(*part, hatchings) else {
            continue;
        };
        let clip = format!("c{number}-{}", id(*part));
        let _ = write!(
            html,
            "<clipPath id={clip} clipPathUnits=objectBoundingBox><path transform=\"scale({} {})\" d=\"{}\" /></clipPath>\
             <rect width=100% height=100% {fill} clip-path=\"url(#{clip})\"><title>{}: {}</title></rect>",
            1.0 / COLUMNS as f64,
            1.0 / HEIGHT as f64,
            outline(&strip, *part),
            Text(label(device, *part)),
            share(*ns)
        );
    }
    for index in 0..device.functions.len() {
        push_label(html, device, index, &strip);
    }
    let _ = write!(
        html,
        "</svg>\n<p class=ends aria-hidden=true><span>0</span><span>{}</span></p></div>\n",
        time(device.window_ns() as f64)
    );
    let end = match fold {
        None => {
            let _ = writeln!(html, "<div class=parts><h2>{BARS}</h2>");
            "</div>"
        }
        Some(Fold { is_open }) => {
            let open = if is_open { " open" } else { "" };
            let _ = writeln!(html, "<details class=parts{open}><summary>{BARS}</summary>");
            "</details>"
        }
    };
    parts::push(html, device, &parts, hatchings);
    let _ = writeln!(html, "{end}\n</div>");
}

/// Writes the name of a function where it is seen best, if there is room for it.
fn push_label(html: &mut String, device: &DeviceIdle, index: usize, strip: &IdleStrip) {
    let Some((function, number)) = device.functions.get(index).zip(u32::try_from(index).ok())
    else {
        return;
    };
    let part = StripPart::Function(number);
    let is_most = |at: &usize| strip.columns[*at].share(part) >= 0.5;
    let all: Vec<usize> = (0..strip.columns.len()).filter(is_most).collect();
    let runs = all.chunk_by(|one, next| *next == one + 1);
    let longest = runs.max_by_key(|run| run.len());
    let Some(run) = longest.filter(|run| run.len() >= LABELLED) else {
        return;
    };
    let percent = |columns: usize| 100.0 * columns as f64 / strip.columns.len().max(1) as f64;
    let _ = write!(
        html,
        "<svg x=\"{:.1}%\" width=\"{:.1}%\" height=100% aria-hidden=true><text x=6 y=1.4em>{}</text></svg>",
        percent(run[0]),
        percent(run.len()),
        Text(&function.name[crate::text::last_segment(&function.name)..])
    );
}

/// Returns the outline of a part: in each column, what it has of its height. Busy times stand at the bottom.
fn outline(strip: &IdleStrip, part: StripPart) -> String {
    let mut path = String::new();
    // The columns of one height that are not written yet: where they begin and end, and from where down to where they are.
    let mut run: Option<(usize, usize, i64, i64)> = None;
    let mut write = |run: &Option<(usize, usize, i64, i64)>| {
        if let Some((from, to, top, bottom)) = run {
            let (width, height) = (to - from, bottom - top);
            let _ = write!(path, "M{from} {top}h{width}v{height}h-{width}z");
        }
    };
    for (at, column) in strip.columns.iter().enumerate() {
        let length = i128::from(column.end_ns - column.start_ns).max(1);
        let level = |ns: i64| {
            let level = i128::from(ns) * i128::from(HEIGHT) / length;
            HEIGHT - i64::try_from(level).unwrap_or(HEIGHT)
        };
        let mut below = 0;
        let mut found = None;
        for (other, ns) in &column.parts {
            if *other == part {
                found = Some((level(below + ns), level(below)));
            }
            below += ns;
        }
        let found = found.filter(|(top, bottom)| top < bottom);
        run = match (run, found) {
            (Some((from, to, top, bottom)), Some(next)) if to == at && next == (top, bottom) => {
                Some((from, at + 1, top, bottom))
            }
            (before, next) => {
                write(&before);
                next.map(|(top, bottom)| (at, at + 1, top, bottom))
            }
        };
    }
    write(&run);
    path
}

/// Returns the attribute that fills a part: `None` for the times in which nothing was to be done, which stay empty.
pub(super) fn fill(part: StripPart, hatchings: &Hatchings) -> Option<String> {
    let tile = match part {
        StripPart::Busy => return Some("class=busy".to_owned()),
        StripPart::Function(index) => {
            let (number, tint) = hatchings.get(index as usize)?;
            format!("h{number}-{tint}")
        }
        StripPart::OtherFunctions => "h-other".to_owned(),
        StripPart::Outside => "h-outside".to_owned(),
        StripPart::Launched => "h-launched".to_owned(),
        StripPart::NotRecorded => "h-missing".to_owned(),
        StripPart::BeforeFirst | StripPart::AfterLast => return None,
    };
    Some(format!("fill=\"url(#{tile})\""))
}

fn label(device: &DeviceIdle, part: StripPart) -> &str {
    match part {
        StripPart::Function(index) => {
            let function = device.functions.get(index as usize);
            function.map_or("", |function| &function.name)
        }
        part => part.label(),
    }
}

fn id(part: StripPart) -> String {
    match part {
        StripPart::Function(index) => index.to_string(),
        part => part.label().replace([' ', ','], ""),
    }
}

/// Says what the strip shows, for readers of screens.
fn spoken(
    device: &DeviceIdle,
    parts: &BTreeMap<StripPart, i64>,
    share: impl Fn(i64) -> String,
) -> String {
    let busy = format!("busy for {} of the window", share(device.busy_ns));
    let waited = parts
        .iter()
        .filter(|(part, _)| matches!(part, StripPart::Function(_)));
    let waited: Vec<String> = waited
        .map(|(part, ns)| format!("{} {}", label(device, *part), share(*ns)))
        .collect();
    if waited.is_empty() {
        return busy;
    }
    format!("{busy}; it waited for {}", waited.join(", "))
}

/// Returns the tint of a name, as the script has it.
fn tint(name: &str) -> u32 {
    let hash = name.encode_utf16().fold(0_u32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(unit.into())
    });
    hash % TINTS
}

#[cfg(test)]
#[path = "strip_tests.rs"]
pub(super) mod tests;
