//! A sentence in HTML.

use super::escape::Text;
use crate::sentence::{Part, Sentence};
use crate::text::shorten;

/// How many characters of a name a sentence shows. The table has all of it.
const MAX_NAME: usize = 100;

pub(super) fn html(sentence: &Sentence) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => Text(text).to_string(),
        Part::Strong(text) => format!("<strong>{}</strong>", Text(text)),
        Part::Name(name) => format!("<code><bdi>{}</bdi></code>", Text(&shortened(name))),
    };
    sentence.0.iter().map(part).collect()
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
