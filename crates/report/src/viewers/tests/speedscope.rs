use proptest::prelude::*;
use serde_json::Value;

use super::super::speedscope::Document;
use super::{any_tree, tree};
use crate::{CallTree, Slice, SliceName, Timeline, Track, TrackKind};

fn of_tree(tree: &CallTree) -> Value {
    let mut document = Document::default();
    document.add_tree(tree);
    serde_json::from_str(&document.finish("run")).expect("JSON")
}

fn of_timeline(timeline: &Timeline) -> Value {
    let mut document = Document::default();
    document.add_timeline(timeline);
    serde_json::from_str(&document.finish("run")).expect("JSON")
}

fn number(value: &Value) -> i64 {
    value.as_i64().expect("an integer")
}

fn array(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

/// Fails unless slices nest and times never fall, as the page requires. Returns the sum of all durations.
fn check_events(profile: &Value) -> i64 {
    let mut open = Vec::new();
    let mut last = number(&profile["startValue"]);
    let mut sum = 0;
    for event in array(&profile["events"]) {
        let (frame, at) = (number(&event["frame"]), number(&event["at"]));
        assert!(at >= last, "{profile}");
        last = at;
        if event["type"] == "O" {
            open.push((frame, at));
        } else {
            let (opened, start) = open.pop().expect("an open slice");
            assert_eq!(opened, frame);
            sum += at - start;
        }
    }
    assert!(open.is_empty() && last <= number(&profile["endValue"]));
    sum
}

/// Returns a time line of slices on a thread, a stream and a track of futures.
fn timeline(slices: &[(u32, i64, i64)]) -> Timeline {
    let mut timeline = Timeline::default();
    let kinds = [
        TrackKind::HostThread,
        TrackKind::GpuStream,
        TrackKind::Futures,
    ];
    for kind in kinds {
        timeline.tracks.push(Track {
            kind,
            name: format!("{kind:?}"),
            ..Track::default()
        });
    }
    timeline.names.push(SliceName {
        text: "f".into(),
        location: "src/main.rs:7".into(),
        ..SliceName::default()
    });
    timeline.duration_ns = 30;
    for (track, start_ns, duration_ns) in slices {
        timeline.slices.push(Slice {
            track: *track,
            start_ns: *start_ns,
            duration_ns: *duration_ns,
            ..Slice::default()
        });
    }
    timeline
}

#[test]
fn calls_are_samples_by_gpu_time_first() {
    let tree = tree(&[
        (None, "main", 1, 10.4, None),
        (Some(0), "forward", 3, 20.0, Some(30.6)),
    ]);
    let document = of_tree(&tree);
    let frames = array(&document["shared"]["frames"]);
    assert_eq!(frames[1]["name"], "forward");
    assert_eq!(
        (&frames[1]["file"], &frames[1]["line"]),
        (&"src/main.rs".into(), &7.into())
    );
    let profiles = array(&document["profiles"]);
    assert_eq!(profiles[0]["name"], "all, by CUDA time");
    assert_eq!(profiles[0]["samples"], serde_json::json!([[0, 1]]));
    assert_eq!(profiles[0]["weights"], serde_json::json!([31]));
    assert_eq!(profiles[1]["samples"], serde_json::json!([[0], [0, 1]]));
    assert_eq!(profiles[1]["endValue"], 30);
}

#[test]
fn threads_come_before_streams_and_futures_are_shown_where_they_ran() {
    let document = of_timeline(&timeline(&[(1, 5, 5), (0, 0, 30), (2, 0, 30), (0, 10, 5)]));
    let profiles = array(&document["profiles"]);
    let names: Vec<&Value> = profiles.iter().map(|profile| &profile["name"]).collect();
    assert_eq!(names, ["HostThread", "GpuStream"]);
    assert_eq!(check_events(&profiles[0]), 35);
    assert_eq!(check_events(&profiles[1]), 5);
}

#[test]
fn slices_that_overlap_are_shown_in_profiles_of_their_own() {
    let document = of_timeline(&timeline(&[(1, 0, 10), (1, 5, 10)]));
    let profiles = array(&document["profiles"]);
    assert_eq!(profiles[1]["name"], "GpuStream (2)");
    for profile in profiles {
        assert_eq!(check_events(profile), 10);
    }
}

#[test]
fn a_file_has_a_profile_even_if_nothing_was_measured() {
    let document = of_tree(&CallTree::default());
    assert_eq!(document["profiles"][0]["name"], "nothing was measured");
}

proptest! {
    #[test]
    fn all_slices_of_threads_and_streams_are_shown(
        slices in prop::collection::vec((0..2_u32, 0..50_i64, -3..20_i64), 0..60)
    ) {
        let document = of_timeline(&timeline(&slices));
        let shown: i64 = array(&document["profiles"]).iter().map(check_events).sum();
        // A negative length, which only a broken file has, is none.
        let expected: i64 = slices.iter().map(|(.., length)| length.max(&0)).sum();
        prop_assert_eq!(shown, expected);
    }

    #[test]
    fn samples_have_all_of_the_time(tree in any_tree()) {
        let document = of_tree(&tree);
        let cpu: f64 = tree.nodes.iter().map(|node| node.cpu.unwrap().self_ns).sum();
        let profiles = array(&document["profiles"]);
        for profile in profiles.iter().filter(|profile| profile["type"] == "sampled") {
            let sum: i64 = array(&profile["weights"]).iter().map(number).sum();
            prop_assert_eq!(sum, number(&profile["endValue"]));
            if profile["name"] == "all, by CPU time" {
                prop_assert_eq!(sum as f64, cpu);
            }
        }
    }
}
