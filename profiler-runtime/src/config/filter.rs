//! The filter of names.

use profiler_host::diagnostics::{did_you_mean, similar};
use wildmatch::WildMatch;

/// Selects the names that are measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filter {
    included: Vec<Glob>,
    excluded: Vec<Glob>,
    /// The text that was parsed.
    text: String,
}

#[derive(Clone, Debug, PartialEq)]
struct Glob {
    text: String,
    pattern: WildMatch,
}

impl Glob {
    fn parse(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            pattern: WildMatch::new(text),
        }
    }

    fn matches(&self, name: &str) -> bool {
        self.pattern.matches(name)
    }

    /// Returns globs like this one that match one of the names. Only a `*` at the end is kept; other wildcards have no
    /// spelling to compare.
    fn similar(&self, names: &[&str]) -> Vec<String> {
        let is_wildcard = |char| matches!(char, '*' | '?');
        let (text, end) = match self.text.strip_suffix('*') {
            Some(text) => (text, "*"),
            None => (&*self.text, ""),
        };
        if text.contains(is_wildcard) {
            return Vec::new();
        }
        if end.is_empty() {
            let found = similar(text, names.iter().copied());
            return found.into_iter().map(str::to_owned).collect();
        }
        let (path, end) = match text.strip_suffix("::") {
            Some(path) => (path, "::*"),
            None => (text, "*"),
        };
        let mut paths: Vec<&str> = names.iter().flat_map(|name| paths_of(name)).collect();
        paths.sort_unstable();
        paths.dedup();
        let found = similar(path, paths);
        found.iter().map(|path| format!("{path}{end}")).collect()
    }
}

/// Returns the paths that a name is inside of: `a` and `a::b` for `a::b::c`.
fn paths_of(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices("::").map(|(index, _)| &name[..index])
}

impl Filter {
    /// Parses globs that are separated by commas. A leading `-` excludes the names that match.
    pub(crate) fn parse(text: &str) -> Self {
        let globs = || text.split(',').map(str::trim);
        let is_glob = |glob: &&str| !glob.is_empty();
        let excluded = globs().filter_map(|glob| glob.strip_prefix('-'));
        Self {
            included: globs()
                .filter(|glob| is_glob(glob) && !glob.starts_with('-'))
                .map(Glob::parse)
                .collect(),
            excluded: excluded
                .map(str::trim)
                .filter(is_glob)
                .map(Glob::parse)
                .collect(),
            text: text.to_owned(),
        }
    }

    /// Returns `true` if the filter has no globs, and allows every name.
    pub(crate) fn is_empty(&self) -> bool {
        self.included.is_empty() && self.excluded.is_empty()
    }

    /// Returns `true` if a name is measured: it matches an including glob, or there is none, and no excluding one.
    pub(crate) fn allows(&self, name: &str) -> bool {
        let matches = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(name));
        (self.included.is_empty() || matches(&self.included)) && !matches(&self.excluded)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns a sentence for each glob that matches none of the names and is likely a mistake.
    ///
    /// An exclusion without effect shows in the table, and a list of exclusions may serve many programs. So it is a
    /// mistake only if it is spelled like a name.
    pub(crate) fn mistakes(&self, names: &[&str]) -> Vec<String> {
        let unmatched = |glob: &&Glob| !names.iter().any(|name| glob.matches(name));
        let included = self.included.iter().filter(unmatched).map(|glob| {
            let (text, suggestion) = (&glob.text, did_you_mean(&glob.similar(names)));
            format!("`{text}` matches none of the names that ran{suggestion}")
        });
        let excluded = self.excluded.iter().filter(unmatched).filter_map(|glob| {
            let similar = glob.similar(names).into_iter();
            let similar: Vec<String> = similar.map(|glob| format!("-{glob}")).collect();
            let (text, suggestion) = (&glob.text, did_you_mean(&similar));
            (!similar.is_empty())
                .then(|| format!("`-{text}` excludes none of the names that ran{suggestion}"))
        });
        included.chain(excluded).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_include_and_exclude_by_glob() {
        let filter = Filter::parse("train::*, -train::io::*");
        assert!(filter.allows("train::step"));
        assert!(!filter.allows("train::io::read"));
        assert!(!filter.allows("eval::step"));
        let filter = Filter::parse("-*::io::*");
        assert!(filter.allows("train::step"));
        assert!(!filter.allows("train::io::read"));
        assert!(Filter::parse("").allows("anything"));
        assert!(Filter::parse("lo?d").allows("load") && !Filter::parse("lo?d").allows("lod"));
    }

    #[test]
    fn a_filter_of_separators_has_no_globs() {
        for text in ["", " , ,", "-", "- ,"] {
            assert!(Filter::parse(text).is_empty(), "{text}");
        }
        assert!(!Filter::parse("-a").is_empty() && !Filter::parse("a").is_empty());
    }

    #[test]
    fn a_glob_that_matches_nothing_is_a_mistake() {
        let names = ["train::step", "train::io::read", "eval::step"];
        for (filter, expected) in [
            ("train::*,-train::io::*", None),
            (
                "train::*,evla::*",
                Some("`evla::*` matches none of the names that ran; did you mean `eval::*`?"),
            ),
            (
                "tarin*",
                Some("`tarin*` matches none of the names that ran; did you mean `train*`?"),
            ),
            (
                "read",
                Some("`read` matches none of the names that ran; did you mean `train::io::read`?"),
            ),
            (
                "^train",
                Some("`^train` matches none of the names that ran"),
            ),
            ("*sep*", Some("`*sep*` matches none of the names that ran")),
            (
                "-train::oi::*",
                Some(
                    "`-train::oi::*` excludes none of the names that ran; did you mean `-train::io::*`?",
                ),
            ),
            ("-hyper::*", None),
        ] {
            let mistakes = Filter::parse(filter).mistakes(&names);
            let mistakes: Vec<&str> = mistakes.iter().map(|mistake| &**mistake).collect();
            assert_eq!(mistakes, Vec::from_iter(expected), "{filter}");
        }
    }
}
