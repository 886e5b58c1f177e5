//! Random programs of scopes, streams, captures and refused calls have the GPU times that a model of them has.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::raw::{Driver, NON_BLOCKING};
use profiler_runtime::cuda::Stream;
use profiler_runtime::report::{EdgeTimes, Summary};
use profiler_runtime::{builder, scope, summary};
use profiler_tests::gpu::{Ran, driver, settle, simulator};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

const NAMES: usize = 4;
/// The last one is the default stream, which no scope names.
const STREAMS: usize = 4;
const DEFAULT: usize = STREAMS - 1;

/// A step of a program. A step that is impossible in the current state is skipped.
#[derive(Clone, Copy, Debug)]
enum Step {
    Open {
        name: usize,
        stream: usize,
    },
    /// The driver refuses the record at its beginning.
    OpenRefused {
        name: usize,
        stream: usize,
    },
    Close,
    /// The driver refuses the record at its end.
    CloseRefused,
    /// A whole scope whose time the driver refuses to tell.
    Unreadable {
        name: usize,
        stream: usize,
        ns: u64,
    },
    Launch {
        stream: usize,
        ns: u64,
    },
    Wait {
        stream: usize,
    },
    Advance {
        ns: u64,
    },
    BeginCapture {
        stream: usize,
    },
    EndCapture {
        stream: usize,
    },
    Settle,
}

fn step() -> impl Strategy<Value = Step> {
    let (name, stream, ns) = (|| 0..NAMES, || 0..STREAMS, || 1..50_000_u64);
    prop_oneof![
        8 => (name(), stream()).prop_map(|(name, stream)| Step::Open { name, stream }),
        1 => (name(), stream()).prop_map(|(name, stream)| Step::OpenRefused { name, stream }),
        8 => Just(Step::Close),
        1 => Just(Step::CloseRefused),
        1 => (name(), stream(), ns())
            .prop_map(|(name, stream, ns)| Step::Unreadable { name, stream, ns }),
        12 => (stream(), ns()).prop_map(|(stream, ns)| Step::Launch { stream, ns }),
        2 => stream().prop_map(|stream| Step::Wait { stream }),
        2 => ns().prop_map(|ns| Step::Advance { ns }),
        1 => (0..DEFAULT).prop_map(|stream| Step::BeginCapture { stream }),
        2 => (0..DEFAULT).prop_map(|stream| Step::EndCapture { stream }),
        1 => Just(Step::Settle),
    ]
}

/// The expected results of one name.
#[derive(Clone, Copy, Debug, Default)]
struct Expected {
    calls: u64,
    timed: u64,
    total: f64,
    own: f64,
    elsewhere: f64,
}

impl Expected {
    fn add(&mut self, ns: f64, own: f64, is_inside_another: bool) {
        self.timed += 1;
        self.total += if is_inside_another { 0.0 } else { ns };
        self.own += own;
    }

    /// Compares the GPU times of all calls.
    fn compare(&self, found: Option<EdgeTimes>) -> Result<(), TestCaseError> {
        prop_assert_eq!(found.is_some(), self.timed > 0);
        let found = found.unwrap_or_default();
        let pairs = [(found.total_ns, self.total), (found.self_ns, self.own)];
        for (found, expected) in pairs {
            // The driver's numbers have 24 bits.
            let step = 1.0 + expected * f64::from(f32::EPSILON) * 4.0;
            prop_assert!((found - expected).abs() <= step, "{found}, not {expected}");
        }
        Ok(())
    }
}

/// A scope of the model.
#[derive(Clone, Debug)]
struct Open {
    call: Call,
    begin: Option<u64>,
    /// The time of the measured scopes inside it on its stream.
    children: u64,
}

/// What a scope has in common with others that it may be inside of.
#[derive(Clone, Debug)]
struct Call {
    /// Unique in its program.
    number: usize,
    name: usize,
    caller: Option<usize>,
    stream: usize,
    /// The calls that were open around it.
    around: Vec<usize>,
}

/// A call with a GPU time.
#[derive(Clone, Debug)]
struct Timed {
    call: Call,
    ns: f64,
    own: f64,
}

/// A model of the device and the profiler, in a few lines.
#[derive(Debug, Default)]
struct Model {
    now: u64,
    tails: [u64; STREAMS],
    captures: [bool; STREAMS],
    open: Vec<Open>,
    calls: usize,
    timed: Vec<Timed>,
    names: [Expected; NAMES],
    /// By caller and callee.
    edges: BTreeMap<(Option<usize>, usize), Expected>,
}

