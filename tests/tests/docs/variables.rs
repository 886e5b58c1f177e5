//! The table of variables in the documents equals the one in the code.

use std::fs;
use std::path::Path;

use profiler_runtime::__private::VARIABLES;

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs")
        .join(name);
    fs::read_to_string(path).unwrap()
}

#[test]
fn every_variable_stands_in_the_documents_as_in_the_code() {
    let text = document("environment.md");
    let rows: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .collect();
    let expected: Vec<String> = VARIABLES
        .iter()
        .map(|variable| {
            let (name, takes) = (variable.name, variable.takes);
            format!(
                "| `{name}` | {takes} | {} | {} |",
                variable.default, variable.meaning
            )
        })
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn the_documents_say_which_variables_raised_privileges_forbid() {
    let text = document("environment.md");
    let (_, forbidden) = text.split_once("## With raised privileges").unwrap();
    let (forbidden, _) = forbidden.split_once("\n## ").unwrap();
    for variable in VARIABLES {
        let stands = forbidden.contains(&format!("`{}`", variable.name));
        assert_eq!(stands, variable.names_path, "{}", variable.name);
    }
}

#[test]
fn every_folder_of_tests_is_a_test_program() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut folders = 0;
    for entry in fs::read_dir(tests).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            folders += 1;
            let name = path.file_name().unwrap().to_str().unwrap();
            let main = fs::read_to_string(path.join("main.rs")).unwrap();
            let finds_all = format!("automod::dir!(\"tests/{name}\");");
            assert!(main.contains(&finds_all), "{name}");
        }
    }
    assert!(folders > 5, "{folders} folders");
}
