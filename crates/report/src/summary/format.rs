//! The format of a summary's file, which the ending of its name selects.

use std::fmt;
use std::path::{Path, PathBuf};

use profiler_host::diagnostics::{did_you_mean, similar};

/// The formats of summaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryFormat {
    /// The table.
    Table,
    /// JSON.
    Json,
    /// CSV.
    Csv,
    /// A page for browsers.
    Html,
    /// Profiles for pstats and SnakeViz.
    Pstats,
    /// A profile for pprof.
    Pprof,
    /// Collapsed stacks.
    Stacks,
    /// The text that Prometheus scrapes.
    Prometheus,
}

/// What the names of speedscope's own files end with. Speedscope does not open a summary in JSON.
const SPEEDSCOPE: &str = ".speedscope.json";

impl SummaryFormat {
    /// The endings of names.
    pub const ENDINGS: [(&'static str, Self); 9] = [
        (".json", Self::Json),
        (".csv", Self::Csv),
        (".html", Self::Html),
        (".prof", Self::Pstats),
        (".pb.gz", Self::Pprof),
        (".folded", Self::Stacks),
        (".prom", Self::Prometheus),
        (".txt", Self::Table),
        (".log", Self::Table),
    ];

    /// Returns the format of a file. A name without an ending gets the table.
    ///
    /// # Errors
    ///
    /// Returns an error if the name has an ending that names no format, or a format that was not built.
    pub fn of(path: &Path) -> Result<Self, SummaryFileError> {
        let refused = |ending: &str, is_known| SummaryFileError {
            path: path.to_owned(),
            ending: ending.to_owned(),
            is_known,
        };
        match Self::known(path) {
            _ if has_ending(path, SPEEDSCOPE) => Err(refused(SPEEDSCOPE, false)),
            Some((ending, format)) if !format.is_built() => Err(refused(ending, true)),
            Some((_, format)) => Ok(format),
            None => path.extension().map_or(Ok(Self::Table), |ending| {
                Err(refused(&format!(".{}", ending.display()), false))
            }),
        }
    }

    /// Returns the ending of the name that selects the format, with its dot; nothing if none does.
    pub fn ending(path: &Path) -> &'static str {
        Self::known(path).map_or("", |(ending, _)| ending)
    }

    fn known(path: &Path) -> Option<(&'static str, Self)> {
        Self::ENDINGS
            .into_iter()
            .find(|(ending, _)| has_ending(path, ending))
    }

    /// Returns `true` if the format shows what called what.
    pub fn shows_callers(self) -> bool {
        !matches!(
            self,
            Self::Table | Self::Json | Self::Csv | Self::Prometheus
        )
    }

    /// Returns `true` if the format shows how the calls are distributed over the run.
    pub fn has_history(self) -> bool {
        matches!(self, Self::Json | Self::Html)
    }

    /// Returns `true` if the features of this build contain the format.
    fn is_built(self) -> bool {
        cfg!(feature = "export") || !self.shows_callers()
    }
}

/// Returns the file with GPU times that a summary's file has beside it, if its format has one.
pub fn second_file(path: &Path) -> Option<PathBuf> {
    let format = SummaryFormat::of(path).ok()?;
    let has_second = matches!(format, SummaryFormat::Pstats | SummaryFormat::Stacks);
    has_second.then(|| for_cuda(path))
}

/// Returns the path of the file with GPU times beside `path`: `run.cuda.prof` for `run.prof`.
pub(crate) fn for_cuda(path: &Path) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(".cuda");
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Returns `true` if the file's name ends so, in letters of either case, and has more than the ending.
fn has_ending(path: &Path, ending: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.len() > ending.len() && name.to_ascii_lowercase().ends_with(ending)
}

/// A file for the summary whose name has an ending that names no format, or one that was not built.
///
/// `Debug` shows the message of `Display` too, since a `main` that returns the error prints it with `Debug`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the summary cannot go to {}, so the table goes to standard error: {}",
    path.display(),
    self.reason()
)]
#[non_exhaustive]
pub struct SummaryFileError {
    /// The path of the file.
    pub path: PathBuf,
    /// The ending of its name, with the dot.
    ending: String,
    /// `true` if a feature that was not enabled has the format.
    is_known: bool,
}

impl SummaryFileError {
    fn reason(&self) -> String {
        let ending = &self.ending;
        if self.is_known {
            return format!(
                "`{ending}` needs the feature `export` of profiler-runtime: build it with the feature"
            );
        }
        if ending == SPEEDSCOPE {
            return format!("`{ending}` names no format: speedscope opens `.pb.gz` and `.folded`");
        }
        let built = SummaryFormat::ENDINGS
            .iter()
            .filter(|(_, format)| format.is_built());
        let known: Vec<&str> = built.map(|(ending, _)| *ending).collect();
        let quoted: Vec<String> = known.iter().map(|ending| format!("`{ending}`")).collect();
        format!(
            "`{ending}` names no format: end the name in {}, or in nothing for the table{}",
            quoted.join(", "),
            did_you_mean(&similar(ending, known))
        )
    }
}

impl fmt::Debug for SummaryFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SummaryFileError")
            .field(&self.to_string())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_selects_the_format() {
        for (name, format) in [
            ("out", SummaryFormat::Table),
            ("out.txt", SummaryFormat::Table),
            ("run.LOG", SummaryFormat::Table),
            ("/dev/fd/3", SummaryFormat::Table),
            (".json", SummaryFormat::Table),
            ("out.json", SummaryFormat::Json),
            ("a.b/out.v2.CSV", SummaryFormat::Csv),
            ("/metrics/app.prom", SummaryFormat::Prometheus),
        ] {
            assert_eq!(SummaryFormat::of(Path::new(name)), Ok(format), "{name}");
        }
    }

    #[cfg(feature = "export")]
    #[test]
    fn formats_of_viewers_show_callers() {
        for (name, format) in [
            ("run.html", SummaryFormat::Html),
            ("run.prof", SummaryFormat::Pstats),
            ("run.pb.gz", SummaryFormat::Pprof),
            ("run.folded", SummaryFormat::Stacks),
        ] {
            assert_eq!(SummaryFormat::of(Path::new(name)), Ok(format), "{name}");
            assert!(format.shows_callers());
        }
    }

    #[cfg(not(feature = "export"))]
    #[test]
    fn formats_that_were_not_built_are_refused() {
        let refused = SummaryFormat::of(Path::new("run.prof")).expect_err("not built");
        let expected =
            "`.prof` needs the feature `export` of profiler-runtime: build it with the feature";
        assert!(refused.to_string().ends_with(expected), "{refused}");
    }

    #[test]
    fn an_ending_that_names_no_format_is_refused_with_the_list() {
        for name in ["out.xyz", "out.gz", "out.pb", "out.jsn"] {
            let refused = SummaryFormat::of(Path::new(name)).expect_err(name);
            let text = refused.to_string();
            for (ending, _) in SummaryFormat::ENDINGS
                .iter()
                .filter(|(_, format)| format.is_built())
            {
                assert!(text.contains(&format!("`{ending}`")), "{text}");
            }
        }
        let foreign = SummaryFormat::of(Path::new("run.SpeedScope.json")).expect_err("no format");
        assert!(
            foreign
                .to_string()
                .ends_with("speedscope opens `.pb.gz` and `.folded`"),
            "{foreign}"
        );
        let close = SummaryFormat::of(Path::new("out.jsn")).expect_err("no format");
        assert!(
            close.to_string().contains("did you mean `.json`?"),
            "{close}"
        );
    }
}
