//! Figures in documents are those that were measured: `checks/measurements.json` keeps them.
//!
//! `<!--=NAME-->19.3<!--=-->` in a document is the figure of that name.

use std::collections::BTreeSet;
use std::env;
use std::fs;

use serde_json::Value;

use super::links::documents;
use super::repository::root;

/// The begin of the comments around a figure.
const MARK: &str = "<!--=";

/// Returns a document with the figures that are kept, and adds the names of these to a set.
///
/// # Errors
///
/// Returns what is wrong with a figure's comments.
fn with_figures(text: &str, kept: &Value, names: &mut BTreeSet<String>) -> Result<String, String> {
    let mut parts = text.split(MARK);
    let mut written = parts.next().unwrap_or_default().to_owned();
    while let Some(begin) = parts.next() {
        let (name, _) = begin
            .split_once("-->")
            .ok_or_else(|| format!("no end of the comment: {begin}"))?;
        let value = kept[name]["value"]
            .as_str()
            .ok_or_else(|| format!("no figure `{name}` is kept"))?;
        let after = parts
            .next()
            .and_then(|end| end.strip_prefix("-->"))
            .ok_or_else(|| format!("no comment at the end of `{name}`"))?;
        names.insert(name.to_owned());
        written.extend([MARK, name, "-->", value, MARK, "-->", after]);
    }
    Ok(written)
}

#[test]
fn figures_in_documents_are_those_that_are_kept() {
    let kept = fs::read_to_string(root().join("checks/measurements.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    let mut names = BTreeSet::new();
    for (path, text) in documents() {
        let written = with_figures(&text, &kept, &mut names)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        if env::var_os("PROFILER_TESTS_BLESS").is_some() {
            fs::write(&path, &written).unwrap();
        } else {
            assert!(
                written == text,
                "{} has other figures; PROFILER_TESTS_BLESS=1 writes those that are kept",
                path.display()
            );
        }
    }
    let figures = kept.as_object().unwrap();
    let all: BTreeSet<String> = figures.keys().cloned().collect();
    assert_eq!(names, all, "each figure that is kept stands in a document");
    for (name, figure) in figures {
        for what in ["command", "date", "commit", "on", "rustc"] {
            assert!(figure[what].is_string(), "{name}: {what}");
        }
    }
}

#[test]
fn another_figure_and_a_wrong_comment_are_found() {
    let kept = serde_json::json!({ "a": { "value": "2" } });
    let with_figures = |text| with_figures(text, &kept, &mut BTreeSet::new());
    let written = with_figures("of <!--=a-->1<!--=--> and");
    assert_eq!(written.as_deref(), Ok("of <!--=a-->2<!--=--> and"));
    assert!(with_figures("<!--=b-->1<!--=-->").is_err());
    assert!(with_figures("<!--=a-->1").is_err());
}
