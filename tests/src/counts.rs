//! The counts that a test expects in the summary, in each of the three modes: on, off, stripped.

use profiler_runtime::report::Row;
use profiler_runtime::summary;

use crate::if_measuring;

/// Returns how many of `calls` calls are counted.
#[track_caller]
pub fn expected(calls: u64) -> u64 {
    if_measuring(calls)
}

/// Returns one column of a name's row, or zero if there is no row.
pub fn column(name: &str, of: fn(&Row) -> u64) -> u64 {
    summary().row(name).map_or(0, of)
}

/// How often the summary says that a name was called.
pub fn calls(name: &str) -> u64 {
    column(name, |row| row.calls)
}

/// Asserts the number of calls under each of these names in `module`. A name that begins with `::` or `<` is not in the
/// module.
#[track_caller]
pub fn assert_calls(module: &str, made: &[(&str, u64)]) {
    for (name, made) in made {
        let full = if let Some(path) = name.strip_prefix("::") {
            path.to_owned()
        } else if name.starts_with('<') {
            name.replace("crate::", &format!("{module}::"))
        } else {
            format!("{module}::{name}")
        };
        assert_eq!(calls(&full), expected(*made), "{full}\n{}", summary());
    }
}
