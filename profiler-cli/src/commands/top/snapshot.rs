//! The screen as plain text, once: for a pipe or a file.

use std::time::SystemTime;

use profiler_report::internal::table_width;

use super::canvas::Frame;
use super::feed::Problem;
use super::keys::{Place, View};
use super::ranks::Job;
use super::screen;
use crate::error::Error;
use crate::output::Stdout;

/// The lines above the rows, at most.
const HEAD: usize = 16;

/// Prints what the files say now.
///
/// # Errors
///
/// Returns an error if the only file cannot be read.
pub(super) fn print(mut job: Job, mut view: View) -> Result<(), Error> {
    job.look();
    if let [rank] = &job.ranks[..]
        && let Some(problem) = &rank.feed.problem
    {
        let reason = match problem {
            Problem::Missing { beside: None } => {
                "does not exist yet: start the program with PROFILER_SUMMARY and PROFILER_SUMMARY_INTERVAL=1s".to_owned()
            }
            Problem::Missing { beside: Some(file) } => {
                format!("does not exist, but {file} is there: give that, or the folder")
            }
            Problem::Broken(reason) => reason.clone(),
        };
        let path = rank.file.path().to_owned();
        return Err(Error::Refused { path, reason });
    }
    let rows = match view.place() {
        Place::Ranks => job.ranks.len(),
        _ => job.opened(view.opened_rank.as_deref()).map_or(0, |rank| {
            let shown = rank.feed.shown.as_ref();
            shown.map_or(0, |shown| shown.lines.len())
        }),
    };
    let size = (table_width(), rows + HEAD);
    let lines = lines(size, |frame| {
        screen::draw_above_foot(frame, frame.area(), (&job, &mut view), SystemTime::now());
    });
    let mut output = Stdout::new();
    for line in lines {
        output.line(format_args!("{line}"))?;
    }
    output.finish()
}

/// Draws lines of text, without the empty ones at the end.
pub(super) fn lines((columns, rows): (usize, usize), draw: impl FnOnce(&mut Frame)) -> Vec<String> {
    let mut frame = Frame::new(columns, rows);
    draw(&mut frame);
    let mut lines: Vec<String> = frame.texts().collect();
    let filled = lines.iter().rposition(|line| !line.is_empty());
    lines.truncate(filled.map_or(0, |last| last + 1));
    lines
}
