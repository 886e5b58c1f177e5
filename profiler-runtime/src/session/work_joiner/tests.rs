//! Joining launches and records made by hand.

use profiler_report::GpuWork;

use super::super::{SessionOptions, ring};
use super::*;
use crate::clock::WallAnchor;
use crate::config::KernelRecording;
use crate::cuda::{Effect, NO_NAME};

/// A window of session 1 that is open for 1,000 ticks.
pub(in super::super) fn window(id: u64) -> WindowSpec {
    WindowSpec {
        id,
        session: 1,
        cycle: id,
        capacity: 100,
        options: SessionOptions::DEFAULT,
        skipped: 0,
        opened: 1_000 * id,
        closed: Some(1_000 * (id + 1)),
        toggles: Vec::new(),
        first: WallAnchor::narrow(),
        lost_before: ring::lost(),
        lost_after: ring::lost(),
        had_warmup: false,
        lost_work_before: WorkLosses::now(),
        closing_sample: None,
    }
}

pub(in super::super) fn launch(at: u64, correlation: u32) -> Launch {
    Launch {
        name: "cuGraphLaunch",
        start: at,
        end: at + 1,
        thread: 1,
        scope: 0,
        asker: None,
        correlations: [correlation; 2],
        is_part: false,
        context: 0,
        stream: None,
        gpu_thread: 0,
        effect: Effect::Work,
    }
}

/// A record without times.
pub(in super::super) fn record(correlation: u32) -> WorkActivity {
    WorkActivity {
        name: NO_NAME,
        start: 0,
        end: 0,
        details: GpuWork {
            correlation,
            ..GpuWork::default()
        },
    }
}

pub(in super::super) fn ready(launches: &[Launch], activities: &[WorkActivity]) -> Ready {
    Ready {
        launches: launches.to_vec(),
        activities: activities.to_vec(),
        names: Vec::new(),
    }
}

/// Delivers the oldest window. Returns how many launches and records were late.
fn deliver(joiner: &mut WorkJoiner, windows: &mut Windows) -> u64 {
    let mut oldest = windows.sessions[0].windows.pop_front().expect("a window");
    let (spec, builder) = oldest.parts();
    joiner.deliver(spec, builder);
    builder.work.lost.late
}

#[test]
fn a_scope_that_arrives_after_the_delivery_of_its_window_is_late_in_the_next_one() {
    let mut joiner = WorkJoiner::default();
    let mut windows = Windows::of([window(1), window(2), window(3)]);
    let graph = ready(&[launch(1_500, 7)], &[record(7)]);
    joiner.sort(graph, &mut windows);
    assert_eq!(deliver(&mut joiner, &mut windows), 0);
    // Another node of the graph, and a launch of the first window with its record.
    let late = ready(&[launch(1_600, 8)], &[record(7), record(8)]);
    joiner.sort(late, &mut windows);
    assert_eq!(deliver(&mut joiner, &mut windows), 3);
    assert_eq!(deliver(&mut joiner, &mut windows), 0);
    joiner.end(1);
    assert!(joiner.settle_ended(false), "more may come");
    let warning = "after the last window of their session";
    let has_warned = || {
        let notices = diagnostics::notices();
        notices.iter().any(|notice| notice.contains(warning))
    };
    assert!(!has_warned());
    joiner.sort(ready(&[], &[record(8)]), &mut windows);
    assert!(joiner.settle_ended(false) && has_warned());
    assert!(!joiner.settle_ended(true));
    joiner.free();
    assert!(joiner.known.is_empty() && joiner.delivered.is_empty());
}

#[test]
fn losses_are_counted_in_one_window_and_in_none_without_kernels() {
    let mut joiner = WorkJoiner::default();
    let [first, second] = [window(1), window(2)];
    let without = WindowSpec {
        session: 2,
        options: SessionOptions {
            kernels: KernelRecording::Off,
            ..SessionOptions::DEFAULT
        },
        ..window(3)
    };
    cuda::lose_work(WorkLoss::QueueFull, 3);
    let lost = |spec: &WindowSpec| {
        let mut builder = WindowBuilder::default();
        joiner.deliver(spec, &mut builder);
        builder.work.lost.queue_full
    };
    let counted = [&first, &second, &without].map(lost);
    assert_eq!(counted, [3, 0, 0]);
}

#[cfg_attr(miri, ignore = "takes long")]
#[test]
fn launches_that_are_not_remembered_are_counted() {
    let mut joiner = WorkJoiner::default();
    let mut windows = Windows::of([window(1)]);
    let most = u32::try_from(MAX_KNOWN).expect("small");
    let launches: Vec<Launch> = (0..most).map(|number| launch(1_500, number)).collect();
    let before = WorkLosses::now().launch_queue_full;
    joiner.sort(ready(&launches, &[]), &mut windows);
    assert_eq!(joiner.known.len(), MAX_KNOWN - 1);
    // Other tests lose launches too.
    assert!(WorkLosses::now().launch_queue_full > before);
    // A launch whose records have come makes room.
    joiner.sort(ready(&[], &[record(5), record(6)]), &mut windows);
    joiner.sort(ready(&[launch(1_600, most)], &[]), &mut windows);
    assert!(joiner.known.contains_key(&most) && !joiner.known.contains_key(&5));
}
