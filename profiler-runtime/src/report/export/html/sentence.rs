//! A sentence with names in it.

use super::escape::Text;

/// A sentence whose names are set apart, so that a name is never mistaken for a word.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sentence(Vec<Part>);

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Text(String),
    Strong(String),
    Name(String),
}

impl Sentence {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn text(self, text: &str) -> Self {
        self.with(Part::Text(text.to_owned()))
    }

    /// Appends the words that matter most.
    pub(super) fn strong(self, text: &str) -> Self {
        self.with(Part::Strong(text.to_owned()))
    }

    /// Appends the name of a function.
    pub(super) fn name(self, name: &str) -> Self {
        self.with(Part::Name(name.to_owned()))
    }

    fn with(mut self, part: Part) -> Self {
        self.0.push(part);
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn to_html(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => Text(text).to_string(),
            Part::Strong(text) => format!("<strong>{}</strong>", Text(text)),
            Part::Name(name) => format!("<code><bdi>{}</bdi></code>", Text(name)),
        };
        self.0.iter().map(part).collect()
    }

    #[cfg(test)]
    pub(super) fn to_text(&self) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) | Part::Strong(text) => text.clone(),
            Part::Name(name) => format!("`{name}`"),
        };
        self.0.iter().map(part).collect()
    }
}
