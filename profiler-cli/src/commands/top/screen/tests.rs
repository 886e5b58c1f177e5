//! Screens to the character.

use std::path::PathBuf;
use std::time::Duration;

use profiler_report::{HistoryPoint, Summary, Times};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::file::Look;
use super::*;

const SECOND: u64 = 1_000_000_000;

fn times(self_ns: f64) -> Times {
    Times {
        self_ns,
        ..Times::default()
    }
}

fn row(name: &str, calls: u64, cpu_ns: f64, cuda_ns: Option<f64>) -> profiler_report::Row {
    let mut row = profiler_report::Row {
        name: name.to_owned(),
        calls,
        cpu: Some(times(cpu_ns)),
        cuda: cuda_ns.map(times),
        ..profiler_report::Row::default()
    };
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
    Box::new(summary)
}

/// The state after two summaries, the second of them written a second after the first.
fn fed() -> Feed {
    let mut feed = Feed::default();
    for (wall_ns, factor) in [(23e9, 1), (24e9, 2)] {
        feed.take(Look::New {
            summary: summary(wall_ns, factor),
            written: SystemTime::UNIX_EPOCH,
        });
    }
    feed
}

fn view() -> View {
    View::new(Order::Cpu, String::new())
}

fn drawn(feed: &Feed, view: &mut View, (columns, rows): (u16, u16), age_ms: u64) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).expect("a terminal");
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(age_ms);
    let path = PathBuf::from("live.json");
    terminal
        .draw(|frame| draw(frame, &path, feed, view, now))
        .expect("it is drawn");
    let buffer = terminal.backend().buffer();
    let line = |y| {
        (0..columns)
            .map(|x| buffer[(x, y)].symbol())
            .collect::<String>()
    };
    (0..rows).map(|y| line(y).trim_end().to_owned()).collect()
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
    for columns in [120, 80, 40] {
        let screen = drawn(&fed(), &mut view(), (columns, 9), 400);
        check(&format!("running-{columns}"), &screen);
    }
    // Nothing fits, and nothing panics.
    for size in [(1, 1), (5, 3), (20, 2), (0, 0), (200, 1)] {
        drawn(&fed(), &mut view(), size, 400);
    }
}

#[test]
fn rows_are_sorted_and_filtered() {
    let mut view = view();
    view.order = Order::Rate;
    view.filter = "LOADER".to_owned();
    let screen = drawn(&fed(), &mut view, (80, 7), 400);
    check("filtered-80", &screen);
    view.filter.clear();
    let screen = drawn(&fed(), &mut view, (80, 7), 400);
    assert!(screen[4].starts_with("optimizer::step"), "{screen:#?}");
}

#[test]
fn the_head_says_how_the_program_is_doing() {
    let state =
        |feed: &Feed, view: &mut View, age_ms| drawn(feed, view, (100, 9), age_ms)[1].clone();
    let mut feed = fed();
    assert_eq!(
        state(&feed, &mut view(), 400),
        "running, written 0.4 s ago, every 1.0 s"
    );
    let late = "stale: written 60 s ago, every 1.0 s; the program was killed or is stopped";
    assert_eq!(state(&feed, &mut view(), 60_000), late);
    feed.take(Look::Broken("is empty".to_owned()));
    let broken = "running, written 0.4 s ago, every 1.0 s; now it is empty";
    assert_eq!(state(&feed, &mut view(), 400), broken);
    feed.take(Look::Missing);
    let gone = "running, written 0.4 s ago, every 1.0 s; the file is gone";
    assert_eq!(state(&feed, &mut view(), 400), gone);
    let mut last = summary(25e9, 3);
    last.is_last = true;
    last.interval_ns = None;
    feed.take(Look::New {
        summary: last,
        written: SystemTime::UNIX_EPOCH,
    });
    let mut paused = view();
    paused.is_paused = true;
    let ended = "PAUSED ended 2 min ago: this is the last summary";
    assert_eq!(state(&feed, &mut paused, 130_000), ended);
}

#[test]
fn the_screen_says_what_it_waits_for() {
    let mut feed = Feed::default();
    feed.take(Look::Missing);
    check("missing-80", &drawn(&feed, &mut view(), (80, 6), 0));
    feed.take(Look::Broken("is neither a summary nor a trace".to_owned()));
    check("broken-80", &drawn(&feed, &mut view(), (80, 6), 0));
}

#[test]
fn the_help_fits_a_small_terminal() {
    let mut view = view();
    view.shows_help = true;
    check("help-80", &drawn(&fed(), &mut view, (80, 24), 400));
}

#[test]
fn keys_scroll_to_the_last_row() {
    let mut summary = summary(25e9, 1);
    for number in 0..50 {
        summary
            .rows
            .push(row(&format!("row {number}"), 1, 1.0, None));
    }
    let mut feed = Feed::default();
    feed.take(Look::New {
        summary,
        written: SystemTime::UNIX_EPOCH,
    });
    let mut view = view();
    view.order = Order::Calls;
    assert!(view.press(KeyEvent::new(KeyCode::End, KeyModifiers::NONE)));
    let screen = drawn(&feed, &mut view, (80, 10), 400);
    assert!(screen[8].starts_with("row 9 "), "{screen:#?}");
}

#[test]
fn a_name_cannot_control_the_terminal() {
    let mut feed = Feed::default();
    let mut summary = summary(25e9, 1);
    summary.rows[0].name = "a\u{1b}[2Jb".to_owned();
    summary.environment.program = "c\u{7}\u{9b}d".to_owned();
    feed.take(Look::New {
        summary,
        written: SystemTime::UNIX_EPOCH,
    });
    let screen = drawn(&feed, &mut view(), (80, 10), 400).join("");
    assert!(
        screen.contains("a\u{fffd}[2Jb") && screen.contains("c\u{fffd}\u{fffd}d"),
        "{screen}"
    );
    assert!(!screen.chars().any(char::is_control));
}
