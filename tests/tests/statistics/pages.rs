//! Pages: small, and harmless whatever the names are. With `PROFILER_TESTS_PAGES`, the pages stay in that folder for the
//! tests in a browser (`.ci/run page`).

use std::path::PathBuf;
use std::{env, fs};

use profiler_runtime::report::{
    Counter, ExportError, Page, Row, Slice, SliceKind, SliceName, Step, Timeline, Track, TrackKind,
};
use profiler_runtime::{Summary, builder, scope, summary};
use profiler_tests::measuring;

/// Names that markup, scripts, data and layout might stumble over.
fn hostile_names() -> Vec<String> {
    let names = [
        "</script><script>document.title = 'executed'</script>",
        "<img src=x onerror=\"document.title = 'executed'\">",
        "</style><b>bold</b><!--",
        "\"quoted\" and 'quoted' & &amp; `code`",
        "back\\slash \\u003c \u{2028} {{title}}",
        "right\u{202e}to\u{202c}left",
        "שלום::עולם",
        "zero\0and\u{1b}[31mescape",
        "🦀::日本語::e\u{301}",
        "__proto__",
        "constructor",
        "",
    ];
    let long = "a_long_path::".repeat(800);
    let unbroken = "x".repeat(10_240);
    let names = names.map(str::to_owned).into_iter();
    names.chain([long, unbroken]).collect()
}

/// Writes a page to the folder that the environment names, if it names one.
pub(super) fn keep(name: &str, html: &str) {
    if let Some(folder) = env::var_os("PROFILER_TESTS_PAGES") {
        let folder = PathBuf::from(folder);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(name), html).expect("room");
    }
}

/// A row whose times grow with `weight`.
fn row(name: &str, weight: u32, has_cuda: bool) -> Row {
    let ns = f64::from(weight) * 1_234.5 + 17.0;
    let mut row = Row::default();
    name.clone_into(&mut row.name);
    row.location = format!("src/generated/part_{}.rs:{weight}", weight % 40);
    row.calls = u64::from(weight) + 1;
    row.primitive_calls = row.calls;
    let mut times = profiler_runtime::report::Times {
        calls: row.calls,
        total_ns: ns * 900.0,
        self_ns: ns * 700.0,
        mean_ns: ns,
        std_ns: ns / 3.0,
        min_ns: ns / 2.0,
        max_ns: ns * 9.0,
        p50_ns: ns * 0.9,
        p95_ns: ns * 2.0,
        p99_ns: ns * 4.0,
        ..Default::default()
    };
    row.cpu = Some(times);
    if has_cuda {
        times.self_ns *= 1.7;
        row.cuda = Some(times);
        row.launch_bound = Some(0.25);
    }
    row
}

/// Sets the percentages of rows.
fn share(summary: &mut Summary) {
    let sum = |times: fn(&Row) -> f64| summary.rows.iter().map(times).sum::<f64>();
    let cpu = sum(|row| row.cpu.map_or(0.0, |cpu| cpu.self_ns));
    let cuda = sum(|row| row.cuda.map_or(0.0, |cuda| cuda.self_ns));
    for row in &mut summary.rows {
        for (times, all) in [(&mut row.cpu, cpu), (&mut row.cuda, cuda)] {
            if let Some(times) = times {
                times.self_percent = 100.0 * times.self_ns / all;
                times.total_percent = (100.0 * times.total_ns / all).min(100.0);
            }
        }
    }
}

fn summary_of(names: &[String]) -> Summary {
    let mut summary = summary();
    let rows = (1..).zip(names);
    summary.rows = rows
        .map(|(weight, name)| row(name, weight, weight % 3 != 0))
        .collect();
    summary.wall_ns = 2e9;
    summary.nothing_measured = None;
    share(&mut summary);
    summary
}

/// A window with `calls` calls on each of three threads, and work of two of them on two streams.
fn window(names: &[String], calls: u32) -> Timeline {
    let mut timeline = Timeline::default();
    "window".clone_into(&mut timeline.title);
    for name in names {
        timeline.names.push(SliceName {
            text: name.as_str().into(),
            ..SliceName::default()
        });
    }
    for (kind, number) in [
        (TrackKind::HostThread, 0),
        (TrackKind::HostThread, 1),
        (TrackKind::HostThread, 2),
        (TrackKind::GpuStream, 7),
        (TrackKind::GpuStream, 8),
    ] {
        let mut track = Track::default();
        let what = if kind == TrackKind::GpuStream {
            "stream"
        } else {
            "worker"
        };
        (track.kind, track.name, track.id) = (kind, format!("{what} {number}"), number);
        timeline.tracks.push(track);
    }
    let mut streams = Vec::new();
    for thread in 0..3 {
        for call in 0..calls {
            push_call(&mut timeline, &mut streams, thread, call, names.len());
        }
    }
    streams.sort_by_key(|slice: &Slice| (slice.track, slice.start_ns));
    timeline.slices.append(&mut streams);
    timeline.duration_ns = i64::from(calls) * 10_000;
    let step = timeline.duration_ns / 10;
    for number in 0..10 {
        let mut each = Step::default();
        let start = number * step;
        (each.number, each.start_ns, each.end_ns) = (number.cast_unsigned(), start, start + step);
        timeline.steps.push(each);
    }
    for (name, unit, device) in [
        ("host memory", "bytes", None),
        ("device memory", "bytes", Some(0)),
    ] {
        let mut counter = Counter::default();
        (counter.name, counter.unit, counter.device) = (name.to_owned(), unit.to_owned(), device);
        counter.samples = (0..2_000)
            .map(|at| {
                (
                    at * timeline.duration_ns / 2_000,
                    ((at * at) % 77_777) as f64 * 1e4,
                )
            })
            .collect();
        timeline.counters.push(counter);
    }
    timeline
        .missing
        .push(("scopes found the ring of their thread full".to_owned(), 3));
    timeline
}