impl Model {
    fn launch(&mut self, stream: usize, ns: u64) {
        if !self.captures[stream] {
            self.tails[stream] = self.tails[stream].max(self.now) + ns;
        }
    }

    fn wait(&mut self, stream: usize) {
        self.now = self.now.max(self.tails[stream]);
    }

    /// When an event that is recorded now is passed; none in a capture, or where it is refused.
    fn record(&mut self, stream: usize, refused: bool) -> Option<u64> {
        if self.captures[stream] || refused {
            return None;
        }
        self.tails[stream] = self.tails[stream].max(self.now);
        Some(self.tails[stream])
    }

    fn open(&mut self, name: usize, stream: usize, refused: bool) {
        let begin = self.record(stream, refused);
        let call = Call {
            number: self.calls,
            name,
            caller: self.open.last().map(|caller| caller.call.name),
            stream,
            around: self.open.iter().map(|open| open.call.number).collect(),
        };
        self.calls += 1;
        self.open.push(Open {
            call,
            begin,
            children: 0,
        });
    }

    fn close(&mut self, refused: bool, unreadable: bool) {
        let Some(scope) = self.open.pop() else { return };
        let (name, stream) = (scope.call.name, scope.call.stream);
        self.names[name].calls += 1;
        let edge = (scope.call.caller, name);
        self.edges.entry(edge).or_default().calls += 1;
        let end = scope.begin.and_then(|_| self.record(stream, refused));
        let around = self.open.iter_mut().rev();
        let mut around =
            around.filter(|outer| outer.call.stream == stream && outer.begin.is_some());
        let (Some(begin), Some(end), false) = (scope.begin, end, unreadable) else {
            // Its children count as children of the enclosing scope.
            if let Some(outer) = around.next() {
                outer.children += scope.children;
            }
            return;
        };
        let ns = end - begin;
        if let Some(outer) = around.next() {
            outer.children += ns;
        }
        if let Some(outer) = self.open.last().filter(|outer| outer.call.stream != stream) {
            self.names[outer.call.name].elsewhere += ns as f64;
        }
        self.timed.push(Timed {
            call: scope.call,
            ns: ns as f64,
            own: (ns - scope.children) as f64,
        });
    }

    /// Adds up the GPU times. A total is that of the calls that are not inside another one of the name, or of the caller and
    /// callee, which has a GPU time on the same stream.
    fn add_up(&mut self) {
        let timed = std::mem::take(&mut self.timed);
        for Timed { call, ns, own } in &timed {
            let around = || {
                timed.iter().filter(|outer| {
                    outer.call.stream == call.stream && call.around.contains(&outer.call.number)
                })
            };
            let edge = |call: &Call| (call.caller, call.name);
            let in_name = around().any(|outer| outer.call.name == call.name);
            let in_edge = around().any(|outer| edge(&outer.call) == edge(call));
            self.names[call.name].add(*ns, *own, in_name);
            let expected = self.edges.entry(edge(call)).or_default();
            expected.add(*ns, *own, in_edge);
        }
    }
}

/// The user's side: streams of a driver, and the names of one program's scopes.
struct Program<'a> {
    user: &'a User,
    names: [String; NAMES],
    guards: Vec<Box<dyn Guard + 'a>>,
    model: Model,
}

struct User {
    driver: Driver,
    streams: [usize; STREAMS],
    lent: [Stream; STREAMS],
    spin: usize,
}

/// Any guard of a scope.
trait Guard {}
impl<T> Guard for T {}

impl User {
    fn new() -> Self {
        let driver = Driver::of(simulator());
        assert_eq!(driver.cuInit(0), 0);
        let context = driver.primary(0);
        assert_eq!(driver.cuCtxSetCurrent(context), 0);
        let mut streams = [(); STREAMS].map(|()| driver.stream(NON_BLOCKING));
        streams[DEFAULT] = 0;
        let handed = |stream: usize| {
            // SAFETY: both exist to the end of the process.
            unsafe { Stream::from_raw(stream as *mut c_void, context as *mut c_void) }
        };
        let (lent, spin) = (streams.map(handed), driver.kernel("spin_ns"));
        Self {
            driver,
            streams,
            lent,
            spin,
        }
    }

