//! Handlers get each window exactly once and in order, on a thread of their own, and whatever they do harms neither
//! the program nor the session.

use std::panic::panic_any;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

use profiler_runtime::session::{Action, ProfileBuilder, ProfileError};
use profiler_runtime::{Activity, Profile, Schedule, Trace, scope, summary};
use profiler_tests::child;
use profiler_tests::stop;
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

const PATIENCE: Duration = Duration::from_secs(60);

/// Each step is a window.
fn each_step() -> ProfileBuilder {
    Profile::builder().schedule(Schedule::new().active(1))
}

fn count(trace: &Trace, name: &str) -> usize {
    trace.events().filter(|event| event.name() == name).count()
}

fn has_said(words: &[&str]) -> bool {
    let notices = summary().notices;
    notices
        .iter()
        .any(|notice| words.iter().all(|word| notice.contains(word)))
}

/// A payload that panics again when it is dropped.
struct Spiteful;

impl Drop for Spiteful {
    fn drop(&mut self) {
        assert!(thread::panicking(), "and again, as asked");
    }
}

/// Asks the session when something is said.
struct Asking(Arc<OnceLock<Profile>>, Sender<u64>);

impl<S: Subscriber> Layer<S> for Asking {
    fn on_event(&self, _: &Event<'_>, _: Context<'_, S>) {
        if let Some(profile) = self.0.get() {
            let _ = self.1.send(profile.step_num());
        }
    }
}

/// The value of the closure is the program's: a window that is late does not take it away.
#[test]
fn a_run_returns_its_value_whatever_becomes_of_the_window() {
    let (value, trace) = Profile::builder()
        .activities([Activity::Cpu; 0])
        .run(|profile| {
            // Nothing is recorded, and nothing fails.
            profile.step();
            assert!(profile.wait(Duration::ZERO));
            (
                profile.action(),
                profile.step_num(),
                profile.trace().is_none(),
            )
        });
    assert_eq!(value, (Action::None, 0, true));
    assert!(matches!(trace, Err(ProfileError::NoActivity)), "{trace:?}");

    let (release, released) = mpsc::channel::<()>();
    let is_late = move |_: &Trace| _ = released.recv();
    let (value, trace) = Profile::builder().on_trace_ready(is_late).run(|_| 7);
    assert_eq!(value, 7);
    assert!(
        matches!(trace, Err(ProfileError::NotReady { .. })),
        "{trace:?}"
    );
    drop(release);
}

#[test(measuring)]
fn a_tracing_subscriber_may_call_the_session_that_warns() {
    let (sender, seen) = mpsc::channel();
    let session = Arc::new(OnceLock::new());
    let listening = tracing_subscriber::registry().with(Asking(Arc::clone(&session), sender));
    tracing::subscriber::with_default(listening, || {
        let started = each_step()
            .schedule(Schedule::new().wait(5).active(1))
            .start();
        let profile = session.get_or_init(|| started.expect("started"));
        profile.stop();
        let asked: Vec<u64> = seen.try_iter().collect();
        assert_eq!(asked, [0], "that there was no step");
    });
}

#[test(measuring)]
fn each_window_comes_once_and_in_order_on_another_thread() {
    const STEPS: u64 = 300;

    let (sender, seen) = mpsc::channel();
    let second = sender.clone();
    let tell = |number: u32, sender: Sender<_>| {
        move |trace: &Trace| {
            let made = count(trace, "handlers: in order") as u64;
            let given_up = trace.truncation().handler_behind > 0;
            sender.send((
                number,
                trace.cycle(),
                made,
                given_up,
                thread::current().id(),
            ))
        }
    };
    let profile = each_step()
        .on_trace_ready(tell(1, sender))
        .on_trace_ready(tell(2, second))
        .start()
        .expect("started");
    for step in 0..STEPS {
        for _ in 0..=step % 3 {
            drop(scope!("handlers: in order"));
        }
        profile.step();
    }
    stop(&profile);
    let seen: Vec<_> = seen.try_iter().collect();
    // The last one is open from the last step to the end.
    assert_eq!(seen.len() as u64, 2 * (STEPS + 1));
    let threads: Vec<_> = seen.iter().map(|(.., thread)| *thread).collect();
    assert!(threads.iter().all(|thread| *thread == threads[0]));
    assert_ne!(threads[0], thread::current().id());
    let mut expected = (0..=STEPS).flat_map(|cycle| [(1, cycle), (2, cycle)]);
    for (number, cycle, made, given_up, _) in seen {
        assert_eq!(Some((number, cycle)), expected.next());
        let expected = if cycle < STEPS { cycle % 3 + 1 } else { 0 };
        assert!(
            made == expected || made == 0 && given_up,
            "{cycle}: {made} scopes"
        );
    }
}

