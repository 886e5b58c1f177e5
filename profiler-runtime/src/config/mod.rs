//! What is set from outside.

mod schedule;
mod values;
mod variables;

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use wildmatch::WildMatch;

use crate::process::privileges;
pub use schedule::{Action, ActionFn, IntoSchedule, Schedule, ScheduleError};
pub(crate) use values::ImplicitStream;
use values::absolute;
pub use values::{Backend, SummaryTarget};
pub use variables::{VARIABLES, Variable};

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
    pub(crate) cuda_stream: ImplicitStream,
    pub(crate) session: SessionSettings,
    /// The variables that were set, which a builder in the program does not override.
    pub(crate) from_environment: Vec<&'static str>,
}

impl Settings {
    /// Reads the environment; what cannot be understood is left at its default and put into words.
    pub(crate) fn from_environment() -> (Self, Vec<String>) {
        let get = |name: &str| env::var_os(name);
        let names = || {
            env::vars_os()
                .map(|(name, _)| name.to_string_lossy().into_owned())
                .collect()
        };
        Self::read(&get, &names, Privileges::of_process())
    }

    fn read(
        get: &dyn Fn(&str) -> Option<OsString>,
        names: &dyn Fn() -> Vec<String>,
        privileges: Privileges,
    ) -> (Self, Vec<String>) {
        let mut reader = Reader {
            get,
            privileges,
            set: Vec::new(),
            ignored: Vec::new(),
            problems: Vec::new(),
        };
        let settings = Self {
            enabled: reader.text("PROFILER_ENABLED", parse_bool).unwrap_or(true),
            filter: reader
                .text("PROFILER_FILTER", |text| Some(Filter::parse(text)))
                .unwrap_or_default(),
            summary: reader
                .value_unless_path(
                    "PROFILER_SUMMARY",
                    |value| Some(SummaryTarget::from_os(value)),
                    |target| matches!(target, SummaryTarget::File(_)),
                )
                .unwrap_or_default(),
            tensorboard: reader.value("PROFILER_TENSORBOARD", |text| Some(absolute(text))),
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
            cuda_stream: reader
                .text("PROFILER_CUDA_STREAM", ImplicitStream::parse)
                .unwrap_or_default(),
            session: SessionSettings::read(&mut reader),
            from_environment: Vec::new(),
        };
        let Reader {
            set,
            ignored,
            mut problems,
            ..
        } = reader;
        if !ignored.is_empty() {
            problems.push(format!(
                "the program runs with raised privileges, and whoever has started it must not choose files for it: {} \
                 ignored; `builder()` sets what the program itself wants",
                listed(&ignored)
            ));
        }
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

/// What the session of the environment is to be.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionSettings {
    pub(crate) schedule: Option<Schedule>,
    /// Where its traces go: without it there is no session.
    pub(crate) trace: Option<PathBuf>,
    /// The name whose calls are steps.
    pub(crate) step: Option<String>,
    /// What starts and stops it.
    pub(crate) control: Option<PathBuf>,
    pub(crate) signal: Option<i32>,
}

impl SessionSettings {
    fn read(reader: &mut Reader<'_>) -> Self {
        let mut why = None;
        let schedule = reader.text("PROFILER_SCHEDULE", |text| {
            Schedule::parse(text)
                .map_err(|error| why = Some(error))
                .ok()
        });
        // It says more than that the value is not understood.
        if let (Some(why), Some(problem)) = (why, reader.problems.last_mut()) {
            *problem = format!("PROFILER_SCHEDULE: {why}; one window from start to end holds");
        }
        let settings = Self {
            schedule,
            trace: reader.value("PROFILER_TRACE", |path| Some(absolute(path))),
            step: reader.text("PROFILER_STEP", |name| Some(name.to_owned())),
            control: reader.value("PROFILER_CONTROL", |path| Some(absolute(path))),
            signal: reader.text("PROFILER_SIGNAL", values::parse_signal),
        };
        let problems = &mut reader.problems;
        let others = [
            ("PROFILER_SCHEDULE", settings.schedule.is_some()),
            ("PROFILER_STEP", settings.step.is_some()),
            ("PROFILER_CONTROL", settings.control.is_some()),
            ("PROFILER_SIGNAL", settings.signal.is_some()),
        ];
        for (name, _) in others
            .iter()
            .filter(|(_, set)| *set && settings.trace.is_none())
            .filter(|_| !reader.ignored.contains(&"PROFILER_TRACE"))
        {
            problems.push(format!(
                "{name} is set and PROFILER_TRACE is not, so that nothing would be written: set it to a file or a \
                 folder"
            ));
        }
        settings
    }
}

/// Whether whoever wrote the environment may do all that the program may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Privileges {
    Same,
    Raised,
}

