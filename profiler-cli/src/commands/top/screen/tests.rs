//! Screens to the character.

use std::path::PathBuf;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use profiler_report::{HistoryPoint, SampledGpu, Summary, Times};

use super::super::file::Look;
use super::super::line::Order;
use super::super::snapshot;
use super::*;
use crate::input::Limits;

mod ranks;

const SECOND: u64 = 1_000_000_000;

/// The times of calls that all took as long.
fn times(self_ns: f64, calls: u64) -> Times {
    let each = self_ns / calls.max(1) as f64;
    Times {
        calls,
        self_ns,
        total_ns: self_ns,
        mean_ns: each,
        p50_ns: each,
        p95_ns: each,
        max_ns: each,
        ..Times::default()
    }
}

fn row(name: &str, calls: u64, cpu_ns: f64, cuda_ns: Option<f64>) -> profiler_report::Row {
    let mut row = profiler_report::Row {
        name: name.to_owned(),
        calls,
        cpu: Some(times(cpu_ns, calls)),
        cuda: cuda_ns.map(|ns| times(ns, calls)),
        ..profiler_report::Row::default()
    };
    row.launch_bound = cuda_ns.map(|_| 0.0);
    row.location = "src/lib.rs:12".to_owned();
    let point =
        |second: u64, cpu, cuda| HistoryPoint::from((second * SECOND, SECOND, 1, cpu, 1, cuda));
    row.history = (0..24)
        .map(|second| point(second, second as f64, 24.0 - second as f64))
        .collect();
    row
}

fn summary(wall_ns: f64, factor: u64) -> Box<Summary> {
    let mut summary = Summary {
        wall_ns,
        interval_ns: Some(1e9),
        ..Summary::default()
    };
    let environment = &mut summary.environment;
    environment.program = "train".to_owned();
    environment.process = 4711;
    environment.host = "node3".to_owned();
    environment.rank = Some(2);
    let work = |ns: f64| ns * factor as f64;
    summary.rows = vec![
        row(
            "model::Transformer::forward",
            40 * factor,
            work(2.5e8),
            Some(work(4.4e8)),
        ),
        row(
            "data::Loader::next_batch_of_a_very_long_name_indeed",
            40 * factor,
            work(1.5e8),
            None,
        ),
        row(
            "optimizer::step",
            123_456 * factor,
            work(5e7),
            Some(work(1e6)),
        ),
    ];
    summary.rows[1].open = 1;
    // All of it was reported by the program, so single calls are not known.
    summary.rows[2].cuda = Some(times(work(1e6), 0));
    Box::new(summary)
}

/// The state after two summaries, the second of them written a second after the first.
fn fed() -> Feed {
    fed_with([summary(23e9, 1), summary(24e9, 2)])
}

fn fed_with(summaries: impl IntoIterator<Item = Box<Summary>>) -> Feed {
    let mut feed = Feed::default();
    for summary in summaries {
        feed.take(Look::New {
            summary,
            written: SystemTime::UNIX_EPOCH,
        });
    }
    feed
}

fn view() -> View {
    View::new(Order::Cpu, String::new())
}

/// A job of one program whose file says this.
fn job(feed: Feed) -> Job {
    let mut job = Job::of_file(PathBuf::from("live.json"), Limits::DEFAULT, None);
    job.ranks[0].feed = feed;
    job
}

fn drawn(job: &Job, view: &mut View, (columns, rows): (usize, usize), age_ms: u64) -> Vec<String> {
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(age_ms);
    snapshot::lines((columns, rows), |frame| draw(frame, job, view, now))
}

fn press(view: &mut View, code: KeyCode) {
    assert!(view.press(KeyEvent::new(code, KeyModifiers::NONE)));
}

