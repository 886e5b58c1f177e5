//! The account of a program on a clock of its own, with samples that are planted: no result depends on the machine.

use std::collections::BTreeMap;
use std::panic::Location;

use profiler_report::SampledIdle;

use super::Before;
use super::account::{Account, OUTSIDE, Sample, Settled};
use super::charges::{self, NameTime};
use super::states::{Pair, States, Unknown};
#[cfg(all(target_os = "linux", not(miri)))]
use super::{Known, MOST_STATES};
use crate::name;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;

const LOAD: u32 = 0;
const DECODE: u32 = 1;
const FORWARD: u32 = 2;
const OPTIMIZER: u32 = 3;
const LOG: u32 = 4;
const PREPARE: u32 = 5;
const INFER: u32 = 6;
/// Called so rarely that it has hardly any samples.
const SAVE: u32 = 7;
const NAMES: u32 = 8;

/// Evenly distributed numbers, the same in each run.
struct Random(u64);

impl Random {
    fn between(&mut self, from: u64, to: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        from + (self.0 >> 16) % (to - from)
    }
}

/// One thread of the program: what is innermost from when to when, in nanoseconds. Nothing is open between.
#[derive(Default)]
struct Thread {
    number: u32,
    now: u64,
    innermost: Vec<(u64, u64, u32)>,
    pairs: Vec<Pair>,
}

impl Thread {
    fn call(&mut self, name: u32, length: u64) {
        let end = self.now + length;
        self.innermost.push((self.now, end, name));
        self.now = end;
    }

    /// A function that launches work, which begins on the device when everything before it has ended.
    fn launch(&mut self, name: u32, length: u64, on_device: u64) {
        let last = self.pairs.last().map_or(0, |pair| pair.end);
        let begin = last.max(self.now);
        self.pairs.push(Pair {
            begin,
            opened: begin,
            end: begin + on_device,
            thread: Some(self.number),
            is_busy: on_device > length,
        });
        self.call(name, length);
    }

    fn at(&self, at: u64) -> Option<u32> {
        let place = self.innermost.partition_point(|(_, end, _)| *end <= at);
        let (begin, _, name) = self.innermost.get(place)?;
        (*begin <= at).then_some(*name)
    }

    /// Adds to `exact` how long each function was innermost between two times; returns the rest.
    fn charge(&self, from: u64, until: u64, exact: &mut BTreeMap<u32, u64>) -> u64 {
        let mut rest = until - from;
        let first = self.innermost.partition_point(|(_, end, _)| *end <= from);
        for (begin, end, name) in self.innermost.iter().skip(first) {
            if *begin >= until {
                break;
            }
            let overlap = end.min(&until) - begin.max(&from);
            *exact.entry(*name).or_default() += overlap;
            rest -= overlap;
        }
        rest
    }
}

/// A program that trains on one thread, and evaluates on another at times.
fn program(seconds: u64) -> [Thread; 2] {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut train = Thread {
        number: 1,
        ..Thread::default()
    };
    while train.now < seconds * SECOND {
        train.call(LOAD, random.between(5 * MS, 40 * MS));
        train.call(DECODE, random.between(5 * MS, 25 * MS));
        train.now += random.between(0, 6 * MS);
        train.launch(
            FORWARD,
            random.between(MS, 8 * MS),
            random.between(5 * MS, 30 * MS),
        );
        train.launch(
            OPTIMIZER,
            random.between(4 * MS, 12 * MS),
            random.between(MS, 4 * MS),
        );
        train.call(LOG, random.between(MS, 20 * MS));
    }
    train.call(SAVE, 20 * MS);
    train.launch(FORWARD, MS, 2 * MS);
    let mut eval = Thread {
        number: 2,
        ..Thread::default()
    };
    while eval.now < train.now - SECOND {
        eval.call(PREPARE, random.between(200 * MS, 900 * MS));
        eval.launch(
            INFER,
            random.between(MS, 4 * MS),
            random.between(5 * MS, 40 * MS),
        );
    }
    [train, eval]
}

