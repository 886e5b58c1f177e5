//! Handles, compared with a model: random programs whose threads take turns, at times that the program sets.

use std::any::Any;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use proptest::prelude::*;

use super::*;
use crate::scope::handle::Handle;

const THREADS: usize = 3;
const NAMES: usize = 4;

/// One action of a program, on one of its threads.
#[derive(Clone, Copy, Debug)]
enum Action {
    Open(usize),
    /// Opens a scope with the argument `parent`: one of the handles taken so far.
    OpenChild(usize, usize),
    /// Enters one of the handles taken so far.
    Enter(usize),
    /// Closes the innermost scope, or leaves the innermost handle.
    Close,
    TakeHandle,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => (0..NAMES).prop_map(Action::Open),
        3 => (0..NAMES, any::<usize>()).prop_map(|(name, handle)| Action::OpenChild(name, handle)),
        1 => any::<usize>().prop_map(Action::Enter),
        5 => Just(Action::Close),
        2 => Just(Action::TakeHandle),
    ]
}

/// Actions with their threads, each after a number of ticks.
fn program() -> impl Strategy<Value = Vec<(usize, u64, Action)>> {
    let cases = if cfg!(miri) { 12 } else { 80 };
    prop::collection::vec((0..THREADS, 1..20_u64, action()), 1..cases)
}

/// The next action of a thread of the program, and its time.
type Command = (u64, Action, Option<Handle>);

