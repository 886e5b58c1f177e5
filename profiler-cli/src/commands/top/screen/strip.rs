//! The strip: what each device did, the newest column on the right.

use super::super::strip::{Piece, Source, Strip, Track};
use super::super::styled::{Color, Span, Style, Text};
use super::super::text::{BARS, eighths, width};
use super::DIM;

const BUSY: Style = Style::new().foreground(Color::Green);
const HOST_PACED: Style = Style::new().foreground(Color::Yellow);

/// Returns the lines of the strip. The first devices are drawn if there is no room for all.
pub(super) fn lines<'t>(strip: &Strip, columns: usize, rows: usize) -> Vec<Text<'t>> {
    // The strip takes a third of the screen at most.
    let room = rows / 3;
    let height = if strip.tracks.len() <= 2 && room >= 2 * strip.tracks.len() + 2 {
        2
    } else {
        1
    };
    let label = strip.tracks.iter().map(|track| width(&track.label)).max();
    let label = label.unwrap_or(0);
    let shown = room / height;
    let tracks = strip.tracks.iter().take(shown);
    let numbers = tracks.clone().map(|track| numbers(track, height, columns));
    let numbers: Vec<Vec<String>> = numbers.collect();
    let text = numbers.iter().flatten().map(|text| width(text)).max();
    let space = columns.saturating_sub(label + text.unwrap_or(0) + 2);
    let mut lines: Vec<Text<'t>> = tracks
        .zip(&numbers)
        .flat_map(|(track, numbers)| track_lines(track, numbers, label, space))
        .collect();
    let hidden = strip.tracks.len().saturating_sub(shown);
    if hidden > 0 && shown > 0 {
        let text = format!("and {hidden} more; a larger terminal shows them");
        lines.push(Text::styled(text, DIM));
    }
    lines
}

/// Draws the newest columns of a device in `space` columns, and its numbers beside them, one on a line.
fn track_lines<'t>(track: &Track, numbers: &[String], label: usize, space: usize) -> Vec<Text<'t>> {
    let height = numbers.len();
    let skipped = track.columns.len().saturating_sub(space);
    let pieces = track.columns.iter().skip(skipped);
    let empty = space.saturating_sub(track.columns.len());
    let line = |number: usize| {
        let name = if number == 0 { &*track.label } else { "" };
        let mut spans = vec![Span::raw(format!("{name:label$} {}", " ".repeat(empty)))];
        let cells = pieces.clone();
        spans.extend(cells.map(|piece| {
            let (cell, style) = cell(piece, height - 1 - number, height);
            Span::styled(cell.to_string(), style)
        }));
        spans.push(Span::raw(format!(" {}", numbers[number])));
        Text::from(spans)
    };
    (0..height).map(line).collect()
}

/// Returns the shares of the last span, a text for each line.
fn numbers(track: &Track, height: usize, columns: usize) -> Vec<String> {
    let Some(Piece { busy, host_paced }) = track.latest else {
        return vec![String::new(); height];
    };
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let (busy_text, paced_text) = (percent(busy), percent(host_paced));
    let idle_text = percent((1.0 - busy - host_paced).max(0.0));
    let busy = match track.source {
        Source::Load => busy_text,
        _ if height == 1 && columns < 60 => format!("busy {busy_text}"),
        _ if height == 1 => {
            format!("busy {busy_text}, host-paced {paced_text}, idle {idle_text}")
        }
        _ => format!("busy {busy_text}, idle {idle_text}"),
    };
    let host_paced = match track.source {
        Source::Load => String::new(),
        _ => format!("host-paced {paced_text}"),
    };
    [busy, host_paced].into_iter().take(height).collect()
}

/// Returns the character that shows a part of a column: solid up to where the device was busy, shaded up to where the host
/// paced it, and a point if it was idle.
pub(super) fn cell(piece: &Piece, line: usize, height: usize) -> (char, Style) {
    let within = |share: f64| eighths(share, height).saturating_sub(8 * line).min(8);
    let busy = within(piece.busy);
    let host_paced = within(piece.busy + piece.host_paced) - busy;
    match (busy, host_paced) {
        (8, _) => (BARS[8], BUSY),
        // A character has two colours: the other one stands for what fills the rest of it.
        (1.., _) if busy + host_paced >= 7 => (BARS[busy], BUSY.background(Color::Yellow)),
        (1.., _) => (BARS[busy], BUSY),
        (0, 4..) => ('▒', HOST_PACED),
        (0, 1..) => ('░', HOST_PACED),
        (0, 0) if line == 0 => ('·', DIM),
        (0, 0) => (' ', DIM),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_solid_where_busy_and_shaded_where_host_paced() {
        let drawn = |busy, host_paced, height| -> String {
            let piece = Piece { busy, host_paced };
            let lines = (0..height).rev();
            lines.map(|line| cell(&piece, line, height).0).collect()
        };
        for (busy, host_paced, high, low) in [
            (1.0, 0.0, "██", "█"),
            (0.5, 0.0, " █", "▄"),
            (0.5, 0.5, "▒█", "▄"),
            (0.25, 0.5, "▒▄", "▂"),
            (0.0, 0.6, "░▒", "▒"),
            (0.01, 0.0, " ▁", "▁"),
            (0.0, 0.0, " ·", "·"),
        ] {
            assert_eq!(drawn(busy, host_paced, 2), high, "{busy} {host_paced}");
            assert_eq!(drawn(busy, host_paced, 1), low, "{busy} {host_paced}");
        }
        let style = |host_paced| {
            cell(
                &Piece {
                    busy: 0.5,
                    host_paced,
                },
                0,
                1,
            )
            .1
        };
        assert_eq!(
            (style(0.5).background, style(0.0).background),
            (Some(Color::Yellow), None)
        );
    }
}
