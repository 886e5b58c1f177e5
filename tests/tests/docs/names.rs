//! Functions, types, variables and options that documents name are in the code.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use super::links::documents;
use super::repository::root;

/// Names of other programs, of what there is not, and of files that the documents show as examples.
const FOREIGN: [&str; 14] = [
    "RECORD_AND_SAVE",
    "begin_window",
    "export_memory_timeline",
    "libgcc_s",
    "new_cuda_with_stream",
    "quick_exit",
    "run_async",
    "s_4711",
    "s_rank0",
    "s_rank1",
    "trace_4",
    "trace_8",
    "with_flops",
    "with_modules",
];

/// Folders with code that the documents speak of.
const FOLDERS: [&str; 10] = [
    ".ci",
    "benches",
    "checks",
    "crates",
    "examples",
    "profiler-cli",
    "profiler-macros",
    "profiler-runtime",
    "strip-proof",
    "tests",
];

fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The names of several parts in a text: these are no words of a language.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_part(c))
        .filter(|word| word.trim_matches('_').contains('_'))
}

/// Adds the names in all files of a folder, and in the files' own names. Documents and what was built are left out.
fn add_words(folder: &Path, words: &mut HashSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let name = entry.file_name().into_string().unwrap();
        words.extend(names_in(&name).map(str::to_owned));
        let is_document = ["md", "lock"].iter().any(|ending| {
            path.extension()
                .is_some_and(|extension| extension == *ending)
        });
        // This file names what there is not.
        let is_this = path.ends_with(file!());
        if kind.is_dir() && name != "target" {
            add_words(&path, words);
        } else if kind.is_file() && !is_document && !is_this {
            // Pictures and recorded files have no words.
            let text = fs::read_to_string(&path).unwrap_or_default();
            words.extend(names_in(&text).map(str::to_owned));
        }
    }
}

/// The names in the inline code of a document.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let mut is_block = false;
    let prose = text.lines().filter(move |line| {
        let is_fence = line.starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    });
    prose
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .flat_map(names_in)
}

#[test]
fn names_in_documents_are_in_the_code() {
    let mut words = HashSet::new();
    for folder in FOLDERS {
        add_words(&root().join(folder), &mut words);
    }
    let mut found = 0;
    let mut missing = Vec::new();
    for (document, text) in documents() {
        // The changelog and the decisions speak of what was, too.
        let is_history = document.ends_with("CHANGELOG.md")
            || document
                .parent()
                .is_some_and(|folder| folder.ends_with("decisions"));
        for name in names(&text).filter(|_| !is_history) {
            found += 1;
            if !words.contains(name) && !FOREIGN.contains(&name) {
                missing.push(format!("{}: `{name}`", document.display()));
            }
        }
    }
    assert!(found > 400, "{found} names");
    assert!(
        missing.is_empty(),
        "no code has these:\n{}",
        missing.join("\n")
    );
    assert_eq!(
        names("`no::such_name(1)`\n```\n`block_of_code`\n```\nand such_prose").collect::<Vec<_>>(),
        ["such_name"]
    );
}
