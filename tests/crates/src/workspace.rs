//! A workspace with copies of the crates: one lock file, one target folder, rewritten for each
//! mode.

use std::fs;
use std::path::{Path, PathBuf};

use crate::annotate::{Form, annotate};
use crate::error::Error;
use crate::subject::Subject;

/// How the copies are annotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sources {
    /// `None` for the sources as published.
    pub(crate) form: Option<Form>,
    pub(crate) strip: bool,
}

pub(crate) struct Workspace {
    root: PathBuf,
    /// All crates with the folders of their sources, which the lock file covers.
    crates: Vec<(Subject, PathBuf)>,
    /// The crates to test.
    chosen: Vec<Subject>,
}

/// The profile: some of the tests take minutes without optimization. Dependencies are not
/// optimized, because that would take longer than it saves.
const PROFILES: &str = "
[profile.dev]
debug = false
opt-level = 1
[profile.dev.package.\"*\"]
opt-level = 0
[profile.dev.package.profiler-runtime]
opt-level = 3
";

/// Returns the folders of a crate to annotate, including subfolders.
///
/// `tests` is only annotated for async-trait, whose futures are all there: normally, tests are not
/// what a user measures.
fn annotated_folders(subject: Subject) -> &'static [&'static str] {
    match subject.name {
        // The macro itself runs in the compiler.
        "async-trait" => &["tests"],
        _ => &["src"],
    }
}

impl Workspace {
    pub(crate) fn new(
        root: PathBuf,
        crates: Vec<(Subject, PathBuf)>,
        chosen: Vec<Subject>,
    ) -> Self {
        Self {
            root,
            crates,
            chosen,
        }
    }

    pub(crate) fn manifest(&self) -> PathBuf {
        self.root.join("Cargo.toml")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.root.join("Cargo.lock")
    }

    /// Returns the crates to test.
    pub(crate) fn chosen(&self) -> &[Subject] {
        &self.chosen
    }

    /// Returns the folder of a crate's copy.
    pub(crate) fn folder(&self, subject: Subject) -> PathBuf {
        self.root.join(subject.name)
    }

    /// Writes all copies. Returns the number of measured functions in each tested crate.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read, parsed or written.
    pub(crate) fn write(&self, sources: Sources, runtime: &Path) -> Result<Vec<usize>, Error> {
        fs::create_dir_all(&self.root).map_err(Error::io("make", &self.root))?;
        let members: Vec<String> = self
            .crates
            .iter()
            .map(|(subject, _)| format!("{:?}", subject.name))
            .collect();
        let manifest = format!(
            "[workspace]\nresolver = \"2\"\nmembers = [{}]\n{PROFILES}",
            members.join(", ")
        );
        write(&self.manifest(), &manifest)?;
        for (subject, source) in &self.crates {
            self.write_crate(*subject, source, sources, runtime)?;
        }
        self.chosen
            .iter()
            .map(|subject| self.annotate(*subject, sources))
            .collect()
    }

    fn write_crate(
        &self,
        subject: Subject,
        source: &Path,
        sources: Sources,
        runtime: &Path,
    ) -> Result<(), Error> {
        let copy = self.folder(subject);
        if copy.exists() {
            fs::remove_dir_all(&copy).map_err(Error::io("remove", &copy))?;
        }
        copy_folder(source, &copy)?;
        let manifest = copy.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).map_err(Error::io("read", &manifest))?;
        let features = if sources.strip { "[\"strip\"]" } else { "[]" };
        // The order of tables does not matter, so this one may be appended.
        let table = if subject.name == "async-trait" {
            "dev-dependencies"
        } else {
            "dependencies"
        };
        let dependency = format!(
            "\n[{table}.profiler-runtime]\npath = \"{}\"\ndefault-features = false\n\
             features = {features}\n",
            runtime.display()
        );
        write(&manifest, &(text + &dependency))
    }

    fn annotate(&self, subject: Subject, sources: Sources) -> Result<usize, Error> {
        let Some(form) = sources.form else {
            return Ok(0);
        };
        let folders = annotated_folders(subject).iter();
        folders
            .map(|folder| annotate_folder(&self.folder(subject).join(folder), form))
            .sum()
    }
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::io("write", path))
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).map_err(Error::io("make", to))?;
    for entry in fs::read_dir(from).map_err(Error::io("read", from))? {
        let entry = entry.map_err(Error::io("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy_folder(&source, &target)?;
        // Lock files of members would be ignored.
        } else if entry.file_name() != "Cargo.lock" {
            fs::copy(&source, &target).map_err(Error::io("copy", &source))?;
        }
    }
    Ok(())
}

/// Annotates all source files of a folder, except those in folders called `ui`, which must not
/// compile.
fn annotate_folder(folder: &Path, form: Form) -> Result<usize, Error> {
    let mut functions = 0;
    for entry in fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let entry = entry.map_err(Error::io("read", folder))?;
        let path = entry.path();
        if path.is_dir() {
            if entry.file_name() != "ui" {
                functions += annotate_folder(&path, form)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            functions += annotate_file(&path, form)?;
        }
    }
    Ok(functions)
}

fn annotate_file(path: &Path, form: Form) -> Result<usize, Error> {
    let text = fs::read_to_string(path).map_err(Error::io("read", path))?;
    let annotated = annotate(&text, form).map_err(|source| Error::Syntax {
        path: path.to_owned(),
        source,
    })?;
    write(path, &annotated.text)?;
    Ok(annotated.functions)
}
