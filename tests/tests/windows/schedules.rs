//! A session does in each step what its schedule says, delivers the windows that `torch.profiler` would, and says
//! where a schedule can only be a mistake.

use profiler_tests::stop;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use profiler_runtime::session::{Action, Event, IntoSchedule, ProfileBuilder, ProfileError};
use profiler_runtime::{Activity, Profile, ProfilerActivity, Schedule, Trace, scope, summary};

const PATIENCE: Duration = Duration::from_secs(60);

/// A window: how many there were before, the step it ended with, whether it is cut short, its scopes.
type Window = (u64, u64, bool, Vec<String>);

fn started(builder: ProfileBuilder) -> (Profile, Receiver<Window>) {
    let (sender, windows) = mpsc::channel();
    let profile = builder
        .on_trace_ready(move |trace: &Trace| {
            let mine = trace
                .events()
                .filter(|event| event.name().starts_with("schedules: "));
            let names = mine.map(|event| event.name().trim_start_matches("schedules: ").to_owned());
            let cut = trace.truncation().cut_short;
            sender.send((trace.cycle(), trace.step_num(), cut, names.collect()))
        })
        .start()
        .expect("started");
    (profile, windows)
}

fn scheduled(schedule: impl IntoSchedule) -> (Profile, Receiver<Window>) {
    started(Profile::builder().schedule(schedule))
}

fn windows(profile: &Profile, windows: &Receiver<Window>) -> Vec<Window> {
    stop(profile);
    windows.try_iter().collect()
}

fn steps(profile: &Profile, test: &str, count: u64) {
    for _ in 0..count {
        drop(scope!(format!("schedules: {test} {}", profile.step_num())));
        profile.step();
    }
}

/// One action after the other, and nothing then.
fn played(actions: Vec<Action>) -> impl Fn(u64) -> Action {
    move |step| {
        let action = usize::try_from(step)
            .ok()
            .and_then(|step| actions.get(step));
        action.copied().unwrap_or_default()
    }
}

/// The scopes of one test: others may run beside it.
fn of(test: &str, mut windows: Vec<Window>) -> Vec<Window> {
    let prefix = format!("{test} ");
    for (.., names) in &mut windows {
        names.retain_mut(|name| {
            let own = name.strip_prefix(&prefix).map(str::to_owned);
            own.map(|own| *name = own).is_some()
        });
    }
    windows
}

fn window(cycle: u64, step: u64, is_cut: bool, names: &[&str]) -> Window {
    (
        cycle,
        step,
        is_cut,
        names.iter().map(|name| (*name).to_owned()).collect(),
    )
}

fn has_said(words: &[&str]) -> bool {
    let notices = summary().notices;
    notices
        .iter()
        .any(|notice| words.iter().all(|word| notice.contains(word)))
}

#[test(measuring)]
fn a_session_that_ends_while_warming_up_or_waiting_delivers_nothing() {
    for (count, action) in [(1, Action::None), (3, Action::Warmup)] {
        let (profile, seen) = scheduled(Schedule::new().wait(2).warmup(3).active(1));
        steps(&profile, "nothing", count);
        assert_eq!(profile.action(), action);
        assert_eq!(windows(&profile, &seen), []);
    }
    let (value, trace) = Profile::builder()
        .schedule(Schedule::new().wait(2).warmup(3).active(1))
        .run(|profile| {
            steps(profile, "nothing", 3);
            7
        });
    assert_eq!(value, 7);
    assert!(matches!(trace, Err(ProfileError::NoWindow)), "{trace:?}");
}

#[test(measuring)]
fn a_schedule_without_steps_is_reported() {
    let (profile, seen) = scheduled(Schedule::new().active(2));
    drop(scope!("schedules: stepless scope"));
    let seen = of("stepless", windows(&profile, &seen));
    assert_eq!(seen, [window(0, 0, true, &["scope"])]);
    assert!(
        has_said(&["without a single `step()`"]),
        "{:?}",
        summary().notices
    );
}

#[test(measuring)]
fn a_schedule_that_stops_recording_without_saving_is_reported_and_delivers_nothing() {
    use Action::{None as Nothing, Record, RecordAndSave, Warmup};

    let play = |actions: &'static [Action]| {
        let (profile, seen) = scheduled(played(actions.to_vec()));
        steps(&profile, "left", actions.len() as u64);
        of("left", windows(&profile, &seen))
    };
    for (actions, words) in [
        (
            &[Record, Record, Nothing][..],
            ["Record to None", "without having saved"],
        ),
        (
            &[Warmup, Nothing],
            ["Warmup to None", "without having saved"],
        ),
        (
            &[Record, Warmup, Nothing],
            ["Record to Warmup", "without having saved"],
        ),
    ] {
        assert_eq!(play(actions), [], "{actions:?}");
        assert!(has_said(&words), "{words:?}: {:?}", summary().notices);
    }
    // Later windows are not affected.
    let seen = play(&[Record, Nothing, RecordAndSave, Nothing]);
    let scopes: Vec<_> = seen.iter().map(|(.., names)| names.clone()).collect();
    assert_eq!(scopes, [["2"]]);
}

