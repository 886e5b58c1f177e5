//! Comparison of tables with files.

use std::path::Path;

/// Compares a text with a file below `src`. `PROFILER_TESTS_BLESS=1` writes the file first.
#[track_caller]
pub(crate) fn assert_golden(file: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    if std::env::var_os("PROFILER_TESTS_BLESS").is_some() {
        std::fs::write(&path, text).expect("the file is written");
    }
    let golden = std::fs::read_to_string(&path).expect("the file is there");
    assert!(
        text == golden,
        "{file} differs; PROFILER_TESTS_BLESS=1 writes it again:\n{text}"
    );
}