impl Privileges {
    fn of_process() -> Self {
        if privileges::are_raised() {
            Self::Raised
        } else {
            Self::Same
        }
    }
}

struct Reader<'a> {
    get: &'a dyn Fn(&str) -> Option<OsString>,
    privileges: Privileges,
    set: Vec<&'static str>,
    /// Those that name a path, where the privileges forbid it.
    ignored: Vec<&'static str>,
    problems: Vec<String>,
}

impl Reader<'_> {
    /// A value that is text.
    fn text<T>(&mut self, name: &str, parse: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        self.value(name, |value| parse(value.to_str()?))
    }

    /// Any value: paths need not be text.
    fn value<T>(&mut self, name: &str, parse: impl FnOnce(&OsStr) -> Option<T>) -> Option<T> {
        self.value_unless_path(name, parse, |_| true)
    }

    /// The same, for a variable that the table says names a path, and which does so only sometimes.
    fn value_unless_path<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&OsStr) -> Option<T>,
        is_path: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        let variable = VARIABLES.iter().find(|variable| variable.name == name)?;
        // Set to nothing is the usual way to say "not set" in a shell.
        let text = (self.get)(name).filter(|text| !text.is_empty())?;
        let value = parse(&text);
        let is_forbidden = self.privileges == Privileges::Raised && variable.names_path;
        if is_forbidden && value.as_ref().is_some_and(is_path) {
            self.ignored.push(variable.name);
            return None;
        }
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

/// Names in a sentence, with its verb.
fn listed(names: &[&str]) -> String {
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", names.join(", "))
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
        read_with(Privileges::Same, variables)
    }

    fn read_with(privileges: Privileges, variables: &[(&str, &str)]) -> (Settings, Vec<String>) {
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
        let names = || variables.iter().map(|(name, _)| name.clone()).collect();
        Settings::read(&get, &names, privileges)
    }

    /// Each variable alone: a new one that takes a path must be marked in the table.
    #[test]
    fn with_raised_privileges_no_variable_names_a_path() {
        const PATH: &str = "/a/path.json";
        // They take any text, and name no file.
        let names = ["PROFILER_FILTER", "PROFILER_STEP"];
        for Variable {
            name, names_path, ..
        } in VARIABLES
        {
            let (settings, _) = read(&[(name, PATH)]);
            let has_path = format!("{settings:?}").contains(PATH);
            assert_eq!(has_path && !names.contains(&name), names_path, "{name}");

            let (settings, said) = read_with(Privileges::Raised, &[(name, PATH)]);
            let has_path = format!("{settings:?}").contains(PATH);
            assert_eq!(has_path, names.contains(&name), "{name}: {settings:?}");
            assert_eq!(settings.from_environment.contains(&name), has_path);
            let is_told = said.iter().any(|said| said.contains("raised privileges"));
            assert_eq!(is_told, names_path, "{name}: {said:?}");
        }
    }

    #[test]
    fn raised_privileges_are_told_of_once_and_leave_the_rest() {
        let (settings, said) = read_with(
            Privileges::Raised,
            &[
                ("PROFILER_TRACE", "trace.json"),
                ("PROFILER_SCHEDULE", "active=1"),
                ("PROFILER_TENSORBOARD", "runs"),
                ("PROFILER_SUMMARY", "stderr"),
                ("PROFILER_RING", "64"),
            ],
        );
        assert_eq!(settings.summary, SummaryTarget::Stderr);
        assert_eq!(settings.ring, 64);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].contains("PROFILER_TENSORBOARD, PROFILER_TRACE are ignored"),
            "{said:?}"
        );
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
