//! `profiler html`: a page that opens in a browser.

use std::path::{Path, PathBuf};

use clap::Args;
use profiler_report::{Page, Summary, Timeline};

use super::destination::Format;
use super::folder::{self, Wanted};
use super::read;
use crate::error::Error;
use crate::exit::Exit;
use crate::input::{Input, Limits};
use crate::run_of;
use crate::staging::Staging;

/// Writes a page that opens in a browser without a network.
///
/// Give a summary, a trace, or one of each if they come from one run.
#[derive(Debug, Args)]
pub(crate) struct Html {
    /// Summary or trace; or both, of one run. Of a folder, the newest.
    #[arg(required = true, num_args = 1..=2, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Page to write [default: beside the first file, `.html`].
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Summary of another run; the page then shows the differences.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Title of the page.
    #[arg(long)]
    title: Option<String>,
    #[command(flatten)]
    limits: Limits,
}

impl Html {
    pub(crate) fn run(self) -> Result<Exit, Error> {
        let files = self.files.iter();
        let files = files.map(|file| folder::newest(file, Wanted::Any));
        let files = files.collect::<Result<Vec<_>, _>>()?;
        let output = Format::Html.destination(self.output.as_ref(), &files)?;
        let baseline = self.baseline.as_deref();
        let baseline = baseline.map(|file| folder::newest(file, Wanted::Summaries));
        let baseline = baseline.transpose()?;
        let inputs: Vec<PathBuf> = files.iter().chain(&baseline).cloned().collect();
        let staging = Staging::new(&output, &inputs)?;
        let mut content = Content::default();
        for path in &files {
            content.add(path, read(path, self.limits)?)?;
        }
        content.check_run()?;
        if let Some(path) = &baseline {
            content.baseline = match read(path, self.limits)? {
                Input::Summary(summary) => Some(summary),
                Input::Timeline(_) => {
                    let message = "the baseline is a trace: give a summary";
                    return Err(Error::Usage(format!("{}: {message}", path.display())));
                }
            };
        }
        content.write(self.title.as_deref(), &output, staging)?;
        Ok(Exit::Done)
    }
}

/// The content of a page.
#[derive(Default)]
struct Content {
    summary: Option<(PathBuf, Box<Summary>)>,
    timeline: Option<(PathBuf, Box<Timeline>)>,
    baseline: Option<Box<Summary>>,
}

impl Content {
    /// Adds a file.
    fn add(&mut self, path: &Path, input: Input) -> Result<(), Error> {
        let is_second = match input {
            Input::Summary(summary) => self.summary.replace((path.into(), summary)).is_some(),
            Input::Timeline(timeline) => self.timeline.replace((path.into(), timeline)).is_some(),
        };
        if is_second {
            let message =
                "a page shows one summary and one trace: compare two summaries with --baseline";
            return Err(Error::Usage(format!("{}: {message}", path.display())));
        }
        Ok(())
    }

    /// Refuses a summary and a trace of two runs, whose numbers would stand side by side as those of one.
    fn check_run(&self) -> Result<(), Error> {
        let (Some((summary_path, summary)), Some((path, timeline))) =
            (&self.summary, &self.timeline)
        else {
            return Ok(());
        };
        run_of::difference(timeline, summary).map_or(Ok(()), |difference| {
            Err(Error::Usage(format!(
                "{}: is of another run than {}: {difference}; give files of one run, or make a page of each",
                path.display(),
                summary_path.display()
            )))
        })
    }

    /// Writes the page.
    fn write(&self, title: Option<&str>, output: &Path, staging: Staging<'_>) -> Result<(), Error> {
        let mut page = Page::new();
        if let Some(title) = title {
            page = page.title(title);
        }
        if let Some((_, summary)) = &self.summary {
            page = page.summary(summary);
        }
        if let Some((_, timeline)) = &self.timeline {
            page = page.timeline(timeline);
        }
        if let Some(baseline) = &self.baseline {
            page = page.baseline(baseline);
        }
        page.write(staging.path())
            .map_err(|error| Error::export(output, error))?;
        staging.finish()
    }
}
