//! Every `PROFILER_*` variable, in one table.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use wildmatch::WildMatch;

/// A variable that the profiler reads, once, when it is first used.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub takes: &'static str,
    /// What holds where it is not set.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
}

/// All of them; `docs/environment.md` shows the same table, and a test holds them together.
pub const VARIABLES: [Variable; 9] = [
    Variable {
        name: "PROFILER_ENABLED",
        takes: "`1`, `true`, `on`, `yes` or `0`, `false`, `off`, `no`",
        default: "`1`",
        meaning: "Whether calls are measured. `set_enabled` turns it at run time.",
    },
    Variable {
        name: "PROFILER_FILTER",
        takes: "globs over names, separated by commas; `-` before one excludes",
        default: "everything",
        meaning: "Which names are measured: those that match a glob (all, where only exclusions are given) and no exclusion. `*` stands for any characters, `?` for one.",
    },
    Variable {
        name: "PROFILER_SUMMARY",
        takes: "`stderr`, `stdout`, `off` or a file",
        default: "`off`",
        meaning: "Where the table goes at the end of the program. A file ending in `.json` or `.csv` gets that format.",
    },
    Variable {
        name: "PROFILER_TENSORBOARD",
        takes: "a folder",
        default: "none",
        meaning: "Writes each call of a name without a `log` of its own to a TensorBoard log there (feature `tensorboard`).",
    },
    Variable {
        name: "PROFILER_MAX_NAMES",
        takes: "a number from 1 to 60000",
        default: "`4096`",
        meaning: "How many names may be built at run time; what goes over is counted under `(other names)`.",
    },
    Variable {
        name: "PROFILER_RING",
        takes: "a number from 16 to 1048576",
        default: "`2048`",
        meaning: "How many log entries each thread that logs holds until they are collected (about 100 bytes each), and how many GPU times each thread that measures them (about 300 bytes each). What goes over is dropped and counted.",
    },
    Variable {
        name: "PROFILER_BACKEND",
        takes: "`auto`, `cuda` or `cpu`",
        default: "`auto`",
        meaning: "What takes the times. `auto`: the GPU too, where the program uses CUDA. `cuda`: the same, but without a device `init` fails, and a program that does not call it is warned. `cpu`: no GPU times.",
    },
    Variable {
        name: "PROFILER_CUDA_LIBRARY",
        takes: "the path of a CUDA driver library",
        default: "the one that the program has loaded, else the system's",
        meaning: "The driver that GPU times are taken from; it is loaded with the first measured call.",
    },
    Variable {
        name: "PROFILER_CUDA_EVENTS",
        takes: "a number from 1 to 1048576",
        default: "`4096`",
        meaning: "How many scopes of one CUDA context may wait for the device at once (two events each). What goes over has no GPU time, and is counted.",
    },
];

/// Where the summary goes at the end of the program.
///
/// # Examples
///
/// ```
/// use profiler_runtime::SummaryTarget;
///
/// assert_eq!(SummaryTarget::parse("stderr"), SummaryTarget::Stderr);
/// assert_eq!(SummaryTarget::parse("out.json"), SummaryTarget::File("out.json".into()));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SummaryTarget {
    /// Nowhere.
    #[default]
    Off,
    /// To standard error.
    Stderr,
    /// To standard output.
    Stdout,
    /// To a file: as JSON or CSV where its name ends so, else as a table.
    File(PathBuf),
}

impl SummaryTarget {
    /// A file's name need not be text.
    fn from_os(value: &OsStr) -> Self {
        value
            .to_str()
            .map_or_else(|| Self::File(value.into()), Self::parse)
    }

    /// Reads a target as the variable `PROFILER_SUMMARY` spells it; anything that is no keyword is a
    /// file.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "off" | "0" | "no" | "false" | "none" => Self::Off,
            "stderr" | "on" | "1" | "yes" | "true" => Self::Stderr,
            "stdout" => Self::Stdout,
            _ => Self::File(text.into()),
        }
    }
}

/// What takes the times.
///
/// # Examples
///
/// ```
/// use profiler_runtime::{Backend, builder};
///
/// let _profiler = builder().backend(Backend::Cpu).init()?;
/// # Ok::<(), profiler_runtime::InitError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backend {
    /// The GPU too, where the program uses CUDA.
    #[default]
    Auto,
    /// The GPU too; that it cannot is an error of [`init`](crate::init), and a warning without it.
    Cuda,
    /// The CPU alone.
    Cpu,
}

