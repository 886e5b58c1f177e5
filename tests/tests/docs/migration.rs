//! The programs in `docs/migration.md` compile and run exactly as printed, and print what the page says.

use std::path::Path;
use std::process::Command;

use profiler_simulated_driver::Installation;
use profiler_tests::compiler::Compiler;

use super::repository::root;

/// One Rust program of the page.
struct Program {
    /// The heading above it.
    heading: String,
    source: String,
    /// The block `text` or `console` after it: what it prints.
    output: String,
    /// The line of the page on which that block begins.
    output_line: usize,
}

/// Returns the Rust programs of a page, each with the block of output that follows it before the next heading.
fn programs(page: &str) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    let mut heading = String::new();
    let mut has_output = true;
    let mut block: Option<(String, String)> = None;
    for (number, line) in page.lines().enumerate() {
        match (&mut block, line.strip_prefix("```")) {
            (None, Some(language)) => block = Some((language.to_owned(), String::new())),
            (None, None) if line.starts_with('#') => line.clone_into(&mut heading),
            (None, None) => {}
            (Some((_, text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (Some(_), Some(_)) => match block.take() {
                Some((language, source)) if language == "rust" => {
                    assert!(has_output, "no output follows the program above {heading}");
                    has_output = false;
                    programs.push(Program {
                        heading: heading.clone(),
                        source,
                        output: String::new(),
                        output_line: 0,
                    });
                }
                Some((language, output)) if matches!(&*language, "text" | "console") => {
                    if let Some(program) = programs.last_mut().filter(|_| !has_output) {
                        program.output_line = number - output.lines().count();
                        program.output = output;
                        has_output = true;
                    }
                }
                _ => {}
            },
        }
    }
    assert!(has_output, "no output follows the last program");
    programs
}

/// Returns the words of an output, line by line. Whatever has digits is a number here, and units are left out: times
/// differ from run to run, and with them the widths of columns.
fn words(output: &str) -> Vec<Vec<String>> {
    let is_unit = |word: &&str| !matches!(*word, "ns" | "µs" | "ms" | "s" | "B" | "KiB" | "MiB");
    let word = |word: &str| {
        if word.contains(|c: char| c.is_ascii_digit()) {
            "0".to_owned()
        } else if word.chars().all(|c| c == '─') {
            "─".to_owned()
        } else {
            word.to_owned()
        }
    };
    output
        .lines()
        .map(|line| line.split_whitespace().filter(is_unit).map(word).collect())
        .filter(|line: &Vec<String>| !line.is_empty())
        .collect()
}

/// Runs a program in an empty folder, with the variables of its command line if the output begins with one
/// (`$ NAME=value ./program`). Returns what it printed and what it was expected to print.
fn run(program: &Program, path: &Path) -> (String, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let driver = tempfile::tempdir().expect("a folder");
    let mut command = if program.source.contains("CudaContext") {
        let driver = Installation::new(driver.path());
        let driver = driver.create().expect("a driver was built");
        driver.command(path, "log off\nsynchronise abort-from profiler_runtime::")
    } else {
        Command::new(path)
    };
    command.current_dir(folder.path()).env("COLUMNS", "110");
    let mut expected = program.output.as_str();
    if let Some((line, rest)) = expected
        .strip_prefix("$ ")
        .and_then(|text| text.split_once('\n'))
    {
        expected = rest;
        let variables = line.split(' ').filter_map(|word| word.split_once('='));
        command.envs(variables);
    }
    let ran = command.output().expect("the program runs");
    let stderr = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(
        ran.status.success(),
        "{}: {}\n{stderr}",
        program.heading,
        ran.status
    );
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned() + &stderr;
    (printed, expected.to_owned())
}

#[test]
fn programs_run_as_printed_and_print_what_the_page_says() {
    let page = std::fs::read_to_string(root().join("docs/migration.md")).expect("the page");
    let programs = programs(&page);
    let mut blessed: Vec<String> = page.lines().map(str::to_owned).collect();
    assert!(programs.len() >= 12, "only {} programs", programs.len());
    let compiler = Compiler::of_this_build();
    // From the end, so that what is written does not move what comes before.
    for (number, program) in programs.iter().enumerate().rev() {
        let path = compiler
            .program(&format!("program_{number}"), &program.source)
            .unwrap_or_else(|error| panic!("{}:\n{error}", program.heading));
        let (printed, expected) = run(program, &path);
        if std::env::var_os("PROFILER_TESTS_BLESS").is_some() {
            let end = program.output_line + program.output.lines().count();
            let start = end - expected.lines().count();
            let printed = printed
                .trim_end()
                .lines()
                .map(|line| line.trim_end().to_owned());
            blessed.splice(start..end, printed);
            continue;
        }
        assert_eq!(
            words(&printed),
            words(&expected),
            "{} prints:\n{printed}\nPROFILER_TESTS_BLESS=1 writes it to the page",
            program.heading
        );
    }
    if std::env::var_os("PROFILER_TESTS_BLESS").is_some() {
        std::fs::write(root().join("docs/migration.md"), blessed.join("\n") + "\n")
            .expect("the page is written");
    }
}

#[test]
fn only_numbers_and_their_units_may_differ() {
    assert_eq!(words("forward  12 ms"), words("forward 1.5 µs\n\n"));
    assert_ne!(words("forward  12 ms"), words("backward 12 ms"));
    assert_ne!(words("forward  12"), words("forward 12 3"));
    assert_ne!(words("forward\n12"), words("forward 12"));
}

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
