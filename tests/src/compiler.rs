//! Compiles single files against the profiler, as Cargo would, and compares what the compiler says.
//!
//! Cargo is asked once where the libraries are that this test program was linked with; each file then costs one run of
//! the compiler.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

/// Writes the expected output anew where it is set, instead of comparing it.
const BLESS: &str = "PROFILER_TESTS_BLESS";

/// The libraries that the files use.
const LIBRARIES: [&str; 6] = [
    "async_trait",
    "cudarc",
    "profiler_examples",
    "profiler_runtime",
    "tokio",
    "tracing",
];

/// The compiler, with what it needs to find the libraries.
#[derive(Debug)]
pub struct Compiler {
    workspace: PathBuf,
    arguments: Vec<OsString>,
    outputs: TempDir,
}

impl Compiler {
    /// Asks Cargo for the libraries of this build.
    ///
    /// Everything is built already where the whole workspace was, with the same features; else Cargo builds it now.
    #[must_use]
    pub fn of_this_build() -> Self {
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
        let workspace = manifest.parent().expect("the tests are in the workspace");
        let program = env::current_exe().expect("a test knows its program");
        // TARGET/PROFILE/deps/PROGRAM
        let mut folders = program.ancestors().skip(2);
        let profile = folders.next().expect("a folder for the profile");
        let target = folders.next().expect("a folder for all profiles");
        let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo
            .current_dir(workspace)
            .args([
                "build",
                "--workspace",
                "--tests",
                "--quiet",
                "--message-format=json",
            ])
            .arg("--target-dir")
            .arg(target);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        for (feature, is_on) in [
            ("strip", cfg!(feature = "strip")),
            ("tensorboard-rs", cfg!(feature = "tensorboard-rs")),
        ] {
            if is_on {
                cargo.arg(format!("--features=profiler-tests/{feature}"));
            }
        }
        let output = cargo.output().expect("Cargo runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "Cargo fails:\n{stderr}");
        let stdout = String::from_utf8_lossy(&output.stdout);
        Self {
            workspace: workspace.into(),
            arguments: arguments(&stdout),
            outputs: tempfile::tempdir().expect("a folder"),
        }
    }

    /// Holds that no file of a folder compiles, and that the compiler says of each what is expected.
    ///
    /// The expected output of `file.rs` is in `file.stderr`.
    pub fn all_fail(&self, folder: &str) {
        self.for_each_file(folder, |file| {
            let output = self.compile(file, &["--emit=metadata"]);
            let said = self.normalised(&String::from_utf8_lossy(&output.stderr));
            if output.status.success() {
                return Err(format!("it compiles\n{said}"));
            }
            let expected = file.with_extension("stderr");
            if env::var_os(BLESS).is_some() {
                fs::write(&expected, &said).map_err(|error| error.to_string())?;
            }
            let expected = fs::read_to_string(&expected).unwrap_or_default();
            if said == expected {
                return Ok(());
            }
            Err(format!(
                "expected:\n{expected}\nbut the compiler says:\n{said}"
            ))
        });
    }

    /// Holds that all files of a folder compile and run.
    pub fn all_pass(&self, folder: &str) {
        self.for_each_file(folder, |file| self.passes(file, &["--emit=link"]));
    }

    /// Holds that all files of a folder compile and run in every edition, measured or not, and that `clippy` reports nothing if
    /// it is installed.
    pub fn all_pass_in_every_edition(&self, folder: &str) {
        self.for_each_file(folder, |file| {
            for edition in ["--edition=2018", "--edition=2021", "--edition=2024"] {
                let failed = |why| format!("{edition}: {why}");
                self.passes(file, &["--emit=link", edition])
                    .map_err(failed)?;
                let arguments = ["--emit=metadata", edition];
                let Ok(output) = self.compile_by("clippy-driver", file, &arguments) else {
                    continue;
                };
                if !output.status.success() {
                    return Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()));
                }
            }
            Ok(())
        });
    }

    /// Compiles a file, and runs it with measuring on and off.
    fn passes(&self, file: &Path, arguments: &[&str]) -> Result<(), String> {
        let output = self.compile(file, arguments);
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        for is_on in ["1", "0"] {
            let ran = Command::new(self.output_of(file))
                .env("PROFILER_ENABLED", is_on)
                .output()
                .map_err(|error| error.to_string())?;
            if !ran.status.success() {
                let stderr = String::from_utf8_lossy(&ran.stderr);
                return Err(format!("{}\n{stderr}", ran.status));
            }
        }
        Ok(())
    }

    /// Compiles a program, and returns where it is. `name` is that of its file, which no two programs share.
    ///
    /// # Errors
    ///
    /// Returns what the compiler says if the program does not compile.
    pub fn program(&self, name: &str, crate_name: &str, source: &str) -> Result<PathBuf, String> {
        let file = self.outputs.path().join(name).with_extension("rs");
        fs::write(&file, source).map_err(|error| error.to_string())?;
        let crate_name = format!("--crate-name={crate_name}");
        let output = self.compile(&file, &["--emit=link", &crate_name]);
        if output.status.success() {
            return Ok(self.output_of(&file));
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Checks the files of a folder, on as many threads as there are processors, and reports all that fail.
    fn for_each_file(&self, folder: &str, check: impl Fn(&Path) -> Result<(), String> + Sync) {
        let folder = self.workspace.join("tests").join(folder);
        let entries = fs::read_dir(&folder).expect("the folder of the files");
        let mut files: Vec<PathBuf> = entries
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
            .collect();
        files.sort();
        assert!(!files.is_empty(), "no files in {}", folder.display());
        let left = Mutex::new(files.into_iter());
        let failed = Mutex::new(String::new());
        thread::scope(|threads| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                threads.spawn(|| {
                    loop {
                        // Apart, so that the lock is released before the check.
                        let file = left.lock().expect("no thread panics with it").next();
                        let Some(file) = file else { break };
                        if let Err(why) = check(&file) {
                            let mut failed = failed.lock().expect("no thread panics with it");
                            let _ = writeln!(failed, "{}: {why}", file.display());
                        }
                    }
                });
            }
        });
        let failed = failed.into_inner().expect("no thread panics with it");
        assert!(
            failed.is_empty(),
            "{failed}\nset {BLESS}=1 to write what the compiler says as what is expected"
        );
    }

    /// Returns where the compiler's output for a file goes.
    fn output_of(&self, file: &Path) -> PathBuf {
        let name = file.file_stem().expect("a file has a name");
        self.outputs.path().join(name)
    }

    fn compile(&self, file: &Path, arguments: &[&str]) -> Output {
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = self.compile_by(rustc, file, arguments);
        output.expect("the compiler runs")
    }

    fn compile_by(
        &self,
        compiler: impl AsRef<OsStr>,
        file: &Path,
        arguments: &[&str],
    ) -> io::Result<Output> {
        // Stripped, functions that only arguments of the attribute call are called by nothing.
        let allowed: &[&str] = if cfg!(feature = "strip") {
            &["-Adead_code"]
        } else {
            &[]
        };
        let tests = self.workspace.join("tests");
        let edition = ["--edition=2024"];
        let edition = if arguments
            .iter()
            .any(|argument| argument.starts_with("--edition"))
        {
            &[][..]
        } else {
            &edition
        };
        Command::new(compiler)
            // Messages name files as seen from here.
            .current_dir(&tests)
            .arg(file.strip_prefix(&tests).unwrap_or(file))
            .args(["--crate-type=bin", "--color=never"])
            .args(edition)
            .args(arguments)
            .args(allowed)
            .arg("-o")
            .arg(self.output_of(file))
            .args(&self.arguments)
            .output()
    }

    /// Returns the compiler's messages without what depends on the machine or on lines of other files.
    fn normalised(&self, messages: &str) -> String {
        let workspace = format!("{}/", self.workspace.display());
        let mut text = String::new();
        // `true` while the source lines belong to another file.
        let mut is_elsewhere = false;
        for line in messages.lines() {
            let start = line.trim_start();
            if let Some(place) = start.strip_prefix("--> ").or(start.strip_prefix("::: ")) {
                is_elsewhere = !place.starts_with("ui/");
                if is_elsewhere {
                    // The crate only: its files may be renamed, and its lines move.
                    let path = place.replace(&workspace, "").replace("../", "");
                    let path = match path.split_once("/library/") {
                        Some((_, path)) => format!("$RUST/{}", first_folder(path)),
                        None => first_folder(&path).to_owned(),
                    };
                    let _ = writeln!(text, " --> {path}");
                    continue;
                }
            } else if is_elsewhere && is_source(start) {
                continue;
            } else if !start.starts_with('|') {
                is_elsewhere = is_elsewhere && start.is_empty();
            }
            if is_count_of_others(start) {
                let _ = writeln!(text, "          and $N others");
            } else if !is_summary(line) {
                let _ = writeln!(text, "{}", line.trim_end());
            }
        }
        while text.ends_with("\n\n") {
            text.pop();
        }
        text
    }
}

