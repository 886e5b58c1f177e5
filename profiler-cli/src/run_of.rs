//! Which run of a program a file is of, as far as it says so.

use std::collections::BTreeSet;

use profiler_report::internal::format_time;
use profiler_report::{Summary, Timeline, TrackKind};

use crate::input::Input;

/// Where processes are not known, a trace that is further from a run than this is of another one.
const MOST_APART_NS: i64 = 60_000_000_000;

/// What a file says of its run.
#[derive(Debug, Default, PartialEq, Eq)]
struct RunOf<'f> {
    /// The ids of its processes; none if they are not known.
    processes: BTreeSet<u64>,
    program: &'f str,
    host: Option<&'f str>,
    ranks: BTreeSet<Option<u64>>,
    /// When the file begins and ends, in nanoseconds since the Unix epoch, if it has wall times.
    times: Option<(i64, i64)>,
}

impl<'f> RunOf<'f> {
    fn of(input: &'f Input) -> Self {
        match input {
            Input::Summary(summary) => Self::of_summary(summary),
            Input::Timeline(timeline) => Self::of_timeline(timeline),
        }
    }

    fn of_summary(summary: &'f Summary) -> Self {
        let environment = &summary.environment;
        #[allow(clippy::cast_possible_truncation, reason = "whole nanoseconds")]
        let duration = summary.wall_ns as i64;
        Self {
            processes: known(environment.process.into()).collect(),
            program: &environment.program,
            host: Some(&environment.host),
            ranks: [environment.rank].into(),
            times: times(environment.start_unix_ns, duration),
        }
    }

    fn of_timeline(timeline: &'f Timeline) -> Self {
        let tracks = timeline.tracks.iter();
        let ranks: BTreeSet<Option<u64>> = tracks.clone().map(|track| track.rank).collect();
        // The process of a stream may be the number of its device, and those of merged ranks may be made up.
        let mut threads = tracks.filter(|track| track.kind != TrackKind::GpuStream);
        let is_of_one = ranks.len() < 2;
        Self {
            processes: threads
                .clone()
                .filter(|_| is_of_one)
                .flat_map(|track| known(track.process))
                .collect(),
            program: threads.next().map_or("", |track| &track.process_name),
            host: None,
            ranks,
            times: times(timeline.start_unix_ns, timeline.duration_ns),
        }
    }

    fn process(&self) -> String {
        let ids: Vec<String> = self.processes.iter().map(u64::to_string).collect();
        format!("process {} ({})", ids.join(", "), self.program)
    }
}

fn known(process: u64) -> impl Iterator<Item = u64> {
    (process != 0).then_some(process).into_iter()
}

fn times(start: i64, duration: i64) -> Option<(i64, i64)> {
    (start > 0).then(|| (start, start.saturating_add(duration.max(0))))
}

/// Returns `true` if two files are of one run, or of one window of it, by what they say. Two windows of a run are not.
pub(crate) fn is_same(one: &Input, other: &Input) -> bool {
    let (first, second) = (RunOf::of(one), RunOf::of(other));
    if first.processes.is_disjoint(&second.processes) {
        return false;
    }
    let (Some(times), Some(others)) = (first.times, second.times) else {
        return false;
    };
    match (one, other) {
        // The file of a running program is rewritten: only the beginning stays.
        (Input::Summary(_), Input::Summary(_)) => {
            times.0 == others.0 && first.host == second.host && first.ranks == second.ranks
        }
        (Input::Timeline(_), Input::Timeline(_)) => first == second,
        // Programs in different containers may have processes with the same ids.
        _ => {
            let has_rank = |run: &RunOf| !run.ranks.contains(&None);
            let differ = has_rank(&first) && has_rank(&second) && first.ranks != second.ranks;
            let is_one_program = !first.program.is_empty() && first.program == second.program;
            is_one_program && !differ && times.0 <= others.1 && others.0 <= times.1
        }
    }
}

