//! The strip in the page of a window.

use super::*;
use crate::gpu_work::GpuWork;
use crate::idle::GpuIdle;
use crate::idle::{DeviceFunction, DeviceState};
use crate::page::{Page, devices::push};
use crate::timeline::{Launch, Slice, SliceKind, SliceName, Timeline, Track, TrackKind};

/// A window of 1 ms: `loader` is in two calls of half of it each, before kernels of 100 µs.
pub(in crate::page) fn window(loader: &str) -> Timeline {
    let mut timeline = Timeline {
        duration_ns: 1_000_000,
        has_kernels: true,
        ..Timeline::default()
    };
    timeline.tracks.push(Track::default());
    timeline.tracks.push(Track {
        kind: TrackKind::GpuStream,
        device: Some(0),
        ..Track::default()
    });
    for name in [loader, "train"] {
        timeline.names.push(SliceName {
            text: name.into(),
            ..SliceName::default()
        });
    }
    timeline.work.push(GpuWork::default());
    for start_ns in [0, 500_000] {
        let train = u32::try_from(timeline.slices.len()).expect("few");
        let call = |name, start_ns, duration_ns| Slice {
            name,
            start_ns,
            duration_ns,
            ..Slice::default()
        };
        timeline.slices.push(call(1, start_ns + 400_000, 20_000));
        timeline.slices.push(call(0, start_ns, 400_000));
        timeline.launches.push(Launch {
            start_ns: start_ns + 400_000,
            duration_ns: 0,
            ..Launch::default()
        });
        timeline.slices.push(Slice {
            track: 1,
            kind: SliceKind::GpuWork,
            start_ns: start_ns + 400_000,
            duration_ns: 100_000,
            work: Some(0),
            launch: u32::try_from(timeline.launches.len() - 1).ok(),
            parent: Some(train),
            ..Slice::default()
        });
    }
    timeline
}

fn html(loader: &str) -> String {
    let mut html = String::new();
    push(&mut html, &window(loader).gpu_idle());
    html
}

/// The values of an attribute of the bars.
fn bars(html: &str, attribute: &str) -> Vec<f64> {
    let bars = html.split("<ol>").nth(1).expect("bars");
    let before = format!(" {attribute}=\"");
    let values = bars.split(&before).skip(1);
    let value = |text: &str| text.split('%').next().and_then(|text| text.parse().ok());
    values
        .map(|text| value(text).expect("a percentage"))
        .collect()
}

#[test]
fn the_bars_are_all_of_the_window() {
    let html = html("load");
    assert_eq!(bars(&html, "width"), [0.0, 40.0, 20.0, 0.0, 0.0, 40.0]);
    assert!(html.contains("<b>load</b></bdi>"), "{html}");
    assert!(html.contains("<span>40 % idle</span>"), "{html}");
    assert!(html.contains("<b>train</b></bdi>") && html.contains("<span>20 % busy</span>"));
}

#[test]
fn only_idle_times_are_called_idle() {
    let mut device = window("load").gpu_idle().devices.remove(0);
    for segment in &mut device.segments {
        if segment.state != DeviceState::Busy {
            segment.state = DeviceState::NotRecorded;
        }
    }
    let mut html = String::new();
    push(
        &mut html,
        &GpuIdle {
            devices: vec![device],
        },
    );
    assert!(html.contains("<em>not recorded</em>"), "{html}");
    assert!(html.contains("<span>80 %</span>"), "{html}");
}

