//! The command line of the benches.

use std::path::{Path, PathBuf};

use serde::Serialize;

/// The parsed options.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file for the results as JSON.
    pub json: Option<PathBuf>,
    /// The number of rounds, if the command line has it.
    pub rounds: Option<usize>,
    /// The calls per batch.
    pub calls: u64,
    /// The threads of the run on all cores.
    pub threads: usize,
    /// The other arguments, which the bench reads itself.
    pub rest: Vec<String>,
}

/// An error in the options or in writing the results.
#[derive(Debug, thiserror::Error)]
pub enum OptionsError {
    /// The last option lacks its value.
    #[error("`{0}` needs a value; write `{0} VALUE`")]
    NoValue(String),
    /// A value is not a positive integer.
    #[error("`{option}` takes an integer from 1, not `{value}`")]
    NotANumber {
        /// The option.
        option: String,
        /// Its value.
        value: String,
    },
    /// An unknown option.
    #[error(
        "unknown option `{0}`; the options are --json PATH, --rounds N, --calls N and --threads N"
    )]
    Unknown(String),
    /// The results could not be written.
    #[error("cannot write `{path}`: {source}; name a file in a folder that exists")]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl Options {
    /// Parses the command line.
    ///
    /// # Errors
    ///
    /// Returns an error if an option is unknown or lacks a value.
    pub fn from_command_line() -> Result<Self, OptionsError> {
        Self::parse(std::env::args().skip(1))
    }

    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, OptionsError> {
        let mut options = Self {
            json: None,
            rounds: None,
            calls: 1000,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            rest: Vec::new(),
        };
        while let Some(option) = words.next() {
            if !option.starts_with("--") {
                options.rest.push(option);
                continue;
            }
            let value = words
                .next()
                .ok_or_else(|| OptionsError::NoValue(option.clone()))?;
            match option.as_str() {
                "--json" => options.json = Some(value.into()),
                "--rounds" => options.rounds = Some(number(&option, &value)?),
                "--calls" => options.calls = number(&option, &value)? as u64,
                "--threads" => options.threads = number(&option, &value)?,
                _ => return Err(OptionsError::Unknown(option)),
            }
        }
        Ok(options)
    }

    /// Writes `report` to the file that `--json` names, if there is one.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn write_json(&self, report: &impl Serialize) -> Result<(), OptionsError> {
        let Some(path) = &self.json else {
            return Ok(());
        };
        write(path, report).map_err(|source| OptionsError::Write {
            path: path.clone(),
            source,
        })
    }
}

fn write(path: &Path, report: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_string_pretty(report)?;
    text.push('\n');
    std::fs::write(path, text)
}

fn number(option: &str, value: &str) -> Result<usize, OptionsError> {
    match value.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(OptionsError::NotANumber {
            option: option.to_owned(),
            value: value.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options, OptionsError> {
        Options::parse(words.iter().map(ToString::to_string))
    }

    #[test]
    fn options_stand_in_any_order() {
        let options = parse(&["--rounds", "7", "extra", "--json", "out.json"]).unwrap();
        assert_eq!(
            (options.rounds, options.rest),
            (Some(7), vec!["extra".to_owned()])
        );
        assert_eq!(options.json.as_deref(), Some(Path::new("out.json")));
    }

    #[test]
    fn a_mistake_is_told_with_what_to_do() {
        let message = |words: &[&str]| parse(words).unwrap_err().to_string();
        assert!(message(&["--rounds", "0"]).contains("from 1, not `0`"));
        assert!(message(&["--json"]).contains("--json VALUE"));
        assert!(message(&["--round", "3"]).contains("--rounds N"));
    }
}
