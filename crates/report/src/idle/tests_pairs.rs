//! The three states of a device without kernels.

use super::tests::Drawn;
use crate::timeline::{Slice, SliceKind, TrackKind};

impl Drawn {
    /// Adds a call with its event pair, in microseconds.
    fn pair(
        &mut self,
        track: u32,
        stream: u32,
        name: &str,
        call: (i64, i64),
        pair: (i64, i64),
        parent: Option<u32>,
    ) -> u32 {
        self.0.has_kernels = false;
        let call = self.scope(track, name, call, parent);
        let name = self.0.slices[call as usize].name;
        self.0.slices.push(Slice {
            track: stream,
            name,
            kind: SliceKind::GpuScope,
            start_ns: pair.0 * 1000,
            duration_ns: (pair.1 - pair.0) * 1000,
            self_ns: (pair.1 - pair.0) * 1000,
            parent: Some(call),
            ..Slice::default()
        });
        call
    }
}

#[test]
fn a_pair_shows_a_busy_device_if_its_call_returned_earlier_and_no_pair_is_inside() {
    let mut drawn = Drawn::new(1000);
    let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
    let step = drawn.pair(main, stream, "step", (100, 700), (100, 720), None);
    drawn.pair(main, stream, "forward", (110, 120), (110, 210), Some(step));
    drawn.pair(main, stream, "read", (300, 400), (300, 400), Some(step));
    drawn.scope(main, "load", (700, 900), None);
    drawn.pair(main, stream, "update", (900, 905), (900, 950), None);
    let device = &drawn.0.gpu_pairs().devices[0];
    assert_eq!(
        (device.busy_ns, device.host_paced_ns, device.idle_ns),
        (150_000, 520_000, 330_000)
    );
    assert_eq!(device.window_ns(), 1_000_000);
    assert_eq!(
        device.verdict(),
        "The host paces the GPU: the GPU was busy for 18 % of the time between its first work and its last, host-paced for 61 %, \
         and idle for 21 %. \
         `load` kept it waiting for 100 % of the idle time between its first work and its last. It was host-paced longest in \
         `step`. Kernels were not recorded: without them it is not known how much of its host-paced time it was idle."
    );
}

#[test]
fn streams_of_a_device_are_one_and_devices_are_apart() {
    let mut drawn = Drawn::new(100);
    let main = drawn.thread(1);
    let streams = [drawn.stream(0, 7), drawn.stream(0, 8), drawn.stream(1, 7)];
    drawn.pair(main, streams[0], "a", (0, 2), (0, 50), None);
    drawn.pair(main, streams[1], "b", (2, 95), (30, 60), None);
    drawn.pair(main, streams[2], "c", (95, 96), (0, 95), None);
    let pairs = drawn.0.gpu_pairs();
    let times: Vec<_> = pairs
        .devices
        .iter()
        .map(|device| (device.busy_ns, device.host_paced_ns, device.idle_ns))
        .collect();
    assert_eq!(times, [(50_000, 10_000, 40_000), (95_000, 0, 5_000)]);
    assert!(
        pairs.devices[1]
            .verdict()
            .starts_with("The GPU limits the program: the GPU was busy for 100 %")
    );
}

#[test]
fn where_kernels_were_recorded_pairs_say_nothing() {
    let mut drawn = Drawn::new(100);
    let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
    drawn.pair(main, stream, "a", (0, 2), (0, 50), None);
    let launch = drawn.launch(main, (1, 2));
    drawn.work(stream, (5, 50), Some(launch));
    assert!(drawn.0.gpu_pairs().devices.is_empty());
    assert_eq!(drawn.0.gpu_idle().devices.len(), 1);
}

/// A pair in which the device worked, and what the program reported of its time.
fn with_reported(reported: (i64, i64)) -> Drawn {
    let mut drawn = Drawn::new(1000);
    let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
    let forward = drawn.pair(main, stream, "forward", (0, 100), (0, 1000), None);
    let call = drawn.scope(main, "launch", (10, 90), Some(forward));
    let track = drawn.track(TrackKind::GpuStream, 1_000_000, None);
    let name = drawn.name("kernel");
    drawn.0.slices.push(Slice {
        track,
        name,
        kind: SliceKind::GpuScope,
        start_ns: reported.0 * 1000,
        duration_ns: (reported.1 - reported.0) * 1000,
        self_ns: (reported.1 - reported.0) * 1000,
        parent: Some(call),
        ..Slice::default()
    });
    drawn
}

#[test]
fn times_that_the_program_reported_are_no_pairs() {
    let mut drawn = with_reported((50, 300));
    let pairs = drawn.0.gpu_pairs();
    let times = pairs
        .devices
        .iter()
        .map(|device| (device.device, device.busy_ns, device.host_paced_ns));
    assert_eq!(times.collect::<Vec<_>>(), [(Some(0), 1_000_000, 0)]);
    // By themselves, they tell nothing of a device.
    drawn.0.slices.remove(1);
    drawn
        .0
        .slices
        .retain(|slice| slice.parent.is_none() || slice.is_on_gpu());
    drawn.0.slices[1].parent = Some(0);
    assert!(drawn.0.gpu_pairs().devices.is_empty());
}

#[test]
fn shares_are_of_the_time_from_the_first_pair_to_the_last() {
    let mut drawn = Drawn::new(1000);
    let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
    drawn.pair(main, stream, "a", (600, 610), (600, 690), None);
    drawn.pair(main, stream, "b", (690, 695), (700, 800), None);
    let device = &drawn.0.gpu_pairs().devices[0];
    assert_eq!((device.busy_ns, device.idle_ns), (190_000, 810_000));
    let verdict = device.verdict();
    for part in [
        "Most of the window is start-up: the first work began after 600 µs, 60 % of the window.",
        "busy for 95 % of the time between its first work and its last",
    ] {
        assert!(verdict.contains(part), "{verdict}");
    }
}

#[test]
fn where_no_pair_is_placed_no_share_is_said() {
    let mut drawn = Drawn::new(100);
    let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
    drawn.pair(main, stream, "a", (0, 2), (0, 0), None);
    let verdict = drawn.0.gpu_pairs().devices[0].verdict();
    assert!(
        verdict
            .starts_with("What limits the GPU is not known: when its work began was not recorded."),
        "{verdict}"
    );
}
