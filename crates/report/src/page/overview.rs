//! The top of the page: what was measured, the verdict, what GPUs did, and the functions that take most of the time.

use super::Page;
use super::devices;
use super::escape::{Name, Text};
use super::sentence;
use super::verdict;
use crate::date;
use crate::idle::GpuIdle;
use crate::in_order::InOrder as _;
use crate::row::Row;
use crate::sentence::Sentence;
use crate::summary::Summary;
use crate::text::units;
use crate::timeline::Timeline;
use crate::times::Times;
use std::fmt::Write;

/// How many functions each clock lists.
const LISTED: usize = 5;
/// Where the largest share of the time is less, in percent, no function dominates.
const FLAT: f64 = 10.0;

pub(super) fn push(html: &mut String, page: &Page<'_>, title: &str, idle: &GpuIdle) {
    let _ = write!(
        html,
        "<header>\n<div><h1>{}</h1>\n<p class=about>{}</p></div>\n<div id=tools></div>\n</header>\n",
        Text(title),
        Text(&facts(page).join(" · "))
    );
    let Some(summary) = page.summary else { return };
    html.push_str("<section id=verdict aria-label=Verdict>\n");
    let pairs = page.timeline.map(Timeline::gpu_pairs).unwrap_or_default();
    let said = verdict::sentences(summary, idle, &pairs);
    push_sentences(html, &said.sentences);
    if !said.folded.is_empty() {
        html.push_str("<details><summary>What limits the other GPUs</summary>\n");
        push_sentences(html, &said.folded);
        html.push_str("</details>\n");
    }
    html.push_str("</section>\n");
    devices::push(html, idle);
    html.push_str("<section id=clocks aria-label=\"Where the time went\">\n");
    push_clock(html, summary, "cpu", "CPU", |row| row.cpu);
    push_clock(html, summary, "cuda", "CUDA", |row| row.cuda);
    html.push_str("</section>\n");
}

fn push_sentences(html: &mut String, sentences: &[Sentence]) {
    for sentence in sentences {
        let _ = writeln!(html, "<p>{}</p>", sentence::html(sentence));
    }
}

/// Returns what a reader needs to know first about the run.
fn facts(page: &Page<'_>) -> Vec<String> {
    let Some(summary) = page.summary else {
        let window = page.timeline.map(|timeline| timeline.duration_ns as f64);
        return window
            .map(|ns| format!("a window of {}", units::time(ns)))
            .into_iter()
            .collect();
    };
    let calls = summary.rows.iter().map(|row| row.calls);
    let calls = calls.fold(0, u64::saturating_add);
    let environment = &summary.environment;
    let rank = environment.rank.map(|rank| format!("rank {rank}"));
    let gpu = match &environment.devices[..] {
        [] => String::new(),
        [device] => device.clone(),
        [first, rest @ ..] => format!("{first} and {}", counted(rest.len() as u64, "more GPU")),
    };
    let build = if environment.debug_build {
        "debug build"
    } else {
        ""
    };
    let facts = [
        format!("{} measured", units::time(summary.wall_ns)),
        format!(
            "{} of {}",
            counted(calls, "call"),
            counted(summary.rows.len() as u64, "function")
        ),
        environment.host.clone(),
        rank.unwrap_or_default(),
        gpu,
        build.to_owned(),
        date::utc(environment.start_unix_ns).unwrap_or_default(),
    ];
    facts.into_iter().filter(|fact| !fact.is_empty()).collect()
}

/// Returns a number with its noun, the number in groups of three digits.
pub(super) fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number))
}

/// Formats a number in groups of three digits, with narrow spaces between them.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 2);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// Lists the functions with the largest self times of one clock, each with a bar.
fn push_clock(
    html: &mut String,
    summary: &Summary,
    class: &str,
    clock: &str,
    times: fn(&Row) -> Option<Times>,
) {
    let mut rows: Vec<(&Row, Times)> = summary
        .rows
        .iter()
        .filter_map(|row| Some((row, times(row)?)))
        .collect();
    if rows.is_empty() {
        return;
    }
    rows.order_by(|(_, left), (_, right)| right.self_ns.total_cmp(&left.self_ns));
    let all: f64 = rows.iter().map(|(_, times)| times.self_ns).sum();
    let _ = write!(
        html,
        "<div class=\"clock {class}\">\n<h2>{clock} <span>{} self time</span></h2>\n<ol>\n",
        units::time(all)
    );
    for (row, times) in rows.iter().take(LISTED) {
        push_bar(html, &Name(&row.name).to_string(), times.self_percent);
    }
    if let Some((_, rest)) = rows
        .split_at_checked(LISTED)
        .filter(|(_, rest)| !rest.is_empty())
    {
        let percent: f64 = rest.iter().map(|(_, times)| times.self_percent).sum();
        let label = counted(rest.len() as u64, "other function");
        let _ = writeln!(
            html,
            "<li><em>{label}</em><span></span><span>{percent:.1} %</span>"
        );
    }
    html.push_str("</ol>\n");
    let longest = rows.first().map_or(0.0, |(_, times)| times.self_percent);
    if longest > 0.0 && longest < FLAT {
        let _ = writeln!(
            html,
            "<p>No function dominates: the longest takes {longest:.1} %.</p>"
        );
    }
    html.push_str("</div>\n");
}

/// Writes a line with a bar, whose whole length would be all of the time.
fn push_bar(html: &mut String, label: &str, percent: f64) {
    let _ = writeln!(
        html,
        "<li>{label}<svg viewBox=\"0 0 100 1\" preserveAspectRatio=none aria-hidden=true><rect width={:.1} \
         height=1 /></svg><span>{percent:.1} %</span>",
        percent.clamp(0.0, 100.0)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_groups() {
        assert_eq!(counted(0, "call"), "0 calls");
        assert_eq!(counted(1, "call"), "1 call");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1\u{202f}000");
        assert_eq!(grouped(12_345_678), "12\u{202f}345\u{202f}678");
    }
}
