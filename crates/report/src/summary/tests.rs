//! Summaries that are read from their JSON.

use std::sync::Arc;

use proptest::prelude::*;

use super::Summary;
use crate::losses::CudaLoss;
use crate::losses::DropReason;
use crate::row::Row;
use crate::time_source::TimeSource;
use crate::times::Times;
use crate::{CallNode, CallTree, EdgeTimes, Environment, HiddenCalls, TableOptions};

/// Times with the decimals that the JSON has, up to ten years.
fn ns() -> impl Strategy<Value = f64> {
    (0_u64..3_153_600_000_000_000_000).prop_map(|tenths| tenths as f64 / 10.0)
}

fn times() -> impl Strategy<Value = Times> {
    (any::<u64>(), ns(), ns(), 0_u32..10_001, ns()).prop_map(
        |(calls, total_ns, self_ns, hundredths, p95_ns)| Times {
            calls,
            total_ns,
            self_ns,
            self_percent: f64::from(hundredths) / 100.0,
            p95_ns,
            ..Times::default()
        },
    )
}

fn row() -> impl Strategy<Value = Row> {
    let texts = ("\\PC{0,20}|[\\x00-\\x7f]{0,9}", "\\PC{0,9}");
    let parts = (
        proptest::option::of(times()),
        proptest::option::of(times()),
        proptest::option::of((0..=1000).prop_map(|share| f64::from(share) / 1000.0)),
        proptest::option::of(ns()),
    );
    (texts, parts, any::<(u64, bool)>()).prop_map(|(texts, parts, (calls, flag))| Row {
        name: texts.0,
        streams: vec![texts.1],
        calls,
        cpu: parts.0,
        cuda: parts.1,
        launch_bound: parts.2,
        thread_time_total_ns: parts.3,
        too_short: flag,
        source: TimeSource::Cuda,
        ..Row::default()
    })
}

fn environment() -> impl Strategy<Value = Environment> {
    let settings = proptest::collection::vec(("[A-Z_]{1,9}", "\\PC{0,9}"), 0..3);
    (any::<(String, u32, Option<u64>, bool, i64)>(), settings).prop_map(
        |((program, process, rank, debug_build, start_unix_ns), settings)| Environment {
            program,
            process,
            rank,
            debug_build,
            start_unix_ns,
            settings,
            driver: rank.map(|rank| rank.to_string()),
            ..Environment::default()
        },
    )
}

/// A tree whose nodes have any earlier node as their parent.
fn call_tree() -> impl Strategy<Value = CallTree> {
    let times = || {
        let times = proptest::option::of((ns(), ns()));
        times.prop_map(|times| {
            times.map(|(total_ns, self_ns)| EdgeTimes {
                total_ns,
                self_ns,
                non_exhaustive: (),
            })
        })
    };
    let node = (
        any::<(u32, u64, u64)>(),
        0..3_u8,
        times(),
        times(),
        0..2_u64,
    );
    proptest::collection::vec(node, 0..9).prop_map(|nodes| {
        let mut tree = CallTree::default();
        for (place, ((parent, calls, recursive_calls), name, cpu, cuda, hidden)) in (0..).zip(nodes)
        {
            tree.nodes.push(CallNode {
                parent: parent.checked_rem(place).filter(|parent| parent % 2 == 0),
                name: format!("name \"{name}\"").into(),
                location: format!("{name}.rs:1").into(),
                calls,
                recursive_calls,
                cpu,
                cuda,
                hidden: HiddenCalls {
                    calls: hidden,
                    cpu_ns: hidden as f64 * 2.5,
                    cuda_ns: 0.0,
                    pair_cuda_ns: 0.0,
                    non_exhaustive: (),
                },
                ..CallNode::default()
            });
        }
        tree
    })
}

fn summaries() -> impl Strategy<Value = Summary> {
    let rows = proptest::collection::vec(row(), 0..4);
    let texts = any::<(Vec<String>, Option<String>)>();
    let call_tree = proptest::option::of(call_tree());
    (rows, environment(), texts, (ns(), any::<u64>()), call_tree).prop_map(
        |(rows, environment, (notices, nothing_measured), (wall_ns, count), call_tree)| {
            let mut summary = Summary {
                rows,
                environment,
                notes: notices.clone(),
                notices,
                nothing_measured,
                wall_ns,
                call_tree: call_tree.map(Arc::new),
                self_cuda_time_total_ns: Some(wall_ns),
                percentile_error: crate::buckets::RELATIVE_ERROR,
                dropped: vec![(DropReason::RingFull, count), (DropReason::NoMemory, 1)],
                ..Summary::default()
            };
            summary.cuda.lost = vec![(CudaLoss::Captured, count)];
            summary.cuda.is_explained = count % 2 == 0;
            summary.own_cost.background = 0.25;
            summary
        },
    )
}