#[test]
fn no_two_functions_of_a_device_have_the_same_hatching() {
    let device = |names: &[&str]| DeviceIdle {
        functions: names
            .iter()
            .map(|name| DeviceFunction {
                name: (*name).into(),
                ..DeviceFunction::default()
            })
            .collect(),
        ..DeviceIdle::default()
    };
    let first = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let second = ["i", "a", "j", "h", "k", "l", "m", "n"];
    let chosen = hatchings(&[&device(&first), &device(&second)]);
    let numbers =
        |place: usize| -> Vec<usize> { chosen[place].iter().map(|(number, _)| *number).collect() };
    assert_eq!(numbers(0), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(numbers(1), [1, 0, 2, 7, 3, 4, 5, 6]);
}

#[test]
fn the_parts_of_a_strip_fill_it() {
    let idle = window("load").gpu_idle();
    let device = &idle.devices[0];
    for columns in [1, 7, 300] {
        let strip = device.strip(columns);
        let parts = device.strip(1).columns.remove(0).parts;
        let mut area = 0;
        for (part, _) in parts {
            let outline = outline(&strip, part);
            for piece in outline.split('M').skip(1) {
                let numbers = piece.split(|char: char| !char.is_ascii_digit());
                let numbers: Vec<i64> = numbers.filter_map(|text| text.parse().ok()).collect();
                let [_, _, width, height, _] = numbers[..] else {
                    panic!("{piece}");
                };
                area += width * height;
            }
        }
        assert_eq!(area, i64::try_from(columns).expect("few") * HEIGHT);
    }
}

#[test]
fn all_that_is_referred_to_is_there_and_no_name_is_markup() {
    let html = html("<b>\"'&");
    for reference in html.split("url(#").skip(1) {
        let id = reference.split(')').next().expect("an end");
        assert!(html.contains(&format!(" id={id} ")), "{id}");
    }
    assert!(html.contains("&lt;b&gt;&quot;&#39;&amp;"), "{html}");
    assert!(!html.contains("<b>\""), "{html}");
}

#[test]
fn a_page_without_kernels_has_no_strip() {
    let mut without = window("load");
    without
        .slices
        .retain(|slice| slice.kind != SliceKind::GpuWork);
    let page = |timeline: &Timeline| Page::new().timeline(timeline).to_html();
    assert!(page(&window("load")).contains("id=strips"));
    let page = page(&without);
    assert!(!page.contains("id=strips") && !page.contains("<div class=\"clock cuda"));
}

#[test]
fn a_bar_says_nothing_of_what_is_as_good_as_nothing() {
    let mut device = window("load").gpu_idle().devices.remove(0);
    device.functions[0].busy_ns = 400;
    let text = |device: &DeviceIdle| {
        let mut html = String::new();
        let devices = vec![device.clone()];
        push(&mut html, &GpuIdle { devices });
        let (_, bar) = html.split_once("<b>load</b>").expect("the bar");
        let (_, text) = bar.split_once("<span>").expect("a text");
        text.split('<').next().unwrap_or_default().to_owned()
    };
    assert_eq!(text(&device), "40 % idle");
    device.functions[0].idle_ns = 0;
    assert_eq!(text(&device), "under 0.1 %");
}

/// A machine whose GPUs have different shares of busy time: the last one the least.
fn machine(devices: u32) -> GpuIdle {
    let one = window("load").gpu_idle().devices.remove(0);
    let device = |ordinal| DeviceIdle {
        device: Some(ordinal),
        busy_ns: one.busy_ns - i64::from(ordinal),
        host_ns: one.host_ns + i64::from(ordinal),
        ..one.clone()
    };
    GpuIdle {
        devices: (0..devices).map(device).collect(),
    }
}

#[test]
fn of_many_gpus_eight_have_strips_and_one_is_unfolded() {
    let html = |devices| {
        let mut html = String::new();
        push(&mut html, &machine(devices));
        html
    };
    let count = |devices, text: &str| html(devices).matches(text).count();
    let strips = [1, 4, 5, 8, 9, 100].map(|devices| count(devices, "<svg class=strip"));
    assert_eq!(strips, [1, 4, 5, 8, 8, 8]);
    let folds = [4, 5, 8, 9, 100].map(|devices| count(devices, "<details"));
    assert_eq!(folds, [0, 5, 8, 9, 9]);
    let nine = html(9);
    let (_, open) = nine
        .split_once("<details class=parts open>")
        .expect("one is open");
    assert!(!open.contains("<details class=parts open>") && !open.contains("<svg class=strip"));
    assert!(nine.contains("The 8 GPUs of 9 that were busy least, in the order of their numbers."));
    assert!(nine.contains("<summary>1 busier GPU</summary>\n<ol>\n<li><em>GPU 0</em>"));
    assert_eq!(count(100, "<li><em>GPU "), 60);
    assert!(html(100).contains("The rest is left out here"));
}

#[test]
fn what_is_missing_from_a_window_is_said_once() {
    let mut timeline = window("load");
    timeline
        .missing
        .push(("scopes found their ring full".to_owned(), 3));
    let said = |page: Page<'_>| {
        page.to_html()
            .matches("<li>3 scopes found their ring full")
            .count()
    };
    assert_eq!(said(Page::new().timeline(&timeline)), 1);
    let of_run = crate::Summary::default();
    assert_eq!(said(Page::new().summary(&of_run).timeline(&timeline)), 1);
}

#[test]
fn tints_are_those_of_the_script() {
    // `tintOf` of `canvas.js`.
    let names = ["", "a", "ab", "load_batch", "é😀"];
    assert_eq!(names.map(tint), [0, 2, 0, 2, 2]);
}

#[test]
fn a_page_of_a_thousand_names_is_small() {
    let mut timeline = window("load");
    for number in 0..1_000 {
        timeline.names.push(SliceName {
            text: format!("app::module{}::function_{number}", number % 37).into(),
            ..SliceName::default()
        });
        timeline.slices.push(Slice {
            name: number + 2,
            start_ns: i64::from(number) * 400,
            duration_ns: 300,
            parent: Some(1),
            ..Slice::default()
        });
    }
    let html = Page::new().timeline(&timeline).to_html();
    assert!(html.contains("id=strips"));
    assert!(html.len() < 400_000, "{}", html.len());
}
