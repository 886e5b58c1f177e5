//! Random programs have the averages of their model: nothing is counted twice, shares add up.

use profiler_report::KeyAverages;
use proptest::prelude::*;

use super::program::{Program, step};
use crate::session::{RecordKind, ScopeRecord};

/// The start, the end and the children's time of a call are whole nanoseconds.
const ROUNDING: f64 = 1.5;

fn hundredths(percents: impl Iterator<Item = f64>) -> i64 {
    #[allow(clippy::cast_possible_truncation, reason = "at most a whole")]
    percents
        .map(|percent| (percent * 100.0).round() as i64)
        .sum()
}

fn check_shares(averages: &KeyAverages) -> Result<(), TestCaseError> {
    let cpu = || averages.rows.iter().filter_map(|row| row.cpu.as_ref());
    let cuda = || averages.rows.iter().filter_map(|row| row.cuda.as_ref());
    if averages.self_cpu_time_total_ns > Some(0.0) {
        prop_assert_eq!(hundredths(cpu().map(|times| times.self_percent)), 10_000);
    }
    if averages.self_cuda_time_total_ns > Some(0.0) {
        prop_assert_eq!(hundredths(cuda().map(|times| times.self_percent)), 10_000);
    }
    for times in cpu().chain(cuda()) {
        prop_assert!(times.self_percent <= times.total_percent && times.total_percent <= 100.0);
    }
    Ok(())
}

/// How long anything was open, thread by thread. Open scopes of a thread are nested.
fn covered(scopes: &[ScopeRecord]) -> i64 {
    let mut open: Vec<&ScopeRecord> = scopes.iter().collect();
    open.retain(|scope| !matches!(scope.kind, RecordKind::Future { .. }));
    open.sort_by_key(|scope| (scope.thread, scope.start));
    let of_thread = |scopes: &[&ScopeRecord]| {
        scopes.iter().fold((0, 0), |(sum, until), scope| {
            let from = scope.start.max(until);
            let end = scope.end().max(from);
            (sum + (end - from).cast_signed(), end)
        })
    };
    let threads = open.chunk_by(|one, next| one.thread == next.thread);
    threads.map(|scopes| of_thread(scopes).0).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn programs_have_the_averages_of_their_model(steps in prop::collection::vec(step(), 0..80)) {
        let program = Program::run(&steps);
        let by_name = program.count(|index| program.name(index));
        let by_edge = program.count(|index| (program.caller(index), program.name(index)));
        let top_level = program.top_level;
        let trace = program.sample.trace();
        let ns = |ticks: i64| trace.clock_line.ns(ticks);
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-6 * expected.abs().max(1.0);
        let rounded = |found: f64, expected: f64, calls: u64| (found - expected).abs() <= ROUNDING * calls as f64;
        let calls = trace.len() as u64;
        let averages = trace.key_averages();

        let own: f64 = averages.rows.iter().filter_map(|row| Some(row.cpu.as_ref()?.self_ns)).sum();
        prop_assert!(rounded(own, ns(top_level), calls), "self times: {} for {}", own, ns(top_level));
        prop_assert!(near(averages.self_cpu_time_total_ns.unwrap(), own));
        check_shares(&averages)?;

        prop_assert_eq!(averages.rows.len(), by_name.len());
        for row in &averages.rows {
            let counted = by_name[row.name.as_str()];
            let cpu = row.cpu.as_ref().unwrap();
            prop_assert_eq!((row.calls, row.primitive_calls), (counted.calls, counted.primitive_calls));
            prop_assert!(rounded(cpu.total_ns, ns(counted.cpu[0]), row.calls), "{:?} {:?}", row, counted);
            prop_assert!(rounded(cpu.self_ns, ns(counted.cpu[1]), row.calls), "{:?} {:?}", row, counted);
            let [total, own] = row.cuda.as_ref().map_or([0.0; 2], |cuda| [cuda.total_ns, cuda.self_ns]);
            // Futures inside may have more time of their own than the call around them.
            let counted_total = counted.cuda[0].max(counted.cuda[1]);
            prop_assert!(near(total, counted_total), "{:?} {:?}", row, counted);
            prop_assert!(near(own, counted.cuda[1]), "{:?} {:?}", row, counted);
            prop_assert_eq!(row.cuda.map_or(0, |cuda| cuda.calls), counted.cuda_calls);
        }

        let callers = averages.callers().edges;
        prop_assert_eq!(callers.len(), by_edge.len());
        for edge in &callers {
            let caller = edge.caller.as_deref();
            let counted = by_edge.iter().find(|((around, called), _)| *around == caller && *called == edge.callee);
            let counted = counted.unwrap().1;
            let cpu = edge.cpu.unwrap();
            prop_assert_eq!((edge.calls, edge.primitive_calls), (counted.calls, counted.primitive_calls));
            prop_assert!(rounded(cpu.total_ns, ns(counted.cpu[0]), edge.calls), "{:?} {:?}", edge, counted);
            prop_assert!(rounded(cpu.self_ns, ns(counted.cpu[1]), edge.calls), "{:?} {:?}", edge, counted);
        }
        let called = averages.callees().edges.len();
        prop_assert_eq!(called, callers.iter().filter(|edge| edge.caller.is_some()).count());
    }

    #[test]
    fn no_time_is_in_two_rows_and_none_is_missing_where_scopes_were_lost(
        steps in prop::collection::vec(step(), 0..80),
        lost in prop::collection::vec(any::<bool>(), 80),
    ) {
        let mut program = Program::run(&steps);
        let mut lost = lost.into_iter();
        let mut is_kept = |scope: &ScopeRecord| scope.kind != RecordKind::Scope || lost.next() != Some(true);
        program.sample.scopes.retain(&mut is_kept);
        let covered = covered(&program.sample.scopes);
        let trace = program.sample.trace();
        let own = trace.key_averages().self_cpu_time_total_ns.unwrap();
        let calls = trace.len() as f64;
        prop_assert!((own - trace.clock_line.ns(covered)).abs() <= ROUNDING * calls, "{} for {}", own, covered);
    }
}