impl Backend {
    fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "auto" => Some(Self::Auto),
            "cuda" => Some(Self::Cuda),
            "cpu" => Some(Self::Cpu),
            _ => None,
        }
    }
}

/// Which names are measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filter {
    included: Vec<WildMatch>,
    excluded: Vec<WildMatch>,
    /// As it was written.
    text: String,
}

impl Filter {
    pub(crate) fn parse(text: &str) -> Self {
        let globs = || {
            text.split(',')
                .map(str::trim)
                .filter(|glob| !glob.is_empty())
        };
        Self {
            included: globs()
                .filter(|glob| !glob.starts_with('-'))
                .map(WildMatch::new)
                .collect(),
            excluded: globs()
                .filter_map(|glob| glob.strip_prefix('-'))
                .map(|glob| WildMatch::new(glob.trim()))
                .collect(),
            text: text.to_owned(),
        }
    }

    pub(crate) fn allows(&self, name: &str) -> bool {
        let matches = |globs: &[WildMatch]| globs.iter().any(|glob| glob.matches(name));
        (self.included.is_empty() || matches(&self.included)) && !matches(&self.excluded)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

/// What can be set from outside.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) enabled: bool,
    pub(crate) filter: Filter,
    pub(crate) summary: SummaryTarget,
    pub(crate) tensorboard: Option<PathBuf>,
    pub(crate) max_names: usize,
    pub(crate) ring: usize,
    pub(crate) backend: Backend,
    pub(crate) cuda_library: Option<PathBuf>,
    pub(crate) cuda_events: usize,
    /// The variables that were set, which a builder in the program does not override.
    pub(crate) from_environment: Vec<&'static str>,
}

impl Settings {
    /// Reads the environment; what cannot be understood is left at its default and put into words.
    pub(crate) fn from_environment() -> (Self, Vec<String>) {
        Self::read(&|name| env::var_os(name), &|| {
            env::vars_os()
                .map(|(name, _)| name.to_string_lossy().into_owned())
                .collect()
        })
    }

    fn read(
        get: &dyn Fn(&str) -> Option<OsString>,
        names: &dyn Fn() -> Vec<String>,
    ) -> (Self, Vec<String>) {
        let mut reader = Reader {
            get,
            set: Vec::new(),
            problems: Vec::new(),
        };
        let settings = Self {
            enabled: reader.text("PROFILER_ENABLED", parse_bool).unwrap_or(true),
            filter: reader
                .text("PROFILER_FILTER", |text| Some(Filter::parse(text)))
                .unwrap_or_default(),
            summary: reader
                .value("PROFILER_SUMMARY", |value| {
                    Some(SummaryTarget::from_os(value))
                })
                .unwrap_or_default(),
            tensorboard: reader.value("PROFILER_TENSORBOARD", |text| Some(PathBuf::from(text))),
            max_names: reader
                .text("PROFILER_MAX_NAMES", |text| parse_number(text, 1, 60_000))
                .unwrap_or(4096),
            ring: reader
                .text("PROFILER_RING", |text| parse_number(text, 16, 1 << 20))
                .unwrap_or(2048),
            backend: reader
                .text("PROFILER_BACKEND", Backend::parse)
                .unwrap_or_default(),
            cuda_library: reader.value("PROFILER_CUDA_LIBRARY", |path| Some(PathBuf::from(path))),
            cuda_events: reader
                .text("PROFILER_CUDA_EVENTS", |text| {
                    parse_number(text, 1, 1 << 20)
                })
                .unwrap_or(4096),
            from_environment: Vec::new(),
        };
        let Reader {
            set, mut problems, ..
        } = reader;
        problems.extend(names().iter().filter_map(|name| misspelled(name)));
        if settings.tensorboard.is_some() && !cfg!(feature = "tensorboard") {
            problems.push(
                "PROFILER_TENSORBOARD is set, but profiler-runtime was built without its feature \
                 `tensorboard`: nothing is written; build it with the feature"
                    .to_owned(),
            );
        }
        (
            Self {
                from_environment: set,
                ..settings
            },
            problems,
        )
    }
}

struct Reader<'a> {
    get: &'a dyn Fn(&str) -> Option<OsString>,
    set: Vec<&'static str>,
    problems: Vec<String>,
}

