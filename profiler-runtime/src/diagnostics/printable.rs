//! Text of the program on its way to a terminal.

/// Replaces what must not reach a terminal: control characters, which may begin an escape sequence, and the controls
/// of bidirectional text, which make one name look like another.
pub(crate) fn printable(name: &str) -> String {
    let is_harmful = |char: char| char.is_control() || is_bidirectional_control(char);
    name.chars()
        .map(|char| if is_harmful(char) { '\u{fffd}' } else { char })
        .collect()
}

/// Embeddings, overrides, isolates and marks: the characters with the property `Bidi_Control` of Unicode.
fn is_bidirectional_control(char: char) -> bool {
    matches!(
        char,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_controls_of_direction_are_replaced() {
        assert_eq!(printable("a\u{1b}[31mb\nc"), "a\u{fffd}[31mb\u{fffd}c");
        for control in "\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}".chars() {
            assert_eq!(printable(&format!("a{control}b")), "a\u{fffd}b");
        }
        // Letters that are written from the right, and what joins them, stay.
        let text = "שלום\u{200d}é";
        assert_eq!(printable(text), text);
    }
}
