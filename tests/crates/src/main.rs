//! Annotates published crates function by function, and compares the results of their own tests: as
//! published, measured, with the switch off, and stripped. The attribute must change no result.
//!
//!     cargo run                      all crates
//!     cargo run -- bytes slab        only these
//!     cargo run -- --update-lock     with the newest versions of what the crates need

mod annotate;
mod cargo;
mod error;
mod results;
mod subject;
mod workspace;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use annotate::Form;
use error::Error;
use results::{Results, Switch};
use subject::{SUBJECTS, Subject};
use workspace::{Sources, Workspace};

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(findings) => {
            eprintln!("error: {findings} results differ from those of the crates as published");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            let mut source = std::error::Error::source(&error);
            while let Some(cause) = source {
                eprintln!("  {cause}");
                source = cause.source();
            }
            ExitCode::FAILURE
        }
    }
}

struct Options {
    update_lock: bool,
    subjects: Vec<Subject>,
}

impl Options {
    fn read(arguments: impl Iterator<Item = String>) -> Result<Self, Error> {
        let mut options = Self {
            update_lock: false,
            subjects: Vec::new(),
        };
        for argument in arguments {
            if argument == "--update-lock" {
                options.update_lock = true;
            } else if argument.starts_with('-') {
                return Err(Error::Usage);
            } else {
                options.subjects.push(subject(&argument)?);
            }
        }
        if options.subjects.is_empty() {
            options.subjects = SUBJECTS.to_vec();
        }
        Ok(options)
    }
}

fn subject(name: &str) -> Result<Subject, Error> {
    let names = || SUBJECTS.iter().map(|subject| subject.name);
    let found = SUBJECTS.iter().find(|subject| subject.name == name);
    found
        .copied()
        .ok_or_else(|| Error::UnknownCrate(name.to_owned(), names().collect::<Vec<_>>().join(", ")))
}

/// Prints all results that differ from those of the crates as published. Returns their number.
fn run(arguments: impl Iterator<Item = String>) -> Result<usize, Error> {
    let options = Options::read(arguments)?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let metadata = cargo::metadata(&here.join("Cargo.toml"))?;
    let target = PathBuf::from(metadata["target_directory"].as_str().unwrap_or("target"));
    let crates = SUBJECTS
        .iter()
        .map(|subject| Ok((*subject, subject.source(&metadata)?)))
        .collect::<Result<_, Error>>()?;
    let root = target.join("annotated-crates");
    let tests = Tests {
        workspace: Workspace::new(root, crates, options.subjects),
        runtime: here.join("../../profiler-runtime"),
        target: target.join("annotated-crates-target"),
        lock: here.join("crates.lock"),
    };
    if options.update_lock {
        tests.update_lock()?;
    }
    tests.compare()
}

struct Tests {
    workspace: Workspace,
    runtime: PathBuf,
    target: PathBuf,
    /// The lock file of the workspace, in its place in this package.
    lock: PathBuf,
}

/// A mode to compare with the crates as published.
struct Mode {
    name: &'static str,
    form: Form,
    strip: bool,
    on: bool,
}

// Stripped, the attribute returns what it was put on: one form is enough, the one that puts it on blocks and functions.
const MODES: [Mode; 5] = [
    Mode::new("each function, on", Form::Functions, false, true),
    Mode::new("each function, off", Form::Functions, false, false),
    Mode::new("whole blocks, on", Form::Blocks, false, true),
    Mode::new("whole blocks, off", Form::Blocks, false, false),
    Mode::new("whole blocks, stripped", Form::Blocks, true, true),
];

impl Mode {
    const fn new(name: &'static str, form: Form, strip: bool, on: bool) -> Self {
        Self {
            name,
            form,
            strip,
            on,
        }
    }

    fn sources(&self) -> Sources {
        Sources {
            form: Some(self.form),
            strip: self.strip,
        }
    }
}

/// The test results of the crates as published.
struct Bare {
    results: Results,
    warnings: BTreeMap<(String, String), usize>,
}

