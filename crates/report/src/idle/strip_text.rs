//! The strip in a terminal: a line of busy times, and a line of letters below for those who kept the device waiting.

use std::cmp::Reverse;

use profiler_host::diagnostics::printable;

use super::{DeviceIdle, StripColumn, StripPart};
use crate::options::TableOptions;
use crate::sentence::percent;
use crate::text::style::Style;
use crate::text::{fill, shorten, terminal};

/// What stands before the columns of each line.
const LABELS: [&str; 2] = ["busy  ", "idle  "];

/// The most letters of a name in the legend.
const NAME: usize = 40;

/// A letter says who kept the device waiting from this share of a column on. Below, the column is busy.
const SEEN: f64 = 1.0 / 16.0;

/// Shares of a column from none to all, for terminals with and without blocks.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 9] = [' ', '.', ':', '-', '=', '+', '*', '%', '#'];

impl DeviceIdle {
    /// Returns the strip as two lines and a legend, at most as wide as the options say.
    pub(super) fn strip_text(&self, options: &TableOptions) -> String {
        self.drawn(options, terminal::has_blocks())
    }

    fn drawn(&self, options: &TableOptions, has_blocks: bool) -> String {
        let style = options.style();
        let width = options.columns();
        let strip = self.strip(width - LABELS[0].len());
        let levels = if has_blocks { BLOCKS } else { ASCII };
        let busy = strip.columns.iter().map(|column| {
            let level = level(column);
            (StripPart::Busy, levels.get(level).copied().unwrap_or(' '))
        });
        let idle = strip.columns.iter().map(most_idle);
        let idle: Vec<StripPart> = idle.collect();
        let letters = idle.iter().map(|part| (*part, sign(*part)));
        let lines = [painted(style, busy), painted(style, letters)];
        let lines = LABELS.iter().zip(lines);
        let lines = lines.map(|(label, line)| format!("{}{line}\n", style.dim(label)));
        lines.collect::<String>() + &self.legend(&strip.whole(), &idle, style, width)
    }

    /// Explains the letters that are shown, with the share of the window that each has.
    fn legend(
        &self,
        whole: &StripColumn,
        shown: &[StripPart],
        style: Style,
        width: usize,
    ) -> String {
        let names: Vec<String> = self
            .functions
            .iter()
            .map(|function| printable(&function.name))
            .collect();
        let names = shorten(&names.iter().map(String::as_str).collect::<Vec<_>>(), NAME);
        let window = self.window_ns() as f64;
        let entry = |(part, ns): &(StripPart, i64)| {
            let name = match part {
                StripPart::Function(index) => names.get(*index as usize).map_or("", String::as_str),
                part => part.label(),
            };
            let share = percent(*ns as f64 / window);
            // Spaces that are no place for a line to break.
            format!("{} {name} {share}", sign(*part)).replace(' ', NO_BREAK)
        };
        let parts = whole.parts.iter();
        let parts = parts.filter(|(part, _)| *part != StripPart::Busy && shown.contains(part));
        let entries: Vec<String> = parts.map(entry).collect();
        if entries.is_empty() {
            return String::new();
        }
        let text = fill(&entries.join("  "), width - LABELS[0].len());
        let indent = " ".repeat(LABELS[0].len());
        let lines = text
            .lines()
            .map(|line| format!("{indent}{}\n", line.trim()));
        style.dim(&lines.collect::<String>().replace(NO_BREAK, " "))
    }
}

const NO_BREAK: &str = "\u{a0}";

/// Returns how busy a column was, from 0 to 8. Only one that was not busy at all has 0.
fn level(column: &StripColumn) -> usize {
    let busy = column
        .parts
        .iter()
        .find(|(part, _)| *part == StripPart::Busy);
    let Some((_, ns)) = busy else { return 0 };
    let length = i128::from(column.end_ns - column.start_ns).max(1);
    let eighths = (8 * i128::from(*ns) + length / 2) / length;
    usize::try_from(eighths).unwrap_or_default().clamp(1, 8)
}

/// Returns what took most of the time of a column in which the device was not busy, if that is seen.
fn most_idle(column: &StripColumn) -> StripPart {
    let parts = column.parts.iter();
    let idle = parts.filter(|(part, _)| *part != StripPart::Busy);
    let most = idle.max_by_key(|(part, ns)| (*ns, Reverse(*part)));
    let is_seen = column.share(StripPart::Busy) <= 1.0 - SEEN;
    most.filter(|_| is_seen)
        .map_or(StripPart::Busy, |(part, _)| *part)
}