    fn run(&self, script: &str) {
        self.driver.run(script).expect("the script is right");
    }

    /// Runs `f` while the driver refuses a call.
    fn refusing<T>(&self, call: &str, f: impl FnOnce() -> T) -> T {
        self.run(&format!("fault {call} always return 1"));
        let result = f();
        self.run("clear-faults");
        result
    }
}

impl<'a> Program<'a> {
    fn new(user: &'a User) -> Self {
        static PROGRAMS: AtomicU64 = AtomicU64::new(0);
        let number = PROGRAMS.fetch_add(1, Relaxed);
        let mut place = 0;
        let names = [(); NAMES].map(|()| {
            place += 1;
            format!("program {number}: {place}")
        });
        let model = Model {
            now: user.driver.now(),
            ..Model::default()
        };
        Self {
            user,
            names,
            guards: Vec::new(),
            model,
        }
    }

    fn open(&mut self, name: usize, stream: usize) {
        let name = &self.names[name];
        self.guards.push(if stream == DEFAULT {
            Box::new(scope!(name))
        } else {
            Box::new(scope!(name, stream = &self.user.lent[stream]))
        });
    }

    fn launch(&mut self, stream: usize, ns: u64) {
        let user = self.user;
        assert_eq!(user.driver.spin(user.spin, ns, user.streams[stream]), 0);
        self.model.launch(stream, ns);
    }

    fn wait(&mut self, stream: usize) {
        if !self.model.captures[stream] {
            assert_eq!(
                self.user
                    .driver
                    .cuStreamSynchronize(self.user.streams[stream]),
                0
            );
            self.model.wait(stream);
        }
    }

    fn settle(&mut self) {
        (0..STREAMS).for_each(|stream| self.wait(stream));
        // Scopes that ended in a stream that captures now were recorded before it did.
        let latest = self.model.tails.into_iter().max().unwrap_or(0);
        self.advance(latest.saturating_sub(self.model.now));
        settle();
    }

    fn advance(&mut self, ns: u64) {
        self.user.driver.advance(ns).expect("the clock is virtual");
        self.model.now += ns;
    }

    fn end_capture(&mut self, stream: usize) {
        if std::mem::take(&mut self.model.captures[stream]) {
            let (driver, mut graph) = (self.user.driver, 0);
            let handle = self.user.streams[stream];
            assert_eq!(
                driver.cuStreamEndCapture(handle, &raw mut graph),
                0,
                "it stayed valid"
            );
            assert_eq!(driver.cuGraphDestroy(graph), 0);
        }
    }

    fn close(&mut self) {
        if self.guards.pop().is_some() {
            self.model.close(false, false);
        }
    }

    fn unreadable(&mut self, name: usize, stream: usize, ns: u64) {
        // All others have been read; this one cannot have been, since the device has not passed it.
        self.settle();
        self.open(name, stream);
        self.model.open(name, stream, false);
        self.launch(stream, ns);
        self.guards.pop();
        self.model.close(false, true);
        let user = self.user;
        user.refusing("cuEventElapsedTime", || self.settle());
    }

    fn take(&mut self, step: Step) {
        let user = self.user;
        match step {
            Step::Open { name, stream } => {
                self.open(name, stream);
                self.model.open(name, stream, false);
            }
            Step::OpenRefused { name, stream } => {
                user.refusing("cuEventRecord", || self.open(name, stream));
                self.model.open(name, stream, true);
            }
            Step::Close => self.close(),
            Step::CloseRefused => {
                if let Some(guard) = self.guards.pop() {
                    user.refusing("cuEventRecord", || drop(guard));
                    self.model.close(true, false);
                }
            }
            Step::Unreadable { name, stream, ns } => self.unreadable(name, stream, ns),
            Step::Launch { stream, ns } => self.launch(stream, ns),
            Step::Wait { stream } => self.wait(stream),
            Step::Advance { ns } => self.advance(ns),
            Step::BeginCapture { stream } => {
                const RELAXED: u32 = 2;
                if !std::mem::replace(&mut self.model.captures[stream], true) {
                    let handle = user.streams[stream];
                    assert_eq!(user.driver.cuStreamBeginCapture_v2(handle, RELAXED), 0);
                }
            }
            Step::EndCapture { stream } => self.end_capture(stream),
            Step::Settle => self.settle(),
        }
        assert_eq!(
            self.model.now,
            user.driver.now(),
            "the model's clock is that of the driver"
        );
    }

