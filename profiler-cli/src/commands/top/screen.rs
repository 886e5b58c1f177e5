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

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line as Text;
use ratatui::widgets::{Paragraph, Wrap};

use super::feed::{Feed, Problem};
use super::keys::{Place, View};
use super::ranks::{Job, Rank};
use super::text::printable;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);
const GOOD: Style = Style::new().fg(Color::Green);
const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
const NOTE: Style = Style::new().fg(Color::Yellow);

/// Screens with fewer lines show neither strip nor sensors.
const LOW: u16 = 12;

/// Draws the whole screen.
pub(super) fn draw(frame: &mut Frame<'_>, job: &Job, view: &mut View, now: SystemTime) {
    let [screen, bottom] =
        Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    draw_above_foot(frame, screen, (job, view), now);
    frame.render_widget(foot(view), bottom);
}

/// Draws what a snapshot shows too.
pub(super) fn draw_above_foot(
    frame: &mut Frame<'_>,
    area: Rect,
    (job, view): (&Job, &mut View),
    now: SystemTime,
) {
    if view.place() == Place::Ranks {
        let lines = job.lines(now);
        let middle = below(frame, area, ranks::head(job, &lines, view));
        if view.shows_help {
            frame.render_widget(help::help(Place::Ranks), middle);
        } else {
            ranks::draw(frame, middle, &lines, view);
        }
    } else if let Some(rank) = job.opened(view.opened_rank.as_deref()) {
        draw_rank(frame, area, (rank, view), now);
    }
}

fn draw_rank(frame: &mut Frame<'_>, area: Rect, (rank, view): (&Rank, &mut View), now: SystemTime) {
    let Rank { file, feed } = rank;
    let (columns, has_room) = (usize::from(area.width), area.height >= LOW);
    let has_room = has_room && !view.shows_help;
    let mut head = head::lines(file.path(), feed, view, now, (columns, has_room));
    if has_room && view.place() == Place::Rows {
        head.extend(strip::lines(&feed.strip, columns, usize::from(area.height)));
    }
    let middle = below(frame, area, head);
    match (&feed.shown, &view.opened_row) {
        _ if view.shows_help => frame.render_widget(help::help(view.place()), middle),
        (Some(shown), Some(name)) => {
            row::draw(frame, middle, shown, name, view.order.by(shown.limit));
        }
        (Some(shown), None) => rows::draw(frame, middle, shown, view),
        (None, _) => frame.render_widget(waiting(file.path(), feed), middle),
    }
}

/// Draws lines at the top, and returns the rest of the area.
fn below(frame: &mut Frame<'_>, area: Rect, head: Vec<Text<'_>>) -> Rect {
    let lines = u16::try_from(head.len()).unwrap_or(u16::MAX);
    let [top, rest] = Layout::vertical([Constraint::Length(lines), Constraint::Min(0)]).areas(area);
    frame.render_widget(Paragraph::new(head), top);
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
    Paragraph::new(text).wrap(Wrap { trim: false })
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
    Paragraph::new(Text::styled(text, DIM))
}

#[cfg(test)]
mod tests;
