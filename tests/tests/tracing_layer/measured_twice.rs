//! A function with a span and the attribute has two rows and a note, in whatever order they stand, and no time counts twice
//! in its own times.

#![cfg(not(feature = "strip"))]
#![allow(clippy::unused_self, reason = "methods have rows with their types")]

use profiler_runtime::report::Row;
use profiler_runtime::{measured, summary};
use profiler_tests::{CpuTimes, poll, work};
use tracing::instrument;

use crate::support::install;

#[instrument]
#[measured]
fn below() {
    work(300);
}

#[measured]
#[instrument(level = "info")]
fn above() {
    work(300);
}

struct Model;

impl Model {
    /// Its row has its type, and that of the span has not.
    #[measured]
    #[instrument]
    fn forward() {
        work(300);
    }
}

#[measured]
impl Model {
    #[instrument]
    fn backward() {
        work(300);
    }
}

#[instrument]
#[measured]
async fn later() {
    poll::yields(2).await;
}

/// Two functions with one name, close to each other.
mod apart {
    pub(super) struct One;
    pub(super) struct Other;

    impl One {
        #[super::measured]
        pub(super) fn run() {
            Other::run();
            Other::run();
        }
    }

    impl Other {
        #[super::instrument]
        pub(super) fn run() {}
    }
}

/// Returns the rows of a function.
fn rows_of(function: &str) -> Vec<Row> {
    let end = format!("::{function}");
    let rows = summary().rows.into_iter();
    let is_of = |row: &Row| {
        row.name
            .split(" (")
            .next()
            .is_some_and(|name| name.ends_with(&end))
    };
    rows.filter(is_of).collect()
}

/// Returns the notes on functions that are measured twice.
fn notes() -> Vec<String> {
    let notes = summary().notes.into_iter();
    notes
        .filter(|note| note.contains(" is the span of "))
        .collect()
}

#[test(measuring)]
fn the_two_rows_of_a_function_share_its_time_and_a_note_names_them() {
    install();
    for _ in 0..3 {
        below();
        above();
        Model::forward();
        Model::backward();
    }
    for function in ["below", "above", "forward", "backward"] {
        let rows = rows_of(function);
        let [one, other] = &rows[..] else {
            panic!("{function}: {rows:?}");
        };
        assert_eq!((one.calls, other.calls), (3, 3), "{function}");
        assert_eq!((one.primitive_calls, other.primitive_calls), (3, 3));
        let own = one.cpu().self_ns + other.cpu().self_ns;
        let longest = one.cpu().total_ns.max(other.cpu().total_ns);
        assert!((own - longest).abs() < 1.0, "{function}: {own} {longest}");
        let note = |span: &Row, function: &Row| {
            let start = format!("`{}` is the span of `{}`", span.name, function.name);
            let end = format!("PROFILER_FILTER=-{}", span.name);
            let is_it = |note: &String| note.starts_with(&start) && note.ends_with(&end);
            notes().iter().any(is_it)
        };
        assert!(
            note(one, other) || note(other, one),
            "{function}: {:?}",
            notes()
        );
    }
    assert_eq!(notes().len(), 4);
    let text = summary().to_string();
    assert!(text.contains(" is the span of "), "{text}");
}

#[test(measuring)]
fn a_future_has_a_note_too() {
    install();
    poll::run(later());
    poll::run(later());
    let rows = rows_of("later");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(notes().len(), 1, "{:?}", notes());
}

#[test(measuring)]
fn functions_with_one_name_are_not_taken_for_one() {
    install();
    apart::One::run();
    assert_eq!(rows_of("run").len(), 2);
    assert_eq!(notes(), [""; 0]);
}
