//! A sentence in HTML.

use std::borrow::Cow;

use super::escape::Text;
use crate::sentence::{Part, Sentence};

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

/// Returns a name, or the end of a long one.
fn shortened(name: &str) -> Cow<'_, str> {
    let tail = name.char_indices().rev().nth(MAX_NAME - 1);
    match tail {
        Some((start, _)) if start > 0 => Cow::Owned(format!("…{}", &name[start..])),
        _ => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_to_its_end() {
        let name = "é".repeat(100);
        assert_eq!(shortened(&name), name);
        let long = format!("x{name}");
        assert_eq!(shortened(&long), format!("…{name}"));
    }
}
