//! Text of the program in HTML.

use std::fmt::{self, Write};

use profiler_host::diagnostics::printable;

use crate::text::last_segment;

/// Displays a text so that HTML reads it as that text, in an element or in a quoted attribute.
///
/// Control characters and bidirectional controls, which could make one name look like another, are replaced by U+FFFD.
pub(super) struct Text<'t>(pub(super) &'t str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for char in printable(self.0).chars() {
            match char {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                char => f.write_char(char)?,
            }
        }
        Ok(())
    }
}

/// Displays a name with its path apart from its last segment, which says most. A long path is cut off by the style.
pub(super) struct Name<'t>(pub(super) &'t str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("<bdi><b>(no name)</b></bdi>");
        }
        let (path, last) = self.0.split_at(last_segment(self.0));
        if path.is_empty() {
            write!(f, "<bdi><b>{}</b></bdi>", Text(last))
        } else {
            write!(f, "<bdi><i>{}</i><b>{}</b></bdi>", Text(path), Text(last))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_is_markup() {
        let text = "</script><b a=\"x\" b='y'>&amp;";
        let expected = "&lt;/script&gt;&lt;b a=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;";
        assert_eq!(Text(text).to_string(), expected);
    }

    #[test]
    fn the_path_of_a_name_is_set_apart() {
        for (name, expected) in [
            ("main", "<bdi><b>main</b></bdi>"),
            ("app::load", "<bdi><i>app::</i><b>load</b></bdi>"),
            ("<A as B>::f", "<bdi><i>&lt;A as B&gt;::</i><b>f</b></bdi>"),
        ] {
            assert_eq!(Name(name).to_string(), expected);
        }
    }

    #[test]
    fn no_text_changes_the_direction_of_others() {
        assert_eq!(Text("a\u{202e}b\0").to_string(), "a\u{fffd}b\u{fffd}");
        assert_eq!(Text("שלום é").to_string(), "שלום é");
    }
}
