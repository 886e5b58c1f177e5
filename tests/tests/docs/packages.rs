//! A published package needs no repository beside it: it contains its licences, its readme and the pages of the manual.

use std::fs;
use std::path::{Path, PathBuf};

use super::repository::root;

/// Pages for people who work on the project, and the list of the guide's pages. The manual contains all others.
const OF_REPOSITORY: [&str; 5] = [
    "architecture.md",
    "decisions.md",
    "gpu.md",
    "guide/README.md",
    "performance.md",
];

/// The folders of the published packages.
fn packages() -> Vec<PathBuf> {
    let folders = [root(), &root().join("crates")].map(|folder| fs::read_dir(folder).unwrap());
    let mut packages: Vec<PathBuf> = folders
        .into_iter()
        .flatten()
        .map(|folder| folder.unwrap().path())
        .filter(|folder| {
            let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
            manifest.contains("[package]") && !manifest.contains("publish = false")
        })
        .collect();
    packages.sort();
    packages
}

/// Returns the targets of the inline links of a document.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
}

#[test]
fn published_packages_contain_the_licences() {
    let packages = packages();
    assert_eq!(packages.len(), 10, "{packages:?}");
    for package in packages {
        for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let text = fs::read_to_string(package.join(name)).unwrap();
            let original = fs::read_to_string(root().join(name)).unwrap();
            assert_eq!(text, original, "{}: {name}", package.display());
        }
    }
}

#[test]
fn readmes_of_packages_link_to_no_file() {
    for package in packages() {
        let text = fs::read_to_string(package.join("README.md")).unwrap();
        let mut links = 0;
        for target in targets(&text) {
            links += 1;
            assert!(
                target.starts_with("https://"),
                "{}: {target}",
                package.display()
            );
        }
        assert!(links > 0, "{}", package.display());
    }
}

/// Returns the pages of a folder, and those of the guide in it. Other folders are pictures of the README, and pages for
/// contributors.
fn pages_in(folder: &Path) -> Vec<PathBuf> {
    let folders = [folder.to_owned(), folder.join("guide")];
    let entries = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| !path.is_dir()).collect()
}

#[test]
fn the_manual_contains_every_page_for_users() {
    let manual = fs::read_to_string(root().join("profiler-runtime/src/manual.rs")).unwrap();
    let mut pages = 0;
    for page in pages_in(&root().join("docs")) {
        let name = page.strip_prefix(root().join("docs")).unwrap();
        let name = name.to_str().unwrap();
        let is_included = manual.contains(&format!("include_str!(\"../docs/{name}\")"));
        let is_for_users = !OF_REPOSITORY.contains(&name);
        assert_eq!(is_included, is_for_users, "{name}");
        if is_included {
            pages += 1;
            let packaged = root().join("profiler-runtime/docs").join(name);
            let original = root().join("docs").join(name);
            assert_eq!(
                fs::read_to_string(packaged).unwrap(),
                fs::read_to_string(original).unwrap(),
                "{name}"
            );
        }
    }
    assert!(pages >= 3, "{pages} pages");
}

#[test]
fn pages_of_the_manual_link_to_no_file() {
    let mut links = 0;
    for path in pages_in(&root().join("profiler-runtime/docs")) {
        let text = fs::read_to_string(&path).unwrap();
        for target in targets(&text) {
            links += 1;
            assert!(
                target.starts_with('#') || target.starts_with("https://"),
                "{}: `{target}` is no page of the manual: name the page instead, as in \"the page on accuracy\"",
                path.display()
            );
        }
    }
    assert!(links > 10, "{links} links");
}
