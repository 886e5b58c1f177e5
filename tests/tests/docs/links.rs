//! Documents refer only to files and sections that exist.

use std::fs;
use std::path::{Path, PathBuf};

use super::repository::root;

/// The documents for users and contributors, with their texts.
pub(super) fn documents() -> Vec<(PathBuf, String)> {
    let in_folder = |folder: PathBuf| {
        let entries = fs::read_dir(&folder).unwrap();
        entries.map(|entry| entry.unwrap().path())
    };
    let mut paths: Vec<PathBuf> = in_folder(root().to_owned())
        .chain(in_folder(root().join("docs")))
        .chain(in_folder(root().join("docs/decisions")))
        .chain(in_folder(root().join("docs/guide")))
        .chain([root().join("benches/README.md")])
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    paths.sort();
    for page in ["architecture.md", "decisions/profiler-runtime.md"] {
        assert!(paths.contains(&root().join("docs").join(page)), "{page}");
    }
    paths
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path, text)
        })
        .collect()
}

/// The anchor that a heading has on the usual sites.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|character| character.is_alphanumeric() || " -_".contains(*character))
        .map(|character| if character == ' ' { '-' } else { character })
        .collect()
}

/// Returns why the target of a link does not exist, if so.
fn broken(document: &Path, target: &str) -> Option<String> {
    let (path, section) = target.split_once('#').unwrap_or((target, ""));
    let file = match path {
        "" => document.to_owned(),
        _ => document.parent()?.join(path),
    };
    if !file.exists() {
        return Some(format!("{path} does not exist"));
    }
    let text = fs::read_to_string(&file).unwrap_or_default();
    let mut headings = text.lines().filter(|line| line.starts_with('#'));
    let exists = section.is_empty() || headings.any(|heading| anchor(heading) == section);
    (!exists).then(|| format!("{target} has no such section"))
}

#[test]
fn links_lead_to_files_and_sections() {
    let mut links = 0;
    for (path, text) in documents() {
        for target in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            if target.starts_with("http") {
                continue;
            }
            links += 1;
            assert_eq!(broken(&path, target), None, "in {}", path.display());
        }
    }
    assert!(links > 20, "{links} links");
    let guide = root().join("docs/guide/gpu.md");
    assert!(broken(&guide, "no-such-file.md").is_some());
    assert!(broken(&guide, "../accuracy.md#no-such-section").is_some());
}

/// Paths in backticks that are relative to the root of the repository.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    const FOLDERS: [&str; 9] = [
        "tests/",
        "examples/",
        "benches/",
        "docs/",
        "checks/",
        "strip-proof/",
        "profiler-runtime/",
        "profiler-macros/",
        "crates/",
    ];
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .filter(|quoted| FOLDERS.iter().any(|folder| quoted.starts_with(folder)))
        .filter(|quoted| !quoted.contains([' ', '*', '{', '<']))
}

#[test]
fn paths_in_documents_exist() {
    let mut found = 0;
    for (document, text) in documents() {
        for path in paths(&text).filter(|path| !path.contains("/target/")) {
            found += 1;
            assert!(root().join(path).exists(), "{}: {path}", document.display());
        }
    }
    assert!(found > 20, "{found} paths");
    assert_eq!(
        paths("see `tests/none.rs`").collect::<Vec<_>>(),
        ["tests/none.rs"]
    );
}

/// The rows of the tables of `docs/architecture.md` that name files of the runtime: their cells in backticks.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| line.split('`').skip(1).step_by(2).collect())
        .filter(|cells: &Vec<&str>| cells.first().is_some_and(|cell| is_source(cell)))
}

/// Returns whether a text in backticks is the path of a file, relative to the runtime's sources or to the workspace.
fn is_source(text: &str) -> bool {
    Path::new(text)
        .extension()
        .is_some_and(|extension| extension == "rs")
        && !text.starts_with("tests/")
}

#[test]
fn files_and_functions_in_the_architecture_exist() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let source = |file: &str| {
        let inside = root().join("profiler-runtime/src").join(file);
        let path = if inside.exists() {
            inside
        } else {
            root().join(file)
        };
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{file}: {error}"))
    };
    let mut functions = 0;
    for row in rows(&text) {
        for file in row.iter().filter(|cell| is_source(cell)) {
            source(file);
        }
        let code = source(row[0]);
        for function in row.iter().filter(|cell| !is_source(cell)) {
            functions += 1;
            let declared = ["(", "<"].map(|next| format!("fn {function}{next}"));
            let exists = declared.iter().any(|declared| code.contains(declared));
            assert!(exists, "{}: {function}", row[0]);
        }
    }
    assert!(functions > 10, "{functions} functions");
}
