//! Reading environment variables, and problems with them.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use profiler_host::diagnostics::{did_you_mean, edit_distance};
use profiler_host::process::privileges;

use super::paths::{PathOrOff, example, path_or_off};
use super::{VARIABLES, Variable};

/// The privileges of the process, compared to those of the user who chose its environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privileges {
    Same,
    Raised,
}

impl Privileges {
    pub(super) fn of_process() -> Self {
        if privileges::are_raised() {
            Self::Raised
        } else {
            Self::Same
        }
    }
}

/// Reads variables and collects what is to be reported about them.
pub(super) struct Reader<'e> {
    /// Returns the value of a variable.
    pub(super) get: &'e dyn Fn(&str) -> Option<OsString>,
    pub(super) privileges: Privileges,
    /// The variables that had a valid value.
    pub(super) set: Vec<&'static str>,
    /// The variables that were ignored because they name a path and the privileges are raised.
    pub(super) ignored: Vec<&'static str>,
    /// Warnings.
    pub(super) problems: Vec<String>,
}

impl<'e> Reader<'e> {
    pub(super) fn new(get: &'e dyn Fn(&str) -> Option<OsString>, privileges: Privileges) -> Self {
        Self {
            get,
            privileges,
            set: Vec::new(),
            ignored: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Reads a value that must be text.
    pub(super) fn text<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Option<T> {
        self.value(name, |value| parse(value.to_str()?))
    }

    /// Reads a value that need not be text, such as a path.
    pub(super) fn value<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&OsStr) -> Option<T>,
    ) -> Option<T> {
        self.value_or_path(name, parse, |_| true)
    }

    /// Reads a value of which only some forms are paths, as `is_path` tells.
    pub(super) fn value_or_path<T>(
        &mut self,
        name: &str,
        parse: impl FnOnce(&OsStr) -> Option<T>,
        is_path: impl FnOnce(&T) -> bool,
    ) -> Option<T> {
        let variable = VARIABLES.iter().find(|variable| variable.name == name)?;
        // An empty value counts as unset: scripts pass variables on that may be empty.
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
                "{name}={} is not understood: it takes {takes}; the default is used: {default}",
                text.display()
            ));
        }
        value
    }

    /// Reads the path of a file or a folder, or a word for none.
    pub(super) fn path_or_off(&mut self, name: &str) -> Option<PathBuf> {
        let problems = self.problems.len();
        let is_path = |value: &PathOrOff| matches!(value, PathOrOff::Path(_));
        let path = match self.value_or_path(name, path_or_off, is_path) {
            Some(PathOrOff::Path(path)) => Some(path),
            Some(PathOrOff::Off) | None => None,
        };
        self.explain_word(problems, name, "nothing is written");
        path
    }

    /// Replaces the last problem by what to write in place of a word that names no file. Returns `false` if there is no problem
    /// since there were `before`.
    pub(super) fn explain_word(&mut self, before: usize, name: &str, instead: &str) -> bool {
        let Some(problem) = self.problems.get_mut(before) else {
            return false;
        };
        let value = (self.get)(name).unwrap_or_default();
        let value = value.to_string_lossy();
        let (noun, example) = example(name, &value);
        *problem = format!(
            "{name}={value} is no name of {noun}, so {instead}: write {name}={example}, or ./{value} if it is one"
        );
        true
    }

    /// Returns the valid variables and all problems: of the values, of the privileges and of the names that are set.
    pub(super) fn finish(mut self, names: &[String]) -> (Vec<&'static str>, Vec<String>) {
        if !self.ignored.is_empty() {
            self.problems.push(format!(
                "the program runs with raised privileges, so its environment must not choose files for it: {} ignored; \
                 `builder()` sets what the program itself wants",
                with_verb(&self.ignored)
            ));
        }
        let unknown = names.iter().filter_map(|name| {
            let meant = meant(name, self.get)?;
            let question = did_you_mean(&meant);
            Some(format!(
                "{name} is not a variable of the profiler{question}"
            ))
        });
        self.problems.extend(unknown);
        (self.set, self.problems)
    }
}

/// Joins names, followed by "is" or "are".
fn with_verb(names: &[&str]) -> String {
    let verb = if names.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", names.join(", "))
}

pub(super) fn parse_bool(text: &str) -> Option<bool> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" => Some(true),
        "0" | "false" | "off" | "no" => Some(false),
        _ => None,
    }
}

