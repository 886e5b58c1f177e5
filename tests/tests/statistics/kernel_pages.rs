//! The page of a window with kernels, and with more levels than a screen has. With `PROFILER_TESTS_PAGES`, it stays in that
//! folder for the tests in a browser.

use profiler_runtime::report::{
    KernelGap, Launch, Page, Slice, SliceKind, SliceName, Timeline, Track, TrackKind,
};

use super::pages::keep;

const STEPS: i64 = 100;
const NAMES: [&str; 5] = [
    "app::step",
    "app::forward",
    "app::backward",
    "void cutlass::Kernel<float, 128>(float const*, float*)",
    "Memcpy HtoD",
];

fn slice(track: u32, name: u32, span: (i64, i64), kind: SliceKind, parent: Option<u32>) -> Slice {
    let mut slice = Slice::default();
    (slice.track, slice.name, slice.kind, slice.parent) = (track, name, kind, parent);
    (slice.start_ns, slice.duration_ns, slice.self_ns) = (span.0, span.1, span.1);
    slice
}

/// A hundred steps of 10 µs, in each of which a kernel runs for 2 µs and a copy, whose launch is not known, for 1 µs; then calls
/// inside each other, while kernels are not recorded.
fn window(levels: u32) -> Timeline {
    use SliceKind::{Call, GpuScope, GpuWork};

    let mut timeline = Timeline::default();
    "kernels".clone_into(&mut timeline.title);
    let deep = (0..levels).map(|level| format!("app::level_{level}"));
    for name in NAMES.map(str::to_owned).into_iter().chain(deep) {
        timeline.names.push(SliceName {
            text: name.into(),
            ..SliceName::default()
        });
    }
    for (kind, name) in [
        (TrackKind::HostThread, "main (4711)"),
        (
            TrackKind::GpuStream,
            "stream 7 (0x7f00deadbeef): kernels and copies",
        ),
        (TrackKind::GpuStream, "stream 7 (0x7f00deadbeef): scopes"),
    ] {
        let mut track = Track::default();
        (track.kind, track.name) = (kind, name.to_owned());
        if kind == TrackKind::GpuStream {
            (track.id, track.device) = (7, Some(0));
        }
        timeline.tracks.push(track);
    }
    let mut on_stream = Vec::new();
    for step in 0..STEPS {
        let start = step * 10_000;
        let outer = u32::try_from(timeline.slices.len()).expect("few slices");
        let mut call = slice(0, 0, (start, 9_000), Call, None);
        call.self_ns = 2_000;
        timeline.slices.push(call);
        timeline
            .slices
            .push(slice(0, 1, (start + 500, 3_000), Call, Some(outer)));
        timeline
            .slices
            .push(slice(0, 2, (start + 4_000, 4_000), Call, Some(outer)));
        let (forward, backward) = (Some(outer + 1), Some(outer + 2));
        let mut kernel = slice(1, 3, (start + 1_500, 2_000), GpuWork, forward);
        kernel.launch = u32::try_from(step).ok();
        on_stream.push(kernel);
        let mut launch = Launch::default();
        (launch.start_ns, launch.duration_ns, launch.parent) = (start + 1_000, 400, forward);
        timeline.launches.push(launch);
        on_stream.push(slice(1, 4, (start + 6_000, 1_000), GpuWork, backward));
        on_stream.push(slice(2, 1, (start + 1_000, 3_000), GpuScope, forward));
    }
    let deep = STEPS * 10_000;
    for level in 0..levels {
        let inside = i64::from(level) * 50;
        let parent =
            (level > 0).then(|| u32::try_from(timeline.slices.len() - 1).expect("few slices"));
        let mut call = slice(
            0,
            5 + level,
            (deep + inside, 200_000 - 2 * inside),
            Call,
            parent,
        );
        if level + 1 < levels {
            call.self_ns = 100;
        }
        timeline.slices.push(call);
    }
    on_stream.sort_by_key(|slice| (slice.track, slice.start_ns));
    timeline.slices.append(&mut on_stream);
    timeline.duration_ns = deep + 200_000;
    timeline.has_kernels = true;
    let mut gap = KernelGap::default();
    (gap.start_ns, gap.duration_ns) = (deep, 200_000);
    gap.reason = "CUPTI was still starting".into();
    timeline.kernel_gaps.push(gap);
    timeline
}

#[isolated::test]
fn a_page_of_a_window_with_kernels_is_small() {
    let html = Page::new().timeline(&window(1_100)).to_html();
    assert!(html.contains("app::forward"));
    assert!(html.len() < 400_000, "{} bytes", html.len());
    keep("kernels.html", &html);
}

/// The window above on each of twelve GPUs: the work of later ones is shorter.
fn machine() -> Timeline {
    let one = window(1);
    let mut machine = Timeline::default();
    "machine".clone_into(&mut machine.title);
    machine.names.clone_from(&one.names);
    (machine.duration_ns, machine.has_kernels) = (one.duration_ns, true);
    for rank in 0..12 {
        let number = |length: usize| u32::try_from(length).expect("few");
        let tracks = number(machine.tracks.len());
        let slices = number(machine.slices.len());
        let launches = number(machine.launches.len());
        for track in &one.tracks {
            let mut track = track.clone();
            (track.rank, track.process) = (Some(rank), rank);
            machine.tracks.push(track);
        }
        for mut launch in one.launches.iter().copied() {
            launch.parent = launch.parent.map(|parent| parent + slices);
            machine.launches.push(launch);
        }
        for mut slice in one.slices.iter().copied() {
            slice.track += tracks;
            slice.parent = slice.parent.map(|parent| parent + slices);
            slice.launch = slice.launch.map(|launch| launch + launches);
            if slice.kind == SliceKind::GpuWork {
                slice.duration_ns -= i64::try_from(rank).expect("few") * 50;
                slice.self_ns = slice.duration_ns;
            }
            machine.slices.push(slice);
        }
    }
    machine
}

#[isolated::test]
fn a_page_of_a_machine_of_many_gpus_is_small() {
    let html = Page::new().timeline(&machine()).to_html();
    assert_eq!(html.matches("<svg class=strip").count(), 8);
    assert!(html.contains("<summary>4 busier GPUs</summary>"));
    assert!(html.len() < 1_000_000, "{} bytes", html.len());
    keep("gpus.html", &html);
}