/// What a function kept the device waiting for, exactly, by the same pairs.
fn exact(threads: &[Thread; 2]) -> (BTreeMap<u32, u64>, u64) {
    let mut states = States::default();
    for pair in threads.iter().flat_map(|thread| &thread.pairs) {
        states.add(*pair);
    }
    let (mut by_name, mut outside) = (BTreeMap::new(), 0);
    states.finish(&Unknown::default(), |piece| {
        let thread = threads
            .iter()
            .find(|known| Some(known.number) == piece.thread);
        let thread = thread.expect("it is one of the two");
        outside += thread.charge(piece.from, piece.until, &mut by_name);
    });
    (by_name, outside)
}

/// Runs the account as the resolver and the sampler do, and returns what it says. A round that meets `DECODE`, which does not
/// sleep, is as often as not too late, and the next one follows.
fn estimated(threads: &[Thread; 2]) -> (Settled, Vec<u64>) {
    let mut random = Random(77);
    let mut pairs: Vec<Pair> = threads
        .iter()
        .flat_map(|thread| thread.pairs.clone())
        .collect();
    pairs.sort_unstable_by_key(|pair| pair.end);
    let mut pairs = pairs.into_iter().peekable();
    let end = threads[0].now + SECOND;
    let mut account = Account::new(0);
    let (mut at, mut rounds) = (0, 0_u32);
    while at < end {
        at += random.between(20 * MS, 60 * MS);
        while let Some(pair) = pairs.next_if(|pair| pair.end <= at) {
            account.add(Some(0), pair);
        }
        if threads[0].at(at) == Some(DECODE) && random.between(0, 2) == 0 {
            continue;
        }
        let samples = threads.each_ref().map(|thread| Sample {
            at,
            thread: thread.number,
            name: thread.at(at).unwrap_or(OUTSIDE),
            is_off: None,
        });
        account.add_round(at, 1.0, &samples);
        rounds += 1;
        if rounds.is_multiple_of(25) {
            account.settle(at.saturating_sub(10 * SECOND));
        }
    }
    let mut settled = account.settled();
    assert_eq!(settled.len(), 1);
    let mut samples: Vec<u64> = account.samples().iter().map(|name| name.own).collect();
    samples.resize(NAMES as usize, 0);
    (settled.remove(0), samples)
}

fn charge_of(idle: &SampledIdle, name: u32) -> f64 {
    let text = name.to_string();
    let found = idle.charges.iter().find(|charge| charge.name == text);
    found.map_or(0.0, |charge| charge.idle_ns)
}

#[test]
fn the_estimate_is_the_exact_account_within_two_percent_of_the_window() {
    let threads = program(240);
    let (exact, exact_outside) = exact(&threads);
    let (settled, samples) = estimated(&threads);
    let self_time = |name: u32| -> u64 {
        let all = threads.iter().flat_map(|thread| &thread.innermost);
        all.filter(|(_, _, of)| *of == name)
            .map(|(begin, end, _)| end - begin)
            .sum()
    };
    let names: Vec<NameTime> = (0..NAMES)
        .map(|id| NameTime {
            id,
            self_ns: self_time(id) as f64,
            before_ns: 0.0,
            samples: samples[id as usize],
            entered: 0,
            is_open: false,
        })
        .collect();
    let sums = settled.sums;
    let mut idle = SampledIdle {
        busy_ns: sums.busy as f64,
        host_paced_ns: sums.host_paced as f64,
        idle_ns: sums.idle as f64,
        launched_ns: sums.launched as f64,
        not_sampled_ns: settled.counts.unsampled as f64,
        ..SampledIdle::default()
    };
    charges::share(&mut idle, &settled.counts, &names, |id| id.to_string());

    // The states are exact, and the parts are the whole.
    let exact_idle = exact.values().sum::<u64>() + exact_outside;
    assert_eq!(
        (sums.idle, sums.late, settled.counts.unsampled),
        (exact_idle, 0, 0)
    );
    let pairs = || threads.iter().flat_map(|thread| &thread.pairs);
    let first = pairs().map(|pair| pair.begin).min().unwrap_or(0);
    let last = pairs().map(|pair| pair.end).max().unwrap_or(0);
    let window = (last - first) as f64;
    assert!((idle.wall_ns() - window).abs() < 0.5);
    let charged: f64 = idle.charges.iter().map(|charge| charge.idle_ns).sum();
    let sum = charged + idle.outside_ns + idle.not_sampled_ns + idle.launched_ns;
    assert!(
        (sum - idle.idle_ns).abs() < 1.0,
        "{sum} of {}",
        idle.idle_ns
    );

    let (mut worst, mut worst_plain) = (0.0_f64, 0.0_f64);
    for name in 0..NAMES {
        let exact = exact.get(&name).copied().unwrap_or(0) as f64;
        let in_idle = settled.counts.names.get(&name).copied().unwrap_or(0);
        let plain = idle.idle_ns * in_idle as f64 / idle.samples as f64;
        worst_plain = worst_plain.max((plain - exact).abs() / window);
        if samples[name as usize] >= charges::LEAST_SAMPLES {
            worst = worst.max((charge_of(&idle, name) - exact).abs() / window);
        }
    }
    worst = worst.max((idle.outside_ns - exact_outside as f64).abs() / window);
    assert!(
        worst < 0.02,
        "{worst}: {idle:?}, exactly {exact:?} and {exact_outside} outside"
    );
    // To count the samples would not do.
    assert!(worst_plain > 0.02, "{worst_plain}");
    assert_eq!(idle.not_sampled_names, 1, "{samples:?}");
    assert_eq!(idle.not_sampled_self_ns.to_bits(), 20e6_f64.to_bits());
    let unexplained = idle.not_sampled_ns / window;
    assert!(unexplained < 0.001, "{unexplained}");
    // No function of the thread that launches nothing meanwhile is to blame.
    assert!(charge_of(&idle, LOAD) > charge_of(&idle, PREPARE));
}

