//! The rows of two runs, side by side.

use std::collections::HashMap;
use std::fmt::Write;

use super::escape::Name;
use super::overview::grouped;
use super::table::by_self_time;
use crate::row::Row;
use crate::summary::Summary;
use crate::text::units;

/// How many rows are compared.
const ROWS: usize = 1_000;

/// One name in both runs; at least one of them has it.
pub(super) struct Pair<'r> {
    pub(super) name: &'r str,
    pub(super) base: Option<&'r Row>,
    pub(super) new: Option<&'r Row>,
}

/// Returns the names of both runs: those of the new run by self time, then those that it no longer has.
pub(super) fn pairs<'r>(summary: &'r Summary, baseline: &'r Summary) -> Vec<Pair<'r>> {
    let mut before: HashMap<&str, &Row> = baseline
        .rows
        .iter()
        .map(|row| (row.name.as_str(), row))
        .collect();
    let mut pairs: Vec<Pair<'_>> = by_self_time(summary)
        .into_iter()
        .map(|row| Pair {
            name: &row.name,
            base: before.remove(row.name.as_str()),
            new: Some(row),
        })
        .collect();
    let gone = by_self_time(baseline).into_iter();
    let gone = gone.filter(|row| before.contains_key(row.name.as_str()));
    pairs.extend(gone.map(|row| Pair {
        name: &row.name,
        base: Some(row),
        new: None,
    }));
    pairs.truncate(ROWS);
    pairs
}

pub(super) fn push(html: &mut String, summary: &Summary, baseline: &Summary) {
    let pairs = pairs(summary, baseline);
    let has_cuda = pairs
        .iter()
        .any(|pair| cuda(pair.new).is_some() || cuda(pair.base).is_some());
    html.push_str(
        "<section id=comparison class=view>\n<h2>Comparison</h2>\n\
         <p class=note>One run against one other: the differences may be chance. <code>profiler diff</code> judges several \
         runs a side.</p>\n\
         <div class=scroll tabindex=0 role=region aria-label=\"Comparison of two runs\">\n<table class=pairs>\n\
         <thead><tr><th rowspan=2 scope=col>Function<th colspan=2 scope=colgroup>Calls\
         <th colspan=3 scope=colgroup class=cpu>CPU mean",
    );
    if has_cuda {
        html.push_str("<th colspan=3 scope=colgroup class=cuda>CUDA mean");
    }
    html.push_str("\n<tr><th scope=col>Before<th scope=col>Now");
    let clocks = if has_cuda { 2 } else { 1 };
    html.push_str(&"<th scope=col>Before<th scope=col>Now<th scope=col>Ratio".repeat(clocks));
    html.push_str("\n<tbody>\n");
    for pair in &pairs {
        let calls = |row: Option<&Row>| row.map_or(String::new(), |row| grouped(row.calls));
        let _ = write!(
            html,
            "<tr><th scope=row>{}<td>{}<td>{}",
            Name(pair.name),
            calls(pair.base),
            calls(pair.new)
        );
        push_means(html, cpu(pair.base), cpu(pair.new));
        if has_cuda {
            push_means(html, cuda(pair.base), cuda(pair.new));
        }
        html.push('\n');
    }
    html.push_str("</table>\n</div>\n</section>\n");
}

/// Returns the mean time of the calls on the CPU.
pub(super) fn cpu(row: Option<&Row>) -> Option<f64> {
    row?.cpu.map(|cpu| cpu.mean_ns)
}

pub(super) fn cuda(row: Option<&Row>) -> Option<f64> {
    row?.cuda.map(|cuda| cuda.mean_ns)
}

fn push_means(html: &mut String, base: Option<f64>, new: Option<f64>) {
    let time = |ns: Option<f64>| ns.map(units::time).unwrap_or_default();
    let ratio = match (base, new) {
        (Some(base), Some(new)) if base > 0.0 => format!("{:.2}", new / base),
        _ => String::new(),
    };
    let _ = write!(html, "<td>{}<td>{}<td>{ratio}", time(base), time(new));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(names: &[&str]) -> Summary {
        let mut summary = Summary::default();
        let row = |name: &&str| Row {
            name: (*name).to_owned(),
            calls: 1,
            ..Row::default()
        };
        summary.rows = names.iter().map(row).collect();
        summary
    }

    #[test]
    fn names_of_either_run_are_compared() {
        let (new, base) = (summary(&["a", "b"]), summary(&["b", "c"]));
        let pairs = pairs(&new, &base);
        let found: Vec<(&str, bool, bool)> = pairs
            .iter()
            .map(|pair| (pair.name, pair.base.is_some(), pair.new.is_some()))
            .collect();
        assert_eq!(
            found,
            [("a", false, true), ("b", true, true), ("c", true, false)]
        );
    }
}
