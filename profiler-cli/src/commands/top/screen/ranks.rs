//! A line for each rank.

use profiler_report::internal::shorten_names_in_the_middle;

use super::super::canvas::{Area, Frame};
use super::super::feed::Health;
use super::super::keys::View;
use super::super::ranks::{Job, RankLine};
use super::super::strip::Source;
use super::super::styled::{Style, Text};
use super::super::text::{count, percent, printable, time, width};
use super::{BAD, BOLD, DIM, SELECTED, strip};

/// The fewest columns of the function, ...
const TOP: usize = 16;
/// ... of the strip, ...
const STRIP: usize = 10;
/// ... and the most that it has.
const MOST: usize = 80;

/// When a rank is marked.
const SLOW_RULE: &str =
    "slow: steps over 10 % longer than the median of the others, by more than ±";

/// A column of the table.
struct Column {
    title: &'static str,
    /// The fewest columns of a terminal that have room for it.
    from: usize,
    is_text: bool,
    value: fn(&RankLine) -> String,
}

const COLUMNS: [Column; 8] = [
    Column {
        title: "rank",
        from: 0,
        is_text: true,
        value: |line| {
            line.rank
                .map_or_else(|| line.key.clone(), |rank| rank.to_string())
        },
    },
    Column {
        title: "steps/s",
        from: 0,
        is_text: false,
        value: |line| line.steps_per_second.map_or_else(String::new, count),
    },
    Column {
        title: "step",
        from: 0,
        is_text: false,
        value: |line| line.step.map_or_else(String::new, |step| time(step.ns)),
    },
    Column {
        title: "±",
        from: 70,
        is_text: false,
        value: |line| {
            let noise = line.step.and_then(|step| step.noise_ns);
            noise.map_or_else(String::new, time)
        },
    },
    Column {
        title: "slow",
        from: 0,
        is_text: false,
        value: |line| {
            line.slow
                .map_or_else(String::new, |slow| format!("+{} %", percent_of(slow)))
        },
    },
    Column {
        title: "busy %",
        from: 0,
        is_text: false,
        value: |line| {
            line.busy
                .map_or_else(String::new, |(_, busy)| percent(busy))
        },
    },
    Column {
        title: "state",
        from: 60,
        is_text: true,
        value: |line| state(line).to_owned(),
    },
    Column {
        title: "process",
        from: 120,
        is_text: true,
        value: |line| line.place.clone(),
    },
];

fn percent_of(share: f64) -> String {
    format!("{:.0}", 100.0 * share)
}

fn state(line: &RankLine) -> &'static str {
    match line.health {
        Some(Health::Running) => "running",
        Some(Health::Stale) => "stale",
        Some(Health::Ended) => "ended",
        Some(Health::WrittenOnce) => "written once",
        None => "cannot be read",
    }
}

/// Returns the lines above the ranks.
pub(super) fn head<'t>(job: &Job, lines: &[RankLine], view: &View) -> Vec<Text<'t>> {
    let folder = job
        .folder
        .as_ref()
        .map(|folder| folder.display().to_string());
    let with = |health| lines.iter().filter(|line| line.health == health).count();
    let mut parts = vec![format!("{} running", with(Some(Health::Running)))];
    for (health, word) in [(Health::Stale, "stale"), (Health::Ended, "ended")] {
        let number = with(Some(health));
        if number > 0 {
            parts.push(format!("{number} {word}"));
        }
    }
    let slow = lines.iter().filter(|line| line.slow.is_some()).count();
    if slow > 0 {
        parts.push(format!("{slow} slow"));
    }
    // Each number on the screen is explained: that of one rank may come from elsewhere than that of another.
    let sources = [
        (Source::Account, "the account of the device"),
        (Source::Load, "the sensor's load"),
        (Source::Ranges, "GPU times that the device limits"),
    ];
    let is_used = |source| {
        let mut known = lines.iter().filter_map(|line| line.busy);
        known.any(|(of, _)| of == source)
    };
    let used = sources.iter().filter(|(source, _)| is_used(*source));
    let used: Vec<&str> = used.map(|(_, what)| *what).collect();
    if !used.is_empty() {
        parts.push(format!("busy: {}", used.join(", or ")));
    }
    let paused = if view.is_paused { "PAUSED " } else { "" };
    vec![
        Text::styled(printable(&folder.unwrap_or_default()), BOLD),
        Text::raw(format!("{paused}{}", parts.join(" · "))),
        Text::styled(SLOW_RULE, DIM),
    ]
}

