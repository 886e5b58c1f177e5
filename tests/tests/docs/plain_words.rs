//! Comments and documents avoid the words and openings that CONTRIBUTING.md lists.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::repository::root;

/// The lists in CONTRIBUTING.md.
struct Rules {
    /// No sentence begins with these; upper and lower case matter.
    openings: Vec<String>,
    /// No sentence contains these, in upper or lower case.
    words: Vec<String>,
}

impl Rules {
    /// Reads the two tables. Each first cell holds one or more expressions in backticks.
    fn parse(contributing: &str) -> Self {
        let table = |heading: &str| {
            let (_, section) = contributing
                .split_once(heading)
                .unwrap_or_else(|| panic!("CONTRIBUTING.md has no section {heading}"));
            let rows = section
                .lines()
                .skip(1)
                .take_while(|line| !line.starts_with('#'))
                .filter(|line| line.starts_with("| `"));
            let expressions: Vec<String> = rows
                .filter_map(|row| row.split('|').nth(1))
                .flat_map(|cell| cell.split('`').skip(1).step_by(2))
                .map(str::to_owned)
                .collect();
            assert!(!expressions.is_empty(), "{heading} lists nothing");
            expressions
        };
        Self {
            openings: table("### Openings to avoid\n"),
            words: table("### Words to avoid\n"),
        }
    }

    /// Returns the violations in a file as `(line, expression)`.
    fn violations(&self, path: &Path, text: &str) -> Vec<(usize, &str)> {
        let mut found = Vec::new();
        for block in blocks(path, text) {
            let (prose, lines) = join(&block);
            let line_at = |at: usize| lines.iter().rfind(|line| line.0 <= at).unwrap().1;
            for opening in &self.openings {
                found.extend(
                    occurrences(&prose, opening)
                        .filter(|&at| begins_sentence(&prose[..at]) && !is_question(&prose[at..]))
                        .map(|at| (line_at(at), opening.as_str())),
                );
            }
            let folded = prose.to_ascii_lowercase();
            for word in &self.words {
                found.extend(occurrences(&folded, word).map(|at| (line_at(at), word.as_str())));
            }
        }
        found
    }
}

/// Lines of prose that belong together, with their numbers: a paragraph, a list item, a table cell, a comment.
type Block = Vec<(usize, String)>;

/// Splits a file into blocks of prose. Code is left out.
fn blocks(path: &Path, text: &str) -> Vec<Block> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    let lines = text.lines().zip(1..);
    let mut blocks = vec![Block::new()];
    let mut fenced = false;
    for (line, number) in lines {
        let prose = match extension {
            Some("md") => Some(line.trim()),
            Some("rs") => slash_comment(line),
            Some("js" | "mjs" | "css") => slash_comment(line).or_else(|| star_comment(line)),
            _ => hash_comment(line),
        };
        let prose = prose.unwrap_or("");
        if prose.starts_with("```") {
            fenced = !fenced;
        } else if prose.starts_with('|') && !fenced {
            blocks.extend(
                prose
                    .split('|')
                    .map(|cell| vec![(number, without_code(cell))]),
            );
            blocks.push(Block::new());
        } else if prose.is_empty() || prose.starts_with('#') || fenced {
            blocks.push(Block::new());
        } else {
            let item = prose
                .strip_prefix("- ")
                .or_else(|| prose.strip_prefix("* "));
            if item.is_some() {
                blocks.push(Block::new());
            }
            let line = without_code(item.unwrap_or(prose));
            blocks.last_mut().unwrap().push((number, line));
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// Returns the text of a `//`, `///` or `//!` comment, which may follow code.
fn slash_comment(line: &str) -> Option<&str> {
    let trimmed = line.trim();
    let comment = if trimmed.starts_with("//") {
        trimmed
    } else {
        // An odd number of quotes before the slashes means that they are part of a string.
        let at = trimmed.find(" // ")?;
        trimmed[..at]
            .matches('"')
            .count()
            .is_multiple_of(2)
            .then(|| trimmed[at..].trim_start())?
    };
    Some(
        comment
            .trim_start_matches('/')
            .trim_start_matches('!')
            .trim(),
    )
}

/// Returns the text of a line of a comment that begins with `/*`; its further lines begin with `*`.
fn star_comment(line: &str) -> Option<&str> {
    let line = line.trim();
    let comment = line
        .strip_prefix("/*")
        .or_else(|| line.strip_prefix("* "))?;
    Some(
        comment
            .trim_start_matches('*')
            .trim_end_matches("*/")
            .trim(),
    )
}

/// Returns the text of a comment that a line of a script or a manifest consists of.
fn hash_comment(line: &str) -> Option<&str> {
    let comment = line.trim().strip_prefix('#')?;
    (!comment.starts_with('!')).then(|| comment.trim_start_matches('#').trim())
}

/// Replaces code in backticks by a placeholder, and removes markers of emphasis.
fn without_code(line: &str) -> String {
    let prose: Vec<&str> = line.split('`').step_by(2).collect();
    prose.join("_").replace("**", "")
}

/// Joins the lines of a block by spaces; also returns where each line begins, and its number.
fn join(block: &Block) -> (String, Vec<(usize, usize)>) {
    let mut prose = String::new();
    let mut lines = Vec::new();
    for (number, line) in block {
        lines.push((prose.len(), *number));
        prose.push_str(line.trim());
        prose.push(' ');
    }
    (prose, lines)
}

/// Returns where an expression occurs as whole words.
fn occurrences<'a>(prose: &'a str, expression: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_part = |character: char| character.is_alphanumeric() || "_-'’".contains(character);
    prose
        .match_indices(expression)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let end = at + expression.len();
            !prose[..at].ends_with(is_part) && !prose[end..].starts_with(is_part)
        })
}

