//! Generates random functions and runs each bare and measured. A measured function must be the
//! function that was written: the logs of both must be equal, however the function ends.
//!
//!     cargo run -- [--seed N] [--count 2000]

mod body;
mod cargo;
mod compare;
mod error;
mod function;
mod package;
mod scope;
mod signature;
mod value;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use compare::Finding;
use error::Error;
use function::Function;
use package::Package;

const EDITIONS: [u16; 3] = [2018, 2021, 2024];

/// The number of findings of a class that are printed, the shortest first.
const PRINTED: usize = 2;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(findings) => {
            eprintln!("error: the attribute changes {findings} functions");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            if let Some(cause) = std::error::Error::source(&error) {
                eprintln!("  {cause}");
            }
            ExitCode::FAILURE
        }
    }
}

/// Reads the seed and the count.
fn options(mut arguments: impl Iterator<Item = String>) -> Result<(u64, usize), Error> {
    let (mut seed, mut count) = (fastrand::u64(..1_000_000), 2000);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse::<u64>().ok());
        match (argument.as_str(), value) {
            ("--seed", Some(value)) => seed = value,
            ("--count", Some(value)) => count = usize::try_from(value).map_err(|_| Error::Usage)?,
            _ => return Err(Error::Usage),
        }
    }
    Ok((seed, count))
}

/// Prints the functions that the attribute changes. Returns their number.
fn run(arguments: impl Iterator<Item = String>) -> Result<usize, Error> {
    let (seed, count) = options(arguments)?;
    println!("seed {seed}, {count} functions");
    let packages = EDITIONS.iter().enumerate().map(|(at, &edition)| Package {
        edition,
        functions: (at..count)
            .step_by(EDITIONS.len())
            .map(|index| Function::draw(seed, index, edition))
            .collect(),
    });
    let program = std::env::current_exe().map_err(Error::io("find", &PathBuf::from("the tool")))?;
    let target = program.ancestors().nth(2).unwrap_or(&program);
    let mut comparison = Comparison {
        root: target.join("generated-functions-workspace"),
        packages: packages.collect(),
        findings: Vec::new(),
        count,
        own_defects: Vec::new(),
    };
    comparison.measured()?;
    comparison.stripped()?;
    let left_out = comparison.own_defects.len();
    if left_out > 0 {
        println!("{left_out} are left out: they do not compile without the attribute");
    }
    Ok(print(comparison.findings, seed))
}

struct Comparison {
    root: PathBuf,
    packages: Vec<Package>,
    findings: Vec<Finding>,
    /// The number of functions.
    count: usize,
    /// The functions that do not compile without the attribute, with the first error of each.
    own_defects: Vec<String>,
}

/// The generator may write one wrong function in as many.
const MOST_OWN_DEFECTS: usize = 200;

impl Comparison {
    fn measured(&mut self) -> Result<(), Error> {
        let check = if cargo::has_clippy() {
            "clippy"
        } else {
            "check"
        };
        let checked = self.compile(check, false)?;
        self.compare_warnings(&checked);
        let built = self.compile("build", false)?;
        self.run("on", &built, true)?;
        self.run("off", &built, false)
    }

    fn stripped(&mut self) -> Result<(), Error> {
        let built = self.compile("build", true)?;
        self.run("stripped", &built, true)
    }

    /// Compiles all functions. Leaves out those that do not compile with the attribute, and
    /// compiles again.
    fn compile(&mut self, command: &str, strip: bool) -> Result<cargo::Build, Error> {
        loop {
            package::write_all(&self.root, &self.packages)?;
            let built = cargo::call(command, &self.root, strip)?;
            if built.succeeded {
                return Ok(built);
            }
            for package in &mut self.packages {
                let name = package.name();
                let errors = built.diagnostics.iter();
                let errors = errors.filter(|error| error.is_error && error.package == name);
                let mut failed = BTreeMap::new();
                for error in errors {
                    if let Some(function) = package.at_line(error.line) {
                        let first = failed.entry(function.index).or_insert(error);
                        // It is no finding if it does not compile without the attribute either.
                        if first.measured {
                            *first = error;
                        }
                    }
                }
                for (&index, error) in &failed {
                    if error.measured {
                        let class = format!("does not compile: {}", error.code);
                        let finding = Finding::new(package, index, &class, &error.rendered);
                        self.findings.push(finding);
                    } else {
                        let function = package.at_line(error.line);
                        let source = function.map_or("", |function| &function.source);
                        self.own_defects.push(format!("{source}{}", error.rendered));
                    }
                }
                package.remove(&failed.into_keys().collect());
            }
            // A rare one is left out, since it says nothing about the attribute.
            if self.own_defects.len() * MOST_OWN_DEFECTS > self.count {
                return Err(Error::Generator(self.own_defects.concat()));
            }
        }
    }