#[test(measuring)]
fn every_kind_of_transition_delivers_the_steps_that_belong_to_it() {
    use Action::{None as Nothing, Record, RecordAndSave, Warmup};
    const ALL: [Action; 4] = [Nothing, Warmup, Record, RecordAndSave];

    // Every sequence of three actions, then the end.
    for code in 0..ALL.len().pow(3) {
        let actions: Vec<Action> = (0..3)
            .map(|place| ALL[code / 4_usize.pow(place) % 4])
            .collect();
        let (profile, seen) = scheduled(played(actions.clone()));
        steps(&profile, "any", 2);
        drop(scope!("schedules: any 2"));
        let seen = of("any", windows(&profile, &seen));
        // The windows that torch's documentation describes.
        let mut expected = Vec::new();
        let mut open = Vec::new();
        for (step, action) in actions.iter().enumerate() {
            if !action.is_recording() {
                open.clear();
                continue;
            }
            open.push(step.to_string());
            if *action == RecordAndSave || step == 2 {
                expected.push((
                    step as u64 + u64::from(step < 2),
                    *action == Record,
                    std::mem::take(&mut open),
                ));
            }
        }
        let seen: Vec<_> = seen
            .into_iter()
            .map(|(_, step, cut, names)| (step, cut, names))
            .collect();
        assert_eq!(seen, expected, "{actions:?}");
    }
}

#[test(measuring)]
fn stages_have_schedules_of_their_own_and_each_repeat_is_honoured() {
    let schedule = Schedule::new().wait(1).warmup(1).active(1);
    let stages = [("train", 2, 10), ("validation", 1, 4), ("test", 3, 2)];
    let started = stages.map(|(stage, repeat, _)| (stage, scheduled(schedule.repeat(repeat))));
    for _epoch in 0..5 {
        for ((stage, (profile, _)), (_, _, count)) in started.iter().zip(stages) {
            steps(profile, stage, count);
        }
    }
    for ((stage, (profile, seen)), (_, repeat, count)) in started.iter().zip(stages) {
        assert_eq!(profile.step_num(), 5 * count, "{stage}");
        let seen = of(stage, windows(profile, seen));
        let expected: Vec<Window> = (0..repeat)
            .map(|cycle| window(cycle, 3 * cycle + 3, false, &[&(3 * cycle + 2).to_string()]))
            .collect();
        assert_eq!(seen, expected, "{stage}");
    }
}

#[test(measuring)]
fn scopes_are_left_out_while_their_activity_is_toggled_off() {
    let both = [Activity::Cpu, Activity::Cuda];
    let ((), trace) = Profile::builder().run(|profile| {
        for (on, name) in [
            (false, "off"),
            (true, "on"),
            (false, "off again"),
            (true, "on again"),
        ] {
            profile.toggle_collection(on, both);
            drop(scope!(format!("toggled: {name}")));
        }
    });
    let trace = trace.expect("a window");
    let names: Vec<_> = trace.events().map(Event::name).collect();
    let mine: Vec<_> = names
        .iter()
        .filter(|name| name.starts_with("toggled: "))
        .collect();
    assert_eq!(mine, [&"toggled: on", &"toggled: on again"]);
    assert!(trace.truncation().is_complete());
}

#[test(measuring)]
fn a_toggled_activity_stays_so_in_later_windows() {
    let (sender, seen) = mpsc::channel();
    let profile = Profile::builder()
        .schedule(Schedule::new().active(1))
        .on_trace_ready(move |trace: &Trace| {
            let mine = trace
                .events()
                .filter(|event| event.name() == "toggled: for later");
            sender.send((
                mine.count(),
                trace.has(Activity::Cpu),
                trace.has(Activity::Cuda),
            ))
        })
        .start()
        .expect("started");
    let step = || {
        drop(scope!("toggled: for later"));
        profile.step();
        // No window waits so long that it is emptied.
        assert!(profile.wait(PATIENCE));
    };
    step();
    profile.toggle_collection(false, [Activity::Cpu, Activity::Cuda]);
    // Part of the window had them.
    step();
    step();
    profile.toggle_collection(true, [Activity::Cpu]);
    step();
    step();
    stop(&profile);
    let seen: Vec<_> = seen.try_iter().take(5).collect();
    assert_eq!(
        seen,
        [
            (1, true, true),
            (0, true, true),
            (0, false, false),
            (1, true, false),
            (1, true, false)
        ]
    );
}