impl Tests {
    fn update_lock(&self) -> Result<(), Error> {
        let bare = Sources {
            form: None,
            strip: false,
        };
        self.workspace.write(bare, &self.runtime)?;
        cargo::generate_lock(&self.workspace)?;
        let lock = self.workspace.lock();
        fs::copy(&lock, &self.lock).map_err(Error::io("copy", &lock))?;
        Ok(())
    }

    fn compare(&self) -> Result<usize, Error> {
        let bare = self.bare()?;
        let mut findings = 0;
        let mut latest: Option<(Sources, cargo::Build, Vec<usize>)> = None;
        for mode in &MODES {
            let sources = mode.sources();
            if !matches!(&latest, Some((before, ..)) if *before == sources) {
                let (made, functions) = self.build(sources)?;
                findings += print(&new_warnings(mode, &bare.warnings, &made.warnings));
                latest = Some((sources, made, functions));
            }
            let Some((_, build, functions)) = &latest else {
                continue;
            };
            findings += print(&self.run(mode, build, functions, &bare)?);
        }
        Ok(findings)
    }

    fn build(&self, sources: Sources) -> Result<(cargo::Build, Vec<usize>), Error> {
        let functions = self.workspace.write(sources, &self.runtime)?;
        let lock = self.workspace.lock();
        fs::copy(&self.lock, &lock).map_err(Error::io("copy", &self.lock))?;
        Ok((cargo::build(&self.workspace, &self.target)?, functions))
    }

    fn bare(&self) -> Result<Bare, Error> {
        println!("as published: building");
        let (build, _) = self.build(Sources {
            form: None,
            strip: false,
        })?;
        let results = results::run(&build.tests, &self.workspace, Switch::Off)?;
        for subject in self.workspace.chosen() {
            let count = results::count(&results, *subject);
            println!("  {:<12} {count:>5} tests", subject.name);
        }
        Ok(Bare {
            results,
            warnings: build.warnings,
        })
    }

    /// Runs the tests in a mode. Returns the differences from the crates as published.
    fn run(
        &self,
        mode: &Mode,
        build: &cargo::Build,
        functions: &[usize],
        bare: &Bare,
    ) -> Result<Vec<String>, Error> {
        println!("{}", mode.name);
        let summaries = tempfile::tempdir().map_err(Error::io("make", Path::new("a folder")))?;
        let switch = if mode.on {
            Switch::On(summaries.path())
        } else {
            Switch::Off
        };
        let results = results::run(&build.tests, &self.workspace, switch)?;
        let mut findings: Vec<String> = results::differences(&bare.results, &results)
            .into_iter()
            .map(|difference| format!("{}: {difference}", mode.name))
            .collect();
        for (subject, functions) in self.workspace.chosen().iter().zip(functions) {
            let count = results::count(&results, *subject);
            let calls = results::calls(summaries.path(), *subject)?;
            println!(
                "  {:<12} {count:>5} tests, {functions:>5} functions, {calls:>10} calls measured",
                subject.name
            );
            // No difference means nothing if no test ran, or if the attribute measured nothing.
            if count == 0 || (calls > 0) != (mode.on && !mode.strip) {
                findings.push(format!(
                    "{}: {} ran {count} tests and measured {calls} calls",
                    mode.name, subject.name
                ));
            }
        }
        Ok(findings)
    }
}

fn print(findings: &[String]) -> usize {
    for finding in findings {
        eprintln!("  difference: {finding}");
    }
    findings.len()
}

/// Returns a line for each warning that occurs more often than in the crates as published.
fn new_warnings(
    mode: &Mode,
    bare: &BTreeMap<(String, String), usize>,
    now: &BTreeMap<(String, String), usize>,
) -> Vec<String> {
    now.iter()
        .filter(|(key, count)| bare.get(*key).is_none_or(|before| before < *count))
        .map(|((subject, lint), count)| {
            let form = mode.form;
            format!("{form:?} of {subject}: {count} warnings {lint}, more than as published")
        })
        .collect()
}