/// Compares a screen with its golden file.
fn check(name: &str, screen: &[String]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("src/commands/top/screen/golden")
        .join(format!("{name}.txt"));
    let text = screen.join("\n") + "\n";
    if std::env::var_os("PROFILER_TESTS_BLESS").is_some() {
        std::fs::write(&path, &text).expect("it is written");
    }
    let golden = std::fs::read_to_string(&path)
        .unwrap_or_default()
        .replace("\r\n", "\n");
    assert_eq!(
        text, golden,
        "{name}: PROFILER_TESTS_BLESS=1 writes it again"
    );
}

#[test]
fn columns_are_left_out_in_narrow_terminals() {
    for columns in [200, 120, 80, 40] {
        let screen = drawn(&job(fed()), &mut view(), (columns, 9), 400);
        check(&format!("running-{columns}"), &screen);
    }
}

#[test]
fn no_terminal_is_too_small_for_many_rows() {
    let at = |second: u64| {
        let mut summary = summary(second as f64 * 1e9, second);
        for number in 0..20 {
            let name = format!("layer::{number}");
            summary.rows.push(row(&name, 7, 1e6, Some(2e6)));
        }
        summary
    };
    let rows = job(fed_with([at(1), at(2)]));
    // Without numbers, ranks are named by their files.
    let mut job = ranks::ranks();
    for number in 0..20 {
        let path = PathBuf::from(format!(
            "run/a-file-of-a-rank-with-a-long-name-{number}.json"
        ));
        let mut other = Job::of_file(path, Limits::DEFAULT, None);
        job.ranks.append(&mut other.ranks);
    }
    let sizes = (0..=44).flat_map(|columns| (0..=14).map(move |rows| (columns, rows)));
    for size in sizes.chain([(200, 1), (1, 60)]) {
        for opened in [None, Some("optimizer::step".to_owned())] {
            let mut view = view();
            view.opened_row = opened;
            drawn(&rows, &mut view, size, 400);
            drawn(&job, &mut view.of_ranks(None), size, 400);
        }
    }
}

/// A program on a GPU whose sensors are sampled, which has written its file thirty times.
fn training() -> Feed {
    let at = |second: u64| {
        let mut summary = summary(second as f64 * 1e9, second);
        summary.environment.devices = vec!["H100".to_owned()];
        summary.rows[0].name = "train::train_step".to_owned();
        summary.rows[1].launch_bound = Some(1.0);
        summary.rows[2].cuda = Some(times(2e8 * second as f64, 123_456 * second));
        summary.rows[1].cuda = Some(times(1e8 * (second.saturating_sub(10)) as f64, 40 * second));
        let mut gpu = SampledGpu::default();
        gpu.ordinal = Some(0);
        gpu.utilization_last_percent = Some((10 * second % 101) as f64);
        gpu.memory_last_bytes = Some(3e10);
        gpu.memory_total_bytes = Some(80 << 30);
        gpu.power_last_w = Some(412.0);
        gpu.power_limit_w = Some(700.0);
        gpu.sm_clock_last_mhz = Some(1620.0);
        gpu.sm_clock_max_mhz = Some(1980);
        gpu.temperature_last_c = Some(55.0);
        summary.gpus = vec![gpu];
        summary
    };
    fed_with((1..=30).map(at))
}

#[test]
fn the_strip_and_the_sensors_are_above_the_rows() {
    for columns in [200, 120, 80] {
        let mut view = View::new(Order::Limit, String::new());
        let screen = drawn(&job(training()), &mut view, (columns, 30), 400);
        check(&format!("strip-{columns}"), &screen);
    }
    let screen = drawn(&job(training()), &mut view(), (80, 16), 400);
    check("strip-low", &screen);
}

