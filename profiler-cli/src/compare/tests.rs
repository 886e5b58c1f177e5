//! Simulated runs: what is found, and what is not found where there is nothing.

use super::run::Figures;
use super::{Comparison, Metric, Options, Run, Verdict};

const OPTIONS: Options = Options {
    elapsed: false,
    p95: false,
    min_share: 0.005,
};

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

/// Returns runs of a program with ten functions. The first function takes `factor` of its time.
fn runs(random: &mut Random, runs: usize, noise: Noise, factor: f64, side: i64) -> Vec<Run> {
    let run = |index: usize, random: &mut Random| {
        let mut run = Run::default();
        run.environment.start_unix_ns = 1 + 2 * i64::try_from(index).expect("few runs") + side;
        let of_run = (noise.run * random.normal()).exp();
        for function in 0..10 {
            let mut ns = 1e4 * (1.0 + f64::from(function)) * of_run;
            ns *= (noise.function * random.normal()).exp();
            if random.uniform() < noise.disturbed {
                ns *= 1.0 + random.uniform();
            }
            if function == 0 {
                ns *= factor;
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

fn compare(random: &mut Random, count: usize, noise: Noise, factor: f64) -> Comparison {
    let base = runs(random, count, noise, 1.0, 0);
    let new = runs(random, count, noise, factor, 1);
    Comparison::of(&base, &new, OPTIONS)
}

fn found(comparison: &Comparison) -> Vec<&str> {
    let all = comparison.overall.iter().chain(&comparison.rows);
    all.filter(|row| matches!(row.verdict, Verdict::Slower | Verdict::Faster))
        .map(|row| row.name.as_str())
        .collect()
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
    // Five in a hundred are promised; the thresholds leave fewer.
    let (busy, very_busy) = (false_alarms(350, 7, BUSY), false_alarms(350, 7, VERY_BUSY));
    println!("of 350 comparisons each: {busy} false alarms if busy, {very_busy} if very busy");
    assert!(busy + very_busy <= 14);
}

#[test]
fn a_change_of_one_function_is_found_and_nothing_else() {
    let mut random = Random(8);
    for factor in [1.3, 1.1] {
        let comparison = compare(&mut random, 7, QUIET, factor);
        assert_eq!(found(&comparison), ["app::f0"]);
        let row = &comparison.rows[0];
        assert_eq!(row.verdict, Verdict::Slower);
        assert!(
            row.change.low < factor - 1.0 && factor - 1.0 < row.change.high,
            "{row:?}"
        );
    }
    assert_eq!(
        compare(&mut random, 7, QUIET, 0.8).rows[0].verdict,
        Verdict::Faster
    );
}

#[test]
fn a_machine_that_is_slower_as_a_whole_is_one_finding_and_only_if_the_sides_took_turns() {
    let mut random = Random(9);
    let base = runs(&mut random, 7, QUIET, 1.0, 0);
    let mut new = runs(&mut random, 7, QUIET, 1.0, 1);
    for run in &mut new {
        for function in run.functions.values_mut() {
            for figure in function.per_call.values_mut() {
                *figure *= 1.2;
            }
        }
    }
    let comparison = Comparison::of(&base, &new, OPTIONS);
    assert_eq!(found(&comparison), ["(all functions)"]);
    for run in &mut new {
        run.environment.start_unix_ns += 1_000_000;
    }
    let comparison = Comparison::of(&base, &new, OPTIONS);
    assert_eq!(found(&comparison), [""; 0]);
    assert_eq!(comparison.overall[0].verdict, Verdict::Unclear);
    assert!(
        comparison.notes[0].contains("did not run in turns"),
        "{:?}",
        comparison.notes
    );
}

#[test]
fn few_runs_have_differences_and_no_verdicts() {
    let mut random = Random(10);
    for count in [1, 4] {
        let comparison = compare(&mut random, count, QUIET, 3.0);
        assert_eq!(comparison.count(Verdict::None), 11);
        assert_eq!(comparison.rows[0].name, "app::f0");
        assert!((comparison.rows[0].change.estimate - 2.0).abs() < 0.3);
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
        .filter(|row| row.verdict == Verdict::Unclear);
    let needed: Vec<usize> = unclear.filter_map(|row| row.runs_needed).collect();
    assert!(
        !needed.is_empty() && needed.iter().all(|runs| *runs > 5),
        "{needed:?}"
    );
}

#[test]
fn functions_of_one_side_and_small_ones_are_counted() {
    let mut random = Random(12);
    let mut base = runs(&mut random, 5, QUIET, 1.0, 0);
    let mut new = runs(&mut random, 5, QUIET, 1.0, 1);
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
        comparison.notes[0].starts_with(note),
        "{:?}",
        comparison.notes
    );
}

#[test]
fn another_build_has_no_verdicts() {
    let mut random = Random(13);
    let mut base = runs(&mut random, 5, QUIET, 1.0, 0);
    let mut new = runs(&mut random, 5, QUIET, 2.0, 1);
    for run in base.iter_mut().chain(&mut new) {
        run.environment.system = "linux x86_64".to_owned();
    }
    new[0].environment.debug_build = true;
    let comparison = Comparison::of(&base, &new, OPTIONS);
    assert_eq!(comparison.count(Verdict::NotComparable), 11);
    let note = "not comparable: the build differs: debug and release";
    assert_eq!(comparison.notes, [note]);
}
