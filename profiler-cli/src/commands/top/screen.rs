//! Drawing the screen.

use std::path::Path;
use std::time::SystemTime;

use profiler_report::internal::shorten_names;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, Wrap};

use super::feed::{Feed, Health, Problem, Shown};
use super::keys::{KEYS, View};
use super::line::{Line, Order};
use super::text::{age, count, percent, printable, sparkline, time, width};

/// The columns that a name gets before the least important column of numbers is left out.
const NAME: usize = 26;
/// The columns of a history.
const HISTORY: usize = 24;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const GOOD: Style = Style::new().fg(Color::Green);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const NOTE: Style = Style::new().fg(Color::Yellow);

/// Draws the whole screen.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    path: &Path,
    feed: &Feed,
    view: &mut View,
    now: SystemTime,
) {
    let head = head(path, feed, view, now);
    let lines = u16::try_from(head.len()).unwrap_or(u16::MAX);
    let [top, middle, bottom] = Layout::vertical([
        Constraint::Length(lines),
        Constraint::Min(0),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(head), top);
    if view.shows_help {
        frame.render_widget(help(), middle);
    } else if let Some(shown) = &feed.shown {
        draw_rows(frame, middle, shown, view);
    } else {
        frame.render_widget(waiting(path, feed), middle);
    }
    frame.render_widget(foot(view), bottom);
}

fn head<'t>(path: &Path, feed: &Feed, view: &View, now: SystemTime) -> Vec<Text<'t>> {
    let file = printable(&path.display().to_string());
    let mut title = vec![Span::styled(file, BOLD)];
    let Some(shown) = &feed.shown else {
        return vec![Text::from(title)];
    };
    title.push(Span::raw(program(shown)));
    vec![
        Text::from(title),
        state(shown, feed, view, now),
        Text::from(Span::styled(sums(shown, view), DIM)),
    ]
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
            format!("stale: written {ago} ago{every}; the program was killed or is stopped"),
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
        Some(Problem::Missing) => spans.push(Span::styled("; the file is gone", BAD)),
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
            let visible = view.visible(lines).len();
            let filter = printable(&view.filter);
            format!("{visible} of {names} names contain `{filter}`")
        }
    });
    let dropped = summary.dropped.iter().map(|(_, entries)| *entries);
    let dropped = dropped.fold(0, u64::saturating_add);
    if dropped > 0 {
        parts.push(format!("{} log entries dropped", count(dropped as f64)));
    }
    parts.join(" · ")
}

/// Says what the program waits for.
fn waiting<'t>(path: &Path, feed: &Feed) -> Paragraph<'t> {
    let file = printable(&path.display().to_string());
    let text = match &feed.problem {
        Some(Problem::Broken(reason)) => vec![
            Text::styled(format!("{file} {}", printable(reason)), BAD),
            Text::raw("Waiting until it can be read."),
        ],
        _ => vec![
            Text::raw(format!("Waiting for {file}, which does not exist yet.")),
            Text::raw("Start the program with:"),
            Text::styled(
                format!("  PROFILER_SUMMARY={file} PROFILER_SUMMARY_INTERVAL=1s"),
                BOLD,
            ),
        ],
    };
    Paragraph::new(text).wrap(Wrap { trim: false })
}

fn help<'t>() -> Paragraph<'t> {
    let line = |(keys, effect): &(&'static str, &'static str)| {
        let gap = " ".repeat(15_usize.saturating_sub(width(keys)));
        Text::from(vec![
            Span::styled(*keys, BOLD),
            Span::raw(format!("{gap}{effect}")),
        ])
    };
    let mut lines: Vec<Text<'_>> = KEYS.iter().map(line).collect();
    lines.extend(
        [
            "",
            "CPU % and GPU %: the part of the time since the file was last",
            "written that was spent in the function itself, on all threads or",
            "streams together. CPU, GPU, calls: since the beginning.",
            "history: that time over the whole run, of the GPU if GPU times",
            "sort the rows.",
        ]
        .map(Text::raw),
    );
    Paragraph::new(lines)
}

fn foot<'t>(view: &View) -> Paragraph<'t> {
    let text = if view.is_typing {
        let filter = printable(&view.filter);
        format!("filter: {filter}▏  Enter keeps it, Esc clears it")
    } else {
        "? help  s sort  / filter  p pause  q quit".to_owned()
    };
    Paragraph::new(Text::styled(text, DIM))
}

