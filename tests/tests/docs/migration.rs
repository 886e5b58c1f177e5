//! What `docs/migration.md` says is missing is missing.

use std::path::Path;

use super::repository::root;

/// Returns the text of all files of a folder.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let texts = entries.map(|entry| {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path)
        } else {
            std::fs::read_to_string(path).expect("a file")
        }
    });
    texts.collect()
}

#[test]
fn what_the_page_says_is_not_available_is_not() {
    let page = std::fs::read_to_string(root().join("docs/migration.md")).expect("the page");
    let (_, after) = page.split_once("\nNot available: ").expect("a sentence");
    let (sentence, _) = after.split_once(". ").expect("its end");
    let names: Vec<&str> = sentence.split('`').skip(1).step_by(2).collect();
    assert!(names.len() >= 2, "{names:?}");
    let code =
        ["profiler-runtime/src", "crates/report/src"].map(|folder| sources(&root().join(folder)));
    let has = |name: &str| {
        code.iter()
            .any(|code| code.contains(&format!("pub fn {name}(")))
    };
    assert!(has("export_stacks"), "what there is can be found");
    for name in names {
        assert!(!has(name), "there is a `{name}`");
    }
}
