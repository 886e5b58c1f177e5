//! Text that comes from elsewhere, as a terminal or a page may show it.

/// Replaces the characters that must not be shown by U+FFFD; see [`is_harmful`].
pub fn printable(text: &str) -> String {
    text.chars()
        .map(|char| if is_harmful(char) { '\u{fffd}' } else { char })
        .collect()
}

/// Returns `true` for characters that act on what shows them, or make one text look like another: controls, which may start
/// an escape sequence, separators of lines, characters that change the order of others, and invisible characters.
///
/// The zero-width joiner and the two selectors between text and picture stay: emoji are made of them.
pub fn is_harmful(char: char) -> bool {
    char.is_control() || is_bidirectional_control(char) || is_invisible(char)
}

/// Returns `true` for characters with the Unicode property `Bidi_Control`: embeddings, overrides, isolates and marks.
fn is_bidirectional_control(char: char) -> bool {
    matches!(
        char,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Returns `true` for characters with the Unicode property `Default_Ignorable_Code_Point`, for separators of lines and
/// annotations, and for the braille pattern without dots.
fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}' | '\u{200c}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_bidirectional_controls_and_invisible_characters_are_replaced() {
        assert_eq!(printable("a\u{1b}[31mb\nc"), "a\u{fffd}[31mb\u{fffd}c");
        let controls = "\u{7f}\u{9b}\u{61c}\u{200e}\u{200f}\u{202a}\u{202e}\u{2066}\u{2069}";
        let invisible = "\u{ad}\u{34f}\u{115f}\u{180e}\u{200b}\u{200c}\u{2028}\u{2060}\u{2800}\u{3164}\u{feff}\u{e0041}";
        for harmful in controls.chars().chain(invisible.chars()) {
            let text = printable(&format!("a{harmful}b"));
            assert_eq!(text, "a\u{fffd}b", "{harmful:?}");
        }
        // Right-to-left letters stay, and what emoji are made of.
        let text = "שלום\u{200d}é\u{fe0f}";
        assert_eq!(printable(text), text);
    }
}