/// Returns the letter of a part.
fn sign(part: StripPart) -> char {
    match part {
        StripPart::Busy => ' ',
        StripPart::Function(index) => u8::try_from(index)
            .ok()
            .and_then(|index| b'a'.checked_add(index))
            .map_or('*', char::from),
        StripPart::OtherFunctions => '*',
        StripPart::Outside => '~',
        StripPart::Launched => '\'',
        StripPart::NotRecorded => '?',
        StripPart::BeforeFirst => '<',
        StripPart::AfterLast => '>',
    }
}

/// Writes characters, each in the colour of its part.
fn painted(style: Style, line: impl Iterator<Item = (StripPart, char)>) -> String {
    let mut line: Vec<(StripPart, char)> = line.collect();
    let end = line.iter().rposition(|(_, char)| *char != ' ');
    line.truncate(end.map_or(0, |end| end + 1));
    let runs = line.chunk_by(|(one, _), (next, _)| one == next);
    let runs = runs.map(|run| {
        let text: String = run.iter().map(|(_, char)| char).collect();
        match run.first() {
            Some((StripPart::Busy, _)) => style.busy(&text),
            Some((StripPart::Function(index), _)) => style.series(*index as usize, &text),
            _ => style.dim(&text),
        }
    });
    runs.collect()
}

impl StripPart {
    /// Returns what it is called where it is not a function.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Function(_) => "function",
            Self::OtherFunctions => "other functions",
            Self::Outside => "outside of measured functions",
            Self::Launched => "launched, and not begun",
            Self::NotRecorded => "not recorded",
            Self::BeforeFirst => "before the first work",
            Self::AfterLast => "after the last work",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Color;
    use crate::{DeviceFunction, DeviceSegment, DeviceState};

    /// A device that waits for two functions, in a window of 640 ns.
    fn device() -> DeviceIdle {
        let states = [
            (DeviceState::Host, None, 100, true),
            (DeviceState::Busy, None, 100, false),
            (DeviceState::Host, Some(0), 200, false),
            (DeviceState::Busy, None, 5, false),
            (DeviceState::LaunchCall, Some(1), 5, false),
            (DeviceState::Busy, None, 99, false),
            (DeviceState::Launched, None, 1, false),
            (DeviceState::AfterLast, None, 130, false),
        ];
        let mut device = DeviceIdle::default();
        let mut at = 0;
        for (state, function, length, is_before_first) in states {
            device.segments.push(DeviceSegment {
                start_ns: at,
                end_ns: at + length,
                state,
                call: function,
                function,
                is_before_first,
            });
            at += length;
        }
        (device.busy_ns, device.host_ns, device.in_call_ns) = (204, 200, 5);
        (
            device.launched_ns,
            device.before_first_ns,
            device.after_last_ns,
        ) = (1, 100, 130);
        for name in ["app::load", "app::forward"] {
            device.functions.push(DeviceFunction {
                name: name.to_owned(),
                ..DeviceFunction::default()
            });
        }
        device
    }

    #[test]
    fn each_column_shows_how_busy_it_was_and_who_was_waited_for() {
        let text = device().drawn(&TableOptions::new().width(70), true);
        let expected = "\
busy            ██████████                    ▄█████████▇
idle  <<<<<<<<<<          aaaaaaaaaaaaaaaaaaaab         '>>>>>>>>>>>>>
      a app::load 31 %  b app::forward 0.8 %
      ' launched, and not begun 0.2 %  < before the first work 16 %
      > after the last work 20 %
";
        assert_eq!(text, expected);
    }

    #[test]
    fn where_the_terminal_has_ascii_only_nothing_else_is_drawn() {
        let text = device().drawn(&TableOptions::new().width(70), false);
        assert!(text.is_ascii(), "{text}");
        assert!(text.contains("busy            ##########"), "{text}");
    }

    #[test]
    fn colours_change_nothing_else() {
        let options = TableOptions::new().width(70);
        let plain = device().strip_text(&options);
        let colored = device().strip_text(&options.color(Color::Always));
        assert_ne!(plain, colored);
        let mut parts = colored.split('\u{1b}');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            text += part.split_once('m').expect("the end of a colour").1;
        }
        assert_eq!(text, plain);
    }
}