fn read(json: &str) -> Summary {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {json}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_summary_is_read_from_its_json(summary in summaries()) {
        let json = summary.to_json();
        let again = read(&json);
        prop_assert_eq!(again.to_json(), &*json);
        prop_assert_eq!(&again, &read(&again.to_json()));
        let width = TableOptions::new().width(200);
        prop_assert_eq!(again.table(&width), summary.table(&width));
    }

    #[test]
    fn serde_writes_what_it_reads(summary in summaries()) {
        let json = serde_json::to_string(&summary).expect("it is written");
        prop_assert_eq!(read(&json), summary);
    }
}

#[test]
fn serde_writes_the_keys_of_the_json() {
    let summary = Summary::default();
    let keys = |json: &str| -> Vec<String> {
        let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
        let keys = |value: &serde_json::Value| -> Vec<String> {
            let members = value.as_object().expect("an object");
            members.keys().cloned().collect()
        };
        let parts = ["environment", "cuda", "own_cost"].map(|part| keys(&value[part]));
        [keys(&value)].into_iter().chain(parts).flatten().collect()
    };
    let by_serde = serde_json::to_string(&summary).expect("it is written");
    assert_eq!(keys(&summary.to_json()), keys(&by_serde));
}

#[test]
fn missing_keys_have_defaults_and_unknown_ones_are_ignored() {
    let json = r#"{"rows":[{"name":"a","calls":2,"colour":"red"}],"dropped":{"ring_full":3,"of_the_future":1},"weather":[]}"#;
    let summary = read(json);
    assert_eq!((summary.rows[0].calls, &*summary.rows[0].name), (2, "a"));
    assert_eq!(summary.dropped, [(DropReason::RingFull, 3)]);
    assert_eq!(summary.environment, Environment::default());
}

#[test]
fn a_call_tree_whose_nodes_do_not_fit_is_refused() {
    let refused = |tree: &str, expected: &str| {
        let json = format!(r#"{{"call_tree":{tree}}}"#);
        let error = serde_json::from_str::<Summary>(&json).expect_err("it does not fit");
        assert!(error.to_string().starts_with(expected), "{error}");
    };
    assert_eq!(read(r#"{"call_tree":null}"#), Summary::default());
    let root = "[null,0,1,0,9.0,9.0,null,null]";
    refused(
        &format!(r#"{{"names":[["a",""]],"nodes":[{root},[1,0,1,0,null,null,null,null]]}}"#),
        "node 1 of `call_tree` has the parent 1, which does not come before it",
    );
    refused(
        &format!(r#"{{"nodes":[{root}]}}"#),
        "node 0 of `call_tree` has the name 0, and there are 0",
    );
    refused(
        r#"{"hidden":[[3,1,1.0,1.0]]}"#,
        "`hidden` of `call_tree` has node 3, and there are 0",
    );
}

#[test]
fn a_deep_call_tree_is_cut_and_its_files_stay_small() {
    let nodes: Vec<String> = (0..2_000_u32)
        .map(|depth| {
            let parent = depth
                .checked_sub(1)
                .map_or("null".to_owned(), |parent| parent.to_string());
            format!("[{parent},{depth},1,0,9.0,1.0,null,null]")
        })
        .collect();
    let names: Vec<String> = (0..2_000)
        .map(|depth| format!(r#"["f{depth}",""]"#))
        .collect();
    let json = format!(
        r#"{{"call_tree":{{"names":[{}],"nodes":[{}]}}}}"#,
        names.join(","),
        nodes.join(",")
    );
    let tree = read(&json).call_tree();
    let nodes = 0..u32::try_from(tree.nodes.len()).expect("few nodes");
    assert_eq!(nodes.map(|node| tree.path(node).len()).max(), Some(512));
    assert!(tree.functions().iter().all(|function| function.calls <= 1));
    assert_eq!(
        tree.edges().iter().filter(|edge| edge.calls == 1).count(),
        2_000
    );
}

#[test]
fn numbers_at_the_end_of_their_range_are_no_overflow() {
    let records = u64::MAX;
    let json =
        format!(r#"{{"rows":[],"cuda":{{"records":{{"long":{records},"timed":{records}}}}}}}"#);
    let table = |json: &str| read(json).table(crate::TableOptions::new());
    assert!(table(&json).contains("longer than 0.1 ms"), "{json}");
    let none = json.replace(&format!(r#","timed":{records}"#), "");
    assert!(
        !table(&none).contains("longer than 0.1 ms"),
        "none was timed"
    );
}

#[test]
fn a_newer_schema_is_refused() {
    assert_eq!(read(r#"{"schema_version":1}"#), Summary::default());
    let error = serde_json::from_str::<Summary>(r#"{"schema_version":2,"rows":7}"#);
    let error = error.expect_err("it is newer").to_string();
    assert!(
        error.starts_with("the summary has schema version 2"),
        "{error}"
    );
}
