//! Finding the name that a misspelled one was meant to be.

use strsim::osa_distance;

/// The longest text that is compared, in characters. Comparing takes time in proportion to its square.
const MAX_LENGTH: usize = 256;
/// The most names that are compared.
const MAX_COMPARED: usize = 4096;
/// The most names that are suggested.
const MAX_SUGGESTED: usize = 3;

/// Returns the names that `wrong` most likely stands for, the most likely first: those that end in it (`step` for
/// `app::Trainer::step`), those that differ in case or separators, and those that are a few edits away.
pub fn similar<'n>(wrong: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let wrong = normalized(wrong);
    let length = wrong.chars().count();
    if length == 0 || length > MAX_LENGTH {
        return Vec::new();
    }
    let most = (length / 3).max(1);
    let compared = names.into_iter().take(MAX_COMPARED);
    let mut found: Vec<(usize, &str)> = compared
        .filter_map(|name| Some((edits(&wrong, &normalized(name), most)?, name)))
        .collect();
    found.sort_unstable();
    found.dedup();
    // Names that share a long path are close to each other, too: leave out those that are much less likely.
    let least = found.first().map_or(0, |(edits, _)| *edits);
    found.retain(|(edits, _)| *edits <= least + 1);
    let names = found.into_iter().map(|(_, name)| name);
    names.take(MAX_SUGGESTED).collect()
}

/// Returns a question that names the suggestions, or an empty text if there are none: `; did you mean …?`.
pub fn did_you_mean(suggestions: &[impl AsRef<str>]) -> String {
    let quoted: Vec<String> = suggestions
        .iter()
        .map(|name| format!("`{}`", name.as_ref()))
        .collect();
    if quoted.is_empty() {
        String::new()
    } else {
        format!("; did you mean {}?", quoted.join(" or "))
    }
}

/// Returns how many edits make `wrong` of a name or of its last segments, if `most` suffice.
fn edits(wrong: &str, name: &str, most: usize) -> Option<usize> {
    let segments = wrong.split("::").count();
    let start = name.rmatch_indices("::").nth(segments - 1);
    let tail = start.map_or(name, |(index, separator)| &name[index + separator.len()..]);
    let distance_to = |text: &str| {
        let lengths = (wrong.chars().count(), text.chars().count());
        (lengths.0.abs_diff(lengths.1) <= most).then(|| osa_distance(wrong, text))
    };
    let least = distance_to(name).into_iter().chain(distance_to(tail)).min();
    least.filter(|edits| *edits <= most)
}

/// Removes differences that people overlook: case, and the separators of paths, tags and words.
fn normalized(name: &str) -> String {
    let name = name.trim().to_lowercase();
    name.replace(['/', '.'], "::").replace(['_', '-', ' '], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = [
        "app::Trainer::backward",
        "app::Trainer::forward",
        "app::load",
        "train/step",
        "batch",
    ];

    #[test]
    fn a_name_is_found_by_its_end_its_case_its_separators_and_with_a_few_wrong_letters() {
        for (wrong, expected) in [
            ("backward", "app::Trainer::backward"),
            ("Trainer::forwrad", "app::Trainer::forward"),
            ("trainer::Backward", "app::Trainer::backward"),
            ("train::step", "train/step"),
            ("Batch", "batch"),
            ("bach", "batch"),
            ("app::laod", "app::load"),
        ] {
            assert_eq!(similar(wrong, NAMES).first(), Some(&expected), "{wrong}");
        }
    }

    #[test]
    fn nothing_is_suggested_for_a_word_that_is_like_no_name() {
        for wrong in ["epoch", "", "x", &"step".repeat(1000)] {
            assert_eq!(similar(wrong, NAMES), [""; 0], "{wrong}");
        }
    }

    #[test]
    fn the_likeliest_names_come_first_and_are_few() {
        let names = ["steps", "step", "stop", "Step", "stem"];
        assert_eq!(similar("step", names), ["Step", "step", "stem"]);
        let names = ["train::forward", "train::backward"];
        assert_eq!(similar("train::bakcward", names), ["train::backward"]);
    }

    #[test]
    fn suggestions_are_a_question() {
        assert_eq!(did_you_mean(&[""; 0]), "");
        assert_eq!(did_you_mean(&["a"]), "; did you mean `a`?");
        assert_eq!(did_you_mean(&["a", "b"]), "; did you mean `a` or `b`?");
    }
}
