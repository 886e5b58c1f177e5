//! The command line of the benches.

use std::path::PathBuf;

/// A failure, which ends a bench.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

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

impl Options {
    /// Parses the command line.
    ///
    /// # Errors
    ///
    /// Returns an error if an option is unknown or lacks a value.
    pub fn from_command_line() -> Outcome<Self> {
        Ok(Self::parse(std::env::args().skip(1))?)
    }

    /// Returns the other arguments, for a pattern.
    pub fn words(&self) -> Vec<&str> {
        self.rest.iter().map(String::as_str).collect()
    }

    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
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
                .ok_or_else(|| format!("`{option}` needs a value; write `{option} VALUE`"))?;
            let number = || match value.parse() {
                Ok(number) if number > 0 => Ok(number),
                _ => Err(format!("`{option}` takes an integer from 1, not `{value}`")),
            };
            match option.as_str() {
                "--json" => options.json = Some(value.into()),
                "--rounds" => options.rounds = Some(number()?),
                "--calls" => options.calls = number()? as u64,
                "--threads" => options.threads = number()?,
                _ => {
                    return Err(format!(
                        "unknown option `{option}`; the options are --json PATH, --rounds N, --calls N and --threads N"
                    ));
                }
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse(words: &[&str]) -> Result<Options, String> {
        Options::parse(words.iter().map(ToString::to_string))
    }

    #[test]
    fn options_stand_in_any_order() {
        let options = parse(&["--rounds", "7", "extra", "--json", "out.json"]).unwrap();
        assert_eq!((options.rounds, options.words()), (Some(7), vec!["extra"]));
        assert_eq!(options.json.as_deref(), Some(Path::new("out.json")));
    }

    #[test]
    fn a_mistake_is_told_with_what_to_do() {
        let message = |words: &[&str]| parse(words).unwrap_err();
        assert!(message(&["--rounds", "0"]).contains("from 1, not `0`"));
        assert!(message(&["--json"]).contains("--json VALUE"));
        assert!(message(&["--round", "3"]).contains("--rounds N"));
    }
}