#[test]
fn samples_that_nothing_needs_any_more_are_forgotten_and_what_they_said_is_not() {
    let mut account = Account::new(0);
    let pair = |begin: u64, end: u64| Pair {
        begin,
        opened: begin,
        end,
        thread: Some(1),
        is_busy: true,
    };
    account.add(None, pair(0, 10));
    account.add(None, pair(1_000, 1_010));
    let sample = |at: u64| Sample {
        at,
        thread: 1,
        name: LOAD,
        is_off: (at != 205).then_some(at % 200 == 5),
    };
    for at in (5..2_000).step_by(100) {
        account.add_round(at, 1.0, &[sample(at)]);
    }
    account.settle(1_500);
    account.settle(1_500);
    let settled = &account.settled()[0];
    assert_eq!(
        settled.counts.names,
        BTreeMap::from([(LOAD, 9)]),
        "105 to 905"
    );
    // The idle time after the last pair is open: its samples are still needed.
    account.add(None, pair(1_900, 1_910));
    let settled = &account.settled()[0];
    assert_eq!(settled.counts.names, BTreeMap::from([(LOAD, 17)]));
    // All but one. Every second one was off; of those, two were while the device was busy.
    assert_eq!(settled.counts.asked, BTreeMap::from([(LOAD, 16)]));
    assert_eq!(settled.counts.off, BTreeMap::from([(LOAD, 7)]));
    assert_eq!(
        (settled.counts.unsampled, settled.sums.idle),
        (0, 990 + 890)
    );
}

#[test]
fn idle_time_that_is_older_than_all_samples_or_of_an_unknown_thread_is_not_sampled() {
    let mut account = Account::new(0);
    let pair = |begin: u64, thread: Option<u32>| Pair {
        begin,
        opened: begin,
        end: begin + 10,
        thread,
        is_busy: true,
    };
    account.add(None, pair(0, Some(1)));
    // More samples than are kept: the first thousand is lost.
    let kept = 1_u64 << 15;
    for at in 0..kept + 1_000 {
        let sample = Sample {
            at,
            thread: 1,
            name: LOAD,
            is_off: None,
        };
        account.add_round(at, 1.0, &[sample]);
    }
    account.add(None, pair(kept, Some(1)));
    account.add(None, pair(kept + 110, None));
    let settled = &account.settled()[0];
    assert_eq!(settled.counts.unsampled, 1_000 - 10 + 100);
    assert_eq!(settled.counts.names[&LOAD], kept - 1_000);
}

#[test]
fn so_many_pairs_that_some_must_be_settled_are_all_counted() {
    let mut account = Account::new(0);
    for number in 0..50_000 {
        // Half of them begin at once.
        let begin = if number % 2 == 0 { 10 * number } else { 0 };
        let pair = Pair {
            begin,
            opened: begin,
            end: begin + 4,
            thread: Some(1),
            is_busy: true,
        };
        account.add(None, pair);
    }
    let sums = account.settled()[0].sums;
    assert_eq!(
        (sums.busy, sums.busy + sums.idle),
        (4 * 25_000, 10 * 49_998 + 4)
    );
}