#[test(measuring)]
fn windows_wait_for_a_slow_handler_up_to_a_bound_and_are_counted_beyond() {
    const STEPS: u64 = 12;
    /// Fewer than a ring holds; five times as many are more than wait.
    const SCOPES: u64 = 14_000;

    let (release, released) = mpsc::channel::<()>();
    let (sender, seen) = mpsc::channel();
    let slow = each_step()
        .on_trace_ready(move |trace: &Trace| {
            let _ = released.recv();
            let made = count(trace, "handlers: slow");
            sender.send((
                trace.cycle(),
                made as u64,
                trace.truncation().handler_behind,
            ))
        })
        .start()
        .expect("started");
    // Closed after those of the slow one, and handed over after them.
    let witness = each_step().start().expect("started");
    for _ in 0..STEPS {
        for _ in 0..SCOPES {
            drop(scope!("handlers: slow"));
        }
        slow.step();
        witness.step();
        assert!(witness.wait(PATIENCE));
    }
    assert!(!slow.wait(Duration::ZERO), "the handler has not returned");
    drop(release);
    stop(&slow);
    let seen: Vec<_> = seen.try_iter().collect();
    let cycles: Vec<u64> = seen.iter().map(|(cycle, ..)| *cycle).collect();
    assert_eq!(cycles, (0..=STEPS).collect::<Vec<_>>());
    let full = seen.iter().filter(|(_, made, _)| *made == SCOPES).count();
    assert!(
        (1..=8).contains(&full),
        "{full} windows waited as they were"
    );
    for (cycle, made, given_up) in seen.iter().filter(|(cycle, ..)| *cycle < STEPS) {
        // Scopes of tests beside this one may be given up too.
        assert!(
            (*made, *given_up) == (SCOPES, 0) || *made == 0 && *given_up >= SCOPES,
            "{cycle}"
        );
    }
}

#[test(measuring)]
fn a_handler_that_panics_is_not_called_again_and_the_others_are() {
    let (sender, seen) = mpsc::channel();
    let second = sender.clone();
    let profile = each_step()
        .on_trace_ready(move |trace: &Trace| {
            let _ = sender.send((1, trace.cycle()));
            if trace.cycle() == 1 {
                panic_any(Spiteful);
            }
        })
        .on_trace_ready(move |trace: &Trace| second.send((2, trace.cycle())))
        .start()
        .expect("started");
    for _ in 0..3 {
        profile.step();
    }
    stop(&profile);
    let seen: Vec<_> = seen.try_iter().collect();
    assert_eq!(seen, [(1, 0), (2, 0), (1, 1), (2, 1), (2, 2), (2, 3)]);
    assert!(has_said(&["handler", "panicked", "not called again"]));
}

#[test(measuring)]
fn a_handler_that_fails_is_reported_with_its_step_and_called_again() {
    let (sender, seen) = mpsc::channel();
    let profile = each_step()
        .on_trace_ready(move |trace: &Trace| {
            let _ = sender.send(trace.step_num());
            if trace.step_num() == 2 {
                return Err("the disk of this test is full");
            }
            Ok(())
        })
        .start()
        .expect("started");
    for _ in 0..3 {
        profile.step();
    }
    stop(&profile);
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [1, 2, 3, 3]);
    assert!(has_said(&["step 2", "the disk of this test is full"]));
}

/// The way for a handler to reach its own session.
type Own = Arc<OnceLock<Arc<Profile>>>;

fn own(builder: impl FnOnce(Own) -> ProfileBuilder) -> Arc<Profile> {
    let own = Own::default();
    let profile = builder(Arc::clone(&own)).start().expect("started");
    let profile = Arc::new(profile);
    let _ = own.set(Arc::clone(&profile));
    profile
}

#[test(measuring)]
fn the_last_window_is_returned_also_after_handlers_had_it() {
    let (sender, seen) = mpsc::channel();
    let profile = each_step()
        .on_trace_ready(move |trace: &Trace| sender.send(trace.cycle()))
        .start()
        .expect("started");
    profile.step();
    assert_eq!(seen.recv_timeout(PATIENCE), Ok(0));
    drop(scope!("handlers: last"));
    profile.stop();
    assert!(profile.wait(PATIENCE));
    let stopped = profile.trace().expect("the last window");
    assert_eq!((stopped.cycle(), count(&stopped, "handlers: last")), (1, 1));
    let finished = profile.finish().expect("the last window");
    assert!(Arc::ptr_eq(&stopped, &finished));
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [1]);
}

#[test(measuring)]
fn a_handler_may_step_and_stop_its_own_session() {
    let (sender, seen) = mpsc::channel();
    let profile = own(|own| {
        each_step().on_trace_ready(move |trace: &Trace| {
            let _ = sender.send(trace.cycle());
            let profile = own.wait();
            if trace.cycle() < 20 {
                profile.step();
            } else {
                profile.stop();
            }
            profile.add_metadata("cycle", trace.cycle().to_string());
        })
    });
    profile.step();
    // The one that it stops hands over a last window.
    let cycles: Vec<u64> = (0..=21)
        .map(|_| seen.recv_timeout(PATIENCE).expect("a window"))
        .collect();
    assert_eq!(cycles, (0..=21).collect::<Vec<_>>());
    assert!(profile.wait(PATIENCE));
    assert!(seen.try_recv().is_err());
}