/// Parses a number from `least` to `most`.
pub(super) fn parse_number(text: &str, least: usize, most: usize) -> Option<usize> {
    text.trim()
        .parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
}

/// The units of a size, by the first letter.
const UNITS: [(char, u32); 4] = [('k', 10), ('m', 20), ('g', 30), ('t', 40)];

/// Reads a size of memory, from 4 KiB to 1 TiB: `64M`, `512MiB`, or a number of bytes.
pub(super) fn parse_bytes(text: &str) -> Option<usize> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text.get(digits.len()..)? {
        "" | "b" => 0,
        unit => {
            let (_, shift) = UNITS.iter().find(|(letter, _)| unit.starts_with(*letter))?;
            let is_whole = matches!(unit.get(1..)?, "" | "b" | "ib");
            is_whole.then_some(*shift)?
        }
    };
    let bytes = digits.trim().parse::<u64>().ok()?.checked_mul(1 << shift)?;
    let is_valid = (4 << 10..=1 << 40).contains(&bytes);
    is_valid.then(|| usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Other words for what a variable does, as they stand after `PROFILER_`.
const SYNONYMS: [(&str, &str); 9] = [
    ("CUDA", "PROFILER_BACKEND"),
    ("EXCLUDE", "PROFILER_FILTER"),
    ("FILE", "PROFILER_SUMMARY"),
    ("INCLUDE", "PROFILER_FILTER"),
    ("LOGDIR", "PROFILER_TENSORBOARD"),
    ("LOG_DIR", "PROFILER_TENSORBOARD"),
    ("ON", "PROFILER_ENABLED"),
    ("OUTPUT", "PROFILER_SUMMARY"),
    ("STACKS", "PROFILER_CALLERS"),
];

/// Returns what is likely meant by a variable that the profiler does not have and that would silently have no effect: its
/// name is one or two letters away from one of the profiler's, has another word after it (`PROFILER_TENSORBOARD_DIR`), lacks
/// one of its words (`PROFILER_INTERVAL`), or has another word for it. Others may belong to another program, or to another
/// version of this one.
fn meant(name: &str, get: &dyn Fn(&str) -> Option<OsString>) -> Option<Vec<&'static str>> {
    let word = name.strip_prefix("PROFILER")?.trim_start_matches('_');
    let known = || VARIABLES.iter().map(|variable| variable.name);
    if known().any(|known| known == name) || word.is_empty() {
        return None;
    }
    if ["DISABLE", "DISABLED", "OFF"].contains(&word) {
        let value = get(name).and_then(|value| parse_bool(value.to_str()?));
        return Some(vec![match value {
            Some(false) => "PROFILER_ENABLED=1",
            _ => "PROFILER_ENABLED=0",
        }]);
    }
    if let Some((_, meant)) = SYNONYMS.iter().find(|(other, _)| *other == word) {
        return Some(vec![meant]);
    }
    let begins = |long: &str, short: &str| {
        let rest = long.strip_prefix(short);
        rest.is_some_and(|rest| rest.starts_with('_'))
    };
    let ends = |long: &str| {
        let front = long.strip_suffix(word);
        front.is_some_and(|front| front.ends_with('_'))
    };
    let near = known().find(|known| edit_distance(known, name) <= 2 || begins(name, known));
    let longer = || known().filter(|known| begins(known, name) || ends(known));
    let meant = near.map_or_else(|| longer().collect(), |near| vec![near]);
    (!meant.is_empty()).then_some(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_bounds() {
        assert_eq!(parse_number(" 16 ", 16, 20), Some(16));
        assert_eq!(parse_number("20", 16, 20), Some(20));
        for wrong in ["15", "21", "-16", "x", "99999999999999999999999"] {
            assert_eq!(parse_number(wrong, 16, 20), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_may_have_a_unit() {
        for (text, bytes) in [
            ("4096", 4096),
            (" 64k ", 64 << 10),
            ("512MiB", 512 << 20),
            ("3 mb", 3 << 20),
            ("1G", 1 << 30),
            ("5000b", 5000),
        ] {
            assert_eq!(parse_bytes(text), Some(bytes), "{text}");
        }
        for wrong in [
            "",
            "k",
            "4095",
            "2T",
            "1.5G",
            "-8M",
            "8x",
            "8Mi",
            "99999999999999999999",
        ] {
            assert_eq!(parse_bytes(wrong), None, "{wrong}");
        }
    }
}
