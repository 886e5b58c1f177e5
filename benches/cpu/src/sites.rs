//! Thousands of call sites: the statistics of a large service, and a turn of the switch, which visits each call site.

use std::hint::black_box;
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use bench_harness::memory::{mib, resident};
use bench_harness::process::again;
use bench_harness::{Options, Outcome, Report, Table, median, row};
use profiler_runtime::__private::{CallSite, NEW_SITE};
use profiler_runtime::{scope, set_enabled};

const NAMES: usize = 5_000;
const THREADS: usize = 128;
/// The calls of each function on each thread.
const CALLS: u32 = 50;

/// The goals of the resident memory, for names of call sites and for names that are built at run time.
const MOST_MIB: f64 = 450.0;
const MOST_BUILT_MIB: f64 = 480.0;
/// By how much a run may exceed a goal.
const TOLERANCE: f64 = 1.1;
/// The variable for the most names that are built at run time.
const MAX_NAMES: &str = "PROFILER_MAX_NAMES";

/// As the macros expand to, but for names that are made in a loop: the compiler would take minutes for as many functions.
static SITES: [CallSite; NAMES] = [NEW_SITE; NAMES];

fn names() -> Vec<&'static str> {
    let name = |number| format!("service::handlers::Handler{number}::call");
    (0..NAMES).map(|number| &*name(number).leak()).collect()
}

/// Makes one measured call of each name, with work of some length: 32 to 256 steps, and in one round more.
fn call_all(names: &[&'static str], round: u32) {
    for (site, name) in SITES.iter().zip(names) {
        let _scope = site.enter_named(name);
        work(round);
    }
}

/// The same with names that are built at run time, at one call site.
fn call_all_built(names: &[&'static str], round: u32) {
    for name in names {
        let _scope = scope!(*name);
        work(round);
    }
}

fn work(round: u32) {
    let length = if round == 7 { 4096 } else { 32 << (round % 4) };
    for step in 0..length {
        black_box(step);
    }
}

/// Turns the switch while the profiler knows this many call sites.
pub(crate) fn switch(options: &Options, sites: usize, turns: usize) -> Outcome<()> {
    let names = names();
    let names = names.get(..sites).ok_or("there are 5,000 call sites")?;
    call_all(names, 0);
    let mut report = Report::begin();
    let start = Instant::now();
    counted_turns(turns);
    let nanoseconds = start.elapsed().as_secs_f64() * 1e9 / turns as f64;
    let title = format!("a turn of the switch, {sites} call sites");
    report.show(Table::of_values(title, [("ns", nanoseconds)]));
    report.end(options)
}

/// Turns the switch off and on again. Callgrind counts inside this function only.
#[inline(never)]
fn counted_turns(turns: usize) {
    for turn in 0..turns {
        set_enabled(turn % 2 == 1);
    }
}

/// Measures the memory of the statistics and the time of the summary: each name is called on 128 threads that stay alive, with
/// times over a few powers of two. `are_built` if the names are built at run time, rather than those of call sites.
pub(crate) fn service(options: &Options, are_built: bool) -> Outcome<()> {
    let (call_all, kind, most_mib) = if are_built {
        (call_all_built as fn(&[_], _), "built ", MOST_BUILT_MIB)
    } else {
        (call_all as fn(&[_], _), "", MOST_MIB)
    };
    // Built names have a limit of their own.
    if are_built && std::env::var_os(MAX_NAMES).is_none() {
        let again = again()?.env(MAX_NAMES, (NAMES + 1).to_string()).status()?;
        return again
            .success()
            .then_some(())
            .ok_or_else(|| again.to_string().into());
    }
    let mut report = Report::begin();
    let names = names();
    let [ready, called, read] = [(); 3].map(|()| Barrier::new(THREADS + 1));
    // The profiler's threads and the first name are no part of what is measured.
    call_all(&names[..1], 0);
    let (table, grown) = thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                ready.wait();
                (0..CALLS).for_each(|round| call_all(&names, round));
                called.wait();
                read.wait();
            });
        }
        let before = resident();
        ready.wait();
        called.wait();
        let grown = resident().zip(before);
        let grown = grown.map(|(after, before)| after.saturating_sub(before));
        let rounds = 0..options.rounds.unwrap_or(7);
        let summary = rounds.map(|_| 1e3 * processor_time_of(profiler_runtime::summary));
        let mut summary: Vec<f64> = summary.collect();
        summary.sort_by(f64::total_cmp);
        let further = 20;
        let seconds = processor_time_of(|| (0..further).for_each(|round| call_all(&names, round)));
        let title = format!("{NAMES} {kind}names on {THREADS} threads, {CALLS} calls each");
        let each = grown.map(|bytes| bytes as f64 / (NAMES * THREADS) as f64);
        let ns = seconds * 1e9 / f64::from(further) / NAMES as f64;
        let mut table = Table::of_values(
            title,
            [
                ("resident memory, MiB more", grown.map(mib)),
                ("bytes for each name and thread", each),
                ("a further call, with its work, ns", Some(ns)),
                ("summary(), ms of the processor: least", Some(summary[0])),
                ("median", Some(median(&summary))),
                ("most", summary.last().copied()),
            ],
        );
        // The lines below the summary's table that are about shared statistics.
        for line in profiler_runtime::summary().to_string().lines() {
            if line.contains("PROFILER_CELL_MEMORY") {
                row!(table, format!("note: {line}"));
            }
        }
        read.wait();
        (table, grown)
    });
    report.show(table);
    report.end(options)?;
    match grown.map(mib) {
        Some(mib) if mib > TOLERANCE * most_mib => {
            Err(format!("more than a tenth above the goal of {most_mib} MiB").into())
        }
        _ => Ok(()),
    }
}

/// Returns the seconds that this thread runs on a processor meanwhile. On a busy machine, elapsed time says nothing.
fn processor_time_of<T>(what: impl FnOnce() -> T) -> f64 {
    let began = processor_time();
    let result = what();
    let took = processor_time() - began;
    drop(result);
    took
}

fn processor_time() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the time is written to a local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
