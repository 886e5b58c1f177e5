//! Ranges of scopes: pushed and popped on the thread of the scope.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use profiler_nvtx_recorder::{Call, Range};
use profiler_runtime::{measure, measure_execution_time, pause, scope, set_enabled};
use profiler_tests::nvtx::{record, record_with};

#[measure_execution_time]
fn outer(inside: impl FnOnce()) {
    inside();
}

#[measure_execution_time]
fn inner() {}

#[measure_execution_time]
fn recursive(depth: u32) {
    if depth > 0 {
        recursive(depth - 1);
    }
}

#[measure_execution_time(bypass = true)]
fn bypassed() {}

#[measure_execution_time(global_step = step)]
fn with_step(step: u64) {
    let _ = step;
}

#[test(measuring)]
fn nested_calls_are_nested_ranges() {
    let recorded = record("", || {
        outer(|| {
            inner();
            measure!("section", { inner() });
        });
        inner();
    });
    let expected = [
        "+outer", "+inner", "-", "+section", "+inner", "-", "-", "-", "+inner", "-",
    ];
    assert_eq!(recorded.ranges(), expected);
    assert!(recorded.warnings().is_empty(), "{}", recorded.stderr);
}

#[test(measuring)]
fn each_recursive_call_is_a_range() {
    let recorded = record("", || recursive(2));
    let expected = ["+recursive", "+recursive", "+recursive", "-", "-", "-"];
    assert_eq!(recorded.ranges(), expected);
}

#[test(measuring)]
fn a_panic_ends_the_ranges_that_it_leaves() {
    let recorded = record("", || {
        outer(|| {
            let caught = catch_unwind(|| {
                let _section = scope!("left");
                outer(|| resume_unwind(Box::new("ends here")));
            });
            assert!(caught.is_err());
            inner();
        });
    });
    let expected = ["+outer", "+left", "+outer", "-", "-", "+inner", "-", "-"];
    assert_eq!(recorded.ranges(), expected);
}

#[test(measuring)]
fn names_that_the_filter_excludes_are_no_ranges() {
    let filter = |command: &mut std::process::Command| {
        command.env("PROFILER_FILTER", "-*inner,-*section*");
    };
    let recorded = record_with(filter, || outer(|| measure!("section", { inner() })));
    assert_eq!(recorded.ranges(), ["+outer", "-"]);
    let registered = recorded.all(|call| match call {
        Call::Register(name) => Some(name.clone()),
        _ => None,
    });
    assert_eq!(registered.len(), 1, "{registered:?}");
}

#[test(measuring)]
fn calls_that_are_not_measured_are_no_ranges() {
    let recorded = record("", || {
        outer(|| {
            bypassed();
            measure!("bypassed section", bypass = true, { inner() });
            pause(inner);
            set_enabled(false);
            inner();
        });
        set_enabled(true);
        inner();
    });
    // The section's body is measured, although the section is not.
    let expected = ["+outer", "+inner", "-", "-", "+inner", "-"];
    assert_eq!(recorded.ranges(), expected);
}

#[test(measuring)]
fn a_guard_that_is_dropped_first_ends_the_ranges_inside() {
    let recorded = record("", || {
        outer(|| {
            let first = scope!("first");
            let second = scope!("second");
            drop(first);
            let third = scope!("third");
            drop(second);
            drop(third);
        });
        inner();
    });
    let expected = [
        "+outer", "+first", "+second", "-", "-", "+third", "-", "-", "+inner", "-",
    ];
    assert_eq!(recorded.ranges(), expected);
}

#[test(measuring)]
fn a_leaked_guard_ends_with_the_scope_around_it() {
    let recorded = record("", || {
        outer(|| std::mem::forget(scope!("leaked")));
        inner();
    });
    let expected = ["+outer", "+leaked", "-", "-", "+inner", "-"];
    assert_eq!(recorded.ranges(), expected);
}

#[test(measuring)]
fn too_many_open_ranges_are_left_out_and_reported() {
    let recorded = record("", || {
        let guards: Vec<_> = (0..4100).map(|_| scope!("deep")).collect();
        // Innermost first, as the compiler drops guards.
        guards.into_iter().rev().for_each(drop);
        inner();
    });
    let ranges = recorded.ranges();
    let pushed = ranges.iter().filter(|range| *range == "+deep").count();
    let popped = ranges.iter().filter(|range| *range == "-").count();
    assert_eq!((pushed, popped), (4096, 4097));
    assert_eq!(recorded.warnings().len(), 1, "{}", recorded.stderr);
}

#[test(measuring)]
fn a_range_has_a_category_a_colour_and_the_step_that_the_call_gives() {
    let step = |command: &mut std::process::Command| {
        command
            .env("PROFILER_STEP", "epoch")
            .env("PROFILER_TRACE", std::env::temp_dir().join("nvtx-none"))
            .env("PROFILER_CONTROL", "/nonexistent/control");
    };
    let recorded = record_with(step, || {
        outer(inner);
        with_step(42);
        drop(scope!("section", global_step = 7));
        drop(scope!("epoch"));
        drop(scope!(format!("built {}", "at run time")));
    });
    let ranges = recorded.all(|call| match call {
        Call::Push(range) => Some(range.clone()),
        _ => None,
    });
    let [outer, inner, stepped, section, epoch, built] = &ranges[..] else {
        panic!("{ranges:#?}");
    };
    assert_eq!(outer.name, "nvtx::scopes::outer");
    let short = |range: &Range| (range.category, range.payload);
    assert_eq!([outer, inner].map(short), [(1, None); 2]);
    assert_eq!(short(stepped), (1, Some(42)));
    assert_eq!(short(section), (2, Some(7)));
    assert_eq!(short(epoch), (4, None));
    assert_eq!(
        (short(built), &*built.name),
        ((2, None), "built at run time")
    );
    // Functions of one module have one colour, and sections of one file have another.
    assert_eq!(outer.colour, inner.colour);
    assert_eq!(section.colour, epoch.colour);
    assert_ne!(outer.colour, section.colour);
    assert!(ranges.iter().all(|range| range.is_registered));
    let categories = recorded.all(|call| match call {
        Call::Category(number, name) => Some(format!("{number} {name}")),
        _ => None,
    });
    assert_eq!(
        categories,
        ["1 function", "2 section", "3 future", "4 step"]
    );
}

#[test(measuring)]
fn a_call_inside_a_destructor_of_a_panic_is_a_range() {
    struct Measures;
    impl Drop for Measures {
        fn drop(&mut self) {
            inner();
        }
    }
    let recorded = record("", || {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _measures = Measures;
            outer(|| resume_unwind(Box::new("ends here")));
        }));
        assert!(caught.is_err());
    });
    assert_eq!(recorded.ranges(), ["+outer", "-", "+inner", "-"]);
}
