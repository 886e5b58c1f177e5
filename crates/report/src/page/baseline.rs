//! The rows of two runs, side by side.

use std::collections::HashMap;
use std::fmt::Write;

use super::escape::Name;
use super::overview::grouped;
use super::table::by_self_time;
use crate::in_order::InOrder as _;
use crate::row::Row;
use crate::summary::Summary;
use crate::text::units;
use crate::times::Times;

/// How many rows are compared.
const ROWS: usize = 1_000;

/// One name in both runs; at least one of them has it.
pub(super) struct Pair<'r> {
    pub(super) name: &'r str,
    pub(super) base: Option<&'r Row>,
    pub(super) new: Option<&'r Row>,
}

/// Returns the names of both runs, those whose self time has changed most first: on the GPU if there are GPU times, as in
/// the table.
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
    let has_cuda = has_cuda(&pairs);
    let change = |pair: &Pair<'_>, of| self_change(pair, of).unwrap_or_default().abs();
    pairs.order_by(|left, right| {
        let by = |of: Clock| change(right, of).total_cmp(&change(left, of));
        let cpu = by(|row| row.cpu);
        if has_cuda {
            by(|row| row.cuda).then(cpu)
        } else {
            cpu
        }
    });
    pairs.truncate(ROWS);
    pairs
}

type Clock = fn(&Row) -> Option<Times>;

/// Returns by how much the self time of all calls has grown; a row that a run lacks took no time there. `None` if neither
/// has such a time.
pub(super) fn self_change(pair: &Pair<'_>, clock: Clock) -> Option<f64> {
    let own = |row: Option<&Row>| row.and_then(clock).map(|times| times.self_ns);
    let (base, new) = (own(pair.base), own(pair.new));
    base.or(new)?;
    Some(new.unwrap_or_default() - base.unwrap_or_default())
}

fn has_cuda(pairs: &[Pair<'_>]) -> bool {
    pairs
        .iter()
        .any(|pair| cuda(pair.new).is_some() || cuda(pair.base).is_some())
}

pub(super) fn push(html: &mut String, summary: &Summary, baseline: &Summary) {
    let pairs = pairs(summary, baseline);
    let has_cuda = has_cuda(&pairs);
    html.push_str(
        "<section id=comparison class=view>\n<h2>Comparison</h2>\n\
         <p class=note>One run against one other: the differences may be chance. <code>profiler diff</code> judges several \
         runs a side. Less time is better: <span class=better>▾ faster</span>, <span class=worse>▴ slower</span>. The largest \
         changes of self time come first.</p>\n\
         <div class=scroll tabindex=0 role=region aria-label=\"Comparison of two runs\">\n<table class=pairs>\n\
         <thead><tr><th rowspan=2 scope=col>Function<th colspan=2 scope=colgroup class=calls>Calls\
         <th colspan=4 scope=colgroup class=cpu>CPU",
    );
    if has_cuda {
        html.push_str("<th colspan=4 scope=colgroup class=cuda>CUDA");
    }
    html.push_str("\n<tr><th scope=col>Before<th scope=col>Now");
    let clocks = if has_cuda { 2 } else { 1 };
    html.push_str(
        &"<th scope=col>Mean before<th scope=col>Mean now<th scope=col>Ratio<th scope=col>Self change"
            .repeat(clocks),
    );
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
        push_clock(html, pair, |row| row.cpu);
        if has_cuda {
            push_clock(html, pair, |row| row.cuda);
        }
        html.push('\n');
    }
    html.push_str("</table>\n</div>\n</section>\n");
}

/// Returns the mean time of the calls on the CPU.
pub(super) fn cpu(row: Option<&Row>) -> Option<f64> {
    row?.cpu.and_then(|cpu| cpu.of_single(cpu.mean_ns))
}

pub(super) fn cuda(row: Option<&Row>) -> Option<f64> {
    row?.cuda.and_then(|cuda| cuda.of_single(cuda.mean_ns))
}

fn push_clock(html: &mut String, pair: &Pair<'_>, clock: Clock) {
    let mean = |row: Option<&Row>| {
        row.and_then(clock)
            .and_then(|times| times.of_single(times.mean_ns))
    };
    let (base, new) = (mean(pair.base), mean(pair.new));
    let time = |ns: Option<f64>| ns.map(units::time).unwrap_or_default();
    let ratio = match (base, new) {
        (Some(base), Some(new)) if base > 0.0 => {
            with_direction(&format!("{:.2}", new / base), "1.00")
        }
        _ => "<td>".to_owned(),
    };
    let change = match self_change(pair, clock) {
        Some(ns) if ns > 0.0 => with_direction(&format!("+{}", units::time(ns)), ""),
        Some(ns) if ns < 0.0 => with_direction(&format!("\u{2212}{}", units::time(-ns)), ""),
        Some(ns) => format!("<td>{}", units::time(ns)),
        None => "<td>".to_owned(),
    };
    let _ = write!(
        html,
        "<td class=clock-start>{}<td>{}{ratio}{change}",
        time(base),
        time(new)
    );
}

/// Returns a cell that says whether less time was taken. `same` is the text of a ratio that is not known to be another.
fn with_direction(text: &str, same: &str) -> String {
    let is_less = text.starts_with('0') || text.starts_with('\u{2212}');
    if text == same {
        format!("<td>{text}")
    } else if is_less {
        format!("<td class=better>{text} ▾")
    } else {
        format!("<td class=worse>{text} ▴")
    }
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

    #[test]
    fn the_largest_change_comes_first_and_says_which_direction_is_good() {
        let run = |times: [(&str, f64); 3]| {
            let mut summary = summary(&times.map(|(name, _)| name));
            for (row, (_, ns)) in summary.rows.iter_mut().zip(times) {
                row.cpu = Some(Times {
                    calls: 1,
                    self_ns: ns,
                    mean_ns: ns,
                    ..Times::default()
                });
            }
            summary
        };
        let base = run([("same", 9_000.0), ("slower", 100.0), ("faster", 800.0)]);
        let new = run([("same", 9_000.0), ("slower", 150.0), ("faster", 200.0)]);
        let names: Vec<&str> = pairs(&new, &base).iter().map(|pair| pair.name).collect();
        assert_eq!(names, ["faster", "slower", "same"]);
        let mut html = String::new();
        push(&mut html, &new, &base);
        for cells in [
            "<td class=better>0.25 ▾<td class=better>\u{2212}600 ns ▾",
            "<td class=worse>1.50 ▴<td class=worse>+50.0 ns ▴",
            "<td>1.00<td>0 ns",
        ] {
            assert!(html.contains(cells), "{cells} in {html}");
        }
    }
}
