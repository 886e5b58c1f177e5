//! The direct path counts as the others do, and leaves to the slow path what it cannot do.

use super::*;
use crate::scope::slow;

/// The decisions that the direct path handles without a driver.
fn decisions(name: &Name) -> [SiteDecision; 3] {
    let plain = SiteDecision::new(name.id);
    let [logged, recorded] =
        [SiteDecision::LOGGED, SiteDecision::RECORDED].map(|flag| plain.with(flag, true));
    [logged, recorded, recorded.with(SiteDecision::LOGGED, true)]
}

/// Opens a scope on the direct path, whose thread has a cell for the name.
fn open_direct(decision: SiteDecision) -> Scope {
    let open = OpenScope::direct(decision);
    assert!(open.is_some(), "{decision:?}");
    Scope::from(open)
}

#[test]
fn a_call_on_the_direct_path_is_counted_as_any_other() {
    let texts = ["direct: outer", "direct: inner"];
    let [outer, inner] = timed(texts, |names, clock| {
        for name in names {
            drop(open(name));
        }
        let [outer, inner] = names.map(decisions);
        for (outer, inner) in outer.into_iter().zip(inner) {
            let _outer = open_direct(outer);
            clock.advance(5);
            let _inner = open_direct(inner);
            clock.advance(20);
        }
    });
    assert_eq!((outer.calls(), inner.calls()), (4, 4));
    assert_eq!((outer.total, outer.own), (75, 15));
    assert_eq!((inner.total, inner.own), (60, 60));
    assert_eq!(outer.out_of_order + inner.out_of_order, 0);
    assert_eq!((outer.open, inner.open), (0, 0));
}

#[test]
fn a_recursive_call_on_the_direct_path_counts_once_in_the_total() {
    let [name] = timed(["direct: recursive"], |[name], clock| {
        drop(open(name));
        let [_, recorded, _] = decisions(name);
        let _outer = open_direct(recorded);
        clock.advance(3);
        let _inner = open_direct(recorded);
        clock.advance(7);
    });
    assert_eq!((name.calls(), name.recursive_calls), (3, 1));
    assert_eq!((name.total, name.own, name.recursive_total), (10, 10, 7));
}

#[test]
fn a_direct_guard_that_is_dropped_out_of_order_is_counted_as_such() {
    let texts = ["direct: first", "direct: second"];
    let [first, second] = counted(texts, |names| {
        for name in names {
            drop(open(name));
        }
        let [first, second] = names.map(|name| open_direct(decisions(name)[1]));
        drop(first);
        drop(second);
        assert_eq!(local::innermost(), Innermost::NONE);
    });
    assert_eq!((first.calls(), second.calls()), (2, 2));
    assert_eq!((first.out_of_order, second.out_of_order), (1, 1));
}

#[test]
fn a_direct_scope_presumed_leaked_is_closed_if_its_guard_is_dropped_after_all() {
    let texts = [
        "direct: closed first",
        "direct: resumed",
        "direct: inside",
        "direct: younger",
    ];
    let totals = counted(texts, |names| {
        for name in names {
            drop(open(name));
        }
        close_out_of_order(names, |name| open_direct(decisions(name)[1]));
    });
    for name in totals {
        assert_eq!((name.calls(), name.recursive_calls, name.open), (2, 0, 0));
    }
}

#[test]
fn a_panic_through_a_call_of_the_direct_path_is_counted() {
    let [name] = counted(["direct: unwound"], |[name]| {
        drop(open(name));
        for decision in decisions(name) {
            let result = std::panic::catch_unwind(|| {
                let _scope = open_direct(decision);
                std::panic::resume_unwind(Box::new("ends here"));
            });
            assert!(result.is_err());
        }
    });
    assert_eq!((name.calls(), name.panicked), (4, 3));
}

#[test]
fn other_flags_and_a_first_call_take_the_slow_path() {
    let name = name("direct: not");
    let plain = SiteDecision::new(name.id);
    assert!(OpenScope::direct(plain).is_none(), "the thread has no cell");
    drop(open(name));
    for flag in [
        SiteDecision::EXCLUDED,
        SiteDecision::SYSTEM_CLOCK,
        SiteDecision::STEP,
        SiteDecision::THREAD_TIME,
        SiteDecision::CALLERS,
        SiteDecision::RANGES,
    ] {
        assert!(OpenScope::direct(plain.with(flag, true)).is_none());
    }
}

#[test]
fn a_call_that_is_not_logged_this_time_takes_the_direct_path() {
    let name = name("direct: one in ten");
    drop(open(name));
    let decision = SiteDecision::new(name.id).with(SiteDecision::LOGGED, true);
    let before = slow::SLOWLY_OPENED.get();
    for _ in 0..20 {
        drop(ScopeBuilder::new(Some(decision), 10).start());
    }
    assert_eq!(slow::SLOWLY_OPENED.get() - before, 0);
}

#[test]
fn an_unused_logger_is_dropped() {
    use profiler_log::IntoLogger;
    use std::sync::Arc;

    let name = name("direct: unused logger");
    let kept = Arc::new(());
    let logger = || {
        let captured = Arc::clone(&kept);
        (move |_: &str, _: f64, _: u64| drop(Arc::clone(&captured))).into_logger()
    };
    let builder = || {
        let mut builder = ScopeBuilder::new(Some(SiteDecision::new(name.id)), 1);
        builder.request.logger = Some(logger());
        builder
    };
    drop(builder());
    // Nothing has asked whether it is logged.
    drop(builder().start());
    drop(builder().start());
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[test]
fn a_panic_of_the_destructor_of_an_unused_logger_stays_in_the_profiler() {
    use profiler_host::sync::ReentrancyGuard;
    use profiler_log::IntoLogger;

    struct PanicsInDrop;

    impl Drop for PanicsInDrop {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("expected"));
        }
    }

    fn builder(name: &Name, flag: u32) -> ScopeBuilder<'static> {
        let decision = SiteDecision::new(name.id).with(flag, true);
        let mut builder = ScopeBuilder::new(Some(decision), 1);
        let captured = PanicsInDrop;
        let logger = move |_: &str, _: f64, _: u64| {
            let _ = &captured;
        };
        builder.request.logger = Some(logger.into_logger());
        builder
    }

    let [name] = counted(["direct: panics in drop"], |[name]| {
        let guard = ReentrancyGuard::try_enter();
        // Inside the profiler, a thread without a cell opens no scope.
        let mut logged = builder(name, SiteDecision::LOGGED);
        assert!(logged.wants_log());
        drop(logged.start());
        drop(guard);
        // On the slow path, on the direct one, and without a scope.
        drop(builder(name, SiteDecision::RECORDED).start());
        drop(builder(name, SiteDecision::RECORDED).start());
        drop(builder(name, SiteDecision::RECORDED));
    });
    assert_eq!(name.calls(), 2);
}
