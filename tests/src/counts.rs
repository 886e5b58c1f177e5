//! What a test expects of the summary, in each of the three modes: on, off, stripped.

use profiler_runtime::{Row, is_enabled, summary};

/// The calls that are counted of so many that are made.
pub fn expected(calls: u64) -> u64 {
    if is_enabled() && !cfg!(feature = "strip") {
        calls
    } else {
        0
    }
}

/// What one column of a name's row holds, nothing where there is no row.
pub fn column(name: &str, of: fn(&Row) -> u64) -> u64 {
    summary().row(name).map_or(0, of)
}

/// How often the summary says that a name was called.
pub fn calls(name: &str) -> u64 {
    column(name, |row| row.calls)
}

/// Says that so many calls were made under each of these names, which stand in `module`.
#[track_caller]
pub fn assert_calls(module: &str, made: &[(&str, u64)]) {
    for (name, made) in made {
        let full = if name.starts_with('<') {
            name.replace("crate::", &format!("{module}::"))
        } else {
            format!("{module}::{name}")
        };
        assert_eq!(calls(&full), expected(*made), "{full}\n{}", summary());
    }
}