#[test]
fn the_account_of_a_device_stands_for_the_gpu_times_of_functions() {
    let at = |second: u64| {
        let mut summary = summary(second as f64 * 1e9, second);
        let charge = profiler_report::SampledCharge {
            name: summary.rows[1].name.clone(),
            idle_ns: 3e8 * second as f64,
            ..profiler_report::SampledCharge::default()
        };
        summary.gpu_idle = vec![profiler_report::SampledIdle {
            device: Some(0),
            busy_ns: 5e8 * second as f64,
            host_paced_ns: 1e8 * second as f64,
            idle_ns: 4e8 * second as f64,
            charges: vec![charge],
            ..profiler_report::SampledIdle::default()
        }];
        summary
    };
    let mut view = View::new(Order::Limit, String::new());
    let job = job(fed_with((1..=30).map(at)));
    check("account-80", &drawn(&job, &mut view, (80, 24), 400));
}

#[test]
fn enter_shows_the_row() {
    let mut summaries = [summary(23e9, 1), summary(24e9, 2)];
    let histogram = "{\"buckets\": [[1000, 2000, 70], [2000, 4000, 9], [500000, 1000000, 1]]}";
    let edges = |name: &str| profiler_report::CallNode {
        name: name.into(),
        calls: 40,
        ..profiler_report::CallNode::default()
    };
    summaries[1].rows[0].cpu_histogram = serde_json::from_str(histogram).ok();
    let mut tree = profiler_report::CallTree {
        nodes: ["train::epoch", "model::Transformer::forward"]
            .map(edges)
            .into(),
        ..profiler_report::CallTree::default()
    };
    tree.nodes[1].parent = Some(0);
    summaries[1].call_tree = Some(std::sync::Arc::new(tree));
    let charge = profiler_report::SampledCharge {
        name: summaries[1].rows[0].name.clone(),
        idle_ns: 6e9,
        error_ns: 1.2e8,
        ..profiler_report::SampledCharge::default()
    };
    summaries[1].gpu_idle = vec![profiler_report::SampledIdle {
        device: Some(0),
        busy_ns: 1.2e10,
        idle_ns: 8e9,
        charges: vec![charge],
        ..profiler_report::SampledIdle::default()
    }];
    let job = job(fed_with(summaries));
    for columns in [200, 120, 80] {
        let mut view = view();
        drawn(&job, &mut view, (columns, 24), 400);
        press(&mut view, KeyCode::Enter);
        let screen = drawn(&job, &mut view, (columns, 24), 400);
        check(&format!("row-{columns}"), &screen);
    }
    let mut view = view();
    view.opened_row = Some("optimizer::step".to_owned());
    let screen = drawn(&job, &mut view, (80, 16), 400);
    check("row-low", &screen);
    view.opened_row = Some("absent".to_owned());
    let screen = drawn(&job, &mut view, (80, 8), 400);
    assert_eq!(screen[2], "absent is no longer in the file; Esc goes back");
    press(&mut view, KeyCode::Esc);
    assert_eq!(view.place(), Place::Rows);
}

#[test]
fn rows_are_sorted_and_filtered() {
    let mut view = view();
    view.order = Order::Rate;
    view.filter = "LOADER".to_owned();
    let screen = drawn(&job(fed()), &mut view, (80, 7), 400);
    check("filtered-80", &screen);
    view.filter.clear();
    let screen = drawn(&job(fed()), &mut view, (80, 7), 400);
    assert!(screen[4].starts_with("optimizer::step"), "{screen:#?}");
}

#[test]
fn modules_that_all_names_begin_with_stand_in_the_head_if_there_is_room() {
    let mut summary = summary(25e9, 1);
    for row in &mut summary.rows {
        row.name = format!("app::{}", row.name);
    }
    let mut view = view();
    let screen = drawn(&job(fed_with([summary.clone()])), &mut view, (80, 9), 400);
    assert!(screen[3].starts_with("name, in app:: "), "{screen:#?}");
    assert!(
        screen[4].starts_with("model::Transformer::forward "),
        "{screen:#?}"
    );
    // Names are found and opened as a whole.
    view.filter = "app::opt".to_owned();
    let screen = drawn(&job(fed_with([summary.clone()])), &mut view, (80, 9), 400);
    assert!(screen[4].starts_with("optimizer::step "), "{screen:#?}");
    view.filter.clear();
    for row in &mut summary.rows {
        row.name = format!("the_application_of_many_words_{}", row.name);
    }
    let screen = drawn(&job(fed_with([summary])), &mut view, (80, 9), 400);
    assert!(screen[3].starts_with("name  "), "{screen:#?}");
}

