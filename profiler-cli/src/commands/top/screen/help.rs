//! The list of keys, and what the columns mean.

use super::super::canvas::Paragraph;
use super::super::keys::{KEYS, Place};
use super::super::styled::{Span, Text};
use super::super::text::width;
use super::BOLD;

/// What the screens mean.
const ROWS: &str = "CPU % and GPU %: the part of the time since the file was last written that was spent in the function \
                    itself, on all threads or streams. A call counts as a whole when it ends, so one that began before \
                    may make it more than 100. Self CPU, Self GPU, calls, history: since the beginning. idle: a \
                    device was idle because of it. The GPU limits from 60 % busy on.";
const STRIP: &str = "Strip: a column for each time that the file was written. Solid is busy, shaded host-paced, by \
                     GPU times of functions: at their places, or for `GPU ranges` added up. load: by the sensor, of \
                     all programs.";
const RANKS: &str = "step: the mean time from step to step in the last ten spans, ± its noise. slow: it takes over 10 % longer \
                     than the median of the others, by more than its noise. Ranks that wait for each other take equally \
                     long: `profiler merge` finds the one that is late.";

pub(super) fn help<'t>(place: Place) -> Paragraph<'t> {
    let line = |(keys, effect): &(&'static str, &'static str)| {
        let gap = " ".repeat(15_usize.saturating_sub(width(keys)));
        Text::from(vec![
            Span::styled(*keys, BOLD),
            Span::raw(format!("{gap}{effect}")),
        ])
    };
    let mut lines: Vec<Text<'_>> = KEYS.iter().map(line).collect();
    let texts: &[&str] = if place == Place::Ranks {
        &["", RANKS]
    } else {
        &["", ROWS, STRIP]
    };
    lines.extend(texts.iter().map(|text| Text::raw(*text)));
    Paragraph::wrapped(lines)
}
