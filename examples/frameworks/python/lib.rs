//! An extension of Python whose functions are measured below the ranges that Python code opens: see `service.py`.

mod range;

use profiler_runtime::measured;
use pyo3::prelude::*;

/// Returns the words of a text, in lower case.
#[pyfunction]
fn tokenize(py: Python<'_>, text: &str) -> Vec<String> {
    let _range = range::inside(py);
    words(text)
}

/// Returns the words in the order of what the function `key` returns for each.
#[pyfunction]
fn rank(py: Python<'_>, words: Vec<String>, key: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let _range = range::inside(py);
    by_key(words, key)
}

/// Returns the profiler's table.
#[pyfunction]
fn summary() -> String {
    profiler_runtime::summary().to_string()
}

#[measured]
fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_lowercase).collect()
}

#[measured]
fn by_key(words: Vec<String>, key: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let with_key = |word: String| Ok((key.call1((&word,))?.extract::<f64>()?, word));
    let mut all = words
        .into_iter()
        .map(with_key)
        .collect::<PyResult<Vec<_>>>()?;
    all.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Ok(all.into_iter().map(|(_, word)| word).collect())
}

#[pymodule]
mod profiler {
    #[pymodule_export]
    use super::range::Range;
    #[pymodule_export]
    use super::{rank, summary, tokenize};
}