    /// Compares the number of warnings of each lint on each line. A lint of clippy may be lost: some read the exact form of a
    /// body, such as `clippy::needless_return`.
    fn compare_warnings(&mut self, checked: &cargo::Build) {
        let mut warnings = BTreeMap::<_, [Vec<&str>; 2]>::new();
        for warning in &checked.diagnostics {
            let key = (&warning.package, warning.line, &warning.code);
            let both = warnings.entry(key).or_default();
            both[usize::from(warning.measured)].push(&warning.rendered);
        }
        for ((package, line, code), [bare, measured]) in warnings {
            let package = self.packages.iter().find(|other| other.name() == *package);
            let function = package.and_then(|package| Some((package, package.at_line(line)?)));
            let (few, many) = (bare.len(), measured.len());
            let differ = few < many || few > many && !code.starts_with("clippy::");
            let (Some((package, function)), true) = (function, differ) else {
                continue;
            };
            let rendered = measured
                .first()
                .or(bare.first())
                .copied()
                .unwrap_or_default();
            let how = format!("{few} warnings bare, {many} measured:\n{rendered}");
            let class = format!("other warnings: {code}");
            self.findings
                .push(Finding::new(package, function.index, &class, &how));
        }
    }

    fn run(&mut self, mode: &str, built: &cargo::Build, on: bool) -> Result<(), Error> {
        for package in &self.packages {
            let name = package.name();
            let Some(program) = built.programs.get(&name) else {
                return Err(Error::Cargo(format!("build` made no {name}; `cargo build")));
            };
            let summary = self.root.join(format!("{name}.json"));
            let _ = std::fs::remove_file(&summary);
            let (findings, ran) = compare::run(mode, program, package, on.then_some(&*summary))?;
            let counted = match mode {
                "on" => compare::counted(&summary)?,
                _ => BTreeSet::new(),
            };
            let (ran, differ) = (ran.len(), findings.len());
            println!(
                "edition {}, {mode}: {ran} functions ran, {differ} differ, {} were counted",
                package.edition,
                counted.len()
            );
            let known: BTreeSet<usize> = self.findings.iter().map(|known| known.index).collect();
            self.findings.extend(
                findings
                    .into_iter()
                    .filter(|finding| !known.contains(&finding.index)),
            );
            if mode != "on" {
                continue;
            }
            // A function that returns a future may panic before it does.
            let uncounted = package.functions.iter().filter(|function| {
                !function.kind.returns_future() && !counted.contains(&function.index)
            });
            for function in uncounted {
                let how = "the profiler counted no call\n";
                self.findings
                    .push(Finding::new(package, function.index, "not counted", how));
            }
        }
        Ok(())
    }
}

/// Prints the shortest findings of each class. Returns the number of functions with findings.
fn print(mut findings: Vec<Finding>, seed: u64) -> usize {
    findings.sort_by_key(|finding| finding.text.len());
    let mut classes = BTreeMap::<&str, Vec<&Finding>>::new();
    for finding in &findings {
        classes.entry(&finding.class).or_default().push(finding);
    }
    for (class, findings) in &classes {
        println!("\n== {class}: {} findings", findings.len());
        for finding in findings.iter().take(PRINTED) {
            let Finding {
                edition,
                index,
                text,
                ..
            } = finding;
            println!("\n-- f{index}, edition {edition}, seed {seed}: {class}\n{text}");
        }
    }
    let functions: BTreeSet<usize> = findings.iter().map(|finding| finding.index).collect();
    functions.len()
}
