//! The table of functions as HTML, which needs no script. With script, it is replaced by one that can be sorted.

use super::escape::Name;
use super::overview::{counted, grouped};
use crate::row::Row;
use crate::summary::Summary;
use crate::text::units;
use crate::times::Times;
use crate::verdict::Verdict;
use std::fmt::Write;

/// How many rows the page shows without script; with it, the user can show all.
pub(super) const ROWS: usize = 200;

/// The columns of one clock.
const COLUMNS: [&str; 7] = ["Self", "Self %", "Total", "Mean", "p50", "p95", "p99"];

pub(super) fn push(html: &mut String, summary: &Summary) {
    html.push_str("<section id=functions class=view>\n<h2>Functions</h2>\n");
    if !summary.rows.is_empty() {
        let has_cuda = summary.rows.iter().any(|row| row.cuda.is_some());
        html.push_str(
            "<div class=scroll tabindex=0 role=region aria-label=\"Table of functions\">\n<table class=rows>\n",
        );
        push_head(html, has_cuda);
        html.push_str("<tbody>\n");
        for row in by_self_time(summary).into_iter().take(ROWS) {
            push_row(html, row, has_cuda);
        }
        html.push_str("</table>\n</div>\n");
        push_omitted(html, summary.rows.len());
    }
    html.push_str("</section>\n");
}

/// Returns the rows with the largest self time first: on the GPU if there are GPU times, because launching overlaps the
/// GPU's work.
pub(super) fn by_self_time(summary: &Summary) -> Vec<&Row> {
    let mut rows: Vec<&Row> = summary.rows.iter().collect();
    let has_cuda = rows.iter().any(|row| row.cuda.is_some());
    let own = |times: Option<Times>| times.map_or(-1.0, |times| times.self_ns);
    rows.sort_by(|left, right| {
        let cuda = own(right.cuda).total_cmp(&own(left.cuda));
        let cpu = own(right.cpu).total_cmp(&own(left.cpu));
        if has_cuda { cuda.then(cpu) } else { cpu }
    });
    rows
}

fn push_head(html: &mut String, has_cuda: bool) {
    let columns = COLUMNS.len();
    html.push_str("<thead><tr><th rowspan=2 scope=col>Function");
    if has_cuda {
        html.push_str("<th rowspan=2 scope=col class=limit>Limited by");
    }
    html.push_str("<th rowspan=2 scope=col>Calls");
    let _ = write!(html, "<th colspan={columns} scope=colgroup class=cpu>CPU");
    if has_cuda {
        let _ = write!(html, "<th colspan={columns} scope=colgroup class=cuda>CUDA");
    }
    html.push_str("\n<tr>");
    for clock in [true, has_cuda] {
        if clock {
            html.extend(COLUMNS.map(|column| format!("<th scope=col>{column}")));
        }
    }
    html.push('\n');
}

fn push_row(html: &mut String, row: &Row, has_cuda: bool) {
    let _ = write!(html, "<tr><th scope=row>{}", Name(&row.name));
    if has_cuda {
        let verdict = row.verdict().map_or("", Verdict::as_str);
        let _ = write!(html, "<td class=limit>{verdict}");
    }
    let _ = write!(html, "<td>{}", grouped(row.calls));
    push_times(html, row.cpu);
    if has_cuda {
        push_times(html, row.cuda);
    }
    html.push('\n');
}

fn push_times(html: &mut String, times: Option<Times>) {
    let Some(times) = times else {
        html.push_str("<td class=clock-start>");
        html.push_str(&"<td>".repeat(COLUMNS.len() - 1));
        return;
    };
    let _ = write!(
        html,
        "<td class=clock-start>{}<td>{:.2}",
        units::time(times.self_ns),
        times.self_percent
    );
    let single = [times.mean_ns, times.p50_ns, times.p95_ns, times.p99_ns];
    let single = single.map(|ns| times.of_single(ns));
    for ns in std::iter::once(Some(times.total_ns)).chain(single) {
        html.push_str("<td>");
        html.push_str(&ns.map_or_else(|| "–".to_owned(), units::time));
    }
}

fn push_omitted(html: &mut String, rows: usize) {
    let more = rows.saturating_sub(ROWS);
    if more > 0 {
        let _ = writeln!(
            html,
            "<p class=more>{} with less self time: the page lists them if the browser runs its script.</p>",
            counted(more as u64, "more function")
        );
    }
}
