//! Suggestions for misspelt names.

use std::collections::BTreeSet;

/// The longest name that is compared, in bytes. Comparing takes time in proportion to its square.
const MAX_LENGTH: usize = 256;

/// The most names that are suggested.
const MAX_SUGGESTED: usize = 3;

/// Returns the text that suggests the closest of `known`, or nothing if none is close.
pub(crate) fn did_you_mean<'k>(written: &str, known: impl Iterator<Item = &'k str>) -> String {
    let most = written.chars().count() / 3 + 1;
    let length = written.len();
    let near: BTreeSet<(usize, &str)> = known
        .filter(|name| name.len().abs_diff(length) <= 3 * most && name.len() <= MAX_LENGTH)
        .map(|name| (strsim::osa_distance(written, name), name))
        .filter(|(distance, _)| *distance <= most)
        .collect();
    let Some((least, _)) = near.first() else {
        return String::new();
    };
    let closest = near.iter().take_while(|(distance, _)| distance == least);
    let names: Vec<String> = closest
        .take(MAX_SUGGESTED)
        .map(|(_, name)| format!("`{name}`"))
        .collect();
    format!("; did you mean {}?", names.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closest_name_is_suggested() {
        let known = ["cuda_p50", "cuda_p95", "calls"];
        let hint = |written| did_you_mean(written, known.into_iter());
        assert_eq!(hint("cuda_p59"), "; did you mean `cuda_p50` or `cuda_p95`?");
        assert_eq!(hint("call"), "; did you mean `calls`?");
        assert_eq!(hint("memory"), "");
        let swapped = did_you_mean("no", ["on"].into_iter());
        assert_eq!(swapped, "; did you mean `on`?");
    }
}
