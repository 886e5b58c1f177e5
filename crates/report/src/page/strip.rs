//! The strip of each device at the top of the page, and beside it the functions: busy times solid, idle times hatched.
//!
//! Both are SVG that needs no script. Hatchings are tiles in pixels, so that they look alike at any width: a path of all
//! columns cuts each part out of a surface that has its hatching.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::escape::{Name, Text};
use super::overview::counted;
use crate::idle::{DeviceIdle, GpuIdle, IdleStrip, StripPart};
use crate::sentence::percent;
use crate::text::units::time;

/// The columns of a strip.
const COLUMNS: usize = 300;
/// The height of a strip in the units of its paths.
const HEIGHT: i64 = 1000;
/// Of more devices, the strips are low, and all bars and sentences but those of one device are folded.
pub(super) const DEVICES: usize = 4;
/// What stands above the bars of a device.
const BARS: &str = "Busy with its work, or idle because of it";
/// The most devices that have a strip.
const STRIPS: usize = 8;
/// The most devices that a folded list has.
pub(super) const FOLDED: usize = 60;
/// The tints of a hue that distinguish names. The script has the same.
const TINTS: u32 = 5;
/// Less of a window is not said beside a bar that has more.
const LEAST_SAID: f64 = 0.0005;
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
type Hatchings = Vec<(usize, u32)>;

/// Writes the strips of the devices, in the order of their numbers. Without any, it writes nothing.
pub(super) fn push(html: &mut String, idle: &GpuIdle) {
    let all = &idle.devices;
    if all.is_empty() {
        return;
    }
    let least = |count| least_busy(all.iter().map(recorded_busy), count);
    let (shown, first) = (least(STRIPS), least(1));
    let devices: Vec<&DeviceIdle> = shown.iter().map(|place| &all[*place]).collect();
    let hatchings = hatchings(&devices);
    let class = if all.len() > DEVICES {
        " class=many"
    } else {
        ""
    };
    let _ = writeln!(
        html,
        "<section id=strips{class} aria-label=\"What the GPUs did\">"
    );
    push_tiles(html, &hatchings);
    if all.len() > STRIPS {
        let _ = writeln!(
            html,
            "<p class=note>The {STRIPS} GPUs of {} that were busy least, in the order of their numbers.</p>",
            all.len()
        );
    }
    for ((number, device), hatchings) in shown.iter().zip(&devices).zip(&hatchings) {
        let fold = (all.len() > DEVICES).then_some(Fold {
            is_open: first.contains(number),
        });
        push_device(html, device, *number, hatchings, fold);
    }
    let others = (0..).zip(all).filter(|(place, _)| !shown.contains(place));
    push_others(html, &others.map(|(_, device)| device).collect::<Vec<_>>());
    html.push_str("</section>\n");
}

/// Returns the share of the time of a device in which it was busy, as far as it was recorded.
pub(super) fn recorded_busy(device: &DeviceIdle) -> f64 {
    let recorded = device.window_ns() - device.not_recorded_ns;
    if recorded > 0 {
        device.busy_ns as f64 / recorded as f64
    } else {
        f64::INFINITY
    }
}

/// Returns the places of the devices that were busy least, in their order.
pub(super) fn least_busy(busy: impl Iterator<Item = f64>, count: usize) -> Vec<usize> {
    let mut sorted: Vec<(usize, f64)> = busy.enumerate().collect();
    sorted.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let mut places: Vec<usize> = sorted.iter().map(|(place, _)| *place).take(count).collect();
    places.sort_unstable();
    places
}

/// The bars of a device of many can be folded.
#[derive(Clone, Copy)]
struct Fold {
    is_open: bool,
}

/// Lists the devices that have no strip.
fn push_others(html: &mut String, devices: &[&DeviceIdle]) {
    if devices.is_empty() {
        return;
    }
    let others = counted(devices.len() as u64, "busier GPU");
    let _ = write!(
        html,
        "<details class=parts><summary>{others}</summary>\n<ol>\n"
    );
    for device in devices.iter().take(FOLDED) {
        let busy = device.busy_ns as f64 / device.window_ns().max(1) as f64;
        let _ = writeln!(
            html,
            "<li><em>{}</em><svg aria-hidden=true><rect class=busy width=\"{:.2}%\" height=100% /></svg><span>{} busy</span>",
            Text(&device.title()),
            100.0 * busy,
            percent(busy)
        );
    }
    html.push_str("</ol>\n");
    if devices.len() > FOLDED {
        html.push_str("<p class=note>The rest is left out here: <code>profiler explain</code> shows all.</p>\n");
    }
    html.push_str("</details>\n");
}

/// Chooses the hatchings. No two functions of a device have the same one, as far as there are enough, and a function has the same
/// one at all devices where that is free.
fn hatchings(devices: &[&DeviceIdle]) -> Vec<Hatchings> {
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
fn push_tiles(html: &mut String, hatchings: &[Hatchings]) {
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

fn push_device(
    html: &mut String,
    device: &DeviceIdle,
    number: usize,
    hatchings: &Hatchings,
    fold: Option<Fold>,
) {
    let strip = device.strip(COLUMNS);
    let whole = device.strip(1);
    let parts = whole.columns.iter().flat_map(|column| &column.parts);
    let parts: BTreeMap<StripPart, i64> = parts.copied().collect();
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
    push_bars(html, device, &parts, hatchings);
    let _ = writeln!(html, "{end}\n</div>");
}

/// Writes a bar for each function, and for each other part of the window. Together they are all of it.
fn push_bars(
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
fn fill(part: StripPart, hatchings: &Hatchings) -> Option<String> {
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
