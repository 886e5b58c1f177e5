//! One function: its times, its history, how long its calls took, and its callers.

use profiler_report::internal::shorten_names_in_the_middle;
use profiler_report::{Histogram, Row, Times};

use super::super::canvas::{Area, Frame, Paragraph};
use super::super::feed::Shown;
use super::super::line::{Line, Order};
use super::super::styled::{Span, Text};
use super::super::text::{bars, count, counted, eighths, heights, percent, printable, time, width};
use super::{BOLD, DIM};

/// From this width on, callers stand beside the times of calls.
const WIDE: usize = 110;
/// The columns of a bar of the histogram, at most.
const BAR: usize = 40;

/// Draws the function with this name.
pub(super) fn draw(frame: &mut Frame, area: Area, shown: &Shown, name: &str, order: Order) {
    let is_it = |row: &&Row| printable(&row.name) == name;
    let row = shown.summary.rows.iter().find(is_it);
    let line = shown.lines.iter().find(|line| line.name == name);
    let (Some(row), Some(line)) = (row, line) else {
        let text = format!("{name} is no longer in the file; Esc goes back");
        frame.draw(Paragraph::new(vec![Text::raw(text)]), area);
        return;
    };
    let mut above = numbers(shown, row, line);
    above.extend(history(shown, line, order, area));
    let (top, bottom) = area.split_rows(above.len());
    frame.draw(Paragraph::new(above), top);
    let (times, callers) = if area.width >= WIDE {
        bottom.halves(2)
    } else {
        bottom.split_rows(bottom.height.div_ceil(2))
    };
    let is_of_cuda = order.is_of_cuda() && row.cuda_histogram.is_some();
    frame.draw(Paragraph::new(histogram(row, is_of_cuda, times)), times);
    frame.draw(Paragraph::new(callers_of(shown, row, callers)), callers);
}

/// Returns the numbers of the function.
fn numbers<'t>(shown: &Shown, row: &Row, line: &Line) -> Vec<Text<'t>> {
    let mut calls = vec![
        counted(row.calls, "call"),
        format!("{} /s", count(line.rate)),
    ];
    if row.open > 0 {
        calls.push(format!("{} open", count(row.open as f64)));
    }
    calls.extend(line.verdict.map(|verdict| verdict.to_string()));
    let place = Span::styled(format!("  {}", printable(&row.location)), DIM);
    let last = format!("last {}", time(shown.span_ns));
    let titles = [
        &*last, "itself", "in all", "mean", "median", "95 %", "longest",
    ];
    let line_of = |name: &str, values: &[&str]| {
        let (last, others) = values.split_first().unwrap_or((&"", &[]));
        let others: Vec<String> = others.iter().map(|value| format!("{value:>10}")).collect();
        format!("{name:3}{last:>12}{}", others.concat())
    };
    let clock = |name: &str, share: f64, times: Times| {
        let single = |ns: f64| {
            if times.calls > 0 {
                time(ns)
            } else {
                "–".to_owned()
            }
        };
        let values = [
            format!("{} %", percent(share)),
            time(times.self_ns),
            time(times.total_ns),
            single(times.mean_ns),
            single(times.p50_ns),
            single(times.p95_ns),
            single(times.max_ns),
        ];
        Text::raw(line_of(name, &values.each_ref().map(String::as_str)))
    };
    let mut lines = vec![
        Text::from(vec![Span::styled(line.name.clone(), BOLD), place]),
        Text::raw(calls.join(" · ")),
        Text::styled(line_of("", &titles), BOLD),
    ];
    lines.extend(row.cpu.map(|times| clock("CPU", line.cpu, times)));
    let cuda = row.cuda.zip(line.cuda);
    lines.extend(cuda.map(|(times, share)| clock("GPU", share, times)));
    lines.extend(shown.summary.gpu_idle.iter().filter_map(|account| {
        let charge = account
            .charges
            .iter()
            .find(|charge| charge.name == row.name)?;
        let device = account
            .device
            .map_or_else(String::new, |device| format!(" {device}"));
        Some(Text::raw(format!(
            "kept GPU{device} waiting for {} ± {}: {} % of {} since its first GPU time",
            time(charge.idle_ns),
            time(charge.error_ns),
            percent(charge.idle_ns / account.wall_ns().max(1.0)),
            time(account.wall_ns()),
        )))
    }));
    lines
}

/// Draws the time that was spent in the function itself, over the run.
fn history<'t>(shown: &Shown, line: &Line, order: Order, area: Area) -> Vec<Text<'t>> {
    let wall_ns = shown.summary.wall_ns;
    let rows = if area.height >= 28 { 3 } else { 1 };
    let chart = |title: &str, order| {
        let heights = heights(&line.history, wall_ns, area.width, order);
        let title = format!("itself on the {title}, over the run of {}", time(wall_ns));
        let title = std::iter::once(Text::styled(title, BOLD));
        title.chain(bars(&heights, rows).into_iter().map(Text::raw))
    };
    if line.history.is_empty() {
        let text = "history: none was sampled for this function";
        return vec![Text::raw(""), Text::styled(text, DIM)];
    }
    let mut lines = vec![Text::raw("")];
    // A low screen has room for the clock that sorts the rows.
    let is_low = area.height < 18;
    if line.cuda.is_none() || !is_low || !order.is_of_cuda() {
        lines.extend(chart("CPU", Order::Cpu));
    }
    if line.cuda.is_some() && (!is_low || order.is_of_cuda()) {
        lines.extend(chart("GPU", Order::Cuda));
    }
    lines
}

