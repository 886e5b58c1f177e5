//! A window takes as many scopes as it was told, and a thread's way to it as many as it has room for: what comes
//! beyond is counted, and the next window begins anew. No scope is lost unsaid, whatever threads come and go.

use std::cell::Cell;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use profiler_runtime::session::{Event, Truncation};
use profiler_runtime::{Activity, MeasureFuture, Profile, Schedule, Trace, scope};
use profiler_tests::gpu;
use profiler_tests::gpu::driver;
use profiler_tests::measuring;
use profiler_tests::poll;
use profiler_tests::stop;
use proptest::prelude::*;

const PATIENCE: Duration = Duration::from_secs(60);

fn scopes(count: u64) {
    for _ in 0..count {
        drop(scope!("bounded: one"));
    }
}

/// The account of a window: it holds each scope that was opened, or counts it as missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Account {
    held: u64,
    missing: Truncation,
}

impl Account {
    fn of(trace: &Trace) -> Self {
        Self {
            held: trace.len() as u64,
            missing: trace.truncation(),
        }
    }

    fn all(&self) -> u64 {
        self.held
            + self.missing.over_capacity
            + self.missing.ring_full
            + self.missing.handler_behind
            + self.missing.late
    }
}

/// A session of windows of one step each, and what they hold.
fn stepped(capacity: usize) -> (Profile, mpsc::Receiver<Account>) {
    let (sender, accounts) = mpsc::channel();
    let profile = Profile::builder()
        .schedule(Schedule::new().active(1))
        .capacity(capacity)
        .on_trace_ready(move |trace: &Trace| sender.send(Account::of(trace)))
        .start()
        .expect("started");
    (profile, accounts)
}

#[test(measuring)]
fn scopes_beyond_the_capacity_are_counted_and_the_next_window_starts_empty() {
    let (profile, accounts) = stepped(10);
    for count in [25, 5, 10, 11, 0] {
        scopes(count);
        profile.step();
        assert!(profile.wait(PATIENCE));
    }
    stop(&profile);
    let seen: Vec<_> = accounts
        .try_iter()
        .map(|account| (account.held, account.missing.over_capacity, account.all()))
        .collect();
    assert_eq!(
        seen,
        [
            (10, 15, 25),
            (5, 0, 5),
            (10, 0, 10),
            (10, 1, 11),
            (0, 0, 0),
            (0, 0, 0)
        ]
    );
}

#[test(measuring)]
fn a_capacity_of_zero_is_one() {
    let ((), trace) = Profile::builder().capacity(0).run(|_| scopes(3));
    let trace = trace.expect("a window");
    assert_eq!(trace.len(), 1);
    assert_eq!(trace.truncation().over_capacity, 2);
}

#[test(measuring)]
fn sessions_are_bounded_each_for_itself() {
    let large = Profile::builder().start().expect("started");
    let ((), small) = Profile::builder().capacity(7).run(|_| scopes(20));
    let small = small.expect("a window");
    stop(&large);
    let large = large.trace().expect("a trace");
    assert_eq!((small.len(), small.truncation().over_capacity), (7, 13));
    assert_eq!(
        (large.len(), large.truncation()),
        (20, Truncation::default())
    );
}

#[test(measuring)]
fn futures_are_bounded_too() {
    let ((), trace) = Profile::builder().capacity(4).run(|_| {
        for _ in 0..10 {
            let work = async { drop(scope!("bounded: inside")) };
            poll::run(work.measure_execution_time("bounded: future"));
        }
    });
    let trace = trace.expect("a window");
    let account = Account::of(&trace);
    assert!(account.held <= 4, "{account:?}");
    assert!(account.all() >= 20, "{account:?}");
}

#[test(on = driver())]
fn gpu_times_of_scopes_beyond_the_capacity_take_no_room() {
    let _profiler = profiler_runtime::init().expect("set up");
    let gpu = gpu::Gpu::new(0);
    let [slow, fast] = [(); 2].map(|()| gpu.stream());
    let profile = Profile::builder().capacity(4).start().expect("started");
    for _ in 0..4 {
        let _scope = scope!("bounded: kept", stream = &slow);
        gpu.spin(&slow, 1_000_000);
    }
    for _ in 0..100 {
        let _scope = scope!("bounded: beyond", stream = &fast);
        gpu.spin(&fast, 10);
    }
    profile.stop();
    fast.synchronize().expect("nothing failed");
    assert!(
        !profile.wait(Duration::from_millis(200)),
        "the slow one is not passed"
    );
    slow.synchronize().expect("nothing failed");
    assert!(profile.wait(PATIENCE));
    let trace = profile.trace().expect("a trace");
    let times: Vec<f64> = trace
        .events()
        .filter_map(Event::gpu)
        .map(|span| span.ns)
        .collect();
    let account = Account::of(&trace);
    assert_eq!(
        (
            account.held,
            account.missing.over_capacity,
            account.missing.unread
        ),
        (4, 100, 0)
    );
    assert_eq!(times.len(), 4);
    for time in times {
        gpu::exact(time, 1_000_000.0);
    }
}

