//! Random programs of spans on several threads are counted as a model of them says.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use profiler_runtime::report::SpanLoss;
use profiler_runtime::{ProfilerLayer, scope, summary};
use profiler_tests::{CpuTimes, measuring, row};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tracing::span::EnteredSpan;
use tracing::{Span, info_span};
use tracing_subscriber::layer::SubscriberExt;

use crate::support::lost;

const THREADS: usize = 3;
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A step of a program. Numbers are taken modulo what there is; a step without anything to act on is skipped.
#[derive(Clone, Copy, Debug)]
enum Step {
    Create {
        name: usize,
    },
    Clone {
        span: usize,
    },
    /// Drops a handle of a span on a thread.
    Drop {
        span: usize,
        thread: usize,
    },
    Enter {
        span: usize,
        thread: usize,
    },
    /// Drops the newest guard of a thread, or with `skip` an older one.
    Exit {
        thread: usize,
        skip: usize,
    },
    /// Forgets the newest guard of a thread.
    Forget {
        thread: usize,
    },
    /// Opens and closes one of the profiler's own scopes on a thread.
    Scope {
        thread: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (span, thread) = (|| 0..64_usize, || 0..THREADS);
    prop_oneof![
        4 => (0..NAMES.len()).prop_map(|name| Step::Create { name }),
        1 => span().prop_map(|span| Step::Clone { span }),
        3 => (span(), thread()).prop_map(|(span, thread)| Step::Drop { span, thread }),
        8 => (span(), thread()).prop_map(|(span, thread)| Step::Enter { span, thread }),
        6 => thread().prop_map(|thread| Step::Exit { thread, skip: 0 }),
        2 => (thread(), 0..3_usize).prop_map(|(thread, skip)| Step::Exit { thread, skip }),
        1 => thread().prop_map(|thread| Step::Forget { thread }),
        1 => thread().prop_map(|thread| Step::Scope { thread }),
    ]
}

/// A span, as the model knows it.
#[derive(Clone, Debug, Default)]
struct Model {
    name: usize,
    /// Handles and guards; the span is closed with the last one.
    references: usize,
    /// Enters less exits on each thread: inside itself, a span is one time.
    depth: [usize; THREADS],
    /// Times that began and ended.
    finished: u64,
    /// Times that began.
    begun: u64,
}

/// The counts of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Expected {
    calls: u64,
    times: u64,
}

type Job = Box<dyn FnOnce(&mut Vec<(usize, EnteredSpan)>) + Send>;

/// A thread with guards, which runs one job after the other.
struct Worker {
    jobs: Sender<(Job, Sender<()>)>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn new() -> Self {
        let (jobs, inbox) = channel::<(Job, Sender<()>)>();
        let thread = thread::spawn(move || {
            let mut guards = Vec::new();
            for (job, done) in inbox {
                job(&mut guards);
                done.send(()).expect("the test waits");
            }
            // Newest first, as a program would.
            while guards.pop().is_some() {}
        });
        Self { jobs, thread }
    }

    fn run(&self, job: impl FnOnce(&mut Vec<(usize, EnteredSpan)>) + Send + 'static) {
        let (done, is_done) = channel();
        self.jobs.send((Box::new(job), done)).expect("it runs");
        is_done.recv().expect("it does not panic");
    }
}

#[derive(Default)]
struct Outcome {
    expected: BTreeMap<usize, Expected>,
    /// Closed spans that were exited at least once, by name.
    closed: BTreeMap<usize, u64>,
    never_entered: u64,
    never_exited: u64,
    scopes: u64,
    /// Spans that were entered, and are never closed since a guard was forgotten.
    left_open: u64,
}

impl Outcome {
    fn close(&mut self, span: &Model) {
        self.never_entered += u64::from(span.begun == 0);
        self.never_exited += span.begun - span.finished;
        if span.finished > 0 {
            *self.closed.entry(span.name).or_default() += 1;
        }
    }

    fn exit(&mut self, span: &mut Model, thread: usize) {
        span.depth[thread] -= 1;
        if span.depth[thread] == 0 {
            let row = self.expected.entry(span.name).or_default();
            row.calls += 1;
            row.times += 1;
            span.finished += 1;
        }
        self.release(span);
    }

    fn release(&mut self, span: &mut Model) {
        span.references -= 1;
        if span.references == 0 {
            self.close(span);
        }
    }
}

fn create(name: usize) -> Span {
    match name {
        0 => info_span!("a"),
        1 => info_span!("b"),
        _ => info_span!("c"),
    }
}