#[test]
fn what_passed_before_the_account_is_known_of_calls_that_ended_and_bounded_of_open_ones() {
    let name = name::declared("idle: before", Location::caller());
    let cell = name.new_cell().expect("there is memory");
    let _ = cell.count(30, 20, true);
    cell.enter(5);
    name::count_covered(name.id, 7);
    let before = Before::of(name);
    assert_eq!((before.ticks, before.open), (27, 1));
    cell.leave(5);
    name.retire(cell);
}

#[test]
fn the_interval_is_that_of_a_thread_of_which_not_all_rounds_take_a_sample() {
    let mut account = Account::new(1_000);
    for round in 1..=8 {
        account.add_round(1_000 + 40 * round, 0.25, &[]);
    }
    assert!((account.interval() - 160.0).abs() < 1e-6);
}

#[test]
fn a_time_without_open_scopes_counts_as_outside_although_nothing_was_sampled() {
    let mut account = Account::new(0);
    let pair = |begin: u64| Pair {
        begin,
        opened: begin,
        end: begin + 100,
        thread: Some(1),
        is_busy: true,
    };
    account.add(None, pair(0));
    for round in 1..=100 {
        let sample = Sample {
            at: 100 + 10 * round,
            thread: 1,
            name: LOAD,
            is_off: None,
        };
        account.add_round(sample.at, 1.0, &[sample]);
    }
    // The scope of the next time opened at 4,000, and the rest ended at 4,200.
    account.add_rest((1_100, 4_000), 4_200);
    account.add(None, pair(4_100));
    let settled = account.settled();
    let counts = &settled[0].counts;
    assert_eq!((counts.names[&LOAD], counts.outside), (100, 264));
    assert!((account.interval() - 11.0).abs() < 1e-9);
    // What was before the rest is forgotten with it.
    account.settle(4_100);
    account.add(None, pair(4_400));
    assert_eq!(account.settled()[0].counts.outside, 264);
}

#[test]
fn the_thread_rests_once_all_threads_were_looked_at_and_no_scope_was_open_for_long() {
    let mut quiet = super::Quiet::default();
    assert!(!quiet.has_lasted(0, 0));
    quiet.note(10, Some(0.5));
    assert!(!quiet.has_lasted(10, 20), "half of the threads");
    quiet.note(20, Some(0.5));
    assert!(quiet.has_lasted(10, 20) && !quiet.has_lasted(11, 20));
    quiet.note(30, None);
    quiet.note(40, Some(1.0));
    assert!(!quiet.has_lasted(10, 49) && quiet.has_lasted(10, 50));
}

#[test]
fn the_intervals_vary_around_their_mean() {
    let mut random = 1;
    let pauses: Vec<_> = (0..1_000).map(|_| super::pause(&mut random)).collect();
    let is_inside = |pause| super::INTERVAL / 2 <= pause && pause < super::INTERVAL * 3 / 2;
    assert!(pauses.iter().copied().all(is_inside));
    let mean = pauses.iter().sum::<std::time::Duration>() / 1_000;
    let error = mean.as_secs_f64() / super::INTERVAL.as_secs_f64() - 1.0;
    assert!(error.abs() < 0.05, "{mean:?}");
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn of_many_threads_that_launch_each_is_asked_as_often_as_any_other() {
    const THREADS: u32 = 40;

    let this = profiler_host::process::thread::system_id().expect("it is Linux");
    let known = Known {
        system_ids: (0..THREADS).map(|thread| (thread, this)).collect(),
        ..Known::default()
    };
    let mut asked = BTreeMap::new();
    for random in 0..u64::from(THREADS) {
        // The last two launch nothing.
        let mut samples: Vec<Sample> = (0..THREADS + 2)
            .map(|thread| Sample {
                at: 1,
                thread,
                name: LOAD,
                is_off: None,
            })
            .collect();
        known.add_states(&mut samples, random);
        for sample in samples.iter().filter(|sample| sample.is_off.is_some()) {
            *asked.entry(sample.thread).or_default() += 1;
        }
    }
    let each = (0..THREADS).map(|thread| (thread, MOST_STATES)).collect();
    assert_eq!(asked, each);
    known.add_states(&mut [], 7);
}