#[test(measuring)]
fn windows_that_wait_for_a_blocked_handler_are_merged_without_losing_scopes() {
    const STEPS: u64 = 3000;

    let (release, released) = mpsc::channel::<()>();
    let (sender, seen) = mpsc::channel();
    let profile = Profile::builder()
        .schedule(Schedule::new().active(1))
        .on_trace_ready(move |trace: &Trace| {
            let _ = released.recv();
            sender.send((trace.cycle(), Account::of(trace)))
        })
        .start()
        .expect("started");
    for step in 0..STEPS {
        scopes(step % 3);
        profile.step();
    }
    profile.stop();
    // Closed after those, and handed over after them.
    let ((), trace) = Profile::builder().run(|_| ());
    drop(trace.expect("a window"));
    assert!(!profile.wait(Duration::ZERO));
    drop(release);
    assert!(profile.wait(PATIENCE));
    let seen: Vec<(u64, Account)> = seen.try_iter().collect();
    assert!((seen.len() as u64) < STEPS / 2, "{} windows", seen.len());
    assert!(seen.is_sorted_by_key(|(cycle, _)| *cycle));
    assert_eq!(seen.last().map(|(cycle, _)| *cycle), Some(STEPS));
    let all: u64 = seen.iter().map(|(_, account)| account.all()).sum();
    assert_eq!(all, STEPS);
}

#[test(measuring)]
fn many_short_windows_are_all_delivered_or_counted_and_another_session_gets_its_own() {
    const STEPS: u64 = 20_000;

    let (sender, seen) = mpsc::channel();
    let many = Profile::builder()
        .schedule(Schedule::new().active(1))
        .on_trace_ready(move |trace: &Trace| sender.send((trace.cycle(), Account::of(trace))))
        .start()
        .expect("started");
    let mut others = 0;
    for step in 0..STEPS {
        scopes(1);
        many.step();
        if step % 5_000 == 0 {
            let ((), other) = Profile::builder().run(|_| scopes(1));
            others += other.expect("a window").len();
        }
    }
    stop(&many);
    assert_eq!(others, 4);
    let seen: Vec<(u64, Account)> = seen.try_iter().collect();
    assert!(seen.is_sorted_by_key(|(cycle, _)| *cycle));
    let skipped: u64 = seen
        .iter()
        .map(|(_, one)| one.missing.skipped_windows)
        .sum();
    // A window that was not recorded has a scope of each step, and may have one of another session.
    let all: u64 = seen.iter().map(|(_, account)| account.all()).sum();
    let made = STEPS + 4;
    assert!(all <= made && all + 2 * skipped >= made, "{all} {skipped}");
    let is_said = |notice: &String| notice.contains("windows of a session were not recorded");
    let last_is_there = seen.last().is_some_and(|(cycle, _)| *cycle == STEPS);
    let notices = profiler_runtime::summary().notices;
    assert!(last_is_there != notices.iter().any(is_said));
}

#[test(measuring)]
fn a_window_follows_another_without_a_gap() {
    const STEPS: u64 = 300;

    let (profile, accounts) = stepped(1_000_000);
    let made = thread::scope(|threads| {
        let (stop, stopped) = mpsc::channel::<()>();
        let beside = threads.spawn(move || {
            let mut made = 0;
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                scopes(100);
                made += 100;
            }
            made
        });
        for _ in 0..STEPS {
            thread::sleep(Duration::from_micros(200));
            profile.step();
        }
        drop(stop);
        beside.join().expect("it ends")
    });
    stop(&profile);
    let all: u64 = accounts.try_iter().map(|account| account.all()).sum();
    // A scope that is open when a window closes is in none.
    assert!(
        (made - STEPS..=made).contains(&all),
        "{all} of {made} scopes"
    );
}

#[test(measuring)]
fn toggles_beyond_the_bound_leave_collection_on() {
    const TIMES: u64 = 5000;

    let both = [Activity::Cpu, Activity::Cuda];
    let ((), trace) = Profile::builder().run(|profile| {
        for _ in 0..TIMES {
            // The second changes nothing.
            profile.toggle_collection(false, both);
            profile.toggle_collection(false, both);
            scopes(1);
            profile.toggle_collection(true, both);
            scopes(1);
        }
    });
    let trace = trace.expect("a window");
    let beyond = TIMES - 4096 / 2;
    let held = trace.len() as u64;
    assert!(
        (TIMES + beyond..=TIMES + beyond + 1).contains(&held),
        "{held} scopes"
    );
    let is_said = |notice: &String| notice.contains("too often in one window");
    assert!(profiler_runtime::summary().notices.iter().any(is_said));
}

/// Opens a scope when its thread ends.
struct AtTheEnd(Cell<u64>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        scopes(self.0.get());
    }
}

thread_local! {
    static EARLY: AtTheEnd = const { AtTheEnd(Cell::new(0)) };
    static LATE: AtTheEnd = const { AtTheEnd(Cell::new(0)) };
}