/// Runs a program, and returns what the model says of it.
fn run(steps: &[Step]) -> Outcome {
    let mut outcome = Outcome::default();
    let mut models: Vec<Model> = Vec::new();
    // The handles, with the numbers of their spans.
    let mut handles: Vec<(usize, Span)> = Vec::new();
    let mut guards: [Vec<usize>; THREADS] = Default::default();
    let workers: [Worker; THREADS] = std::array::from_fn(|_| Worker::new());
    for step in steps {
        match *step {
            Step::Create { name } => {
                handles.push((models.len(), create(name)));
                models.push(Model {
                    name,
                    references: 1,
                    ..Model::default()
                });
            }
            Step::Clone { span } if !handles.is_empty() => {
                let (number, span) = handles[span % handles.len()].clone();
                models[number].references += 1;
                handles.push((number, span));
            }
            Step::Drop { span, thread } if !handles.is_empty() => {
                let (number, span) = handles.swap_remove(span % handles.len());
                workers[thread].run(move |_| drop(span));
                outcome.release(&mut models[number]);
            }
            Step::Enter { span, thread } if !handles.is_empty() => {
                let (number, span) = handles[span % handles.len()].clone();
                workers[thread].run(move |guards| guards.push((number, span.entered())));
                let model = &mut models[number];
                model.references += 1;
                model.begun += u64::from(model.depth[thread] == 0);
                model.depth[thread] += 1;
                guards[thread].push(number);
            }
            Step::Exit { thread, skip } if guards[thread].len() > skip => {
                let at = guards[thread].len() - 1 - skip;
                let number = guards[thread].remove(at);
                workers[thread].run(move |guards| drop(guards.remove(at)));
                outcome.exit(&mut models[number], thread);
            }
            Step::Forget { thread } if !guards[thread].is_empty() => {
                // The guard's reference is lost with it: the span is never closed, and its time never ends.
                guards[thread].pop();
                workers[thread].run(|guards| std::mem::forget(guards.pop()));
            }
            Step::Scope { thread } => {
                workers[thread].run(|_| drop(scope!("random: scope")));
                outcome.scopes += 1;
            }
            _ => {}
        }
    }
    for (thread, worker) in workers.into_iter().enumerate() {
        drop(worker.jobs);
        worker.thread.join().expect("it does not panic");
        for number in guards[thread].drain(..).rev() {
            outcome.exit(&mut models[number], thread);
        }
    }
    for (number, span) in handles {
        drop(span);
        outcome.release(&mut models[number]);
    }
    let is_left_open = |model: &&Model| model.references > 0 && model.begun > 0;
    outcome.left_open = models.iter().filter(is_left_open).count() as u64;
    outcome
}

/// Compares what was counted since `before` with the model.
fn check(outcome: &Outcome, before: &[Expected; 3], lost_before: (u64, u64)) -> [Expected; 3] {
    let counted = NAMES.map(|name| {
        let row = row(&format!("tracing_layer::random_spans::{name}"));
        Expected {
            calls: row.calls,
            times: row.cpu().calls,
        }
    });
    for (name, (counted, before)) in counted.iter().zip(before).enumerate() {
        let expected = outcome.expected.get(&name).copied().unwrap_or_default();
        let new = Expected {
            calls: counted.calls - before.calls,
            times: counted.times - before.times,
        };
        assert_eq!(new, expected, "{}", NAMES[name]);
    }
    let never_entered = lost(SpanLoss::NeverEntered) - lost_before.0;
    let never_exited = lost(SpanLoss::NeverExited) - lost_before.1;
    assert_eq!(
        (never_entered, never_exited),
        (outcome.never_entered, outcome.never_exited)
    );
    counted
}

fn agree(whole: bool) {
    if !measuring() {
        return;
    }
    let layer = ProfilerLayer::new();
    let layer = if whole {
        layer.whole_spans()
    } else {
        layer.entered_spans()
    };
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::set_global_default(subscriber).expect("the first of this process");
    let config = ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let before = std::cell::Cell::new(([Expected::default(); 3], 0));
    let open_before = std::cell::Cell::new(0);
    TestRunner::new(config)
        .run(&prop::collection::vec(step(), 1..80), |steps| {
            let lost_before = (lost(SpanLoss::NeverEntered), lost(SpanLoss::NeverExited));
            let mut outcome = run(&steps);
            let (counted, scopes) = before.get();
            if whole {
                as_whole(&mut outcome);
            }
            // Where this case fails, the next one, which is smaller, must not see its counts.
            let now = NAMES.map(|name| {
                let row = row(&format!("tracing_layer::random_spans::{name}"));
                Expected {
                    calls: row.calls,
                    times: row.cpu().calls,
                }
            });
            before.set((now, scopes + outcome.scopes));
            let open = NAMES
                .map(|name| row(&format!("tracing_layer::random_spans::{name}")).open)
                .iter()
                .sum::<u64>();
            let new_open = open - open_before.replace(open);
            // The threads have ended, so the times of forgotten guards were given up. Whole spans last until they are closed.
            assert_eq!(new_open, if whole { outcome.left_open } else { 0 });
            check(&outcome, &counted, lost_before);
            assert_eq!(row("random: scope").calls, scopes + outcome.scopes);
            Ok(())
        })
        .expect("the model agrees");
    assert_eq!(summary().unmeasured, 0);
}

/// Whole spans are one time each, and are counted when they are closed.
fn as_whole(outcome: &mut Outcome) {
    outcome.expected.clear();
    for (name, calls) in &outcome.closed {
        let expected = Expected {
            calls: *calls,
            times: *calls,
        };
        outcome.expected.insert(*name, expected);
    }
}

#[test]
fn spans_are_counted_as_the_model_says() {
    agree(false);
}

#[test]
fn whole_spans_are_counted_as_the_model_says() {
    agree(true);
}
