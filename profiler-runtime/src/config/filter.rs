//! The filter of names.

use wildmatch::WildMatch;

/// Selects the names that are measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Filter {
    included: Vec<WildMatch>,
    excluded: Vec<WildMatch>,
    /// The text that was parsed.
    text: String,
}

impl Filter {
    /// Parses globs that are separated by commas. A leading `-` excludes the names that match.
    pub(crate) fn parse(text: &str) -> Self {
        let globs = || {
            text.split(',')
                .map(str::trim)
                .filter(|glob| !glob.is_empty())
        };
        Self {
            included: globs()
                .filter(|glob| !glob.starts_with('-'))
                .map(WildMatch::new)
                .collect(),
            excluded: globs()
                .filter_map(|glob| glob.strip_prefix('-'))
                .map(|glob| WildMatch::new(glob.trim()))
                .collect(),
            text: text.to_owned(),
        }
    }

    /// Returns `true` if a name is measured: it matches an including glob, or there is none, and no excluding one.
    pub(crate) fn allows(&self, name: &str) -> bool {
        let matches = |globs: &[WildMatch]| globs.iter().any(|glob| glob.matches(name));
        (self.included.is_empty() || matches(&self.included)) && !matches(&self.excluded)
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
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
}
