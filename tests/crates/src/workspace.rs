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
    /// `None` for the sources as they are.
    pub(crate) form: Option<Form>,
    pub(crate) strip: bool,
}

pub(crate) struct Workspace {
    root: PathBuf,
    /// All crates, those to test and those that the lock file covers.
    crates: Vec<Subject>,
    /// The crates to test.
    chosen: Vec<Subject>,
    /// The lock file covers all crates.
    locked: bool,
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
fn annotated_folders(subject: &Subject) -> &'static [&'static str] {
    match subject.name.as_str() {
        // The macro itself runs in the compiler.
        "async-trait" => &["tests"],
        _ => &["src"],
    }
}

impl Workspace {
    pub(crate) fn new(
        root: PathBuf,
        crates: Vec<Subject>,
        chosen: Vec<Subject>,
        locked: bool,
    ) -> Self {
        Self {
            root,
            crates,
            chosen,
            locked,
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

    /// Starts with the versions of a lock file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be copied.
    pub(crate) fn set_lock(&self, from: &Path) -> Result<(), Error> {
        fs::create_dir_all(&self.root).map_err(Error::io("make", &self.root))?;
        fs::copy(from, self.lock()).map_err(Error::io("copy", from))?;
        Ok(())
    }

    /// Returns `true` if the lock file covers all crates.
    pub(crate) fn locked(&self) -> bool {
        self.locked
    }

    /// Returns the folder of a crate's copy.
    pub(crate) fn folder(&self, subject: &Subject) -> PathBuf {
        self.root.join(&subject.name)
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
            .map(|subject| format!("{:?}", subject.name))
            .collect();
        let manifest = format!(
            "[workspace]\nresolver = \"2\"\nmembers = [{}]\n{PROFILES}",
            members.join(", ")
        );
        write(&self.manifest(), &manifest)?;
        for subject in &self.crates {
            self.write_crate(subject, sources, runtime)?;
        }
        self.chosen
            .iter()
            .map(|subject| self.annotate(subject, sources))
            .collect()
    }

    fn write_crate(
        &self,
        subject: &Subject,
        sources: Sources,
        runtime: &Path,
    ) -> Result<(), Error> {
        let copy = self.folder(subject);
        if copy.exists() {
            fs::remove_dir_all(&copy).map_err(Error::io("remove", &copy))?;
        }
        copy_folder(&subject.source, &copy)?;
        let manifest = copy.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).map_err(Error::io("read", &manifest))?;
        let features = if sources.strip { "[\"strip\"]" } else { "[]" };
        let text = without_workspace(&text);
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

    fn annotate(&self, subject: &Subject, sources: Sources) -> Result<usize, Error> {
        let Some(form) = sources.form else {
            return Ok(0);
        };
        let folders = annotated_folders(subject).iter();
        folders
            .map(|folder| annotate_folder(&self.folder(subject).join(folder), form))
            .sum()
    }
}

/// Removes the tables of a package that is the root of a workspace: a member cannot be one.
fn without_workspace(manifest: &str) -> String {
    let mut inside = false;
    let kept = manifest.split_inclusive('\n').filter(|line| {
        if line.starts_with('[') {
            inside = line.starts_with("[workspace]") || line.starts_with("[workspace.");
        }
        !inside
    });
    kept.collect()
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::io("write", path))
}

/// Copies the sources of a crate.
fn copy_folder(from: &Path, to: &Path) -> Result<(), Error> {
    fs::create_dir_all(to).map_err(Error::io("make", to))?;
    for entry in fs::read_dir(from).map_err(Error::io("read", from))? {
        let entry = entry.map_err(Error::io("read", from))?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            // Cargo marks its target folders as caches.
            if !source.join("CACHEDIR.TAG").exists() {
                copy_folder(&source, &target)?;
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_no_root_of_a_workspace_in_its_copy() {
        let manifest = "# One\n[workspace]\nexclude = [\n\"x\",\n]\n\n[workspace.lints]\n\n\
                        [package]\nname = \"workspace\"\n";
        assert_eq!(
            without_workspace(manifest),
            "# One\n[package]\nname = \"workspace\"\n"
        );
    }
}
