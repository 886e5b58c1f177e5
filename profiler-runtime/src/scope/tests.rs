mod across_threads;
// Miri knows neither the counter nor a function that reading the settings for a log needs.
#[cfg(not(miri))]
mod direct;

use std::panic::Location;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use super::*;
use crate::clock::mock::MockClock;
use crate::local::{self, Innermost};
use crate::losses;
use crate::name::{self, Name};
use crate::stats::Totals;
use crate::switch::{self, SiteDecision};

fn name(text: &str) -> &'static Name {
    name::declared(text, Location::caller())
}

/// Opens a scope as a call site does that has decided on nothing but the name.
fn open(name: &Name) -> Scope {
    let decision = SiteDecision::new(name.id);
    let open = OpenScope::fast(decision)
        .or_else(|| OpenScope::slow(decision, None, &mut ScopeArgs::default()));
    Scope::from(open)
}

/// Runs `f` on a thread of its own, and returns what it counted for each of the names.
fn counted<const N: usize>(
    texts: [&str; N],
    f: impl FnOnce([&'static Name; N]) + Send + 'static,
) -> [Totals; N] {
    timed(texts, |names, _| f(names))
}

/// Runs `f` on a thread of its own whose clock `f` sets, and returns what it counted for each of the names.
fn timed<const N: usize>(
    texts: [&str; N],
    f: impl FnOnce([&'static Name; N], &MockClock) + Send + 'static,
) -> [Totals; N] {
    let names = texts.map(name);
    thread::spawn(move || f(names, &MockClock::at(1_000)))
        .join()
        .expect("does not panic");
    names.map(Name::totals)
}

#[test]
fn a_scope_inside_is_a_child() {
    let texts = ["scope: outer", "scope: inner"];
    let [outer, inner] = timed(texts, |[outer, inner], clock| {
        let _outer = open(outer);
        clock.advance(1);
        for ticks in [20, 30] {
            let _inner = open(inner);
            clock.advance(ticks);
        }
        clock.advance(4);
    });
    assert_eq!((outer.calls(), inner.calls()), (1, 2));
    assert_eq!((inner.total, inner.own), (50, 50));
    assert_eq!((outer.total, outer.own), (55, 5));
    assert_eq!((inner.min, inner.max), (20, 30));
    assert_eq!(outer.out_of_order + inner.out_of_order, 0);
}

#[test]
fn time_that_another_thread_covers_is_not_self_time_and_is_counted_apart() {
    let texts = ["scope: covered", "scope: covers"];
    let [waits, works] = timed(texts, |[waits, works], clock| {
        let outer = open(waits);
        clock.advance(5);
        let handle = handle::Handle::current();
        let other = thread::spawn(move || {
            let clock = MockClock::at(1_010);
            let _entered = handle.enter();
            let _works = open(works);
            clock.advance(20);
        });
        other.join().expect("it does not panic");
        clock.advance(30);
        drop(outer);
    });
    assert_eq!((works.own, waits.total, waits.own), (20, 35, 15));
    assert_eq!(name(texts[0]).covered.load(Relaxed), 20);
    assert_eq!(name(texts[1]).covered.load(Relaxed), 0);
}

#[test]
fn the_slow_path_counts_as_the_fast_one() {
    let [slow, fast] = counted(["scope: slow", "scope: fast"], |[slow, fast]| {
        drop(open(fast));
        let decision = SiteDecision::new(slow.id);
        let opened = OpenScope::slow(decision, None, &mut ScopeArgs::default());
        let outer = Scope::from(opened);
        let opened = OpenScope::fast(SiteDecision::new(fast.id));
        end(&opened.expect("the thread has a cell for the name"));
        drop(outer);
    });
    assert_eq!((slow.calls(), fast.calls()), (1, 2));
    assert!(slow.total >= slow.own);
    assert_eq!(slow.out_of_order + fast.out_of_order, 0);
}

#[test]
fn a_flag_takes_a_call_off_the_fast_path() {
    let name = name("scope: flag");
    drop(open(name));
    let plain = SiteDecision::new(name.id);
    for flag in [
        SiteDecision::LOGGED,
        SiteDecision::CUDA,
        SiteDecision::EXCLUDED,
    ] {
        assert!(OpenScope::fast(plain.with(flag, true)).is_none());
    }
}

/// Takes a guard to another thread, as a coroutine does that is resumed there.
struct Moved(Scope);

// SAFETY: it is a guard of a coroutine's stack: what it must not do on another thread is what the tests are about.
unsafe impl Send for Moved {}

#[test]
fn scopes_that_close_in_any_order_are_all_counted_and_none_stays_open() {
    let mut state = 1_u64;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    let rounds = if cfg!(miri) { 2 } else { 200 };
    for round in 0..rounds {
        let text = |name: &str| format!("scope: any order {round} {name}");
        let names = ["a", "b"].map(|name| self::name(&text(name)));
        let choices: Vec<(usize, usize)> = (0..60).map(|_| (random(3), random(60))).collect();
        let made = thread::spawn(move || {
            let mut open_scopes: Vec<Scope> = Vec::new();
            let mut made = [0; 2];
            for (choice, place) in choices {
                if choice < 2 && open_scopes.len() < 16 {
                    open_scopes.push(open(names[choice]));
                    made[choice] += 1;
                } else if !open_scopes.is_empty() {
                    drop(open_scopes.swap_remove(place % open_scopes.len()));
                }
            }
            // In no order but that of the vector.
            drop(open_scopes);
            made
        });
        let made = made.join().expect("does not panic");
        for (name, made) in names.into_iter().zip(made) {
            let totals = name.totals();
            assert_eq!((totals.calls(), totals.open()), (made, 0), "{round}");
        }
    }
}

#[test]
fn scopes_that_close_on_another_thread_are_counted_and_none_stays_open() {
    const TIMES: u64 = 30;

    let name = name("scope: moved");
    let (sender, receiver) = std::sync::mpsc::channel::<Moved>();
    let other = thread::spawn(move || {
        // Its own scopes are its innermost ones, with as many serials.
        for Moved(guard) in receiver {
            let own = open(name);
            drop(guard);
            drop(own);
            assert_eq!(local::innermost(), Innermost::NONE);
        }
    });
    let [on_this] = counted(["scope: moved"], move |[name]| {
        for round in 0..TIMES {
            let around = (round % 3 == 0).then(|| open(name));
            sender.send(Moved(open(name))).expect("it listens");
            drop(around);
            drop(open(name));
        }
        drop(sender);
        other.join().expect("does not panic");
        // What it opens from now on is not inside of what has moved.
        let before = name.totals();
        drop(open(name));
        drop(open(name));
        let after = name.totals();
        assert_eq!(after.primitive_calls() - before.primitive_calls(), 2);
        assert_eq!(after.open(), 0);
    });
    assert_eq!(on_this.calls(), 3 * TIMES + TIMES / 3 + 2);
    assert_eq!(on_this.open(), 0);
    assert!(on_this.out_of_order >= TIMES, "a note says so");
}

#[test]
fn scopes_that_were_closed_elsewhere_hide_none_that_are_open() {
    let [name] = counted(["scope: closed elsewhere"], |[name]| {
        // The second one is inside of the first, as far as this thread knows.
        let guards = [Moved(open(name)), Moved(open(name))];
        let close = move || {
            for Moved(guard) in guards {
                drop(guard);
            }
        };
        thread::spawn(close).join().expect("does not panic");
        assert_eq!(name.totals().open(), 0);
        let stays = thread::spawn(move || Moved(open(name)));
        let Moved(stays) = stays.join().expect("does not panic");
        assert_eq!(name.totals().open(), 1);
        drop(stays);
    });
    assert_eq!((name.calls(), name.open()), (3, 0));
}

#[test]
fn a_scope_whose_thread_has_ended_closes_on_another_one() {
    let name = name("scope: of an ended thread");
    let Moved(guard) = thread::spawn(move || Moved(open(name)))
        .join()
        .expect("does not panic");
    assert_eq!(name.totals().open(), 1);
    drop(guard);
    // The next one may have the memory of the first.
    thread::spawn(move || drop(open(name)))
        .join()
        .expect("does not panic");
    let totals = name.totals();
    assert_eq!((totals.calls(), totals.open()), (2, 0));
    assert_eq!(totals.recursive_calls, 0);
}

/// Closes `around` before the scopes inside it, then the inner one of these before a younger one: so `resumed`, which had
/// been presumed leaked, is the innermost scope again when it closes.
fn close_out_of_order(names: [&Name; 4], open: impl Fn(&Name) -> Scope) {
    let [around, resumed, inside, younger] = names;
    let around = open(around);
    let resumed = open(resumed);
    let inside = open(inside);
    drop(around);
    let younger = open(younger);
    drop(inside);
    drop(resumed);
    drop(younger);
}

#[test]
fn a_scope_presumed_leaked_is_closed_if_its_guard_is_dropped_after_all() {
    let texts = [
        "scope: closed first",
        "scope: resumed",
        "scope: inside",
        "scope: younger",
    ];
    for name in counted(texts, |names| close_out_of_order(names, open)) {
        assert_eq!((name.calls(), name.recursive_calls, name.open), (1, 0, 0));
    }
}

#[test]
fn a_call_is_asked_once_whether_it_is_logged() {
    let name = name("scope: asked");
    thread::spawn(move || {
        let mut builder = ScopeBuilder::new(Some(SiteDecision::new(name.id)), 2);
        assert!(builder.wants_log() && builder.wants_log() && builder.wants_step());
        let mut next = ScopeBuilder::new(Some(SiteDecision::new(name.id)), 2);
        assert!(!next.wants_log() && !next.wants_step());
    })
    .join()
    .expect("does not panic");
}

#[test]
fn a_call_that_is_not_measured_wants_nothing() {
    let mut off = ScopeBuilder::off();
    assert!(!off.wants_log() && !off.wants_step() && !off.wants_stream() && !off.wants_shapes());
    assert!(off.start().open.is_none());
}

#[test]
fn no_new_name_is_measured_within_the_profiler() {
    let name = name("scope: reentrant");
    thread::spawn(|| {
        let _reentrancy = profiler_host::sync::ReentrancyGuard::try_enter();
        assert!(open(name).open.is_none());
    })
    .join()
    .expect("does not panic");
    assert_eq!(name.totals().calls(), 0);
}

#[test]
fn a_call_that_takes_locks_is_refused_within_the_profiler_and_counted() {
    let name = name("scope: interrupted");
    thread::spawn(|| {
        drop(open(name));
        let before = losses::refused();
        // As a signal handler that has interrupted this thread there.
        switch::with_control(|_| {
            let decision = SiteDecision::new(name.id);
            for flag in [SiteDecision::CALLERS, SiteDecision::STEP] {
                assert!(OpenScope::without_args(decision.with(flag, true)).is_none());
            }
            let mut builder = ScopeBuilder::new(Some(decision), 3);
            assert!(!builder.wants_stream() && !builder.wants_log());
            let plain = OpenScope::fast(decision);
            drop(Scope::from(plain));
            assert!(plain.is_some(), "it takes none");
        });
        assert!(losses::refused() >= before + 2);
    })
    .join()
    .expect("does not panic");
    assert_eq!(name.totals().calls(), 2);
}

#[test]
fn empty_scopes_leave_no_trace() {
    let [outer] = counted(["scope: probed"], |[outer]| {
        let _outer = open(outer);
        run_empty_scopes(10);
        let _inner = open(outer);
    });
    assert_eq!((outer.calls(), outer.out_of_order), (2, 0));
}