/// Draws the ranks.
pub(super) fn draw(frame: &mut Frame, area: Area, lines: &[RankLine], view: &mut View) {
    let keys = lines.iter().map(|line| &*line.key);
    view.ranks.settle(keys, area.height.saturating_sub(1));
    let has_gpu = lines.iter().any(|line| line.busy.is_some());
    let columns = COLUMNS.iter().filter(|column| column.from <= area.width);
    let columns: Vec<&Column> = columns
        .filter(|column| has_gpu || column.title != "busy %")
        .collect();
    let widest = |column: &Column| {
        let values = lines.iter().map(|line| width(&(column.value)(line)));
        values.chain([width(column.title)]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = columns.iter().map(|column| widest(column)).collect();
    let taken: usize = widths.iter().map(|width| width + 2).sum();
    let rest = area.width.saturating_sub(taken);
    // What the functions do not need is the strip's.
    let longest = lines.iter().filter_map(|line| line.top.as_ref());
    let longest = longest.map(|(name, _)| width(name) + 8).max().unwrap_or(0);
    let strip = rest.saturating_sub(longest.max(TOP) + 2);
    let strip = if strip < STRIP || !has_gpu {
        0
    } else {
        strip.min(MOST)
    };
    let top = if strip == 0 { rest } else { rest - strip - 2 };

    let shown = view.ranks.shown(lines);
    let tops = shown.clone().map(|(_, line)| match &line.top {
        Some((name, share)) => (&**name, format!(" {} %", percent(*share))),
        None => ("", String::new()),
    });
    let (names, shares): (Vec<&str>, Vec<String>) = tops.unzip();
    let share = shares.iter().map(|share| width(share)).max().unwrap_or(0);
    let names = shorten_names_in_the_middle(&names, top.saturating_sub(share));
    let (has_top, skipped) = (top >= TOP, usize::from(strip == 0));
    let rows = shown.zip(names.into_iter().zip(shares));
    let rows = rows.map(|((is_selected, line), (name, share))| {
        let cell = |column: &&Column| aligned(Text::raw((column.value)(line)), column.is_text);
        let cells = columns.iter().map(cell);
        let strip = Text::raw(strip_of(line, strip));
        let name = has_top.then(|| Text::raw(name + &share));
        let cells = cells.chain([strip].into_iter().skip(skipped)).chain(name);
        let style = match line.health {
            _ if line.slow.is_some() => BAD,
            Some(Health::Running) => Style::new(),
            _ => DIM,
        };
        let style = if is_selected {
            style.and(SELECTED)
        } else {
            style
        };
        (style, cells.collect())
    });
    let titles = columns
        .iter()
        .map(|column| aligned(Text::styled(column.title, BOLD), column.is_text));
    let others = [("strip", strip > 0), ("top function", has_top)];
    let others = others.into_iter().filter(|(_, is_shown)| *is_shown);
    let others = others.map(|(title, _)| Text::styled(title, BOLD));
    let header = (Style::new(), titles.chain(others).collect());
    let lengths = widths
        .iter()
        .chain([&strip, &top].into_iter().skip(skipped));
    let lengths: Vec<usize> = lengths.copied().collect();
    let rows = std::iter::once(header).chain(rows);
    frame.draw_table(rows, (&lengths, 2), area);
}

/// Draws what the first device did, the newest column on the right.
fn strip_of(line: &RankLine, columns: usize) -> String {
    let skipped = line.pieces.len().saturating_sub(columns);
    let cells = line.pieces.iter().skip(skipped);
    let cells: String = cells.map(|piece| strip::cell(piece, 0, 1).0).collect();
    format!("{cells:>columns$}")
}

fn aligned(text: Text<'_>, is_text: bool) -> Text<'_> {
    if is_text { text } else { text.right_aligned() }
}