/// Says why a trace is not of the run of a summary; `None` if it may be.
pub(crate) fn difference(timeline: &Timeline, summary: &Summary) -> Option<String> {
    let (trace, run) = (RunOf::of_timeline(timeline), RunOf::of_summary(summary));
    // Where a trace does not name its process, the id may be made up.
    let are_known =
        !trace.program.is_empty() && !trace.processes.is_empty() && !run.processes.is_empty();
    if are_known {
        // The wall clock may have been set between both, so the ids decide.
        return trace
            .processes
            .is_disjoint(&run.processes)
            .then(|| format!("{} instead of {}", trace.process(), run.process()));
    }
    let ((begins, ends), (start, end)) = (trace.times?, run.times?);
    let (before, after) = (start.saturating_sub(ends), begins.saturating_sub(end));
    let apart = |ns: i64| format_time(ns as f64);
    if before > MOST_APART_NS {
        Some(format!("it ends {} before that run begins", apart(before)))
    } else if summary.is_last && after > MOST_APART_NS {
        Some(format!("it begins {} after that run ends", apart(after)))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use profiler_report::Track;

    use super::*;

    const START: i64 = 1_700_000_000_000_000_000;
    const SECOND: i64 = 1_000_000_000;

    fn summary(process: u32, start: i64) -> Summary {
        let mut summary = Summary::default();
        summary.environment.process = process;
        summary.environment.program = "train".to_owned();
        summary.environment.start_unix_ns = start;
        summary.wall_ns = 10e9;
        summary.is_last = true;
        summary
    }

    fn window(process: u64, start: i64) -> Timeline {
        let mut timeline = Timeline {
            start_unix_ns: start,
            duration_ns: SECOND,
            ..Timeline::default()
        };
        timeline.tracks.push(Track {
            process,
            process_name: "train".to_owned(),
            ..Track::default()
        });
        timeline
    }

    #[test]
    fn a_trace_of_another_process_or_time_is_of_another_run() {
        let run = summary(7, START);
        let of = |process, start| difference(&window(process, start), &run);
        assert_eq!(of(7, START + SECOND), None);
        let other = "process 8 (train) instead of process 7 (train)";
        assert_eq!(of(8, START + SECOND).as_deref(), Some(other));
        // The clock may have been set.
        assert_eq!(of(7, START - 7_201 * SECOND), None);
    }

    #[test]
    fn where_the_process_of_a_trace_has_no_name_its_times_tell() {
        let run = summary(7, START);
        let unnamed = |start| {
            let mut window = window(1, start);
            window.tracks[0].process_name = String::new();
            window
        };
        let of = |start| difference(&unnamed(start), &run);
        assert_eq!(of(START + SECOND), None);
        let early = of(START - 7_201 * SECOND);
        assert_eq!(
            early.as_deref(),
            Some("it ends 2.00 h before that run begins")
        );
        let late = of(START + 7_210 * SECOND);
        assert_eq!(
            late.as_deref(),
            Some("it begins 2.00 h after that run ends")
        );
        let mut running = summary(7, START);
        running.is_last = false;
        assert_eq!(difference(&unnamed(START + 7_210 * SECOND), &running), None);
    }

    #[test]
    fn what_files_do_not_say_is_no_difference() {
        let run = summary(7, START);
        assert_eq!(difference(&Timeline::default(), &run), None);
        assert_eq!(difference(&window(8, START), &Summary::default()), None);
        // The processes of ranks that were merged may be made up.
        let mut merged = window(1, START);
        merged.tracks.push(merged.tracks[0].clone());
        for (rank, track) in (0..).zip(&mut merged.tracks) {
            track.rank = Some(rank);
        }
        assert_eq!(difference(&merged, &run), None);
    }

    #[test]
    fn files_of_one_run_are_known_and_windows_of_it_are_told_apart() {
        let summary = |process, start| Input::Summary(Box::new(summary(process, start)));
        let window = |process, start| Input::Timeline(Box::new(window(process, start)));
        let inside = START + SECOND;
        assert!(is_same(&summary(7, START), &summary(7, START)));
        assert!(is_same(&summary(7, START), &window(7, inside)));
        assert!(is_same(&window(7, START), &window(7, START)));
        assert!(!is_same(&window(7, START), &window(7, inside)));
        assert!(!is_same(&summary(7, START), &summary(7, inside)));
        assert!(!is_same(&summary(7, START), &summary(8, START)));
        assert!(!is_same(
            &summary(7, START),
            &window(7, START + 11 * SECOND)
        ));
        let mut other = self::window(7, inside);
        other.tracks[0].process_name = "serve".to_owned();
        let other = Input::Timeline(Box::new(other));
        assert!(
            !is_same(&summary(7, START), &other),
            "it may be of another container"
        );
        let unknown = || Input::Summary(Box::default());
        assert!(!is_same(&unknown(), &unknown()));
    }
}