/// Returns whether a sentence begins after `before`.
fn begins_sentence(before: &str) -> bool {
    let before = before.trim_end();
    before.is_empty() || before.ends_with(['.', '!', '?', ':', ';'])
}

/// Returns whether the sentence that `text` begins with is a question.
fn is_question(text: &str) -> bool {
    let end = text.find(['.', '!', '?']).map(|at| &text[at..]);
    end.is_some_and(|end| end.starts_with('?'))
}

/// Returns the files with comments or prose below a folder, except generated ones.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap_or_default();
        let hidden = name.starts_with('.') && name != ".ci";
        if path.is_symlink() || hidden || name == "target" || name == "node_modules" {
            continue;
        }
        let extension = path.extension().and_then(|extension| extension.to_str());
        let prose = matches!(
            extension,
            Some("md" | "rs" | "js" | "mjs" | "css" | "sh" | "py" | "toml")
        );
        if path.is_dir() {
            files(&path, found);
        } else if prose || path.ends_with(".ci/run") {
            found.push(path);
        }
    }
}

fn rules() -> Rules {
    Rules::parse(&fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap())
}

#[test]
fn comments_and_documents_use_plain_words() {
    let rules = rules();
    let mut paths = Vec::new();
    files(root(), &mut paths);
    for expected in [
        "README.md",
        "docs/guide.md",
        "profiler-runtime/src/lib.rs",
        ".ci/run",
        ".ci/steps.sh",
    ] {
        assert!(
            paths.contains(&root().join(expected)),
            "{expected} is not read"
        );
    }
    paths.sort();
    let mut report = String::new();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        let shown = path.strip_prefix(root()).unwrap().display();
        for (line, expression) in rules.violations(path, &text) {
            let context = text.lines().nth(line - 1).unwrap_or_default().trim();
            let _ = writeln!(report, "{shown}:{line}: avoid `{expression}`: {context}");
        }
    }
    assert!(
        report.is_empty(),
        "CONTRIBUTING.md says what to write instead:\n{report}"
    );
}

#[test]
fn planted_words_are_found() {
    let rules = rules();
    let found = |path: &str, text: &str, line, expression: &str| {
        let violations = rules.violations(Path::new(path), text);
        assert!(
            violations.contains(&(line, expression)),
            "{expression} is not found in {path}:\n{text}"
        );
    };
    for word in &rules.words {
        found(
            "a.rs",
            &format!("fn f() {{}}\n/// It {word} there.\n"),
            2,
            word,
        );
        found("a.rs", &format!("//! It {word} there.\n"), 1, word);
        found("a.rs", &format!("let a = \"b\"; // it {word}\n"), 1, word);
        found("a.md", &format!("Text.\n\nIt {word} there.\n"), 3, word);
        found("a.md", &format!("| cell | it {word} there |\n"), 1, word);
        found("run", &format!("set -e\n# it {word} there\n"), 2, word);
        found("a.js", &format!("/**\n * It {word} there.\n */\n"), 2, word);
        found("a.css", &format!("/* It {word} there. */\n"), 1, word);
        if let Some((first, second)) = word.split_once(' ') {
            found(
                "a.rs",
                &format!("// It {first}\n// {second} there.\n"),
                1,
                word,
            );
        }
    }
    for opening in &rules.openings {
        found("a.rs", &format!("/// {opening} calls.\n"), 1, opening);
        found(
            "a.rs",
            &format!("// Counts calls.\n// {opening} calls.\n"),
            2,
            opening,
        );
        found(
            "a.md",
            &format!("Counts calls. {opening} calls.\n"),
            1,
            opening,
        );
        found("a.md", &format!("| cell | {opening} calls |\n"), 1, opening);
        found("a.md", &format!("- item\n- {opening} calls\n"), 2, opening);
        found("a.toml", &format!("# {opening} calls.\n"), 1, opening);
    }
}

#[test]
fn code_and_quotations_may_hold_any_words() {
    let rules = rules();
    for word in rules.words.iter().chain(&rules.openings) {
        for (path, text) in [
            ("a.rs", format!("let text = \"{word}\";\n")),
            ("a.rs", format!("let text = \"see // {word}\";\n")),
            ("a.rs", format!("/// ```\n/// {word}\n/// ```\n")),
            ("a.rs", format!("// The value is `{word}` here.\n")),
            ("a.md", format!("```text\n{word}\n```\n")),
            ("a.md", format!("The word `{word}`.\n")),
            ("run", format!("echo {word}\n")),
        ] {
            let found = rules.violations(Path::new(path), &text);
            assert!(found.is_empty(), "{found:?} in {text}");
        }
    }
}
