//! Any events become a time line that keeps its promises.

use proptest::prelude::*;

use super::{of_text, on_track, own, read};
use profiler_report::Timeline;

const KINDS: [(&str, &str); 6] = [
    ("cpu_op", ""),
    ("user_annotation", ""),
    ("cuda_runtime", r#""correlation": 1"#),
    ("kernel", r#""correlation": 1"#),
    ("gpu_user_annotation", r#""External id": 1"#),
    (
        "cpu_op",
        r#""future": true, "self_ns": 1000, "External id": 1"#,
    ),
];

fn event() -> impl Strategy<Value = String> {
    (0..KINDS.len(), 0..3_u32, 0..3_u32, 0..40_u32, 0..20_u32).prop_map(
        |(kind, name, thread, start, duration)| {
            let (category, args) = KINDS[kind];
            let place = (
                1,
                thread
                    + if kind >= 3 {
                        10 * u32::try_from(kind).unwrap_or_default()
                    } else {
                        0
                    },
            );
            let times = (f64::from(start), f64::from(duration));
            on_track(category, &format!("n{name}"), place, times, args)
        },
    )
}

fn check(timeline: &Timeline) {
    let slices = &timeline.slices;
    let mut last_start = vec![i64::MIN; timeline.tracks.len()];
    let mut open: Vec<Vec<i64>> = vec![Vec::new(); timeline.tracks.len()];
    let first_on_gpu = slices.iter().position(|slice| slice.kind.is_on_gpu());
    for (index, slice) in slices.iter().enumerate() {
        assert!((slice.name as usize) < timeline.names.len());
        assert!(slice.start_ns >= 0 && slice.start_ns + slice.duration_ns <= timeline.duration_ns);
        assert!((0..=slice.duration_ns).contains(&slice.self_ns));
        assert!(first_on_gpu.is_none_or(|first| (index >= first) == slice.kind.is_on_gpu()));
        if let Some(parent) = slice.parent {
            assert!((parent as usize) < index && !slices[parent as usize].kind.is_on_gpu());
        }
        // On a track, slices nest, in the order of their starts.
        let track = slice.track as usize;
        assert!(last_start[track] <= slice.start_ns);
        last_start[track] = slice.start_ns;
        let end = slice.start_ns + slice.duration_ns;
        open[track].retain(|until| {
            *until > slice.start_ns || (slice.duration_ns == 0 && *until == slice.start_ns)
        });
        assert!(open[track].iter().all(|until| end <= *until));
        open[track].push(end);
    }
}

proptest! {
    #[test]
    fn any_events_keep_the_order(events in prop::collection::vec(event(), 0..40), is_own: bool) {
        let timeline = if is_own { of_text(&own(&events)) } else { read(&events.join(",")) };
        check(&timeline);
        // What a note is about may be there all the same.
        let notes = ["have no launch in the file", "have no category", "time is probably wrong"];
        let is_missing =
            |(reason, _): &&(String, u64)| !notes.iter().any(|note| reason.contains(note));
        let missing = timeline.missing.iter().filter(is_missing);
        let missing: u64 = missing.map(|(_, count)| count).sum();
        prop_assert_eq!(timeline.slices.len() as u64 + missing, events.len() as u64);
        let averages = timeline.key_averages();
        let own: f64 = averages.rows.iter().filter_map(|row| row.cpu).map(|cpu| cpu.self_ns).sum();
        // Whole nanoseconds add up exactly.
        prop_assert!((averages.self_cpu_time_total_ns.unwrap_or(0.0) - own).abs() < 0.5);
    }
}
