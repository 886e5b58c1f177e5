//! Lines of text that fit a terminal.

use super::shorten::width as width_of;

/// The beginning of a line that continues the one before.
const INDENT: &str = "  ";

/// Breaks lines at spaces so that none is wider than `width` columns, unless a word alone is. Lines that continue
/// another one are indented.
pub(crate) fn fill(text: &str, width: usize) -> String {
    let mut filled = String::with_capacity(text.len());
    for line in text.lines() {
        let mut used = 0;
        for word in line.split(' ') {
            let is_first = used == 0;
            if !is_first && used + 1 + width_of(word) > width {
                filled.push('\n');
                filled.push_str(INDENT);
                used = INDENT.len();
            } else if !is_first {
                filled.push(' ');
                used += 1;
            }
            filled.push_str(word);
            used += width_of(word);
        }
        filled.push('\n');
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_none_is_too_wide() {
        let text = "measuring takes 7 % of that time\nshort\n";
        let expected = "measuring takes 7\n  % of that time\nshort\n";
        assert_eq!(fill(text, 17), expected);
        for width in 17..40 {
            let filled = fill(text, width);
            assert!(
                filled.lines().all(|line| width_of(line) <= width),
                "{width}: {filled}"
            );
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(&filled), words(text));
        }
    }

    #[test]
    fn a_word_that_is_too_wide_has_a_line_of_its_own() {
        assert_eq!(
            fill("set PROFILER_FILTER=-app::add now", 10),
            "set\n  PROFILER_FILTER=-app::add\n  now\n"
        );
    }
}
