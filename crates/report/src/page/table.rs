//! The table of functions as HTML, which needs no script. With script, it is replaced by one that can be sorted.

use super::escape::Name;
use super::overview::{counted, grouped};
use crate::in_order::InOrder as _;
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
/// What the GPUs did for a row, and waited for. These follow the columns of CUDA.
const GPU_COLUMNS: [&str; 2] = ["GPU busy", "Idle caused"];

/// Which columns there are beside those of the CPU. Where kernels were recorded, functions have GPU times.
#[derive(Clone, Copy)]
enum Columns {
    Cpu,
    Cuda,
    CudaAndGpu,
}

impl Columns {
    fn of(rows: &[Row]) -> Self {
        if rows.iter().any(|row| row.gpu.is_some()) {
            Self::CudaAndGpu
        } else if rows.iter().any(|row| row.cuda.is_some()) {
            Self::Cuda
        } else {
            Self::Cpu
        }
    }

    /// Returns the classes by which the style chooses columns where there is no script.
    fn class(self) -> &'static str {
        match self {
            Self::Cpu => "on-cpu",
            Self::Cuda => "on-gpu",
            Self::CudaAndGpu => "on-gpu with-idle",
        }
    }

    /// Returns the titles of the columns of CUDA.
    fn of_cuda(self) -> Vec<&'static str> {
        match self {
            Self::Cpu => Vec::new(),
            Self::Cuda => COLUMNS.to_vec(),
            Self::CudaAndGpu => [&COLUMNS[..], &GPU_COLUMNS].concat(),
        }
    }
}

pub(super) fn push(html: &mut String, summary: &Summary) {
    html.push_str("<section id=functions class=view>\n<h2>Functions</h2>\n");
    if !summary.rows.is_empty() {
        let columns = Columns::of(&summary.rows);
        html.push_str(
            "<div class=scroll tabindex=0 role=region aria-label=\"Table of functions\">\n",
        );
        let _ = writeln!(html, "<table class=\"rows bare {}\">", columns.class());
        push_head(html, columns);
        html.push_str("<tbody>\n");
        for row in by_self_time(summary).into_iter().take(ROWS) {
            push_row(html, row, columns);
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
    rows.order_by(|left, right| {
        let cuda = own(right.cuda).total_cmp(&own(left.cuda));
        let cpu = own(right.cpu).total_cmp(&own(left.cpu));
        if has_cuda { cuda.then(cpu) } else { cpu }
    });
    rows
}

fn push_head(html: &mut String, columns: Columns) {
    html.push_str("<thead><tr><th rowspan=2 scope=col>Function");
    let of_cuda = columns.of_cuda();
    if !of_cuda.is_empty() {
        html.push_str("<th rowspan=2 scope=col class=limit>Limited by");
    }
    html.push_str("<th rowspan=2 scope=col>Calls");
    let groups = [("cpu", "CPU", COLUMNS.to_vec()), ("cuda", "CUDA", of_cuda)];
    for (class, title, columns) in groups.iter().filter(|(_, _, columns)| !columns.is_empty()) {
        let columns = columns.len();
        let _ = write!(
            html,
            "<th colspan={columns} scope=colgroup class={class}>{title}"
        );
    }
    html.push_str("\n<tr>");
    for column in groups.iter().flat_map(|(_, _, columns)| columns) {
        let _ = write!(html, "<th scope=col>{column}");
    }
    html.push('\n');
}

fn push_row(html: &mut String, row: &Row, columns: Columns) {
    let has_cuda = !matches!(columns, Columns::Cpu);
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
    if matches!(columns, Columns::CudaAndGpu) {
        let times = row.gpu.map(|gpu| [gpu.busy_ns, gpu.idle_caused_ns]);
        for text in times
            .map(|times| times.map(units::time))
            .unwrap_or_default()
        {
            let _ = write!(html, "<td>{text}");
        }
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

#[cfg(test)]
mod tests {
    use super::super::Page;
    use super::super::strip::tests::window;

    /// Returns the texts of the cells of a table's row that a text begins.
    fn cells<'h>(html: &'h str, row: &str) -> Vec<&'h str> {
        let after = html.split_once(row).expect("the row").1;
        let row = after.split('\n').next().expect("a line");
        let cells = row.split("<td").skip(1);
        cells
            .map(|cell| cell.split_once('>').expect("a cell").1)
            .collect()
    }

    #[test]
    fn rows_of_a_window_with_kernels_say_how_long_the_gpu_worked_and_waited() {
        let mut timeline = window("load");
        let html = Page::new().timeline(&timeline).to_html();
        // By these classes, the style chooses columns where there is no script.
        assert!(html.contains("<table class=\"rows bare on-gpu with-idle\">"));
        assert!(html.contains("<th colspan=9 scope=colgroup class=cuda>CUDA"));
        assert!(html.contains("<th scope=col>GPU busy<th scope=col>Idle caused\n"));
        let last = |name: &str| {
            let cells = cells(&html, &format!("<tr><th scope=row><bdi><b>{name}"));
            assert_eq!(cells.len(), 18, "{cells:?}");
            [cells[16], cells[17]]
        };
        assert_eq!(last("load"), ["0 ns", "400 µs"]);
        assert_eq!(last("train"), ["200 µs", "0 ns"]);
        timeline.slices.retain(|slice| slice.work.is_none());
        let html = Page::new().timeline(&timeline).to_html();
        assert!(!html.contains("Idle caused<") && !html.contains("Idle caused\n"));
    }
}