/// A column of numbers.
struct Column {
    order: Option<Order>,
    title: &'static str,
    width: usize,
    /// Columns with a high rank are left out first.
    rank: u8,
    value: fn(&Line) -> String,
}

/// Returns the columns beside the name that fit.
fn columns(lines: &[Line], available: usize) -> Vec<Column> {
    let column = |order, title, width, rank, value| Column {
        order,
        title,
        width,
        rank,
        value,
    };
    let mut columns = vec![column(Some(Order::Cpu), "CPU %", 6, 0, |line: &Line| {
        percent(line.cpu)
    })];
    let has_cuda = lines.iter().any(|line| line.cuda.is_some());
    if has_cuda {
        columns.push(column(Some(Order::Cuda), "GPU %", 6, 0, |line| {
            line.cuda.map_or_else(String::new, percent)
        }));
    }
    columns.push(column(Some(Order::Rate), "calls/s", 8, 1, |line| {
        count(line.rate)
    }));
    columns.push(column(Some(Order::CpuTotal), "CPU", 9, 3, |line| {
        time(line.cpu_total_ns)
    }));
    if has_cuda {
        columns.push(column(Some(Order::CudaTotal), "GPU", 9, 4, |line| {
            line.cuda_total_ns.map_or_else(String::new, time)
        }));
    }
    columns.push(column(Some(Order::Calls), "calls", 7, 2, |line| {
        count(line.calls as f64)
    }));
    if lines.iter().any(|line| line.open > 0) {
        columns.push(column(None, "open", 5, 6, |line| {
            if line.open == 0 {
                String::new()
            } else {
                count(line.open as f64)
            }
        }));
    }
    if lines.iter().any(|line| !line.history.is_empty()) {
        // Drawn with the length of the run.
        columns.push(column(None, "history", HISTORY, 5, |_| String::new()));
    }
    let taken =
        |columns: &[Column]| -> usize { columns.iter().map(|column| column.width + 1).sum() };
    while taken(&columns) + NAME > available
        && let Some(last) = columns
            .iter()
            .map(|column| column.rank)
            .max()
            .filter(|rank| *rank > 0)
    {
        columns.retain(|column| column.rank != last);
    }
    columns
}

fn draw_rows(frame: &mut Frame<'_>, area: Rect, shown: &Shown, view: &mut View) {
    if let Some(reason) = shown.summary.nothing_measured.as_deref() {
        let text = format!("nothing was measured yet: {}", printable(reason));
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    let available = usize::from(area.width);
    let columns = columns(&shown.lines, available);
    let taken: usize = columns.iter().map(|column| column.width + 1).sum();
    let name = available.saturating_sub(taken);
    let visible = view.visible(&shown.lines);
    view.scroll(visible.len(), usize::from(area.height).saturating_sub(1));

    let title = |column: &Column| {
        let style = if column.order == Some(view.order) {
            BOLD.fg(Color::Cyan)
        } else {
            BOLD
        };
        Cell::from(Text::styled(column.title, style).right_aligned())
    };
    let name_style = if view.order == Order::Name {
        BOLD.fg(Color::Cyan)
    } else {
        BOLD
    };
    let header = std::iter::once(Cell::from(Text::styled("name", name_style)));
    let header = Row::new(header.chain(columns.iter().map(title)));
    let rows = visible.iter().enumerate().skip(view.first).take(view.page);
    let names: Vec<&str> = rows.clone().map(|(_, line)| &*line.name).collect();
    let rows = rows.zip(shorten_names(&names, name));
    let rows = rows.map(|((number, line), name)| {
        let cells = std::iter::once(Cell::from(name));
        let numbers = columns.iter().map(|column| {
            if column.title == "history" {
                let bars = sparkline(&line.history, shown.summary.wall_ns, HISTORY, view.order);
                Cell::from(Text::raw(bars))
            } else {
                Cell::from(Text::raw((column.value)(line)).right_aligned())
            }
        });
        let row = Row::new(cells.chain(numbers));
        if number == view.selected {
            row.style(Style::new().add_modifier(Modifier::REVERSED))
        } else {
            row
        }
    });
    let length = |columns: usize| Constraint::Length(u16::try_from(columns).unwrap_or(u16::MAX));
    let widths =
        std::iter::once(length(name)).chain(columns.iter().map(|column| length(column.width)));
    frame.render_widget(
        Table::new(rows, widths).header(header).column_spacing(1),
        area,
    );
}

#[cfg(test)]
mod tests;
