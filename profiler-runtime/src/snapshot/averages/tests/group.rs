//! Rows of windows that are grouped by shapes or by stacks.

use profiler_report::GroupBy;

use crate::session::sample::Sample;
use crate::session::{ScopeDetails, SessionOptions, Trace};

fn shapes(shapes: &[&[usize]]) -> ScopeDetails {
    ScopeDetails {
        shapes: Some(shapes.iter().map(|shape| (*shape).into()).collect()),
        ..ScopeDetails::default()
    }
}

fn calls(trace: &Trace, by: GroupBy) -> Vec<(String, String, u64)> {
    let rows = trace.key_averages_by(by).rows;
    let mut calls: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row.name.clone(),
                row.input_shapes
                    .as_ref()
                    .map_or_else(String::new, |shapes| format!("{shapes:?}")),
                row.calls,
            )
        })
        .collect();
    calls.sort();
    calls
}

fn shaped() -> Sample {
    let mut sample = Sample::new();
    for extents in [&[2_usize, 3][..], &[4], &[2, 3]] {
        sample.scope("group: shaped", 0, 0, 10);
        sample.extra(shapes(&[extents, &[7]]));
    }
    sample.scope("group: shaped", 0, 0, 10);
    sample
}

#[test]
fn calls_are_told_apart_by_their_shapes() {
    let by = GroupBy::new().group_by_input_shape(true);
    let row = |shapes: &str, calls| ("group: shaped".to_owned(), shapes.to_owned(), calls);
    assert_eq!(
        calls(&shaped().trace(), by),
        [row("", 1), row("[[2, 3], [7]]", 2), row("[[4], [7]]", 1)]
    );
    assert_eq!(calls(&shaped().trace(), GroupBy::new()), [row("", 4)]);
}

#[test]
fn shapes_count_only_where_the_session_records_them() {
    let mut sample = shaped();
    sample.options = SessionOptions::DEFAULT;
    let by = GroupBy::new().group_by_input_shape(true);
    assert_eq!(calls(&sample.trace(), by).len(), 1);
}

#[test]
fn calls_are_told_apart_by_the_scopes_around_them() {
    let mut sample = Sample::new();
    for root in ["group: a", "group: b"] {
        let root = sample.scope(root, 0, 0, 100);
        let middle = sample.scope("group: middle", root, 10, 50);
        sample.scope("group: leaf", middle, 20, 5);
    }
    let trace = sample.trace();
    let leaves = |scopes: usize| {
        let by = GroupBy::new().group_by_stack(scopes);
        let rows = trace.key_averages_by(by).rows;
        let mut stacks: Vec<Vec<String>> = rows
            .into_iter()
            .filter(|row| row.name == "group: leaf")
            .filter_map(|row| row.stack)
            .collect();
        stacks.sort();
        stacks
    };
    assert_eq!(leaves(0).len(), 0, "no stacks unless they are asked for");
    let [one] = &leaves(1)[..] else {
        panic!("both are in a middle")
    };
    assert!(
        one[0].ends_with("): group: middle") && one[0].contains("group.rs("),
        "{one:?}"
    );
    let [in_a, in_b] = &leaves(2)[..] else {
        panic!("one in each root")
    };
    assert!(in_a[1].ends_with("): group: a") && in_b[1].ends_with("): group: b"));
    assert_eq!(leaves(9), leaves(2));
}

#[test]
fn scopes_that_are_not_in_the_window_are_part_of_the_stack() {
    let mut sample = Sample::new();
    sample.scope("group: main", 0, 0, 1);
    let main = sample.last().name;
    sample.scope("group: within", 0, 5, 50);
    sample.extra(ScopeDetails {
        around: Some([main].into()),
        ..ScopeDetails::default()
    });
    let by = GroupBy::new().group_by_stack(2);
    let rows = sample.trace().key_averages_by(by).rows;
    let row = rows.iter().find(|row| row.name == "group: within");
    let stack = row.and_then(|row| row.stack.clone()).expect("a stack");
    assert!(
        stack.len() == 1 && stack[0].ends_with(": group: main"),
        "{stack:?}"
    );
}
