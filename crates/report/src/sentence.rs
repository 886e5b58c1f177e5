//! A sentence with names in it.

use std::fmt;

use profiler_host::diagnostics::printable;

use crate::text::json::{array, string};

/// A sentence whose names are set apart, so that a name is never mistaken for a word.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sentence(pub(crate) Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    Text(String),
    Strong(String),
    Name(String),
}

impl Sentence {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn text(self, text: &str) -> Self {
        self.with(Part::Text(text.to_owned()))
    }

    /// Appends the words that matter most.
    pub(crate) fn strong(self, text: &str) -> Self {
        self.with(Part::Strong(text.to_owned()))
    }

    /// Appends the name of a function.
    pub(crate) fn name(self, name: &str) -> Self {
        self.with(Part::Name(name.to_owned()))
    }

    /// Appends another sentence.
    #[cfg(feature = "export")]
    pub(crate) fn then(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// Returns sentences as plain text.
    pub(crate) fn join(sentences: &[Self]) -> String {
        let sentences = sentences.iter().map(Self::to_string);
        sentences.collect::<Vec<_>>().join(" ")
    }

    /// Returns sentences as a JSON array of texts.
    pub(crate) fn json(sentences: &[Self]) -> String {
        array(
            sentences
                .iter()
                .map(|sentence| string(&sentence.to_string())),
        )
    }

    fn with(mut self, part: Part) -> Self {
        self.0.push(part);
        self
    }

    #[cfg(feature = "export")]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// As plain text, with names between backticks.
impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|part| match part {
            Part::Text(text) | Part::Strong(text) => f.write_str(text),
            Part::Name(name) => write!(f, "`{}`", printable(name)),
        })
    }
}

/// Formats a fraction as a percentage in a sentence.
pub(crate) fn percent(fraction: f64) -> String {
    let percent = 100.0 * fraction;
    if percent > 0.0 && percent < 0.05 {
        "under 0.1 %".to_owned()
    } else if percent > 0.0 && percent < 0.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn what_is_not_zero_does_not_look_like_it() {
        for (fraction, text) in [
            (0.0, "0 %"),
            (1e-9, "under 0.1 %"),
            (0.000_49, "under 0.1 %"),
            (0.000_51, "0.1 %"),
            (0.009_4, "0.9 %"),
            (0.0096, "1 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent(fraction), text);
        }
    }
}