/// The work of a thread.
#[derive(Clone, Copy, Debug)]
struct Load {
    rounds: u64,
    depth: u64,
    /// In destructors of thread-locals that were there before the first scope, and after it.
    early: u64,
    late: u64,
}

impl Load {
    fn scopes(self) -> u64 {
        self.rounds * self.depth + self.early + self.late
    }

    fn run(self) {
        fn nest(depth: u64) {
            if depth > 0 {
                let _scope = scope!("bounded: nested");
                nest(depth - 1);
            }
        }
        if self.early > 0 {
            EARLY.with(|end| end.0.set(self.early));
        }
        for _ in 0..self.rounds {
            nest(self.depth);
        }
        if self.late > 0 {
            LATE.with(|end| end.0.set(self.late));
        }
    }
}

fn run_all(loads: &[Load]) -> u64 {
    let started: Vec<_> = loads
        .iter()
        .map(|load| {
            let load = *load;
            thread::spawn(move || load.run())
        })
        .collect();
    for thread in started {
        thread.join().expect("it does not panic");
    }
    loads.iter().map(|load| load.scopes()).sum()
}

fn load() -> impl Strategy<Value = Load> {
    (0_u64..400, 1_u64..6, 0_u64..3, 0_u64..3).prop_map(|(rounds, depth, early, late)| Load {
        rounds,
        depth,
        early,
        late,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_scope_of_each_thread_is_held_or_counted(
        capacity in prop_oneof![1_usize..50, 1_usize..5_000, Just(1_000_000)],
        steps in prop::collection::vec(prop::collection::vec(load(), 0..8), 1..5),
    ) {
        if !measuring() {
            return Ok(());
        }
        let (profile, accounts) = stepped(capacity);
        let mut made = Vec::new();
        for loads in &steps {
            made.push(run_all(loads));
            profile.step();
        }
        profile.stop();
        prop_assert!(profile.wait(PATIENCE));
        let seen: Vec<Account> = accounts.try_iter().collect();
        // The last one is open from the last step to the end.
        prop_assert_eq!(seen.len(), made.len() + 1);
        for (account, made) in seen.iter().zip(&made) {
            prop_assert_eq!(account.all(), *made, "{:?}", account);
            prop_assert!(account.held <= capacity as u64);
        }
    }
}

/// The thread that takes what others record gets no time while this lasts.
#[cfg(target_os = "linux")]
struct Starved(libc::pid_t);

#[cfg(target_os = "linux")]
impl Starved {
    fn new() -> Option<Self> {
        let tasks = std::fs::read_dir("/proc/self/task").ok()?;
        let found = tasks.filter_map(Result::ok).find(|task| {
            let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            "profiler-windows".starts_with(name.trim()) && !name.trim().is_empty()
        })?;
        let thread = found.file_name().to_str()?.parse().ok()?;
        Self::set(thread, libc::SCHED_IDLE).then_some(Self(thread))
    }

    fn set(thread: libc::pid_t, policy: i32) -> bool {
        // SAFETY: the structures are plain numbers, and zero is a value of each.
        let (parameter, mut processors): (libc::sched_param, libc::cpu_set_t) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: the CPU set may be written and has the stated size; the thread is one of this process. Both run on
        // the first processor that this thread may use.
        unsafe {
            let size = size_of::<libc::cpu_set_t>();
            let mut all: libc::cpu_set_t = std::mem::zeroed();
            if libc::sched_getaffinity(0, size, &raw mut all) != 0 {
                return false;
            }
            let first = (0..libc::CPU_SETSIZE as usize).find(|cpu| libc::CPU_ISSET(*cpu, &all));
            let Some(first) = first else { return false };
            libc::CPU_SET(first, &mut processors);
            libc::sched_setaffinity(0, size, &raw const processors) == 0
                && libc::sched_setaffinity(thread, size, &raw const processors) == 0
                && libc::sched_setscheduler(thread, policy, &raw const parameter) == 0
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Starved {
    fn drop(&mut self) {
        Self::set(self.0, libc::SCHED_OTHER);
    }
}

#[cfg(target_os = "linux")]
#[test(measuring)]
fn scopes_that_a_full_ring_drops_are_counted() {
    const BURST: u64 = 200_000;

    // On a thread of its own, whose affinity dies with it.
    let lost = thread::spawn(|| {
        let mut lost = 0;
        for _ in 0..50 {
            let (profile, accounts) = stepped(1_000_000);
            let starved = Starved::new();
            scopes(BURST);
            profile.step();
            drop(starved);
            // The next cycle is clean.
            assert!(profile.wait(PATIENCE));
            scopes(100);
            profile.step();
            stop(&profile);
            let seen: Vec<Account> = accounts.try_iter().collect();
            assert_eq!(seen[0].all(), BURST, "{:?}", seen[0]);
            assert_eq!(seen[1].held, 100, "{:?}", seen[1]);
            assert_eq!(seen[1].missing, Truncation::default());
            lost = seen[0].missing.ring_full;
            if lost > 0 {
                break;
            }
        }
        lost
    });
    assert!(
        lost.join().expect("all were counted") > 0,
        "no ring was ever full"
    );
}
