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
        .map(|name| (distance(written, name), name))
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

/// Returns how many letters must be inserted, removed, replaced or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut rows = vec![(0..=right.len()).collect::<Vec<usize>>()];
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
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
        assert_eq!(distance("", "abc"), 3);
    }
}
