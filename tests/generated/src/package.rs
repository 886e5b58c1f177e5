//! The crates with the generated functions, one for each edition.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::function::Function;

/// Compiling is most of a run: the crates are neither optimized nor debugged.
const PROFILES: &str = "
[profile.dev]
debug = false
incremental = false
[profile.dev.package.\"*\"]
debug = false
";

/// At the beginning of `bare` and `measured`.
const HEADER: &str = "use support::*;\nsupport::own!();\n";

/// Of lints that `clippy` denies, too, the number before and after counts.
const MAIN: &str = "#![warn(clippy::all)]\nmod bare;\nmod measured;\n\nfn main() {\n";

pub(crate) struct Package {
    pub(crate) edition: u16,
    pub(crate) functions: Vec<Function>,
}

impl Package {
    pub(crate) fn name(&self) -> String {
        format!("e{}", self.edition)
    }

    pub(crate) fn function(&self, index: usize) -> Option<&Function> {
        self.functions
            .iter()
            .find(|function| function.index == index)
    }

    /// Returns the function that a line of either module belongs to.
    pub(crate) fn at_line(&self, line: usize) -> Option<&Function> {
        let mut end = HEADER.lines().count();
        self.functions.iter().find(|function| {
            end += function.text(true).lines().count();
            line <= end
        })
    }

    /// Leaves out some functions.
    pub(crate) fn remove(&mut self, indices: &BTreeSet<usize>) {
        self.functions
            .retain(|function| !indices.contains(&function.index));
    }

    fn write(&self, folder: &Path, runtime: &Path) -> Result<(), Error> {
        let manifest = format!(
            "[package]\nname = {:?}\nversion = \"0.0.0\"\nedition = \"{}\"\n\
             [features]\nstrip = [\"profiler-runtime/strip\"]\n\
             [dependencies]\nsupport = {{ path = \"../support\" }}\n\
             profiler-runtime = {{ path = {:?}, default-features = false }}\n",
            self.name(),
            self.edition,
            runtime.display().to_string()
        );
        write(&folder.join("Cargo.toml"), &manifest)?;
        for (file, measured) in [("bare.rs", false), ("measured.rs", true)] {
            let functions = self
                .functions
                .iter()
                .map(|function| function.text(measured));
            let text = HEADER.to_owned() + &functions.collect::<String>();
            write(&folder.join("src").join(file), &text)?;
        }
        let cases = self.functions.iter().map(|function| {
            let index = function.index;
            format!("        ({index}, bare::case{index}, measured::case{index}),\n")
        });
        let cases: String = cases.collect();
        let main = format!("{MAIN}    support::run(&[\n{cases}    ]);\n}}\n");
        write(&folder.join("src/main.rs"), &main)
    }
}

/// Writes a workspace with all crates. Their dependencies have the versions of the project's lock
/// file.
///
/// # Errors
///
/// Returns an error if a file cannot be written.
pub(crate) fn write_all(root: &Path, packages: &[Package]) -> Result<(), Error> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let names = packages.iter().map(Package::name);
    let members: Vec<String> = names.chain(["support".to_owned()]).collect();
    let manifest = format!("[workspace]\nresolver = \"2\"\nmembers = {members:?}\n{PROFILES}");
    write(&root.join("Cargo.toml"), &manifest)?;
    let (from, to) = (project.join("Cargo.lock"), root.join("Cargo.lock"));
    fs::copy(&from, to).map_err(Error::io("copy", &from))?;
    let manifest = "[package]\nname = \"support\"\nversion = \"0.0.0\"\nedition = \"2024\"\n";
    write(&root.join("support/Cargo.toml"), manifest)?;
    let support = include_str!("../template/support.rs");
    write(&root.join("support/src/lib.rs"), support)?;
    let runtime = project.join("profiler-runtime");
    packages
        .iter()
        .try_for_each(|package| package.write(&root.join(package.name()), &runtime))
}

/// Writes a file unless it has this text: cargo builds again what has changed.
fn write(path: &PathBuf, text: &str) -> Result<(), Error> {
    if fs::read_to_string(path).is_ok_and(|before| before == text) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Error::io("make", folder))?;
    }
    fs::write(path, text).map_err(Error::io("write", path))
}