#[test(measuring)]
#[allow(
    clippy::needless_borrows_for_generic_args,
    reason = "a reference to a list is one too"
)]
fn activities_are_given_as_any_list_and_by_the_names_of_torch() {
    let slice: &[ProfilerActivity] = &[ProfilerActivity::Cpu];
    let has_cpu_alone = |builder: ProfileBuilder| {
        let ((), trace) = builder.run(|profile| {
            drop(scope!("listed: on"));
            profile.toggle_collection_dynamic(false, slice);
            drop(scope!("listed: off"));
            profile.toggle_collection_dynamic(true, vec![Activity::Cpu]);
            profile.toggle_collection(false, [Activity::Cpu]);
            drop(scope!("listed: off"));
        });
        let trace = trace.expect("a window");
        let names: Vec<&str> = trace.events().map(Event::name).collect();
        assert_eq!(names, ["listed: on"]);
        assert!(trace.has(Activity::Cpu) && !trace.has(Activity::Cuda));
    };
    has_cpu_alone(Profile::builder().activities(slice));
    has_cpu_alone(Profile::builder().activities(slice.to_vec()));
    has_cpu_alone(Profile::builder().activities(slice.to_vec()));
    has_cpu_alone(Profile::builder().activities([Activity::Cpu]));
    has_cpu_alone(Profile::builder().activities([Activity::Cpu]));
    has_cpu_alone(Profile::builder().activities(slice.iter().copied()));
    assert_eq!(
        Schedule::new().action(0),
        profiler_runtime::ProfilerAction::RecordAndSave
    );
}

#[test(measuring)]
fn an_activity_that_was_not_asked_for_cannot_be_toggled_on() {
    let ((), trace) = Profile::builder()
        .activities([Activity::Cpu])
        .run(|profile| {
            drop(scope!("toggled: on"));
            profile.toggle_collection(false, [Activity::Cpu]);
            profile.toggle_collection(true, [Activity::Cuda]);
            drop(scope!("toggled: not asked for"));
        });
    let trace = trace.expect("a window");
    let names: Vec<&str> = trace.events().map(Event::name).collect();
    assert_eq!(names, ["toggled: on"]);
    assert!(!trace.has(Activity::Cuda));
}

#[test]
fn nothing_to_record_is_refused() {
    let started = Profile::builder().activities([Activity::Cpu; 0]).start();
    assert!(
        matches!(started, Err(ProfileError::NoActivity)),
        "{started:?}"
    );
}

#[test(measuring)]
fn metadata_is_in_the_windows_that_close_later() {
    let (sender, seen) = mpsc::channel();
    let profile = Profile::builder()
        .schedule(Schedule::new().active(1))
        .on_trace_ready(move |trace: &Trace| {
            let pairs = trace
                .metadata()
                .map(|(key, value)| format!("{key}={value}"));
            sender.send(pairs.collect::<Vec<_>>().join(","))
        })
        .start()
        .expect("started");
    profile.step();
    profile.add_metadata("model", "resnet");
    profile.add_metadata("\"odd\n", "");
    profile.step();
    profile.add_metadata("model", "vit");
    profile.step();
    stop(&profile);
    let seen: Vec<_> = seen.try_iter().collect();
    assert_eq!(
        seen,
        [
            "",
            "model=resnet,\"odd\n=",
            "model=vit,\"odd\n=",
            "model=vit,\"odd\n="
        ]
    );
}

#[test(measuring)]
fn several_threads_may_step_one_session() {
    const THREADS: u64 = 4;
    const STEPS: u64 = 50;

    let (profile, seen) = scheduled(Schedule::new().active(10));
    std::thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| steps(&profile, "shared", STEPS));
        }
    });
    assert_eq!(profile.step_num(), THREADS * STEPS);
    let seen = windows(&profile, &seen);
    let ends: Vec<_> = seen
        .iter()
        .map(|(cycle, step, ..)| (*cycle, *step))
        .collect();
    let mut expected: Vec<_> = (0..20).map(|cycle| (cycle, 10 * cycle + 10)).collect();
    expected.push((20, 200));
    assert_eq!(ends, expected);
}

#[test]
fn a_schedule_may_look_at_its_own_session() {
    let own: Arc<Mutex<Option<Arc<Profile>>>> = Arc::default();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (mine, notes) = (Arc::clone(&own), Arc::clone(&seen));
    let schedule = move |step: u64| {
        if let Some(profile) = &*mine.lock().expect("not poisoned") {
            notes
                .lock()
                .expect("not poisoned")
                .push((step, profile.step_num(), profile.action()));
            // Does nothing: a schedule only says what a step is.
            profile.step();
        }
        if step == 1 {
            Action::RecordAndSave
        } else {
            Action::None
        }
    };
    let profile = Arc::new(
        Profile::builder()
            .schedule(schedule)
            .start()
            .expect("started"),
    );
    *own.lock().expect("not poisoned") = Some(Arc::clone(&profile));
    profile.step();
    profile.step();
    *own.lock().expect("not poisoned") = None;
    stop(&profile);
    let expected = [(1, 0, Action::None), (2, 1, Action::RecordAndSave)];
    assert_eq!(*seen.lock().expect("not poisoned"), expected);
    assert!(profile.trace().is_some_and(|trace| trace.step_num() == 2));
    assert!(has_said(&["from inside of a schedule"]));
}