impl Reader<'_> {
    /// A value that is text.
    fn text<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        self.value(name, |value| parse(value.to_str()?))
    }

    /// Any value: paths need not be text.
    fn value<T>(&mut self, name: &str, parse: impl FnOnce(&OsStr) -> Option<T>) -> Option<T> {
        let variable = VARIABLES.iter().find(|variable| variable.name == name)?;
        // Set to nothing is the usual way to say "not set" in a shell.
        let text = (self.get)(name).filter(|text| !text.is_empty())?;
        let value = parse(&text);
        if value.is_some() {
            self.set.push(variable.name);
        } else {
            let Variable { takes, default, .. } = variable;
            self.problems.push(format!(
                "{name}={} is not understood: it takes {takes}; {default} holds",
                text.display()
            ));
        }
        value
    }
}

fn parse_bool(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" => Some(true),
        "0" | "false" | "off" | "no" => Some(false),
        _ => None,
    }
}

fn parse_number(text: &str, least: usize, most: usize) -> Option<usize> {
    text.trim()
        .parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
}

/// A `PROFILER_` variable one or two letters away from one of ours would be silently without effect.
fn misspelled(name: &str) -> Option<String> {
    if !name.starts_with("PROFILER") || VARIABLES.iter().any(|variable| variable.name == name) {
        return None;
    }
    let near = VARIABLES
        .iter()
        .find(|variable| distance(variable.name, name) <= 2)?;
    Some(format!(
        "{name} is not a variable of the profiler; did you mean {}?",
        near.name
    ))
}

/// The Levenshtein distance.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (index, char) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = index + 1;
        for (column, other) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(char != *other);
            diagonal = row[column + 1];
            row[column + 1] = substituted.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> (Settings, Vec<String>) {
        let variables: Vec<(String, String)> = variables
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let get = |name: &str| {
            variables
                .iter()
                .find(|(other, _)| other == name)
                .map(|(_, value)| value.clone().into())
        };
        Settings::read(&get, &|| {
            variables.iter().map(|(name, _)| name.clone()).collect()
        })
    }

    #[test]
    fn booleans_are_read_in_all_their_spellings() {
        for (text, expected) in [
            ("1", true),
            ("TRUE", true),
            ("on", true),
            ("Yes", true),
            ("0", false),
            ("false", false),
            ("off", false),
            ("no", false),
        ] {
            let (settings, problems) = read(&[("PROFILER_ENABLED", text)]);
            assert_eq!((settings.enabled, problems.len()), (expected, 0), "{text}");
        }
    }

    #[test]
    fn a_value_that_is_not_understood_is_named_and_left_at_the_default() {
        let (settings, problems) = read(&[("PROFILER_ENABLED", "perhaps"), ("PROFILER_RING", "3")]);
        assert!(settings.enabled);
        assert_eq!(settings.ring, 2048);
        assert!(problems[0].contains("PROFILER_ENABLED=perhaps") && problems[0].contains("`off`"));
        assert!(problems[1].contains("from 16 to 1048576"));
    }

    #[test]
    fn a_misspelled_variable_is_named_with_the_right_one() {
        let (_, problems) = read(&[("PROFILER_ENABLE", "0"), ("PROFILER_HOME", "x")]);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].contains("did you mean PROFILER_ENABLED?"));
    }

    #[test]
    fn filters_include_and_exclude_by_glob() {
        let filter = Filter::parse("train::*, -train::io::*");
        assert!(filter.allows("train::step"));
        assert!(!filter.allows("train::io::read"));
        assert!(!filter.allows("eval::step"));
        let filter = Filter::parse("-*::io::*");
        assert!(filter.allows("train::step"));
        assert!(!filter.allows("train::io::read"));
        assert!(Filter::parse("").allows("anything"));
        assert!(Filter::parse("lo?d").allows("load") && !Filter::parse("lo?d").allows("lod"));
    }

    #[test]
    fn empty_variables_are_as_if_unset() {
        let (settings, problems) = read(&[("PROFILER_ENABLED", ""), ("PROFILER_TENSORBOARD", "")]);
        assert!(settings.enabled && settings.tensorboard.is_none() && problems.is_empty());
    }
}
