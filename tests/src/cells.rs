//! The cells of an exported CSV, with the apostrophes that neutralise formulas removed.

/// Characters that a spreadsheet reads as the beginning of a formula.
pub const FORMULA: &[char] = &[
    '=', '+', '-', '@', '\t', '\r', '\n', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}',
];

/// The text that a cell stands for: without the apostrophe that keeps it from being a formula.
pub fn text_of(cell: &str) -> &str {
    let is_formula = |rest: &&str| rest.trim_start_matches('\'').starts_with(FORMULA);
    cell.strip_prefix('\'').filter(is_formula).unwrap_or(cell)
}
