//! Which rows are kept: each restriction against a model of it.

use profiler_report::{KeyAverages, Restriction, RestrictionError, SortKey};
use proptest::prelude::*;

use super::InMs;
use crate::session::sample::Sample;

/// Rows of these names, the first one called most.
fn averages(names: &[&str]) -> KeyAverages {
    let mut sample = Sample::new();
    for (place, name) in names.iter().enumerate() {
        for _ in place..names.len() {
            sample.ms(name, 0, 0.0, 0.1);
        }
    }
    sample.trace().key_averages().sort_by(SortKey::Count)
}

const NAMES: [&str; 8] = ["ax", "bx", "ay", "by", "ab", "ba", "xyz", "a(b"];

fn names(averages: &KeyAverages) -> Vec<&str> {
    averages.rows.iter().map(|row| row.name.as_str()).collect()
}

type Means = fn(&str) -> bool;

/// Patterns with what they mean.
const PATTERNS: [(&str, Means); 6] = [
    ("^a", |name| name.starts_with('a')),
    ("[xy]$", |name| name.ends_with(['x', 'y'])),
    ("b", |name| name.contains('b')),
    ("", |_| true),
    (r"a\(", |name| name.contains("a(")),
    ("nothing", |_| false),
];

#[derive(Clone, Debug)]
enum Step {
    First(usize),
    /// In hundredths.
    Part(usize),
    Pattern(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0_usize..10).prop_map(Step::First),
        (0_usize..=100).prop_map(Step::Part),
        (0..PATTERNS.len()).prop_map(Step::Pattern),
    ]
}

proptest! {
    #[test]
    fn each_one_keeps_what_pstats_would(steps in prop::collection::vec(step(), 0..5)) {
        let mut kept = averages(&NAMES);
        let sum = kept.self_cpu_time_total_ns;
        let mut model = NAMES.to_vec();
        prop_assert_eq!(names(&kept), model.clone());
        for step in steps {
            kept = match step {
                Step::First(rows) => {
                    model.truncate(rows);
                    kept.restrict(rows)
                }
                Step::Part(hundredths) => {
                    model.truncate((model.len() * hundredths + 50) / 100);
                    kept.restrict(hundredths as f64 / 100.0)
                }
                Step::Pattern(pattern) => {
                    let (pattern, means) = PATTERNS[pattern];
                    model.retain(|name| means(name));
                    kept.restrict(pattern)
                }
            }
            .unwrap();
            prop_assert_eq!(names(&kept), model.clone());
        }
        prop_assert_eq!(kept.self_cpu_time_total_ns, sum);
    }
}

#[test]
fn the_table_says_what_was_left_out() {
    let kept = averages(&NAMES)
        .restrict("^a")
        .and_then(|kept| kept.restrict(0.5));
    let table = kept.expect("restrictions").to_string();
    assert!(
        table.ends_with("\n4 of 8 rows, restricted to \"^a\" (percentages of all)\n2 of 4 rows, restricted to 0.5 (percentages of all)\n"),
        "{table}"
    );
}

#[test]
fn an_invalid_restriction_is_an_error() {
    let error = |restriction: Restriction| {
        let refused = averages(&NAMES).restrict(restriction);
        refused.expect_err("an error").to_string()
    };
    for part in [-0.1, 1.5, 50.0, f64::NAN] {
        let error_text = error(part.into());
        assert!(
            error_text.contains("is not a fraction of the rows: give one from 0 to 1"),
            "{error_text}"
        );
    }
    let error_text = error("a(b".into());
    assert!(
        error_text.starts_with("`a(b` is not a regular expression: "),
        "{error_text}"
    );
    let pattern = averages(&NAMES).restrict("[").expect_err("an error");
    assert!(matches!(pattern, RestrictionError::Pattern { .. }));
}
