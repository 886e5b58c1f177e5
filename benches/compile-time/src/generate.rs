//! Generates the two crates: modules of typical functions, with and without the attribute.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// The crate without annotations, and its twin with one on each function.
pub(crate) const TWINS: [Twin; 2] = [
    Twin {
        package: "twin-bare",
        import: "",
        annotation: "",
    },
    Twin {
        package: "twin-annotated",
        import: "use profiler_runtime::measure_execution_time;\n",
        annotation: "#[measure_execution_time]",
    },
];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Twin {
    pub(crate) package: &'static str,
    import: &'static str,
    annotation: &'static str,
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
    let members = TWINS.map(|twin| twin.package);
    write(
        &folder.join("Cargo.toml"),
        &format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n"),
    )?;
    for twin in TWINS {
        let package = folder.join(twin.package);
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
        twin.package,
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
    let mut text = format!("use std::collections::BTreeMap;\n{}", twin.import);
    for repeat in 0..REPEATS {
        let number = (module * REPEATS + repeat).to_string();
        for template in TEMPLATES {
            let filled = template
                .replace(ANNOTATION, twin.annotation)
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
        let [_, annotated] = TWINS;
        assert_eq!(count(annotated, annotated.annotation), FUNCTIONS);
        assert_eq!(count(annotated, "fn "), FUNCTIONS);
    }

    #[test]
    fn the_twins_differ_in_the_attribute_alone_and_no_template_is_left_unfilled() {
        let [bare, annotated] = TWINS;
        for ((_, bare), (_, text)) in sources(bare).iter().zip(sources(annotated)) {
            let without = text.replace(annotated.annotation, "");
            assert_eq!(&without.replace(annotated.import, ""), bare);
        }
        assert_eq!(count(bare, "@"), 0);
    }
}