/// Returns whether a line shows source code, or underlines it.
fn is_source(line: &str) -> bool {
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
    rest.starts_with('|') || rest == "..."
}

fn first_folder(path: &str) -> &str {
    path.split('/').next().unwrap_or(path)
}

/// Returns whether a line counts the implementations of a trait that are not listed.
fn is_count_of_others(line: &str) -> bool {
    let count = line
        .strip_prefix("and ")
        .and_then(|rest| rest.strip_suffix(" others"));
    count.is_some_and(|count| count.parse::<u64>().is_ok())
}

/// Returns whether a line sums up what other lines say.
fn is_summary(line: &str) -> bool {
    [
        "error: aborting due to",
        "For more information about",
        "Some errors have detailed explanations",
    ]
    .iter()
    .any(|start| line.starts_with(start))
        || line.ends_with("warning emitted")
        || line.ends_with("warnings emitted")
}

/// Returns the compiler's arguments for the libraries that Cargo's messages name.
fn arguments(messages: &str) -> Vec<OsString> {
    let mut arguments = Vec::new();
    let mut folders = Vec::new();
    let messages = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    for message in messages.filter(|message| message["reason"] == "compiler-artifact") {
        let name = message["target"]["name"].as_str().unwrap_or_default();
        let file = message["filenames"].as_array().and_then(|files| {
            files
                .iter()
                .filter_map(Value::as_str)
                .find(|file| is_library(file))
        });
        let Some(file) = file.filter(|_| LIBRARIES.contains(&name)) else {
            continue;
        };
        arguments.extend(["--extern".into(), format!("{name}={file}").into()]);
        if let Some(folder) = Path::new(file).parent() {
            folders.push(folder.to_owned());
        }
    }
    folders.sort();
    folders.dedup();
    for folder in folders {
        let mut argument = OsString::from("-Ldependency=");
        argument.push(folder);
        arguments.push(argument);
    }
    arguments
}

fn is_library(file: &str) -> bool {
    let extension = Path::new(file)
        .extension()
        .and_then(|extension| extension.to_str());
    matches!(extension, Some("rlib" | "so" | "dylib" | "dll"))
}
