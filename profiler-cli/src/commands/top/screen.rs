//! Drawing the screen.

mod head;
mod help;
mod ranks;
mod row;
mod rows;
mod sensors;
mod strip;

use std::path::Path;
use std::time::SystemTime;

use super::canvas::{Area, Frame, Paragraph};
use super::feed::{Feed, Problem};
use super::keys::{Place, View};
use super::ranks::{Job, Rank};
use super::styled::{Color, Style, Text};
use super::text::printable;

const DIM: Style = Style::DIM;
const BOLD: Style = Style::BOLD;
const SELECTED: Style = Style::REVERSED;
const GOOD: Style = Style::new().foreground(Color::Green);
const BAD: Style = Style::BOLD.foreground(Color::Red);
const NOTE: Style = Style::new().foreground(Color::Yellow);

/// Screens with fewer lines show neither strip nor sensors.
const LOW: usize = 12;

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame, job: &Job, view: &mut View, now: SystemTime) {
    let area = frame.area();
    let (screen, bottom) = area.split_rows(area.height.saturating_sub(1));
    draw_above_foot(frame, screen, (job, view), now);
    frame.draw(foot(view), bottom);
}

/// Draws what a snapshot shows too.
pub(super) fn draw_above_foot(
    frame: &mut Frame,
    area: Area,
    (job, view): (&Job, &mut View),
    now: SystemTime,
) {
    if view.place() == Place::Ranks {
        let lines = job.lines(now);
        let middle = below(frame, area, ranks::head(job, &lines, view));
        if view.shows_help {
            frame.draw(help::help(Place::Ranks), middle);
        } else {
            ranks::draw(frame, middle, &lines, view);
        }
    } else if let Some(rank) = job.opened(view.opened_rank.as_deref()) {
        draw_rank(frame, area, (rank, view), now);
    }
}

fn draw_rank(frame: &mut Frame, area: Area, (rank, view): (&Rank, &mut View), now: SystemTime) {
    let Rank { file, feed } = rank;
    let (columns, has_room) = (area.width, area.height >= LOW);
    let has_room = has_room && !view.shows_help;
    let mut head = head::lines(file.path(), feed, view, now, (columns, has_room));
    if has_room && view.place() == Place::Rows {
        head.extend(strip::lines(&feed.strip, columns, area.height));
    }
    let middle = below(frame, area, head);
    match (&feed.shown, &view.opened_row) {
        _ if view.shows_help => frame.draw(help::help(view.place()), middle),
        (Some(shown), Some(name)) => {
            row::draw(frame, middle, shown, name, view.order.by(shown.limit));
        }
        (Some(shown), None) => rows::draw(frame, middle, shown, view),
        (None, _) => frame.draw(waiting(file.path(), feed), middle),
    }
}

/// Draws lines at the top, and returns the rest of the area.
fn below(frame: &mut Frame, area: Area, head: Vec<Text<'_>>) -> Area {
    let (top, rest) = area.split_rows(head.len());
    frame.draw(Paragraph::new(head), top);
    rest
}

/// Says what the program waits for.
fn waiting<'t>(path: &Path, feed: &Feed) -> Paragraph<'t> {
    let file = printable(&path.display().to_string());
    let text = match &feed.problem {
        Some(Problem::Broken(reason)) => vec![
            Text::styled(format!("{file} {}", printable(reason)), BAD),
            Text::raw("Waiting until it can be read."),
        ],
        Some(Problem::Missing { beside: Some(rank) }) => vec![
            Text::raw(format!("Waiting for {file}, which does not exist yet.")),
            Text::raw(format!(
                "{} is there: give that, or the folder to see all ranks.",
                printable(rank)
            )),
        ],
        _ => vec![
            Text::raw(format!("Waiting for {file}, which does not exist yet.")),
            Text::raw("Start the program with:"),
            Text::styled(
                format!("  PROFILER_SUMMARY={file} PROFILER_SUMMARY_INTERVAL=1s"),
                BOLD,
            ),
        ],
    };
    Paragraph::wrapped(text)
}

fn foot<'t>(view: &View) -> Paragraph<'t> {
    let text = if view.is_typing {
        let filter = printable(&view.filter);
        format!("filter: {filter}▏  Enter keeps it, Esc clears it")
    } else {
        let keys = match view.place() {
            Place::Ranks => "? help  Enter opens the rank  p pause  q quit",
            Place::Rows => {
                "? help  Enter opens  l by what limits  s sort  / filter  p pause  q quit"
            }
            Place::Row => "? help  Esc goes back  p pause  q quit",
        };
        keys.to_owned()
    };
    Paragraph::new(vec![Text::styled(text, DIM)])
}

#[cfg(test)]
mod tests;
