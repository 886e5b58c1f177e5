//! `profiler convert`: files for other viewers.

use std::path::PathBuf;

use clap::Args;
use profiler_report::{CallTreeOptions, ExportError, Page, StackMetric};

use super::destination::Format;
use super::folder::{self, Wanted};
use super::{read, say_what_is_missing};
use crate::error::Error;
use crate::exit::Exit;
use crate::input::{Input, Limits};
use crate::output::complain;
use crate::staging::Staging;

/// Writes a summary or a trace in the format of another viewer.
///
/// Functions of a summary have callers only if the program counted them (`PROFILER_CALLERS=1`).
#[derive(Debug, Args)]
pub(crate) struct Convert {
    /// Summary or trace; of a folder, the newest.
    file: PathBuf,
    /// Format [default: by the ending of the output's name].
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Option<Format>,
    /// File to write [default: beside FILE, with the ending of the format].
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Value that collapsed stacks are weighted by.
    #[arg(long, value_name = "VALUE", default_value = "self_cpu_time_total", value_parser = metric)]
    metric: StackMetric,
    #[command(flatten)]
    limits: Limits,
}

fn metric(name: &str) -> Result<StackMetric, String> {
    StackMetric::try_from(name).map_err(|error| error.to_string())
}

fn has_gpu_times(input: &Input) -> bool {
    let tree = match input {
        Input::Summary(summary) => summary.call_tree(),
        Input::Timeline(timeline) => timeline.call_tree(CallTreeOptions::default()),
    };
    tree.nodes.iter().any(|node| node.cuda.is_some())
}

impl Convert {
    pub(crate) fn run(mut self) -> Result<Exit, Error> {
        let format = Format::choose(self.to, self.output.as_deref())?;
        let wanted = match format {
            Format::Perfetto | Format::Chrome | Format::Otlp => Wanted::Traces,
            _ => Wanted::Any,
        };
        self.file = folder::newest(&self.file, wanted)?;
        let files = std::slice::from_ref(&self.file);
        let output = format.destination(self.output.as_ref(), files)?;
        let staging = Staging::new(&output, files)?;
        let input = read(&self.file, self.limits)?;
        if let (Input::Summary(_), Format::Perfetto | Format::Chrome | Format::Otlp) =
            (&input, format)
        {
            let file = self.file.display();
            return Err(Error::Usage(format!(
                "{file}: a summary holds no single calls, which a trace consists of: give a trace"
            )));
        }
        self.write(format, &input, &staging)
            .map_err(|error| Error::export(&output, error))?;
        if format == Format::Prof && !staging.has_room_beside() && has_gpu_times(&input) {
            complain(&format_args!(
                "{}: the GPU times, which are left out, need a second file: give the name of a regular file",
                output.display()
            ));
        }
        staging.finish()?;
        say_what_is_missing(&self.file, &input);
        Ok(Exit::Done)
    }

    fn write(
        &self,
        format: Format,
        input: &Input,
        staging: &Staging<'_>,
    ) -> Result<(), ExportError> {
        let path = staging.path();
        let text = |text: String| {
            std::fs::write(path, text).map_err(|source| ExportError::Io {
                path: path.to_owned(),
                source,
            })
        };
        match input {
            Input::Summary(summary) => match format {
                Format::Prof => summary.dump_stats(path),
                Format::Pprof => summary.export_pprof(path),
                Format::Folded => summary.export_stacks(path, self.metric),
                Format::Html => Page::new().summary(summary).write(path),
                Format::Json => text(summary.to_json()),
                // Refused before.
                Format::Perfetto | Format::Chrome | Format::Otlp => Ok(()),
                Format::Csv => text(summary.to_csv()),
            },
            Input::Timeline(timeline) => match format {
                Format::Prof => timeline.dump_stats(path),
                Format::Pprof => timeline.export_pprof(path),
                Format::Folded => timeline.export_stacks(path, self.metric),
                Format::Html => Page::new().timeline(timeline).write(path),
                Format::Perfetto => timeline.export_perfetto(path),
                Format::Chrome => timeline.export_chrome_trace(path),
                Format::Otlp => timeline.export_otlp(path),
                Format::Json => text(timeline.key_averages().to_json()),
                Format::Csv => text(timeline.key_averages().to_csv()),
            },
        }
    }
}