#[test]
fn the_head_says_how_the_program_is_doing() {
    let state = |job: &Job, view: &mut View, age_ms| drawn(job, view, (100, 9), age_ms)[1].clone();
    let mut job = job(fed());
    assert_eq!(
        state(&job, &mut view(), 400),
        "running, written 0.4 s ago, every 1.0 s"
    );
    let late =
        "stale: written 60 s ago, every 1.0 s; the program was killed, is stopped or writes slowly";
    assert_eq!(state(&job, &mut view(), 60_000), late);
    job.ranks[0].feed.take(Look::Broken("is empty".to_owned()));
    let broken = "running, written 0.4 s ago, every 1.0 s; now it is empty";
    assert_eq!(state(&job, &mut view(), 400), broken);
    job.ranks[0].feed.take(Look::Missing { beside: None });
    let gone = "running, written 0.4 s ago, every 1.0 s; the file is gone";
    assert_eq!(state(&job, &mut view(), 400), gone);
    let mut last = summary(25e9, 3);
    last.is_last = true;
    last.interval_ns = None;
    job.ranks[0].feed.take(Look::New {
        summary: last,
        written: SystemTime::UNIX_EPOCH,
    });
    let mut paused = view();
    paused.is_paused = true;
    let ended = "PAUSED ended 2 min ago: this is the last summary";
    assert_eq!(state(&job, &mut paused, 130_000), ended);
}

#[test]
fn the_screen_says_what_it_waits_for() {
    let mut job = job(Feed::default());
    job.ranks[0].feed.take(Look::Missing { beside: None });
    check("missing-80", &drawn(&job, &mut view(), (80, 6), 0));
    let beside = Some("live_rank0.json".to_owned());
    job.ranks[0].feed.take(Look::Missing { beside });
    check("missing-rank-80", &drawn(&job, &mut view(), (80, 6), 0));
    let reason = "is neither a summary nor a trace".to_owned();
    job.ranks[0].feed.take(Look::Broken(reason));
    check("broken-80", &drawn(&job, &mut view(), (80, 6), 0));
}

#[test]
fn the_help_fits_a_small_terminal() {
    let mut view = view();
    view.shows_help = true;
    check("help-80", &drawn(&job(fed()), &mut view, (80, 24), 400));
}

#[test]
fn keys_scroll_to_the_last_row() {
    let mut summary = summary(25e9, 1);
    for number in 0..50 {
        summary
            .rows
            .push(row(&format!("row {number}"), 1, 1.0, None));
    }
    let mut view = view();
    view.order = Order::Calls;
    let job = job(fed_with([summary]));
    drawn(&job, &mut view, (80, 10), 400);
    press(&mut view, KeyCode::End);
    let screen = drawn(&job, &mut view, (80, 10), 400);
    assert!(screen[8].starts_with("row 9 "), "{screen:#?}");
}

#[test]
fn a_name_cannot_control_the_terminal() {
    let mut summary = summary(25e9, 1);
    summary.rows[0].name = "a\u{1b}[2Jb".to_owned();
    summary.environment.program = "c\u{7}\u{9b}d".to_owned();
    let screen = drawn(&job(fed_with([summary])), &mut view(), (80, 10), 400).join("");
    assert!(
        screen.contains("a\u{fffd}[2Jb") && screen.contains("c\u{fffd}\u{fffd}d"),
        "{screen}"
    );
    assert!(!screen.chars().any(char::is_control));
}