fn run_thread(names: [&'static Name; NAMES], commands: &Receiver<Command>, done: &Sender<Handle>) {
    // Scopes and entered handles, which close when they are dropped.
    let mut stack: Vec<Box<dyn Any>> = Vec::new();
    for (time, action, handle) in commands {
        let _clock = MockClock::at(time);
        let handle = handle.unwrap_or_default();
        match action {
            Action::Open(name) => stack.push(Box::new(open(names[name]))),
            Action::OpenChild(name, _) => {
                let decision = SiteDecision::new(names[name].id);
                let mut builder = ScopeBuilder::new(Some(decision), 1);
                builder.parent(&handle);
                stack.push(Box::new(builder.start()));
            }
            Action::Enter(_) => stack.push(Box::new(handle.enter())),
            Action::Close => drop(stack.pop()),
            Action::TakeHandle => {}
        }
        let taken = match action {
            Action::TakeHandle => Handle::current(),
            _ => Handle::none(),
        };
        let _ = done.send(taken);
    }
}

/// Runs a program, closes all that it left open at the time `end`, and returns the counts of each name.
fn run(program: &[(usize, u64, Action)], names: [&'static Name; NAMES], end: u64) -> Vec<Totals> {
    let threads = [(); THREADS].map(|()| {
        let (to, commands) = channel();
        let (done, from) = channel();
        let thread = thread::spawn(move || run_thread(names, &commands, &done));
        (to, from, thread)
    });
    let mut handles = Vec::new();
    let mut time = START;
    let mut turn = |thread: usize, time: u64, action: Action| {
        let chosen = match action {
            Action::OpenChild(_, handle) | Action::Enter(handle) => handle,
            _ => 0,
        };
        let handle = (!handles.is_empty()).then(|| Handle::clone(&handles[chosen % handles.len()]));
        let (to, from, _) = &threads[thread];
        to.send((time, action, handle)).expect("it waits");
        let taken = from.recv().expect("it answers");
        if matches!(action, Action::TakeHandle) {
            handles.push(taken);
        }
    };
    for (thread, ticks, action) in program {
        time += ticks;
        turn(*thread, time, *action);
    }
    for thread in 0..THREADS {
        for _ in program {
            turn(thread, end, Action::Close);
        }
    }
    for (to, _, thread) in threads {
        drop(to);
        thread.join().expect("it does not panic");
    }
    names.map(Name::totals).into()
}

const START: u64 = 1_000;

/// A scope of the model.
#[derive(Debug)]
struct ModelScope {
    name: usize,
    thread: usize,
    start: u64,
    end: u64,
    is_recursive: bool,
    /// The scope whose handle is its parent.
    parent: Option<usize>,
}

/// An entry of a thread's stack in the model.
#[derive(Clone, Copy)]
enum ModelEntry {
    Scope(usize),
    /// A handle, and `true` if the scope above it closes with it.
    Entered(usize, bool),
    Nothing,
}

/// A handle of the model: a scope, and the names around it.
type ModelHandle = Option<(usize, Vec<usize>)>;

#[derive(Default)]
struct Model {
    scopes: Vec<ModelScope>,
    stacks: [Vec<ModelEntry>; THREADS],
    handles: Vec<ModelHandle>,
}

impl Model {
    /// Returns the names of a thread's open scopes and of the handles that it has entered.
    fn names(&self, thread: usize) -> Vec<usize> {
        let names = self.stacks[thread].iter().flat_map(|entry| match entry {
            ModelEntry::Scope(scope) => vec![self.scopes[*scope].name],
            ModelEntry::Entered(handle, _) => self.handles[*handle]
                .iter()
                .flat_map(|(_, names)| names.clone())
                .collect(),
            ModelEntry::Nothing => Vec::new(),
        });
        names.collect()
    }

    fn innermost(&self, thread: usize) -> Option<ModelEntry> {
        let entries = self.stacks[thread].iter().rev().copied();
        entries
            .into_iter()
            .find(|entry| !matches!(entry, ModelEntry::Nothing))
    }

    fn open(&mut self, thread: usize, time: u64, name: usize) {
        let parent = match self.innermost(thread) {
            Some(ModelEntry::Entered(handle, _)) => {
                self.handles[handle].as_ref().map(|(scope, _)| *scope)
            }
            _ => None,
        };
        let is_recursive = self.names(thread).contains(&name);
        self.stacks[thread].push(ModelEntry::Scope(self.scopes.len()));
        self.scopes.push(ModelScope {
            name,
            thread,
            start: time,
            end: u64::MAX,
            is_recursive,
            parent,
        });
    }

    fn enter(&mut self, thread: usize, chosen: usize, closes_with_child: bool) {
        let handle = (!self.handles.is_empty()).then(|| chosen % self.handles.len());
        let handle = handle.filter(|handle| self.handles[*handle].is_some());
        let entry = handle.map_or(ModelEntry::Nothing, |handle| {
            ModelEntry::Entered(handle, closes_with_child)
        });
        // A handle of no scope has no effect; but leaving it is a step of its own if it was entered.
        if handle.is_some() || !closes_with_child {
            self.stacks[thread].push(entry);
        }
    }

    fn close(&mut self, thread: usize, time: u64) {
        if let Some(ModelEntry::Scope(scope)) = self.stacks[thread].pop() {
            self.scopes[scope].end = time;
            if let Some(ModelEntry::Entered(_, true)) = self.stacks[thread].last() {
                self.stacks[thread].pop();
            }
        }
    }

    fn act(&mut self, thread: usize, time: u64, action: Action) {
        match action {
            Action::Open(name) => self.open(thread, time, name),
            Action::OpenChild(name, handle) => {
                self.enter(thread, handle, true);
                self.open(thread, time, name);
            }
            Action::Enter(handle) => self.enter(thread, handle, false),
            Action::Close => self.close(thread, time),
            Action::TakeHandle => {
                let taken = match self.innermost(thread) {
                    Some(ModelEntry::Scope(scope)) => Some((scope, self.names(thread))),
                    Some(ModelEntry::Entered(handle, _)) => self.handles[handle].clone(),
                    _ => None,
                };
                // Another handle of a scope is the handle that was taken first.
                let known = self.handles.iter().flatten();
                let known = known
                    .into_iter()
                    .find(|(scope, _)| taken.as_ref().is_some_and(|(taken, _)| taken == scope));
                let taken = known.cloned().or(taken);
                self.handles.push(taken);
            }
        }
    }

    /// Returns the self time of a scope: the instants in which it is the innermost of its thread, and no scope that has
    /// it as its parent runs on any thread.
    fn own(&self, index: usize) -> u64 {
        let scope = &self.scopes[index];
        let is_own = |instant: &u64| {
            let runs = |other: &ModelScope| (other.start..other.end).contains(instant);
            let on_thread = self.scopes.iter().enumerate();
            let innermost = on_thread
                .filter(|(_, other)| other.thread == scope.thread && runs(other))
                .map(|(other, _)| other)
                .max();
            let has_child = self
                .scopes
                .iter()
                .any(|other| other.parent == Some(index) && runs(other));
            innermost == Some(index) && !has_child
        };
        (scope.start..scope.end).filter(is_own).count() as u64
    }

    /// Returns calls, recursive calls, total and self time of each name.
    fn totals(&self) -> HashMap<usize, (u64, u64, u64, u64)> {
        let mut totals: HashMap<usize, (u64, u64, u64, u64)> = HashMap::new();
        for (index, scope) in self.scopes.iter().enumerate() {
            let (calls, recursive, total, own) = totals.entry(scope.name).or_default();
            *calls += 1;
            *own += self.own(index);
            if scope.is_recursive {
                *recursive += 1;
            } else {
                *total += scope.end - scope.start;
            }
        }
        totals
    }
}

/// Returns the counts of each name, as the model's.
fn counts(totals: &Totals) -> (u64, u64, u64, u64) {
    let ticks = |ticks: i64| u64::try_from(ticks).expect("no time is negative");
    (
        totals.calls(),
        totals.recursive_calls,
        ticks(totals.total),
        ticks(totals.own),
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 128 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn random_programs_count_as_the_model_does(program in program()) {
        use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
        static PROGRAMS: AtomicU64 = AtomicU64::new(0);
        // Names of each program's own, because names are never freed.
        let number = PROGRAMS.fetch_add(1, Relaxed);
        let names = [0, 1, 2, 3].map(|index| name(&format!("across {number}: {index}")));
        let end = START + program.iter().map(|(_, ticks, _)| ticks).sum::<u64>() + 10;
        let mut model = Model::default();
        let mut time = START;
        for (thread, ticks, action) in &program {
            time += ticks;
            model.act(*thread, time, *action);
        }
        for thread in 0..THREADS {
            for _ in &program {
                model.act(thread, end, Action::Close);
            }
        }
        let expected = model.totals();
        let counted = run(&program, names, end);
        for (index, totals) in counted.iter().enumerate() {
            let expected = expected.get(&index).copied().unwrap_or_default();
            prop_assert_eq!(counts(totals), expected, "name {}", index);
            prop_assert_eq!((totals.open(), totals.out_of_order), (0, 0));
        }
    }
}

#[test]
fn a_handle_that_is_left_too_early_stays_around_the_scope_that_is_open() {
    let texts = ["across: outer", "across: inner", "across: chunk"];
    let [outer, inner, chunk] = timed(texts, |[outer, inner, chunk], clock| {
        let outer = open(outer);
        let handle = Handle::current();
        let around = open(inner);
        let entered = handle.enter();
        clock.advance(1);
        let child = open(chunk);
        clock.advance(2);
        drop(entered);
        clock.advance(4);
        drop(child);
        clock.advance(8);
        drop(open(chunk));
        drop(around);
        clock.advance(16);
        drop(outer);
        assert_eq!(local::innermost(), Innermost::NONE);
    });
    assert_eq!((outer.own, inner.own, chunk.own), (16, 9, 6));
    assert_eq!(
        outer.out_of_order + inner.out_of_order + chunk.out_of_order,
        0
    );
}

#[test]
fn a_handle_may_outlive_its_scope() {
    let [outer, chunk] = counted(["across: ended", "across: late"], |[outer, chunk]| {
        let handle = {
            let _outer = open(outer);
            Handle::current()
        };
        assert!(!handle.is_none());
        let _entered = handle.enter();
        drop(open(chunk));
    });
    assert_eq!((outer.calls(), chunk.calls(), chunk.open()), (1, 1, 0));
}

#[test]
#[cfg_attr(
    miri,
    ignore = "a warning is written, by calls that Miri does not know"
)]
fn handles_that_are_never_left_take_bounded_memory() {
    let [outer] = counted(["across: leaked"], |[outer]| {
        let scope = open(outer);
        let handle = Handle::current();
        for _ in 0..3_000 {
            std::mem::forget(handle.enter());
        }
        drop(scope);
        assert_eq!(local::innermost(), Innermost::NONE);
        drop(open(outer));
    });
    assert_eq!((outer.calls(), outer.recursive_calls), (2, 0));
}

#[test]
#[cfg_attr(
    miri,
    ignore = "a warning is written, by calls that Miri does not know"
)]
fn handles_of_many_nested_scopes_are_all_left() {
    fn nest(name: &'static Name, depth: u32) {
        let _scope = open(name);
        let _entered = Handle::current().enter();
        if depth > 1 {
            nest(name, depth - 1);
        }
    }

    let [nested, after] = counted(["across: nested", "across: after"], |[nested, after]| {
        nest(nested, 2_000);
        assert_eq!(local::innermost(), Innermost::NONE);
        drop(open(after));
    });
    assert_eq!(
        (nested.calls(), nested.recursive_calls, nested.open()),
        (2_000, 1_999, 0)
    );
    assert_eq!((nested.out_of_order, after.calls()), (0, 1));
}

#[test]
fn without_an_open_scope_there_is_no_handle() {
    let [chunk] = counted(["across: root"], |[chunk]| {
        let handle = Handle::current();
        assert!(handle.is_none());
        let _entered = handle.enter();
        drop(open(chunk));
        assert_eq!(local::innermost(), Innermost::NONE);
    });
    assert_eq!(chunk.calls(), 1);
}
