//! Work that threads without scopes launched: no function of the window has it.

use std::collections::HashMap;

use super::record::NONE;
use super::work::WindowWork;

/// The least share of the device's time that is worth a note.
const SHARE: f64 = 0.1;
/// The most threads that are named.
const MOST_NAMED: usize = 4;
/// How the labels of the threads begin on which CubeCL launches: it names them so, from 0.10 on.
const OF_CUBECL: &str = "`DSD-";

/// Names the threads without scopes in the window, if they launched more than [`SHARE`] of the device's time for no scope.
/// The first `scope_threads` threads of the window ran scopes. `thread_of` returns the number of the thread of a launch, `label`
/// how users know a thread, if that was noted. If the program has a launch hook, it knows that other threads launch.
pub(super) fn note(
    work: &WindowWork,
    scope_threads: usize,
    thread_of: impl Fn(u32) -> Option<u64>,
    label: impl Fn(u64) -> Option<String>,
    has_launch_hook: bool,
) -> Option<String> {
    let mut all = 0.0;
    let mut of_threads: HashMap<u64, f64> = HashMap::new();
    for record in work.on_streams() {
        let length = record
            .span
            .map_or(0, |(start, end)| end.saturating_sub(start));
        let length = length.max(0) as f64;
        all += length;
        let launch = work.launch_of(record);
        let is_elsewhere = launch
            .is_some_and(|launch| launch.scope == NONE && launch.thread as usize >= scope_threads);
        if is_elsewhere && let Some(thread) = thread_of(record.launch) {
            *of_threads.entry(thread).or_default() += length;
        }
    }
    let elsewhere: f64 = of_threads.values().sum();
    if elsewhere <= SHARE * all {
        return None;
    }
    let mut threads: Vec<(u64, f64)> = of_threads.into_iter().collect();
    threads.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    let labels = threads.iter().filter_map(|(thread, _)| label(*thread));
    let named: Vec<String> = labels.take(MOST_NAMED).collect();
    let others = threads.len() - named.len();
    let who = match (&named[..], others) {
        ([], _) => String::new(),
        (named, 0) => format!(": {}", named.join(", ")),
        (named, others) => format!(": {} and {others} more", named.join(", ")),
    };
    let share = 100.0 * elsewhere / all;
    let remedy = if !has_launch_hook && named.iter().any(|label| label.starts_with(OF_CUBECL)) {
        "these are CubeCL's: with CubeCL 0.12 or Burn 0.23, call `profiler_cubecl::observe()` once"
    } else {
        "measure the functions that they call"
    };
    Some(format!(
        "{share:.0} % of the device's time was launched by threads that no scope of the window ran on{who}; {remedy}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::sample::Sample;
    use profiler_report::GpuWork;

    /// Returns the note on a kernel of 50 µs inside a scope, and kernels of these lengths that threads without scopes
    /// launched, of which those with an even number have a label.
    fn note_of(lengths: &[i64]) -> Option<String> {
        let mut sample = Sample::new();
        sample.scope("elsewhere: scope", 0, 0, 1_000);
        sample.work("kernel", true, 10, (0, 50_000), GpuWork::default());
        for length in lengths {
            sample.work("kernel", false, 20, (0, *length), GpuWork::default());
        }
        let mut trace = sample.trace();
        for launch in &mut trace.work.launches[1..] {
            launch.thread = NONE;
        }
        let label = |thread: u64| {
            thread
                .is_multiple_of(2)
                .then(|| format!("`thread {thread}`"))
        };
        note(&trace.work, 1, |launch| Some(launch.into()), label, false)
    }

    #[test]
    fn threads_of_cubecl_have_the_line_that_names_who_asks() {
        let mut sample = Sample::new();
        sample.work("kernel", false, 20, (0, 50_000), GpuWork::default());
        let trace = sample.trace();
        let remedy = |name: &str, has_launch_hook| {
            let label = |_| Some(format!("`{name}`"));
            let note = note(&trace.work, 0, |_| Some(1), label, has_launch_hook);
            let note = note.expect("a note");
            note.split_once("; ").expect("a remedy").1.to_owned()
        };
        let observe = "these are CubeCL's: with CubeCL 0.12 or Burn 0.23, call `profiler_cubecl::observe()` once";
        assert_eq!(remedy("DSD-0-0", false), observe);
        assert_eq!(remedy("DSD-0-0", true), remedy("pool", false));
        assert_ne!(remedy("pool", false), observe);
    }

    #[test]
    fn threads_without_scopes_are_named_from_a_tenth_on() {
        assert_eq!(note_of(&[]), None);
        assert_eq!(note_of(&[2_000, 3_000]), None);
        let note = |lengths| note_of(lengths).expect("a note");
        let begin =
            "% of the device's time was launched by threads that no scope of the window ran on";
        assert_eq!(
            note(&[10_000, 10_000, 10_000, 20_000]),
            format!(
                "50 {begin}: `thread 4`, `thread 2` and 2 more; measure the functions that they call"
            )
        );
        assert_eq!(
            note(&[0, 50_000]),
            format!("50 {begin}: `thread 2` and 1 more; measure the functions that they call")
        );
        assert_eq!(
            note(&[50_000]),
            format!("50 {begin}; measure the functions that they call")
        );
    }
}
