//! Lists of names in sentences.

/// Lists the first names, at most `shown`, and counts the others: `a, b, c and 4 more`.
pub(crate) fn first_of(names: impl ExactSizeIterator<Item = String>, shown: usize) -> String {
    let more = names.len().saturating_sub(shown);
    let names = names.take(shown).collect::<Vec<_>>().join(", ");
    match more {
        0 => names,
        more => format!("{names} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn further_names_are_counted() {
        let of = |count: usize| super::first_of((0..count).map(|name| name.to_string()), 2);
        assert_eq!(
            [0, 1, 2, 3, 9].map(of),
            ["", "0", "0, 1", "0, 1 and 1 more", "0, 1 and 7 more"]
        );
    }
}
