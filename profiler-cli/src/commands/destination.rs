//! Where a command writes a file, and in which format.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::error::Error;

/// The formats of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Python's pstats and SnakeViz; GPU times are in a second file, `.cuda.prof`.
    Prof,
    /// Profile for `go tool pprof`, Pyroscope and Parca.
    #[value(alias = "pb")]
    Pprof,
    /// Collapsed stacks, for flame graphs.
    Folded,
    /// Perfetto's own format, for large traces.
    #[value(alias = "pftrace")]
    Perfetto,
    /// Trace in Chrome's format, for <https://ui.perfetto.dev> and HTA.
    Chrome,
    /// OpenTelemetry's spans, lines of OTLP in JSON.
    Otlp,
    /// Page that opens in a browser without a network.
    Html,
    /// All numbers of the table.
    Json,
    /// Rows of the table.
    Csv,
}

impl Format {
    /// Returns the ending of file names, which is also how a format is found by its file name.
    #[must_use]
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Prof => ".prof",
            Self::Pprof => ".pb.gz",
            Self::Folded => ".folded",
            Self::Perfetto => ".pftrace",
            Self::Chrome => ".trace.json",
            Self::Otlp => ".otlp.jsonl",
            Self::Html => ".html",
            Self::Json => ".json",
            Self::Csv => ".csv",
        }
    }

    /// Returns the format that a file name asks for.
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        if name.ends_with(".speedscope.json") {
            // Speedscope opens neither a summary nor a table in JSON.
            return None;
        }
        let formats = Self::value_variants().iter();
        let fitting = formats.filter(|format| name.ends_with(format.ending()));
        fitting.max_by_key(|format| format.ending().len()).copied()
    }

    /// Returns the format of an output: the one that was asked for, or that of the name of the file.
    pub(super) fn choose(asked: Option<Self>, output: Option<&Path>) -> Result<Self, Error> {
        asked.or_else(|| output.and_then(Self::of)).ok_or_else(|| {
            let all: Vec<&str> = Self::value_variants()
                .iter()
                .map(|format| format.ending())
                .collect();
            Error::Usage(format!(
                "the format is not known: give --to FORMAT, or an output whose name ends with one of {}",
                all.join(", ")
            ))
        })
    }

    /// Returns the file to write: the one that was asked for, or one beside the first input, or in the folder that was asked
    /// for.
    pub(super) fn destination(
        self,
        asked: Option<&PathBuf>,
        inputs: &[PathBuf],
    ) -> Result<PathBuf, Error> {
        if asked.is_some_and(|asked| asked == Path::new("-")) {
            return Err(Error::Usage(
                "-o -: is no name of a file: give one, or /dev/stdout for standard output"
                    .to_owned(),
            ));
        }
        let name = inputs.first().map_or_else(
            || "profile".into(),
            |input| input.file_name().unwrap_or_default().to_string_lossy(),
        );
        let name = format!("{}{}", stem(&name), self.ending());
        Ok(match (asked, inputs.first()) {
            (Some(asked), _) if asked.is_dir() => asked.join(name),
            (Some(asked), _) => asked.clone(),
            (None, Some(input)) => input.with_file_name(name),
            (None, None) => PathBuf::from(name),
        })
    }
}

/// Returns the name of a file without what says that it is a summary or a trace.
fn stem(name: &str) -> &str {
    let endings = [".gz", ".json", ".trace", ".pt"];
    endings.iter().fold(name, |name, ending| {
        name.strip_suffix(ending).unwrap_or(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_fitting_ending_decides() {
        for (name, format) in [
            ("run.prof", Some(Format::Prof)),
            ("run.PB.gz", Some(Format::Pprof)),
            ("a/run.json", Some(Format::Json)),
            ("run.trace.json", Some(Format::Chrome)),
            ("run.pftrace", Some(Format::Perfetto)),
            ("run.otlp.jsonl", Some(Format::Otlp)),
            ("run.pt.trace.json.gz", None),
            ("run.speedscope.json", None),
            ("run", None),
        ] {
            assert_eq!(Format::of(Path::new(name)), format, "{name}");
        }
    }

    #[test]
    fn without_a_name_the_output_is_beside_the_input() {
        for (input, output) in [
            ("a/run.json", "a/run.html"),
            ("host_1.2.pt.trace.json.gz", "host_1.2.html"),
            ("trace", "trace.html"),
        ] {
            let found = Format::Html.destination(None, &[PathBuf::from(input)]);
            assert_eq!(found.expect("another file"), Path::new(output));
        }
    }
}