    /// Compares the functions of the call tree, and its pairs of caller and callee.
    fn compare_tree(&self, summary: &Summary) -> Result<(), TestCaseError> {
        let number = |name: &str| self.names.iter().position(|known| known == name);
        let tree = summary.call_tree();
        let mut functions = 0;
        for function in tree.functions() {
            if let Some(name) = number(&function.name) {
                let expected = self.model.names[name];
                prop_assert_eq!(function.calls, expected.calls);
                expected.compare(function.cuda)?;
                functions += 1;
            }
        }
        let called = self.model.names.iter().filter(|name| name.calls > 0);
        prop_assert_eq!(functions, called.count());
        let mut edges = 0;
        for edge in tree.edges() {
            if let Some(inner) = number(&edge.callee) {
                let outer = edge.caller.as_deref().and_then(number);
                let expected = self.model.edges[&(outer, inner)];
                prop_assert_eq!(edge.calls, expected.calls);
                expected.compare(edge.cuda)?;
                edges += 1;
            }
        }
        prop_assert_eq!(edges, self.model.edges.len());
        Ok(())
    }

    /// Ends all that is under way, and compares.
    fn compare(mut self, has_tree: bool) -> Result<(), TestCaseError> {
        while !self.guards.is_empty() {
            self.close();
        }
        (0..STREAMS).for_each(|stream| self.end_capture(stream));
        self.settle();
        self.model.add_up();
        let summary = summary();
        for row in &summary.rows {
            let Some(cuda) = row.cuda else { continue };
            let is_whole = cuda.self_ns <= cuda.total_ns * (1.0 + 1e-9);
            prop_assert!(is_whole, "{}: {:?}", row.name, cuda);
        }
        if has_tree {
            self.compare_tree(&summary)?;
        }
        for (name, expected) in self.names.iter().zip(self.model.names) {
            let row = summary.row(name).cloned().unwrap_or_default();
            let read = row.cuda.as_ref().map_or(0, |times| times.calls);
            let without = expected.calls - expected.timed;
            let found = (row.calls, read, row.without_cuda);
            prop_assert_eq!(found, (expected.calls, expected.timed, without), "{}", name);
            if expected.timed == 0 {
                prop_assert!(row.cuda.is_none());
                continue;
            }
            let times = row.cuda.unwrap_or_default();
            let figures = BTreeMap::from([
                ("total", (times.total_ns, expected.total)),
                ("self", (times.self_ns, expected.own)),
                (
                    "other streams",
                    (row.other_streams_ns.unwrap_or_default(), expected.elsewhere),
                ),
            ]);
            for (figure, (found, expected)) in figures {
                // The driver's numbers have 24 bits.
                let step = 1.0 + expected * f64::from(f32::EPSILON) * 4.0;
                prop_assert!(
                    (found - expected).abs() <= step,
                    "{figure}: {found}, not {expected}"
                );
            }
        }
        Ok(())
    }
}

fn captures_are_valid(ran: &Ran) {
    assert_eq!(ran.report.captures_invalidated, 0);
}

#[test(on = driver().legacy_stream().then(captures_are_valid))]
fn random_programs_match_a_model() {
    check_random_programs(false);
}

#[test(on = driver().legacy_stream().then(captures_are_valid))]
fn the_call_tree_of_random_programs_matches_a_model() {
    check_random_programs(true);
}

fn check_random_programs(has_tree: bool) {
    let profiler = builder().callers(has_tree).init();
    let _profiler = profiler.expect("set up");
    let user = User::new();
    let config = ProptestConfig {
        cases: 100,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let programs = prop::collection::vec(step(), 1..120);
    let checked = TestRunner::new(config).run(&programs, |steps| {
        let mut program = Program::new(&user);
        for step in steps {
            program.take(step);
        }
        program.compare(has_tree)
    });
    if let Err(failure) = checked {
        panic!("{failure}");
    }
    let health = summary().cuda;
    let rows: u64 = summary().rows.iter().map(|row| row.without_cuda).sum();
    let lost: u64 = health.lost.iter().map(|(_, count)| count).sum();
    assert_eq!((health.in_flight, lost), (0, rows));
}
