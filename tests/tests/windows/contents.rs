//! A window holds each scope that began and ended in it, once, with its times, its parents and its thread.

use profiler_tests::stop;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use profiler_runtime::session::Event;
use profiler_runtime::{Profile, Schedule, Trace, scope, set_enabled};

const PATIENCE: Duration = Duration::from_secs(20);

fn names(trace: &Trace) -> Vec<String> {
    trace
        .events()
        .map(|event| event.name().to_owned())
        .collect()
}

fn parents(event: Event<'_>) -> Vec<&str> {
    event.stack().map(|frame| frame.name).collect()
}

#[test(env = [("PROFILER_ENABLED", "0")])]
fn an_empty_window_says_why_nothing_was_measured() {
    let ((), trace) = Profile::builder().run(|_| drop(scope!("windows: not measured")));
    let trace = trace.expect("a window");
    let reason = if cfg!(feature = "strip") {
        "profiling is stripped from this build"
    } else {
        "PROFILER_ENABLED turns measuring off: set PROFILER_ENABLED=1"
    };
    let expected = format!("no scope began and ended in the window: {reason}");
    let table = format!("{:#}", trace.key_averages());
    assert_eq!(table.matches("no scope began").count(), 1, "{table}");
    assert!(table.contains(&expected), "{table}");
    let missing = trace.timeline().missing;
    assert!(
        missing.iter().any(|(what, _)| what.starts_with(&expected)),
        "{missing:?}"
    );
}

#[test(measuring, env = [("PROFILER_ENABLED", "1"), ("PROFILER_FILTER", "-windows: left out")])]
fn an_empty_window_is_told_only_what_was_off_when_it_closed() {
    let (sender, missing) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let profile = Profile::builder()
        .schedule(Schedule::new().active(1))
        .on_trace_ready(move |trace: &Trace| {
            // The windows after the first one are put together when all are closed.
            let _ = released.recv_timeout(PATIENCE);
            let missing = trace.timeline().missing.into_iter();
            sender.send(missing.map(|(what, _)| what).collect::<String>())
        })
        .start()
        .expect("started");
    let empty_window = || {
        drop(scope!("windows: left out"));
        profile.step();
    };
    empty_window();
    empty_window();
    set_enabled(false);
    empty_window();
    set_enabled(true);
    empty_window();
    set_enabled(false);
    drop(release);
    stop(&profile);
    let is_told: Vec<bool> = missing
        .try_iter()
        .map(|what: String| what.contains("`set_enabled(false)`"))
        .collect();
    assert_eq!(is_told, [false, false, true, false, true]);
}

#[test(measuring)]
fn a_window_has_each_scope_once_below_its_parent() {
    let ((), trace) = Profile::builder().run(|_| {
        for _ in 0..3 {
            let _outer = scope!("windows: outer");
            let _inner = scope!("windows: inner");
            let _innermost = scope!("windows: innermost");
        }
    });
    let trace = trace.expect("a window");
    let expected = ["windows: outer", "windows: inner", "windows: innermost"].repeat(3);
    let found: Vec<String> = names(&trace)
        .into_iter()
        .filter(|name| name.starts_with("windows:"))
        .collect();
    assert_eq!(found, expected);
    for event in trace.events() {
        match event.name() {
            "windows: outer" => assert_eq!(parents(event), [""; 0]),
            "windows: inner" => assert_eq!(parents(event), ["windows: outer"]),
            "windows: innermost" => {
                assert_eq!(parents(event), ["windows: inner", "windows: outer"]);
            }
            _ => {}
        }
    }
    assert!(trace.truncation().is_complete(), "{:?}", trace.truncation());
}

#[test(measuring)]
fn scopes_of_other_threads_stand_under_their_threads() {
    let ((), trace) = Profile::builder().run(|_| {
        let work = |name: &str| {
            let builder = thread::Builder::new().name(name.into());
            let spawned = builder.spawn(|| {
                for _ in 0..1000 {
                    let _scope = scope!("windows: on a thread");
                }
            });
            spawned.expect("a thread")
        };
        let threads = ["windows-a", "windows-b"].map(work);
        for thread in threads {
            thread.join().expect("it ends");
        }
    });
    let trace = trace.expect("a window");
    for name in ["windows-a", "windows-b"] {
        let here = |event: &Event<'_>| {
            event.thread_name() == Some(name) && event.name() == "windows: on a thread"
        };
        assert_eq!(trace.events().filter(here).count(), 1000, "{name}");
    }
}

#[test(measuring)]
fn a_window_leaves_out_scopes_that_begin_before_or_end_after_it() {
    let before = scope!("windows: began before");
    let profile = Profile::builder().start().expect("started");
    let after = scope!("windows: ends after");
    drop(before);
    drop(scope!("windows: inside"));
    profile.stop();
    drop(after);
    assert!(profile.wait(PATIENCE));
    let trace = profile.trace().expect("a trace");
    let found = names(&trace);
    assert!(found.contains(&"windows: inside".to_owned()), "{found:?}");
    assert!(!found.contains(&"windows: began before".to_owned()));
    assert!(!found.contains(&"windows: ends after".to_owned()));
}
