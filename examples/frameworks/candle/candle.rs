//! All of the device's time stands at the functions and spans that asked for it, with recorded kernels and without.

use std::collections::{BTreeMap, BTreeSet};

use check::{Program, Ran};
use profiler_report::KernelRowKind;
use profiler_simulated_driver::ActivityKind;

/// On a virtual clock, launches take no time, so that there are no gaps between kernels: times by events are those of kernels.
const SCRIPT: &str = "clock virtual; copy 3us; default-kernel 5us; kernel gemm 60us; kernel badd_f32 7us; \
                      kernel urelu_f32 11us; kernel softmax_f32 40us; kernel fast_max_f32 13us; \
                      kernel fast_sum_small_f32 17us; kernel fast_argmax_f32 23us; kernel affine_f32 29us";

/// The functions and spans, with the kernels that they launch themselves. The first two only fill and copy.
const SCOPES: [(&str, &[&str]); 8] = [
    ("with_candle::Network::load", &[]),
    ("with_candle::images", &[]),
    (LINEAR, &["gemm", "badd_f32"]),
    ("with_candle::Network::hidden", &["urelu_f32"]),
    ("with_candle::Network::probabilities", &["softmax_f32"]),
    (
        "with_candle::confidence",
        &["fast_max_f32", "fast_sum_small_f32"],
    ),
    ("with_candle::serve", &["fast_argmax_f32"]),
    (SCALE, &["affine_f32"]),
];

/// A span of candle.
const LINEAR: &str = "candle_transformers::models::with_tracing::linear";
/// A span of the program.
const SCALE: &str = "with_candle::scale";

fn program() -> Program {
    Program::new(env!("CARGO_BIN_EXE_with-candle"), SCRIPT)
}

/// Returns how long these kernels ran, by the account of the device, in nanoseconds.
fn ran_for(ran: &Ran, kernels: &[&str]) -> f64 {
    let all = ran.report.activities.iter();
    let theirs = all.filter(|done| {
        kernels
            .iter()
            .any(|name| done.name.as_deref() == Some(name))
    });
    theirs.map(|done| (done.end - done.start) as f64).sum()
}

/// Returns the own GPU times of functions and spans by events, in nanoseconds.
fn by_events(ran: &Ran) -> BTreeMap<String, f64> {
    let rows = ran.timeline.key_averages().rows.into_iter();
    rows.filter_map(|row| Some((row.name, row.cuda?.self_ns)))
        .collect()
}

#[test]
fn recorded_kernels_stand_at_the_functions_and_spans_that_launched_them() {
    let ran = program().run();
    let share = ran.share_of(&SCOPES.map(|(scope, _)| scope));
    assert!(share >= 0.99, "{share}: {:#?}", ran.device_ns());
    let launching: BTreeSet<u64> = ran
        .report
        .activities
        .iter()
        .filter(|done| done.kind == ActivityKind::Kernel)
        .map(|done| done.thread)
        .collect();
    assert_eq!(launching.len(), 2, "the main thread and the moved one");

    let averages = ran.timeline.key_averages().kernels();
    for (name, kernels) in SCOPES {
        let scope = averages
            .scopes
            .iter()
            .find(|scope| scope.scope.as_deref() == Some(name))
            .unwrap_or_else(|| panic!("{name} has work"));
        let own = scope
            .rows
            .iter()
            .filter(|row| matches!(row.kind, KernelRowKind::Kernel(_)));
        let own: f64 = own.map(|row| row.times.total_ns).sum();
        let truth = ran_for(&ran, kernels);
        assert!(
            (own - truth).abs() < 1.0,
            "{name}: {own} ns, the device says {truth}"
        );
        assert!(kernels.is_empty() || own > 0.0, "{name}");
    }
}

#[test]
fn without_recorded_kernels_events_give_each_function_and_span_the_same_time() {
    let recorded = program().run().device_ns();
    let ran = program().without_cupti().run();
    assert_eq!(ran.device_ns(), BTreeMap::new());
    let own = by_events(&ran);
    let share = own.values().sum::<f64>() / ran.truth_ns();
    assert!((0.99..=1.01).contains(&share), "{share}: {own:#?}");
    for (name, _) in SCOPES {
        let [Some(own), Some(recorded)] = [&own, &recorded].map(|all| all.get(name).copied())
        else {
            panic!("{name}: {own:#?} by events, {recorded:#?} recorded");
        };
        assert!(
            (own / recorded - 1.0).abs() < 0.001,
            "{name}: {own} ns by events, {recorded} ns recorded"
        );
    }
}
