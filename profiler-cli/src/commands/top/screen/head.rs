//! The lines above the rows: the program, how it is doing, its pace and its sensors.

use std::path::Path;
use std::time::SystemTime;

use super::super::feed::{Feed, Health, Problem, Shown};
use super::super::keys::{Place, View};
use super::super::line::Order;
use super::super::pace::Pace;
use super::super::styled::{Span, Text};
use super::super::text::{age, count, percent, printable, time, width};
use super::{BAD, BOLD, DIM, GOOD, NOTE, sensors};

/// Returns the lines. Above one function, only the first two; the pace and the sensors if they are known and there is room.
pub(super) fn lines<'t>(
    path: &Path,
    feed: &Feed,
    view: &View,
    now: SystemTime,
    (columns, has_room): (usize, bool),
) -> Vec<Text<'t>> {
    let file = printable(&path.display().to_string());
    let mut title = vec![Span::styled(file, BOLD)];
    let Some(shown) = &feed.shown else {
        return vec![Text::from(title)];
    };
    title.push(Span::raw(program(shown)));
    let mut lines = vec![Text::from(title), state(shown, feed, view, now)];
    if view.place() == Place::Row {
        return lines;
    }
    lines.push(Text::styled(sums(shown, view), DIM));
    let now = pace(&feed.pace)
        .into_iter()
        .chain(sensors::texts(&shown.summary.gpus, columns));
    let now = fitting(now, columns);
    if has_room && !now.is_empty() {
        lines.push(Text::raw(now));
    }
    lines
}

/// Returns the steps per second, with the function whose calls they are.
fn pace(pace: &Pace) -> Option<String> {
    let (rate, name) = (pace.rate()?, pace.name()?);
    let name = printable(name.rsplit("::").next().unwrap_or(name));
    Some(format!("{} steps/s ({name})", count(rate)))
}

/// Joins as many texts as fit.
fn fitting(texts: impl Iterator<Item = String>, columns: usize) -> String {
    let mut line = String::new();
    for text in texts {
        let gap = if line.is_empty() { "" } else { " · " };
        if width(&line) + width(gap) + width(&text) <= columns {
            line += gap;
            line += &text;
        }
    }
    line
}

/// Returns the program and where it runs.
fn program(shown: &Shown) -> String {
    let environment = &shown.summary.environment;
    if environment.program.is_empty() {
        return String::new();
    }
    let mut place = vec![environment.process.to_string()];
    place.extend(environment.rank.map(|rank| format!("rank {rank}")));
    if !environment.host.is_empty() {
        place.push(format!("on {}", printable(&environment.host)));
    }
    let program = printable(&environment.program);
    format!("  {program} ({})", place.join(", "))
}

/// Says how the program and its file are doing.
fn state<'t>(shown: &Shown, feed: &Feed, view: &View, now: SystemTime) -> Text<'t> {
    let ago = age(shown.age(now));
    let every = shown
        .interval()
        .map_or_else(String::new, |interval| format!(", every {}", age(interval)));
    let (style, text) = match shown.health(now) {
        Health::Running => (GOOD, format!("running, written {ago} ago{every}")),
        Health::Stale => (
            BAD,
            format!(
                "stale: written {ago} ago{every}; the program was killed, is stopped or writes slowly"
            ),
        ),
        Health::Ended => (NOTE, format!("ended {ago} ago: this is the last summary")),
        Health::WrittenOnce => (
            NOTE,
            format!("written {ago} ago, and not again: set PROFILER_SUMMARY_INTERVAL=1s"),
        ),
    };
    let mut spans = vec![Span::styled(text, style)];
    if view.is_paused {
        spans.insert(0, Span::styled("PAUSED ", BAD));
    }
    match &feed.problem {
        Some(Problem::Missing { .. }) => spans.push(Span::styled("; the file is gone", BAD)),
        Some(Problem::Broken(reason)) => {
            spans.push(Span::styled(format!("; now it {}", printable(reason)), BAD));
        }
        None => {}
    }
    Text::from(spans)
}

fn sums(shown: &Shown, view: &View) -> String {
    let Shown { summary, lines, .. } = shown;
    let cpu: f64 = lines.iter().map(|line| line.cpu).sum();
    let mut parts = vec![
        format!("last {} of {}", time(shown.span_ns), time(summary.wall_ns)),
        format!("CPU {} %", percent(cpu)),
    ];
    if lines.iter().any(|line| line.cuda.is_some()) {
        let cuda: f64 = lines.iter().filter_map(|line| line.cuda).sum();
        parts.push(format!("GPU {} %", percent(cuda)));
    }
    parts.push(match (lines.len(), view.filter.is_empty()) {
        (1, true) => "1 name".to_owned(),
        (names, true) => format!("{names} names"),
        (names, false) => {
            let visible = view.visible(shown).len();
            let filter = printable(&view.filter);
            format!("{visible} of {names} names contain `{filter}`")
        }
    });
    if view.order == Order::Limit {
        parts.push(match shown.limit {
            Order::Cuda => "by GPU %".to_owned(),
            Order::Idle => "by idle caused".to_owned(),
            _ => "by CPU %".to_owned(),
        });
    }
    let dropped = summary.dropped.iter().map(|(_, entries)| *entries);
    let dropped = dropped.fold(0, u64::saturating_add);
    if dropped > 0 {
        let noun = if dropped == 1 { "entry" } else { "entries" };
        parts.push(format!("{} log {noun} dropped", count(dropped as f64)));
    }
    parts.join(" · ")
}
