//! Programs in pages compile and run exactly as printed, and print what the page says. So do the examples whose output a page
//! shows.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use profiler_simulated_driver::Installation;
use profiler_tests::compiler::Compiler;

use super::repository::root;

/// The command line before the output of an example.
const EXAMPLE: &str = "$ cargo run --release --example ";

/// One Rust program of a page.
struct Program {
    /// The heading above it.
    heading: String,
    /// Its name, by which those of its functions begin.
    crate_name: String,
    source: String,
    /// The block `text` or `console` after it: what it prints.
    output: String,
    /// The line of the page on which that block begins.
    output_line: usize,
}

impl Program {
    fn is_example(&self) -> bool {
        self.output.starts_with(EXAMPLE)
    }
}

/// Returns the Rust programs of a page, each with the block of output that follows it before the next heading, and the
/// examples whose output the page shows.
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
                        crate_name: "app".to_owned(),
                        source,
                        output: String::new(),
                        output_line: 0,
                    });
                }
                Some((language, output)) if matches!(&*language, "text" | "console") => {
                    let output_line = number - output.lines().count();
                    if let Some(program) = programs.last_mut().filter(|_| !has_output) {
                        program.output_line = output_line;
                        program.output = output;
                        has_output = true;
                    } else if let Some(name) = output.strip_prefix(EXAMPLE) {
                        let name = name.lines().next().unwrap_or_default();
                        let file = root().join("examples").join(name).with_extension("rs");
                        programs.push(Program {
                            heading: heading.clone(),
                            crate_name: name.to_owned(),
                            source: fs::read_to_string(&file).expect("an example"),
                            output,
                            output_line,
                        });
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
    let asks_for_a_gpu = ["CudaContext", "sample_gpus"]
        .iter()
        .any(|name| program.source.contains(name));
    let mut command = if asks_for_a_gpu {
        let driver = Installation::new(driver.path());
        let driver = driver.create().expect("a driver was built");
        driver.command(path, "log off\nsynchronise abort-from profiler_runtime::")
    } else {
        Command::new(path)
    };
    command
        .current_dir(folder.path())
        // The simulated NVML is in the driver's file, which the loader finds by this name.
        .env("PROFILER_NVML_LIBRARY", "libcuda.so.1")
        .env("COLUMNS", "110");
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

/// Holds that at least so many programs of a page print what it says.
fn holds(page: &str, least: usize) {
    let path = root().join("docs").join(page);
    let page = fs::read_to_string(&path).expect("the page");
    let programs = programs(&page);
    let mut blessed: Vec<String> = page.lines().map(str::to_owned).collect();
    assert!(programs.len() >= least, "only {} programs", programs.len());
    let compiler = Compiler::of_this_build();
    // From the end, so that what is written does not move what comes before.
    for (number, program) in programs.iter().enumerate().rev() {
        let binary = compiler
            .program(
                &format!("program_{number}"),
                &program.crate_name,
                &program.source,
            )
            .unwrap_or_else(|error| panic!("{}:\n{error}", program.heading));
        let (printed, expected) = run(program, &binary);
        if env::var_os("PROFILER_TESTS_BLESS").is_some() {
            let end = program.output_line + program.output.lines().count();
            let start = end - expected.lines().count();
            let printed = printed
                .trim_end()
                .lines()
                .map(|line| line.trim_end().to_owned());
            blessed.splice(start..end, printed);
            continue;
        }
        let (mut printed_words, mut expected_words) = (words(&printed), words(&expected));
        if program.is_example() {
            // Its rows come in the order of their times.
            printed_words.sort();
            expected_words.sort();
        }
        assert_eq!(
            printed_words, expected_words,
            "{} prints:\n{printed}\nPROFILER_TESTS_BLESS=1 writes it to the page",
            program.heading
        );
    }
    if env::var_os("PROFILER_TESTS_BLESS").is_some() {
        fs::write(&path, blessed.join("\n") + "\n").expect("the page is written");
    }
}

#[test]
fn programs_of_the_page_on_migration_run_as_printed_and_print_what_it_says() {
    holds("migration.md", 12);
}

#[test]
fn examples_named_after_tutorials_print_what_their_page_says() {
    holds("tutorials.md", 5);
}

#[test]
fn only_numbers_and_their_units_may_differ() {
    assert_eq!(words("forward  12 ms"), words("forward 1.5 µs\n\n"));
    assert_ne!(words("forward  12 ms"), words("backward 12 ms"));
    assert_ne!(words("forward  12"), words("forward 12 3"));
    assert_ne!(words("forward\n12"), words("forward 12"));
}
