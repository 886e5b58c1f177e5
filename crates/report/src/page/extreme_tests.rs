//! Rows and times of files that no program measured are shown without an overflow.

use super::Page;
use crate::call_tree::{CallNode, CallTree};
use crate::callers::EdgeTimes;
use crate::row::Row;
use crate::summary::Summary;
use crate::timeline::{Counter, Slice, SliceName, Step, Timeline, Track};
use crate::times::Times;

const ENDS: [i64; 5] = [i64::MIN, -1, 0, 1, i64::MAX];

fn row(name: &str) -> Row {
    let times = Times {
        calls: u64::MAX,
        total_ns: f64::MAX,
        self_ns: f64::MAX,
        ..Times::default()
    };
    Row {
        name: name.to_owned(),
        calls: u64::MAX,
        primitive_calls: u64::MAX,
        without_cuda: u64::MAX,
        dropped_entries: u64::MAX,
        cpu: Some(times),
        cuda: Some(times),
        ..Row::default()
    }
}

fn node(parent: Option<u32>) -> CallNode {
    CallNode {
        parent,
        name: "f".into(),
        calls: u64::MAX,
        recursive_calls: u64::MAX,
        cpu: Some(EdgeTimes {
            total_ns: f64::MAX,
            self_ns: f64::MAX,
            non_exhaustive: (),
        }),
        ..CallNode::default()
    }
}

fn timeline() -> Timeline {
    let pairs = || {
        ENDS.into_iter()
            .flat_map(|one| ENDS.map(|other| (one, other)))
    };
    let slices = pairs().map(|(start_ns, duration_ns)| Slice {
        start_ns,
        duration_ns,
        self_ns: duration_ns,
        ..Slice::default()
    });
    let steps = pairs().map(|(start_ns, end_ns)| Step {
        start_ns,
        end_ns,
        number: u64::MAX,
        track: None,
        slice: None,
        non_exhaustive: (),
    });
    Timeline {
        start_unix_ns: i64::MAX,
        duration_ns: i64::MAX,
        names: vec![SliceName::default()],
        tracks: vec![Track::default()],
        slices: slices.collect(),
        steps: steps.collect(),
        counters: vec![Counter {
            samples: ENDS.map(|at| (at, f64::MAX)).to_vec(),
            ..Counter::default()
        }],
        ..Timeline::default()
    }
}

#[test]
fn extreme_rows_have_a_page() {
    let summary = Summary {
        rows: vec![row("a"), row("b")],
        wall_ns: f64::MAX,
        ..Summary::default()
    };
    let html = Page::new().summary(&summary).to_html();
    assert!(
        html.contains("18\u{202f}446\u{202f}744"),
        "the calls are shown"
    );
}

#[test]
fn extreme_times_have_a_page_and_a_trace() {
    let line = timeline();
    assert!(Page::new().timeline(&line).to_html().contains("id=data"));
    let path = std::env::temp_dir().join(format!("extreme-{}", std::process::id()));
    line.export_perfetto(&path).expect("room");
    line.export_chrome_trace(&path).expect("room");
    std::fs::remove_file(path).expect("a file");
}

#[test]
fn extreme_calls_are_added_up_to_the_largest_count() {
    let tree = CallTree {
        nodes: vec![node(None), node(None), node(Some(0))],
        ..CallTree::default()
    };
    let functions = tree.functions();
    assert_eq!(functions.len(), 1);
    assert_eq!(functions[0].calls, u64::MAX);
    assert!(!tree.edges().is_empty());
    assert!(super::tree::json(&tree).is_some());
}
