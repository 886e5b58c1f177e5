//! A line for each function.

use profiler_report::internal::{shared_path, shorten_names_in_the_middle};

use super::super::canvas::{Area, Frame, Paragraph};
use super::super::feed::Shown;
use super::super::keys::View;
use super::super::line::{Line, Order};
use super::super::styled::{Color, Style, Text};
use super::super::text::{bars, count, heights, percent, printable, time, width};
use super::{BOLD, SELECTED};

/// The columns that a name gets before the least important column of numbers is left out.
const NAME: usize = 26;
/// The fewest columns of a history.
const HISTORY: usize = 24;

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
    if lines.iter().any(|line| line.idle.is_some()) {
        columns.push(column(Some(Order::Idle), "idle", 9, 1, |line| {
            line.idle.map_or_else(String::new, |(ns, _)| time(ns))
        }));
    }
    columns.push(column(Some(Order::Rate), "calls/s", 8, 1, |line| {
        count(line.rate)
    }));
    columns.push(column(Some(Order::CpuTotal), "Self CPU", 9, 3, |line| {
        time(line.cpu_total_ns)
    }));
    if has_cuda {
        columns.push(column(Some(Order::CudaTotal), "Self GPU", 9, 4, |line| {
            line.cuda_total_ns.map_or_else(String::new, time)
        }));
    }
    columns.push(column(Some(Order::Calls), "calls", 7, 2, |line| {
        count(line.calls as f64)
    }));
    columns.push(column(None, "a call", 9, 8, |line| {
        or_nothing(line.cpu_mean_ns)
    }));
    columns.push(column(None, "95 %", 9, 9, |line| {
        or_nothing(line.cpu_p95_ns)
    }));
    if has_cuda {
        columns.push(column(None, "a GPU call", 10, 10, |line| {
            or_nothing(line.cuda_mean_ns)
        }));
        columns.push(column(None, "limited by", 12, 7, |line| {
            line.verdict
                .map_or_else(String::new, |verdict| verdict.to_string())
        }));
    }
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

/// Returns the width of columns, with the gaps in front of them.
fn taken(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.width + 1).sum()
}

fn or_nothing(time_ns: Option<f64>) -> String {
    time_ns.map_or_else(String::new, time)
}

/// Returns the modules that all names begin with, and the head of the names, which says them if there is room.
fn modules(lines: &[Line], space: usize) -> (&str, String) {
    let names: Vec<&str> = lines.iter().map(|line| &*line.name).collect();
    let head = shared_path(&names).map(|path| (path, format!("name, in {path}")));
    let fitting = head.filter(|(_, head)| width(head) <= space);
    fitting.unwrap_or_else(|| ("", "name".to_owned()))
}

/// Returns a name without the modules that it begins with.
fn within<'n>(name: &'n str, modules: &str) -> &'n str {
    name.strip_prefix(modules).unwrap_or(name)
}

/// Draws the functions that match the filter, sorted.
pub(super) fn draw(frame: &mut Frame, area: Area, shown: &Shown, view: &mut View) {
    if let Some(reason) = shown.summary.nothing_measured.as_deref() {
        let text = format!("nothing was measured yet: {}", printable(reason));
        frame.draw(Paragraph::wrapped(vec![Text::raw(text)]), area);
        return;
    }
    let available = area.width;
    let mut columns = columns(&shown.lines, available);
    let visible = view.visible(shown);
    let keys = visible.iter().map(|line| &*line.name);
    view.rows.settle(keys, area.height.saturating_sub(1));
    let (order, rows) = (view.order.by(shown.limit), view.rows.shown(&visible));

    let mut name = available.saturating_sub(taken(&columns));
    let (path, title) = modules(&shown.lines, name);
    // What names do not need is the history's.
    let lines = shown.lines.iter();
    let longest = lines.map(|line| width(within(&line.name, path))).max();
    let spare = name.saturating_sub(longest.unwrap_or(0).max(width(&title)).max(NAME));
    if let Some(history) = columns.iter_mut().find(|column| column.title == "history") {
        history.width += spare;
        name -= spare;
    }
    let style_of = |of: Option<Order>| {
        if of == Some(order) {
            BOLD.foreground(Color::Cyan).and(Style::UNDERLINED)
        } else {
            BOLD
        }
    };
    let head = |column: &Column| Text::styled(column.title, style_of(column.order)).right_aligned();
    let first = Text::styled(title, style_of(Some(Order::Name)));
    let header: Vec<Text<'_>> = std::iter::once(first)
        .chain(columns.iter().map(head))
        .collect();
    let names = rows.clone().map(|(_, line)| within(&line.name, path));
    let names: Vec<&str> = names.collect();
    let names = shorten_names_in_the_middle(&names, name);
    let rows = rows.zip(names).map(|((is_selected, line), name)| {
        let numbers = columns.iter().map(|column| {
            if column.title == "history" {
                let wall_ns = shown.summary.wall_ns;
                let heights = heights(&line.history, wall_ns, column.width, order);
                Text::raw(bars(&heights, 1).concat())
            } else {
                Text::raw((column.value)(line)).right_aligned()
            }
        });
        let style = if is_selected { SELECTED } else { Style::new() };
        (
            style,
            std::iter::once(Text::raw(name)).chain(numbers).collect(),
        )
    });
    let widths = columns.iter().map(|column| column.width);
    let widths: Vec<usize> = std::iter::once(name).chain(widths).collect();
    let rows = std::iter::once((Style::new(), header)).chain(rows);
    frame.draw_table(rows, (&widths, 1), area);
}
