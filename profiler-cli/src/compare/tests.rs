//! Simulated runs: what is found, and what is not found where there is nothing.

use super::run::Figures;
use super::{Basis, Comparison, Metric, Options, Run, Verdict};

const OPTIONS: Options = Options::DEFAULT;

/// Pseudo-random numbers, by the method `SplitMix64`.
struct Random(u64);

impl Random {
    /// Returns a number from 0 to 1.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a value of a standard normal distribution, nearly.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

/// The noise of a machine: standard deviations, as fractions.
#[derive(Clone, Copy)]
struct Noise {
    /// Of whole runs.
    run: f64,
    /// Of each function in a run.
    function: f64,
    /// How often a function is disturbed, and then takes up to twice its time.
    disturbed: f64,
}

const QUIET: Noise = Noise {
    run: 0.01,
    function: 0.005,
    disturbed: 0.0,
};
/// Functions vary by 2 %, each by itself.
const EVEN: Noise = Noise {
    run: 0.0,
    function: 0.02,
    disturbed: 0.0,
};
const BUSY: Noise = Noise {
    run: 0.15,
    function: 0.015,
    disturbed: 0.05,
};
const VERY_BUSY: Noise = Noise {
    run: 0.3,
    function: 0.1,
    disturbed: 0.2,
};

/// Which functions of a program of ten changed, and by which factor.
type Factors = [f64; 10];

const UNCHANGED: Factors = [1.0; 10];

/// Returns runs of a program with these functions; `second` runs come after those of the other side, each in its turn.
fn runs(random: &mut Random, runs: usize, noise: Noise, factors: &[f64], second: bool) -> Vec<Run> {
    let run = |index: usize, random: &mut Random| {
        let mut run = Run::default();
        let place = i64::try_from(index).expect("few runs");
        run.environment.start_unix_ns = 1 + 2 * place + i64::from(second);
        let of_run = (noise.run * random.normal()).exp();
        for (function, factor) in (0_u8..).zip(factors) {
            let mut ns = 1e4 * (1.0 + f64::from(function)) * of_run * factor;
            ns *= (noise.function * random.normal()).exp();
            if random.uniform() < noise.disturbed {
                ns *= 1.0 + random.uniform();
            }
            let mut figures = Figures {
                calls: 100.0,
                ..Figures::default()
            };
            figures.per_call.insert(Metric::Elapsed, ns);
            run.functions.insert(format!("app::f{function}"), figures);
        }
        run
    };
    (0..runs).map(|index| run(index, random)).collect()
}

/// Compares a program with one whose functions take these factors of their time.
fn compare_factors(
    random: &mut Random,
    count: usize,
    noise: Noise,
    factors: &[f64],
    in_turns: bool,
) -> Comparison {
    let unchanged = vec![1.0; factors.len()];
    let base = runs(random, count, noise, &unchanged, false);
    let mut new = runs(random, count, noise, factors, true);
    if !in_turns {
        for run in &mut new {
            run.environment.start_unix_ns += 1_000_000;
        }
    }
    Comparison::of(&base, &new, OPTIONS)
}

/// Compares a program with one whose first function takes this factor of its time.
fn compare(random: &mut Random, count: usize, noise: Noise, factor: f64) -> Comparison {
    let mut factors = UNCHANGED;
    factors[0] = factor;
    compare_factors(random, count, noise, &factors, true)
}

fn found(comparison: &Comparison) -> Vec<&str> {
    let is_found = |verdict: Verdict| verdict.is_difference();
    let common = comparison.overall.iter();
    let common = common.filter(|common| is_found(common.finding.verdict));
    let rows = comparison.rows.iter();
    let rows = rows.filter(|row| is_found(row.finding.verdict));
    let common = common.map(|_| "most");
    common.chain(rows.map(|row| row.name.as_str())).collect()
}

/// Returns in how many of `tries` comparisons of a program with itself something was reported.
fn false_alarms(tries: usize, count: usize, noise: Noise) -> usize {
    let mut random = Random(7);
    (0..tries)
        .filter(|_| !found(&compare(&mut random, count, noise, 1.0)).is_empty())
        .count()
}

#[test]
fn a_program_compared_with_itself_has_no_findings() {
    assert_eq!(false_alarms(300, 7, QUIET), 0);
    assert_eq!(false_alarms(100, 20, EVEN), 0);
    // Five in a hundred are promised.
    for (name, noise) in [("busy", BUSY), ("very busy", VERY_BUSY)] {
        for (tries, count) in [(350, 7), (100, 20)] {
            let alarms = false_alarms(tries, count, noise);
            println!("{name}, {count} runs a side: {alarms} of {tries} comparisons have findings");
            assert!(20 * alarms <= tries, "{name}, {count} runs: {alarms}");
        }
    }
}

/// Returns in how many of a hundred tries a first function that takes 5 % longer is found.
fn finds(functions: usize, count: usize, noise: Noise) -> usize {
    let mut random = Random(21);
    let mut factors = vec![1.0; functions];
    factors[0] = 1.05;
    let slower = |comparison: Comparison| {
        let mut rows = comparison.rows.into_iter();
        let row = rows
            .find(|row| row.name == "app::f0")
            .expect("it is compared");
        row.finding.verdict == Verdict::Slower
    };
    (0..100)
        .filter(|_| slower(compare_factors(&mut random, count, noise, &factors, true)))
        .count()
}

#[test]
fn a_change_of_5_percent_is_found_with_20_runs_a_side_at_2_percent_noise() {
    for noise in [EVEN, Noise { run: 0.02, ..QUIET }] {
        for functions in [1, 3, 10] {
            let finds = finds(functions, 20, noise);
            println!("{functions} functions, 20 runs a side: found in {finds} of 100 tries");
            assert!(finds >= 90, "{functions} functions: {finds}");
        }
    }
}

#[test]
fn the_runs_that_are_said_to_find_a_change_find_it() {
    for (noise, of_function) in [
        (EVEN, 0.02),
        (
            Noise {
                function: 0.03,
                ..EVEN
            },
            0.03,
        ),
    ] {
        for functions in [1, 3, 10] {
            let factors = vec![1.0; functions];
            let mut random = Random(22);
            // What comparisons of seven runs say, in the middle.
            let mut said: Vec<usize> = (0..41)
                .map(|_| {
                    let comparison = compare_factors(&mut random, 7, noise, &factors, true);
                    let power = &comparison.power[..];
                    assert_eq!(power.len(), 1);
                    assert!(
                        (0.3..3.0).contains(&(power[0].noise / of_function)),
                        "{power:?}"
                    );
                    power[0].runs.unwrap_or(100)
                })
                .collect();
            said.sort_unstable();
            let said = said[said.len() / 2];
            let (enough, half) = (
                finds(functions, said, noise),
                finds(functions, said / 2, noise),
            );
            println!(
                "{functions} functions: {said} runs find {enough} of 100, half as many {half}"
            );
            assert!(
                enough >= 85 && half < 80,
                "{functions}, {said}: {enough}, {half}"
            );
        }
    }
}

/// Checks what must hold for every row that a user reads.
fn check_rows(comparison: &Comparison) {
    for row in &comparison.rows {
        let change = row.change.expect("the figures are large");
        // The change that is shown is that of the figures that are shown, and lies in its interval.
        assert!(
            (change.estimate - (row.new / row.base - 1.0)).abs() < 1e-9,
            "{row:?}"
        );
        let (low, high) = (change.low, change.high);
        assert!(low.is_none_or(|low| low <= change.estimate), "{row:?}");
        assert!(high.is_none_or(|high| change.estimate <= high), "{row:?}");
        match row.finding.verdict {
            Verdict::Faster => assert!(change.estimate < 0.0 && change.p <= 0.05, "{row:?}"),
            Verdict::Slower if row.basis != Basis::AgainstOthers => {
                assert!(change.estimate > 0.03, "{row:?}");
            }
            _ => {}
        }
    }
}

#[test]
fn a_function_that_does_not_vary_with_the_others_is_judged_by_its_own_change() {
    let mut random = Random(18);
    let mut base = runs(&mut random, 7, BUSY, &UNCHANGED, false);
    let mut new = runs(&mut random, 7, BUSY, &UNCHANGED, true);
    for (side, ns) in [(&mut base, 1e4), (&mut new, 1.1e4)] {
        for run in side {
            let ns = ns * (0.005 * random.normal()).exp();
            let function = run.functions.get_mut("app::f0").expect("it is there");
            function.per_call.insert(Metric::Elapsed, ns);
        }
    }
    let comparison = Comparison::of(&base, &new, OPTIONS);
    assert_eq!(comparison.overall[0].basis, Basis::AgainstOthers);
    assert_eq!(found(&comparison), ["app::f0"]);
    assert_eq!(comparison.rows[0].basis, Basis::Change);
    assert!(!comparison.rows[0].is_relative_alone());
}

const MOST_SLOWER: Factors = [1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.2, 1.0, 1.0, 1.0];

#[test]
fn functions_that_did_not_change_are_the_same_where_most_others_got_slower() {
    let mut random = Random(14);
    for (noise, count) in [(QUIET, 7), (QUIET, 20), (EVEN, 20)] {
        for _ in 0..20 {
            let comparison = compare_factors(&mut random, count, noise, &MOST_SLOWER, true);
            check_rows(&comparison);
            assert_eq!(comparison.overall[0].basis, Basis::Change);
            assert_eq!(comparison.overall[0].finding.verdict, Verdict::Slower);
            assert_eq!(
                comparison.count(Verdict::Slower),
                7,
                "{:?}",
                comparison.rows
            );
            assert_eq!(comparison.count(Verdict::Faster), 0);
            let note = &comparison.notes[0];
            assert!(
                note.starts_with("most functions got ") && note.ends_with("by its own change"),
                "{note}"
            );
        }
    }
}

#[test]
fn without_turns_neither_the_machine_nor_the_program_is_blamed() {
    let mut random = Random(15);
    for _ in 0..20 {
        let comparison = compare_factors(&mut random, 10, QUIET, &MOST_SLOWER, false);
        check_rows(&comparison);
        assert_eq!(found(&comparison), [""; 0]);
        let needs_turns = |row: &super::Row| row.finding.turns_needed;
        assert!(
            comparison.rows.iter().all(needs_turns),
            "{:?}",
            comparison.rows
        );
        assert!(comparison.overall[0].finding.turns_needed);
        let note = "the sides did not run in turns: a change of the machine cannot be told";
        assert!(
            comparison.notes[0].starts_with(note),
            "{:?}",
            comparison.notes
        );
    }
    // Without a movement, it is said that there is none.
    let comparison = compare_factors(&mut random, 10, QUIET, &UNCHANGED, false);
    assert_eq!(comparison.count(Verdict::Same), 10);
    let note = &comparison.notes[1];
    assert!(
        note.contains("is within chance: without turns, a verdict is given"),
        "{note}"
    );
    // A function that got much slower did so in either case.
    let mut factors = MOST_SLOWER;
    factors[0] = 2.0;
    let comparison = compare_factors(&mut random, 10, QUIET, &factors, false);
    assert_eq!(found(&comparison), ["app::f0"]);
}

#[test]
fn few_functions_are_never_faster_without_turns() {
    let mut random = Random(16);
    let mut verdict = |factor: f64, in_turns| {
        let factors = [factor, 1.0, 1.0];
        let comparison = compare_factors(&mut random, 10, QUIET, &factors, in_turns);
        comparison.rows[0].finding.verdict
    };
    assert_eq!(verdict(0.8, true), Verdict::Faster);
    assert_eq!(verdict(0.8, false), Verdict::Unclear);
    assert_eq!(verdict(1.2, false), Verdict::Slower);
}

#[test]
fn nothing_is_faster_by_its_relative_change_alone() {
    let mut random = Random(17);
    for in_turns in [true, false] {
        for noise in [EVEN, BUSY, VERY_BUSY] {
            for _ in 0..100 {
                let comparison = compare_factors(&mut random, 10, noise, &MOST_SLOWER, in_turns);
                check_rows(&comparison);
            }
        }
    }
}

#[test]
fn a_change_of_one_function_is_found_and_nothing_else() {
    let mut random = Random(8);
    for factor in [1.3, 1.1] {
        let comparison = compare(&mut random, 7, QUIET, factor);
        assert_eq!(found(&comparison), ["app::f0"]);
        let row = &comparison.rows[0];
        assert_eq!(row.finding.verdict, Verdict::Slower);
        let others = row.against_others.expect("there are ten functions");
        assert!(
            others.low < Some(factor - 1.0) && Some(factor - 1.0) < others.high,
            "{row:?}"
        );
    }
    assert_eq!(
        compare(&mut random, 7, QUIET, 0.8).rows[0].finding.verdict,
        Verdict::Faster
    );
}

#[test]
fn a_program_that_is_slower_as_a_whole_is_found_if_the_sides_took_turns() {
    let mut random = Random(9);
    let comparison = compare_factors(&mut random, 7, QUIET, &[1.2; 10], true);
    assert_eq!(found(&comparison).len(), 11);
    let comparison = compare_factors(&mut random, 7, QUIET, &[1.2; 10], false);
    assert_eq!(found(&comparison), [""; 0]);
    assert_eq!(comparison.overall[0].finding.verdict, Verdict::Unclear);
}

#[test]
fn few_runs_have_differences_and_no_verdicts() {
    let mut random = Random(10);
    for count in [1, 4] {
        let comparison = compare(&mut random, count, QUIET, 3.0);
        assert_eq!(comparison.count(Verdict::None), 10);
        assert_eq!(comparison.rows[0].name, "app::f0");
        check_rows(&comparison);
        assert_eq!(comparison.power, []);
        assert!(
            comparison.notes[0].starts_with("no verdicts: "),
            "{:?}",
            comparison.notes
        );
    }
}

#[test]
fn noise_is_unclear_and_says_how_many_runs_would_do() {
    let mut random = Random(11);
    let comparison = compare(&mut random, 5, VERY_BUSY, 1.1);
    let unclear = comparison
        .rows
        .iter()
        .filter(|row| row.finding.verdict == Verdict::Unclear);
    let needed: Vec<usize> = unclear.filter_map(|row| row.finding.runs_needed).collect();
    assert!(
        !needed.is_empty() && needed.iter().all(|runs| *runs > 5),
        "{needed:?}"
    );
}

#[test]
fn functions_of_one_side_and_small_ones_are_counted() {
    let mut random = Random(12);
    let mut base = runs(&mut random, 5, QUIET, &UNCHANGED, false);
    let mut new = runs(&mut random, 5, QUIET, &UNCHANGED, true);
    for run in &mut base {
        run.functions.remove("app::f3");
    }
    for run in base.iter_mut().chain(&mut new) {
        let small = run
            .functions
            .get_mut("app::f0")
            .expect("the function is there");
        small.calls = 0.01;
    }
    for run in &mut new {
        run.functions
            .get_mut("app::f1")
            .expect("the function is there")
            .calls = 50.0;
    }
    let comparison = Comparison::of(&base, &new, OPTIONS);
    assert_eq!(comparison.only_new, ["app::f3"]);
    assert_eq!((comparison.small, comparison.rows.len()), (1, 8));
    let note = "1 function called another number of times";
    assert!(
        comparison.notes.iter().any(|line| line.starts_with(note)),
        "{:?}",
        comparison.notes
    );
}

/// Gives the functions thread times too, of which reading the thread's clock takes `clock_ns`.
fn with_thread_times(runs: &mut [Run], clock_ns: f64) {
    for figures in runs.iter_mut().flat_map(|run| run.functions.values_mut()) {
        let elapsed = figures.per_call[&Metric::Elapsed];
        // What was subtracted is not all of it.
        figures
            .per_call
            .insert(Metric::Thread, elapsed.max(clock_ns / 20.0));
        figures.thread_clock_ns = clock_ns;
    }
}

#[test]
fn functions_shorter_than_a_reading_of_the_threads_clock_are_judged_by_elapsed_time() {
    let mut random = Random(14);
    let mut base = runs(&mut random, 8, QUIET, &UNCHANGED, false);
    let mut new = runs(
        &mut random,
        8,
        QUIET,
        &[2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
        true,
    );
    // The first function takes 10 µs, the others 20 µs and more.
    with_thread_times(&mut base, 15e3);
    with_thread_times(&mut new, 15e3);
    let comparison = Comparison::of(&base, &new, OPTIONS);
    let row = |name: &str| {
        let mut rows = comparison.rows.iter().filter(|row| row.name == name);
        let row = rows.next().expect("it is judged");
        assert_eq!(rows.next(), None, "{name} is judged once");
        (row.metric, row.finding.verdict)
    };
    assert_eq!(row("app::f0"), (Metric::Elapsed, Verdict::Slower));
    assert_eq!(row("app::f9").0, Metric::Thread);
    let note = "1 function judged by elapsed time (CPU): a call takes less time than reading its thread's clock";
    assert!(
        comparison.notes.iter().any(|line| line == note),
        "{:?}",
        comparison.notes
    );

    let elapsed = Options {
        elapsed: true,
        ..OPTIONS
    };
    let comparison = Comparison::of(&base, &new, elapsed);
    assert!(
        comparison
            .rows
            .iter()
            .all(|row| row.metric == Metric::Elapsed)
    );
    assert!(comparison.notes.iter().all(|line| line != note));
}

#[test]
fn what_the_clock_cannot_tell_apart_is_not_the_same() {
    let mut random = Random(15);
    let mut base = runs(&mut random, 8, QUIET, &UNCHANGED, false);
    let mut new = runs(&mut random, 8, QUIET, &UNCHANGED, true);
    for figures in base
        .iter_mut()
        .chain(&mut new)
        .flat_map(|run| run.functions.values_mut())
    {
        figures.cpu_resolution_ns = 5e3;
    }
    let comparison = Comparison::of(&base, &new, OPTIONS);
    let verdict = |name: &str| {
        let mut rows = comparison.rows.iter().filter(|row| row.name == name);
        rows.next().map(|row| row.finding.verdict)
    };
    assert_eq!(verdict("app::f0"), Some(Verdict::Unclear), "5 of 10 µs");
    assert_eq!(verdict("app::f9"), Some(Verdict::Same), "5 of 100 µs");
}

#[test]
fn another_build_has_no_verdicts() {
    let mut random = Random(13);
    let mut base = runs(&mut random, 5, QUIET, &UNCHANGED, false);
    let mut new = runs(&mut random, 5, QUIET, &[2.0; 10], true);
    for run in base.iter_mut().chain(&mut new) {
        run.environment.system = "linux x86_64".to_owned();
    }
    new[0].environment.debug_build = true;
    let comparison = Comparison::of(&base, &new, OPTIONS);
    assert_eq!(comparison.count(Verdict::NotComparable), 10);
    assert_eq!(
        comparison.overall[0].finding.verdict,
        Verdict::NotComparable
    );
    let note = "not comparable: the build differs: debug and release";
    assert_eq!(comparison.notes, [note]);
}
