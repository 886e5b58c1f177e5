//! `profiler explain`: why a device waited.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use profiler_report::internal::missing_of_timeline;
use profiler_report::{SampledIdle, Summary, TableOptions};

use super::folder::{self, Wanted};
use super::report::When;
use super::{read, say_what_is_missing};
use crate::error::Error;
use crate::exit::Exit;
use crate::input::{Input, Limits};
use crate::output::Stdout;

/// Says what limits each GPU of a trace, and which functions kept it waiting.
///
/// An idle time counts for the function that was innermost on the thread that launched the next work, until that call returned.
#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// Trace of profiler-runtime or of PyTorch's profiler, best with kernels, or a summary; of a folder, the newest trace.
    file: PathBuf,
    /// Most functions of a GPU; -1 for all.
    #[arg(
        long,
        value_name = "ROWS",
        default_value_t = 10,
        allow_negative_numbers = true
    )]
    row_limit: i64,
    /// Output format.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Columns of the output [default: COLUMNS, or the width of the terminal].
    #[arg(long, value_name = "COLUMNS")]
    width: Option<usize>,
    /// When the output has colours.
    #[arg(long, value_enum, default_value_t = When::Auto)]
    color: When,
    #[command(flatten)]
    limits: Limits,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// All numbers.
    Json,
}

impl Explain {
    pub(crate) fn run(mut self) -> Result<Exit, Error> {
        self.file = folder::newest(&self.file, Wanted::Traces)?;
        let path = self.file.display();
        let input = read(&self.file, self.limits)?;
        let timeline = match &input {
            Input::Timeline(timeline) => timeline,
            Input::Summary(summary) => return self.sampled(summary),
        };
        let idle = timeline.gpu_idle();
        let pairs = timeline.gpu_pairs();
        if idle.devices.is_empty() && pairs.devices.is_empty() {
            return Err(self.refusal(
                "the trace has no work of a GPU, so there is nothing to explain",
                Some("kernels are recorded where CUPTI is found (PROFILER_KERNELS=1), or with the activity CUDA of PyTorch's profiler"),
            ));
        }
        let has_kernels = !idle.devices.is_empty();
        let mut out = Stdout::new();
        match self.format {
            Format::Json if has_kernels => out.text(&idle.to_json())?,
            Format::Json => out.text(&pairs.to_json())?,
            Format::Text => {
                let options = TableOptions::new()
                    .row_limit(self.row_limit)
                    .color(self.color.color());
                let options = match self.width {
                    Some(width) => options.width(width),
                    None => options,
                };
                if has_kernels {
                    out.table(&idle.table(&options))?;
                    out.text("\n")?;
                    out.line(format_args!(
                        "kernels by function: profiler report --kernels {path}"
                    ))?;
                } else {
                    out.table(&pairs.table(&options))?;
                    out.text("\n")?;
                    out.line(format_args!(
                        "GPU times by function: profiler report {path}; kernels: record with PROFILER_KERNELS=1"
                    ))?;
                }
                out.line(format_args!("the time line: profiler html {path}"))?;
                for line in missing_of_timeline(timeline) {
                    out.line(format_args!("{line}"))?;
                }
            }
        }
        out.finish()?;
        if self.format == Format::Json {
            say_what_is_missing(&self.file, &input);
        }
        Ok(Exit::Done)
    }

    /// Returns the error of a file that says nothing of a GPU: what it lacks, how to have more, and what shows the rest.
    fn refusal(&self, what: &str, to_have: Option<&str>) -> Error {
        let path = self.file.display();
        let more = to_have.map_or_else(String::new, |more| format!("; {more}"));
        Error::Refused {
            path: self.file.clone(),
            reason: format!("{what}{more}; its CPU times: profiler report {path}"),
        }
    }

    /// Prints the account of a summary.
    fn sampled(&self, summary: &Summary) -> Result<Exit, Error> {
        let devices = &summary.gpu_idle;
        let lines: Vec<String> = devices.iter().filter_map(SampledIdle::line).collect();
        if lines.is_empty() {
            let has_times = summary.rows.iter().any(|row| row.cuda.is_some());
            let what = if has_times {
                "the summary does not say when a GPU was idle: it has no account of it, or one that is too short"
            } else {
                "the program had no GPU times, so there is nothing to explain"
            };
            let to_have = "a trace with kernels says most (PROFILER_TRACE=trace.json.gz)";
            return Err(self.refusal(what, has_times.then_some(to_have)));
        }
        let mut out = Stdout::new();
        match self.format {
            Format::Json => {
                let account = serde_json::json!({ "devices": devices });
                out.line(format_args!("{account}"))?;
            }
            Format::Text => {
                for line in lines {
                    out.line(format_args!("{line}"))?;
                }
            }
        }
        out.finish()?;
        Ok(Exit::Done)
    }
}