#[test(measuring)]
fn a_handler_may_be_measured_and_have_a_session_of_its_own() {
    let (sender, seen) = mpsc::channel();
    let profile = each_step()
        .on_trace_ready(move |_: &Trace| {
            let ((), inner) = Profile::builder().run(|_| drop(scope!("handlers: inside")));
            let inner = inner.map(|trace| count(&trace, "handlers: inside"));
            sender.send(inner.map_err(|error| error.to_string()))
        })
        .start()
        .expect("started");
    profile.step();
    assert_eq!(seen.recv_timeout(PATIENCE), Ok(Ok(1)));
    stop(&profile);
    assert!(
        summary()
            .row("handlers: inside")
            .is_some_and(|row| row.calls >= 1)
    );
}

#[test(measuring)]
fn sessions_may_be_dropped_in_handlers_their_own_too() {
    let slot: Arc<Mutex<Vec<Profile>>> = Arc::default();
    let (sender, seen) = mpsc::channel();
    let own = Arc::clone(&slot);
    let profile = each_step()
        .on_trace_ready(move |trace: &Trace| {
            let taken = std::mem::take(&mut *own.lock().expect("no panic"));
            let dropped = taken.len();
            drop(taken);
            sender.send((trace.cycle(), dropped))
        })
        .start()
        .expect("started");
    let (others, other_windows) = mpsc::channel();
    let other = Profile::builder()
        .on_trace_ready(move |trace: &Trace| others.send(count(trace, "handlers: other")))
        .start()
        .expect("started");
    drop(scope!("handlers: other"));
    {
        let mut slot = slot.lock().expect("no panic");
        profile.step();
        slot.extend([profile, other]);
    }
    assert_eq!(seen.recv_timeout(PATIENCE), Ok((0, 2)));
    assert_eq!(seen.recv_timeout(PATIENCE), Ok((1, 0)), "what was open");
    assert_eq!(other_windows.recv_timeout(PATIENCE), Ok(1));
    let ended = |seen: &Receiver<_>| {
        seen.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Disconnected)
    };
    assert!(
        ended(&seen),
        "its thread has ended, and what it held is gone"
    );
}

#[test(measuring)]
fn a_schedule_that_panics_records_nothing_in_that_step() {
    let (sender, seen) = mpsc::channel();
    let profile = Profile::builder()
        .schedule(|step: u64| {
            if step == 2 {
                panic_any(Spiteful);
            }
            Action::RecordAndSave
        })
        .on_trace_ready(move |trace: &Trace| {
            sender.send((trace.step_num(), count(trace, "handlers: scheduled")))
        })
        .start()
        .expect("started");
    for _ in 0..4 {
        drop(scope!("handlers: scheduled"));
        profile.step();
    }
    stop(&profile);
    assert_eq!(
        seen.try_iter().collect::<Vec<_>>(),
        [(1, 1), (2, 1), (4, 1), (4, 0)]
    );
    assert!(has_said(&["schedule panicked"]));
}

#[test(measuring)]
fn windows_that_the_end_of_the_program_cuts_off_are_reported() {
    if child::dir().is_some() {
        let (release, released) = mpsc::channel::<()>();
        let profile = each_step()
            .on_trace_ready(move |_: &Trace| _ = released.recv())
            .start()
            .expect("started");
        profile.step();
        profile.step();
        profile.stop();
        std::mem::forget(release);
        std::process::exit(3);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = child::again(folder.path()).output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    let said = stderr
        .matches("3 windows have not gone through their handlers")
        .count();
    assert_eq!(said, 1, "{stderr}");
}

/// A value that panics when it is dropped, and reports the drop.
struct Bomb(Sender<()>);

impl Bomb {
    /// Has a closure hold it.
    fn touch(&self) {
        std::hint::black_box(&self.0);
    }
}

impl Drop for Bomb {
    fn drop(&mut self) {
        let _ = self.0.send(());
        panic_any("as asked");
    }
}

#[test]
fn handlers_and_schedules_that_panic_when_dropped_are_contained() {
    let (dropped, are_dropped) = mpsc::channel();
    let [first, second, third] = [(); 3].map(|()| Bomb(dropped.clone()));
    let profile = Profile::builder()
        .schedule(move |_| {
            third.touch();
            Action::None
        })
        .on_trace_ready(move |_: &Trace| first.touch())
        .on_trace_ready(move |_: &Trace| second.touch())
        .start()
        .expect("the system gives threads");
    // A session without a step would be told of, which another test waits for.
    profile.step();
    drop(profile);
    for _ in 0..3 {
        let seen = are_dropped.recv_timeout(PATIENCE);
        seen.expect("each of them is dropped");
    }
    assert!(
        !has_said(&["please report it"]),
        "no fault of the profiler's"
    );
}