/// Draws how many calls took how long.
fn histogram<'t>(row: &Row, is_of_cuda: bool, area: Area) -> Vec<Text<'t>> {
    let (of, clock) = if is_of_cuda {
        (&row.cuda_histogram, "GPU")
    } else {
        (&row.cpu_histogram, "CPU")
    };
    let title = Text::styled(format!("how long calls took on the {clock}"), BOLD);
    let mut lines = vec![Text::raw(""), title];
    let room = area.height.saturating_sub(lines.len());
    let groups = of.as_ref().map_or_else(Vec::new, |of| groups(of, room));
    if groups.is_empty() {
        lines.push(Text::styled("no call has such a time", DIM));
    }
    let most = groups.iter().map(|group| group.calls).max().unwrap_or(0);
    let bar = BAR.min(area.width.saturating_sub(34));
    for group in groups {
        let full = eighths(group.calls as f64 / most.max(1) as f64, bar);
        let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][full % 8];
        let limits = format!("{} to {}", time(group.from_ns), time(group.to_ns));
        let bars = "█".repeat(full / 8);
        let text = format!("{limits:>22} {bars}{rest} {}", count(group.calls as f64));
        lines.push(Text::raw(text));
    }
    lines
}

/// Calls whose times lie between two limits.
#[derive(Debug, PartialEq)]
struct Group {
    from_ns: f64,
    to_ns: f64,
    calls: u64,
}

/// Merges neighbouring buckets into at most `most` groups, each as many times longer than the one before.
fn groups(histogram: &Histogram, most: usize) -> Vec<Group> {
    let buckets = &histogram.buckets;
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else {
        return Vec::new();
    };
    let count = most.min(buckets.len());
    let from = first.from_ns.max(1.0).ln();
    let step = (last.to_ns.max(1.0).ln() - from) / count as f64;
    let mut groups: Vec<(usize, Group)> = Vec::new();
    if count == 0 {
        return Vec::new();
    }
    for bucket in buckets {
        let middle = f64::midpoint(bucket.from_ns.max(1.0).ln(), bucket.to_ns.max(1.0).ln());
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to the number of groups; the cast saturates"
        )]
        let number = ((middle - from) / step) as usize;
        match groups.last_mut() {
            Some((last, group)) if *last == number => {
                group.to_ns = bucket.to_ns;
                group.calls += bucket.calls;
            }
            _ => groups.push((
                number,
                Group {
                    from_ns: bucket.from_ns,
                    to_ns: bucket.to_ns,
                    calls: bucket.calls,
                },
            )),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Returns the functions that called it, the longest time first.
fn callers_of<'t>(shown: &Shown, row: &Row, area: Area) -> Vec<Text<'t>> {
    let mut lines = vec![Text::raw(""), Text::styled("callers", BOLD)];
    let Some(callers) = shown.callers() else {
        let text = "not counted: run the program with PROFILER_CALLERS=1";
        lines.push(Text::styled(text, DIM));
        return lines;
    };
    let edges: Vec<_> = callers
        .edges
        .iter()
        .filter(|edge| edge.callee == row.name)
        .take(area.height.saturating_sub(lines.len()))
        .collect();
    let name = |caller: &Option<String>| {
        let outside = "(outside of measured functions)";
        printable(caller.as_deref().unwrap_or(outside))
    };
    let names: Vec<String> = edges.iter().map(|edge| name(&edge.caller)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let longest = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let space = longest.min(area.width.saturating_sub(30));
    let names = shorten_names_in_the_middle(&names, space);
    for (edge, name) in edges.iter().zip(names) {
        let gap = " ".repeat(space.saturating_sub(width(&name)));
        let calls = count(edge.calls as f64);
        let took = edge.cpu.map_or_else(String::new, |cpu| time(cpu.total_ns));
        lines.push(Text::raw(format!("{name}{gap} {calls:>7} calls {took:>9}")));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_buckets_are_merged_and_no_call_is_lost() {
        let json = "{\"buckets\": [[1000, 2000, 1], [2000, 4000, 2], [4000, 8000, 4], [500000, 1000000, 8]]}";
        let histogram: Histogram = serde_json::from_str(json).expect("it is one");
        let group = |from_ns, to_ns, calls| Group {
            from_ns,
            to_ns,
            calls,
        };
        assert_eq!(
            groups(&histogram, 2),
            [group(1e3, 8e3, 7), group(5e5, 1e6, 8)]
        );
        assert_eq!(groups(&histogram, 64).len(), 3);
        assert_eq!(groups(&histogram, 0), []);
        assert_eq!(groups(&Histogram::default(), 9), []);
    }
}
