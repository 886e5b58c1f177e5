//! Text of the program that is written to a terminal.

/// Replaces the characters that must not reach a terminal by U+FFFD: control characters, which may start an escape
/// sequence, and bidirectional controls, which can make one name look like another.
pub fn printable(name: &str) -> String {
    let is_harmful = |char: char| char.is_control() || is_bidirectional_control(char);
    name.chars()
        .map(|char| if is_harmful(char) { '\u{fffd}' } else { char })
        .collect()
}

/// Returns `true` for characters with the Unicode property `Bidi_Control`: embeddings, overrides, isolates and marks.
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
    fn escapes_and_bidirectional_controls_are_replaced() {
        assert_eq!(printable("a\u{1b}[31mb\nc"), "a\u{fffd}[31mb\u{fffd}c");
        for control in "\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}".chars() {
            assert_eq!(printable(&format!("a{control}b")), "a\u{fffd}b");
        }
        // Right-to-left letters and the zero-width joiner stay.
        let text = "שלום\u{200d}é";
        assert_eq!(printable(text), text);
    }
}
