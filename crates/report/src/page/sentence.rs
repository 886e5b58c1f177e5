//! A sentence with names in it.

use super::escape::Text;
use crate::text::shorten;

/// How many characters of a name a sentence shows. The table has all of it.
const MAX_NAME: usize = 100;

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
            Part::Name(name) => format!("<code><bdi>{}</bdi></code>", Text(&shortened(name))),
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

/// Returns a name, or what says most of a long one.
fn shortened(name: &str) -> String {
    shorten(&[name], MAX_NAME).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_as_in_tables() {
        let name = "é".repeat(100);
        assert_eq!(shortened(&name), name);
        let long = format!("x{name}");
        assert_eq!(shortened(&long), format!("…{}", "é".repeat(99)));
        let kernel = format!("void at::softmax<float, 8>({})", "int, ".repeat(40));
        assert_eq!(shortened(&kernel), "at::softmax<float, 8>");
    }
}