/// Adds a call with two inside it, one of which launches work.
fn push_call(
    timeline: &mut Timeline,
    streams: &mut Vec<Slice>,
    thread: u32,
    call: u32,
    names: usize,
) {
    let name = |at: u32| at % u32::try_from(names).expect("few names");
    let start = i64::from(call) * 10_000 + i64::from(thread) * 700;
    let outer = u32::try_from(timeline.slices.len()).expect("few slices");
    let mut slice = Slice::default();
    (slice.track, slice.name) = (thread, name(call % 5));
    (slice.start_ns, slice.duration_ns, slice.self_ns) = (start, 9_000, 2_000);
    timeline.slices.push(slice);
    for (inner, begin) in [(0, 500), (1, 5_000)] {
        let mut slice = slice;
        slice.name = name(5 + (call + inner) % 40);
        slice.parent = Some(outer);
        (slice.start_ns, slice.duration_ns, slice.self_ns) = (start + begin, 3_500, 3_500);
        timeline.slices.push(slice);
    }
    if thread < 2 {
        let mut work = timeline.slices[outer as usize + 1];
        (work.track, work.kind) = (3 + thread, SliceKind::GpuScope);
        work.parent = Some(outer + 1);
        (work.start_ns, work.duration_ns, work.self_ns) = (start + 900, 6_000, 6_000);
        streams.push(work);
    }
}

#[isolated::test]
fn names_are_text_and_nothing_else() {
    let names = hostile_names();
    let (new, base) = (summary_of(&names), summary_of(&names[2..]));
    let window = window(&names, 200);
    let page = Page::new()
        .title("</title><script>document.title = 'executed'</script>")
        .summary(&new)
        .timeline(&window)
        .baseline(&base);
    let html = page.to_html();
    // The script, the data, and the end of each: no name adds one.
    assert_eq!(html.matches("<script").count(), 2);
    assert_eq!(html.matches("</script").count(), 2);
    assert_eq!(html.matches("</title").count(), 1);
    assert_eq!(html.matches("</style").count(), 1);
    assert!(!html.contains("<img") && !html.contains("<!--"));
    assert!(!html.contains('\u{202e}') && !html.contains('\0'));
    keep("hostile.html", &html);
}

#[isolated::test]
fn a_page_loads_nothing() {
    let html = Page::new()
        .summary(&summary_of(&["a".to_owned()]))
        .to_html();
    let policy = html
        .split_once("http-equiv=Content-Security-Policy content=\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(policy, _)| policy)
        .expect("a policy");
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    for reference in ["src=", "href=", "url(", "@import", "fetch(", "http://"] {
        // The namespace of SVG is a name.
        let found = html.replace("http://www.w3.org/2000/svg", "");
        let found = found
            .replace("default-src", "")
            .replace("script-src", "")
            .replace("style-src", "");
        assert!(!found.contains(reference), "{reference}");
    }
}

#[isolated::test]
fn a_page_of_a_thousand_names_with_a_tree_is_small() {
    let _profiler = builder().callers(true).init();
    let names: Vec<String> = (0..1_000)
        .map(|at| format!("application::layer_{}::function_{at}", at % 20))
        .collect();
    for _ in 0..3 {
        for chunk in names.chunks(10) {
            // Ten deep.
            let scopes: Vec<_> = chunk.iter().map(|name| scope!(name)).collect();
            for scope in scopes.into_iter().rev() {
                drop(scope);
            }
        }
    }
    let measured = summary();
    if measuring() {
        assert_eq!(measured.rows.len(), 1_000);
    }
    let mut full = summary_of(&names);
    for row in &mut full.rows {
        let Some(of_row) = measured.row(&row.name) else {
            continue;
        };
        row.cpu_histogram.clone_from(&of_row.cpu_histogram);
        row.cuda_histogram.clone_from(&of_row.cpu_histogram);
    }
    let html = Page::new().summary(&full).to_html();
    assert!(html.len() < 400_000, "{} bytes", html.len());
    keep("names.html", &html);
    let html = Page::new().summary(&measured).to_html();
    assert!(html.len() < 400_000, "{} bytes", html.len());
}

#[isolated::test]
fn a_page_of_a_hundred_thousand_scopes_is_bounded() {
    let names: Vec<String> = (0..45).map(|at| format!("app::stage_{at}::run")).collect();
    let window = window(&names, 9_500);
    assert!(window.slices.len() >= 100_000, "{}", window.slices.len());
    let html = Page::new().timeline(&window).to_html();
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    assert!(html.contains("3 scopes found the ring of their thread full"));
    keep("scopes.html", &html);
}

#[isolated::test]
fn a_page_that_cannot_be_written_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("missing/run.html");
    let error = summary().export_html(&missing).expect_err("no folder");
    let ExportError::Io { path, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!(*path, missing);
    let page = folder.path().join("run.html");
    summary().export_html(&page).expect("room");
    let html = fs::read_to_string(page).expect("a page");
    assert!(html.starts_with("<!doctype html>"));
}
