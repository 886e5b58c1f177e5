//! Generates the two crates: modules of typical functions, with and without the attribute.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// The crate without annotations, or its twin with one on each function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twin {
    Bare,
    Annotated,
}

impl Twin {
    pub(crate) const ALL: [Self; 2] = [Self::Bare, Self::Annotated];

    pub(crate) fn package(self) -> &'static str {
        match self {
            Self::Bare => "twin-bare",
            Self::Annotated => "twin-annotated",
        }
    }
}

/// Each module contains each of these, in the proportions of typical programs: functions, methods,
/// functions that may fail, generic ones.
const TEMPLATES: [&str; 10] = [
    include_str!("../templates/smooth.txt"),
    include_str!("../templates/parse.txt"),
    include_str!("../templates/count_words.txt"),
    include_str!("../templates/histogram.txt"),
    include_str!("../templates/search.txt"),
    include_str!("../templates/checksum.txt"),
    include_str!("../templates/describe.txt"),
    include_str!("../templates/load.txt"),
    include_str!("../templates/methods.txt"),
    include_str!("../templates/generic.txt"),
];

/// The placeholder for the attribute in a template.
const ANNOTATION: &str = "@measure";
/// The placeholder for the number that makes names and constants unique.
const NUMBER: &str = "@n";

const MODULES: usize = 25;
/// The copies of each template per module.
const REPEATS: usize = 2;
/// The functions in one copy of all templates.
const FUNCTIONS_OF_ALL: usize = 20;
pub(crate) const FUNCTIONS: usize = MODULES * REPEATS * FUNCTIONS_OF_ALL;

/// Writes a workspace with both crates.
pub(crate) fn workspace(folder: &Path) -> io::Result<()> {
    let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../profiler-runtime");
    let runtime = runtime.canonicalize()?;
    let members = Twin::ALL.map(Twin::package);
    write(
        &folder.join("Cargo.toml"),
        &format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n"),
    )?;
    for twin in Twin::ALL {
        let package = folder.join(twin.package());
        write(&package.join("Cargo.toml"), &manifest(twin, &runtime))?;
        for (file, text) in sources(twin) {
            write(&package.join("src").join(file), &text)?;
        }
    }
    Ok(())
}

fn manifest(twin: Twin, runtime: &Path) -> String {
    format!(
        "[package]\nname = {:?}\nversion = \"0.0.0\"\nedition = \"2024\"\npublish = false\n\n\
         [dependencies]\nprofiler-runtime = {{ path = '{}' }}\n",
        twin.package(),
        runtime.display()
    )
}

/// Returns the files of a twin, by name.
fn sources(twin: Twin) -> Vec<(String, String)> {
    let mut root = String::from("#![allow(dead_code)]\n");
    let mut files = Vec::new();
    for module in 0..MODULES {
        let _ = writeln!(root, "pub mod part_{module};");
        files.push((format!("part_{module}.rs"), module_text(twin, module)));
    }
    files.push(("lib.rs".to_owned(), root));
    files
}

fn module_text(twin: Twin, module: usize) -> String {
    let mut text = String::from("use std::collections::BTreeMap;\n");
    let annotation = match twin {
        Twin::Bare => "",
        Twin::Annotated => {
            text.push_str("use profiler_runtime::measure_execution_time;\n");
            "#[measure_execution_time]"
        }
    };
    for repeat in 0..REPEATS {
        let number = (module * REPEATS + repeat).to_string();
        for template in TEMPLATES {
            let filled = template
                .replace(ANNOTATION, annotation)
                .replace(NUMBER, &number);
            text.push('\n');
            text.push_str(&filled);
        }
    }
    text
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(twin: Twin, text: &str) -> usize {
        let files = sources(twin);
        files
            .iter()
            .map(|(_, file)| file.matches(text).count())
            .sum()
    }

    #[test]
    fn there_are_as_many_annotated_functions_as_is_said() {
        assert_eq!(
            count(Twin::Annotated, "#[measure_execution_time]"),
            FUNCTIONS
        );
        assert_eq!(count(Twin::Annotated, "fn "), FUNCTIONS);
    }

    #[test]
    fn the_twins_differ_in_the_attribute_alone() {
        let bare = sources(Twin::Bare);
        let annotated = sources(Twin::Annotated);
        for ((_, bare), (_, annotated)) in bare.iter().zip(&annotated) {
            let without = annotated
                .replace("#[measure_execution_time]", "")
                .replace("use profiler_runtime::measure_execution_time;\n", "");
            assert_eq!(&without, bare);
        }
    }

    #[test]
    fn nothing_of_a_template_is_left_unfilled() {
        assert_eq!(count(Twin::Bare, "@"), 0);
    }
}
