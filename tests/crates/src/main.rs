//! Annotates packages function by function, and compares the results of their own tests: bare,
//! measured, with the switch off, and stripped. The attribute must change no result.
//!
//!     cargo run                      all listed packages
//!     cargo run -- bytes tower       only these
//!     cargo run -- ../some/package   a package that is not listed
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

use serde_json::Value;

use annotate::Form;
use error::Error;
use results::{Results, Switch};
use subject::{SUBJECTS, Subject};
use workspace::{Sources, Workspace};

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(findings) => {
            eprintln!("error: {findings} results differ from those of the bare packages");
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
    /// Names of listed packages, and paths.
    packages: Vec<String>,
}

impl Options {
    fn read(arguments: impl Iterator<Item = String>) -> Result<Self, Error> {
        let mut options = Self {
            update_lock: false,
            packages: Vec::new(),
        };
        for argument in arguments {
            if argument == "--update-lock" {
                options.update_lock = true;
            } else if argument.starts_with('-') {
                return Err(Error::Usage);
            } else {
                options.packages.push(argument);
            }
        }
        Ok(options)
    }
}

/// Returns the packages in `SUBJECTS`.
fn listed(here: &Path, metadata: &Value) -> Result<Vec<Subject>, Error> {
    SUBJECTS
        .iter()
        .map(|&(name, features)| {
            if name.contains('/') {
                in_folder(&here.join(name), features)
            } else {
                Subject::published(name, features, metadata)
            }
        })
        .collect()
}

fn in_folder(folder: &Path, features: &'static [&'static str]) -> Result<Subject, Error> {
    let folder = fs::canonicalize(folder).map_err(Error::io("find", folder))?;
    let metadata = cargo::metadata(&folder.join("Cargo.toml"), "--no-deps")?;
    Subject::in_folder(folder, features, &metadata)
}

/// Returns the package that an argument names: a listed one, or one at a path.
fn named(argument: &str, listed: &[Subject]) -> Result<Subject, Error> {
    if let Some(subject) = listed.iter().find(|subject| subject.name == argument) {
        return Ok(subject.clone());
    }
    let folder = Path::new(argument);
    if !folder.join("Cargo.toml").exists() {
        let names: Vec<_> = listed.iter().map(|subject| &*subject.name).collect();
        return Err(Error::UnknownPackage(argument.to_owned(), names.join(", ")));
    }
    let found = in_folder(folder, &[])?;
    // The path of a listed package, whose features and versions are known.
    let known = listed.iter().find(|one| one.source == found.source);
    Ok(known.cloned().unwrap_or(found))
}

/// Adds the chosen packages that are not listed. They replace listed ones of the same name, such as
/// the published version of a local copy. Returns `true` if there are any.
fn add_unlisted(all: &mut Vec<Subject>, chosen: &[Subject]) -> bool {
    let unlisted = |one: &&Subject| all.iter().all(|other| other.source != one.source);
    let added: Vec<Subject> = chosen.iter().filter(unlisted).cloned().collect();
    all.retain(|one| added.iter().all(|other| other.name != one.name));
    let any = !added.is_empty();
    all.extend(added);
    any
}

/// Prints all results that differ from those of the bare packages. Returns their number.
fn run(arguments: impl Iterator<Item = String>) -> Result<usize, Error> {
    let options = Options::read(arguments)?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let metadata = cargo::metadata(&here.join("Cargo.toml"), "--locked")?;
    let target = PathBuf::from(metadata["target_directory"].as_str().unwrap_or("target"));
    let mut all = listed(here, &metadata)?;
    let chosen = if options.packages.is_empty() {
        all.clone()
    } else {
        let packages = options.packages.iter();
        let chosen = packages.map(|argument| named(argument, &all));
        chosen.collect::<Result<_, _>>()?
    };
    let locked = !add_unlisted(&mut all, &chosen);
    let root = target.join("annotated-crates");
    let tests = Tests {
        workspace: Workspace::new(root, all, chosen, locked),
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

/// A mode to compare with the bare packages.
struct Mode {
    name: &'static str,
    form: Form,
    strip: bool,
    on: bool,
}

// Stripped, the attribute returns what it was put on: one form is enough, the one that puts it on
// blocks and functions.
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

/// The test results of the bare packages.
struct Bare {
    results: Results,
    warnings: BTreeMap<(String, String), usize>,
}

impl Tests {
    fn update_lock(&self) -> Result<(), Error> {
        if !self.workspace.locked() {
            return Err(Error::NotLocked);
        }
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
        Ok((cargo::build(&self.workspace, &self.target)?, functions))
    }

    fn bare(&self) -> Result<Bare, Error> {
        println!("bare: building");
        // Once: cargo adds the dependencies of packages that are not listed, which stay the same for
        // all modes.
        self.workspace.set_lock(&self.lock)?;
        let (build, _) = self.build(Sources {
            form: None,
            strip: false,
        })?;
        let results = results::run(&build.tests, &self.workspace, Switch::Off)?;
        for subject in self.workspace.chosen() {
            let count = results::count(&results, subject);
            println!("  {:<12} {count:>5} tests", subject.name);
        }
        Ok(Bare {
            results,
            warnings: build.warnings,
        })
    }

    /// Runs the tests in a mode. Returns the differences from the bare packages.
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
            let count = results::count(&results, subject);
            let calls = results::calls(summaries.path(), subject)?;
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

/// Returns a line for each warning that occurs more often than in the bare packages.
fn new_warnings(
    mode: &Mode,
    bare: &BTreeMap<(String, String), usize>,
    now: &BTreeMap<(String, String), usize>,
) -> Vec<String> {
    now.iter()
        .filter(|(key, count)| bare.get(*key).is_none_or(|before| before < *count))
        .map(|((subject, lint), count)| {
            let form = mode.form;
            format!("{form:?} of {subject}: {count} warnings {lint}, more than bare")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(name: &str, source: &str) -> Subject {
        Subject {
            name: name.to_owned(),
            features: &[],
            source: source.into(),
        }
    }

    #[test]
    fn a_local_copy_replaces_the_listed_package_of_its_name() {
        let mut all = vec![
            subject("bytes", "/cache/bytes"),
            subject("slab", "/cache/slab"),
        ];
        assert!(!add_unlisted(&mut all, &[subject("slab", "/cache/slab")]));
        assert_eq!(all.len(), 2);
        assert!(add_unlisted(&mut all, &[subject("bytes", "/fork")]));
        let sources: Vec<_> = all.iter().map(|one| one.source.to_str()).collect();
        assert_eq!(sources, [Some("/cache/slab"), Some("/fork")]);
    }

    #[test]
    fn a_package_is_named_by_its_name_or_by_its_path() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let listed = [subject("bytes", "/cache/bytes")];
        let name = |argument: &Path| {
            let argument = argument.display().to_string();
            named(&argument, &listed).map(|found| found.name)
        };
        assert_eq!(name(Path::new("bytes")).unwrap(), "bytes");
        assert_eq!(name(here).unwrap(), env!("CARGO_PKG_NAME"));
        let nothing = name(&here.join("attic"));
        assert!(matches!(nothing, Err(Error::UnknownPackage(..))));
        let workspace = name(&here.join("../.."));
        assert!(matches!(workspace, Err(Error::NotAPackage(_))));
    }
}
