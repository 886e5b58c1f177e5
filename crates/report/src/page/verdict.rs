//! The two sentences at the top of the page: where the time went, and what limits the program.

use super::work::Work;
use crate::kernels::Kernels;
use crate::row::Row;
use crate::sentence::{Sentence, percent};
use crate::summary::Summary;
use crate::text::units;
use crate::verdict::Verdict;

/// From this share of a run on, the device counts as busy.
const BUSY: f64 = 0.7;
/// Below this share of a run, the device counts as idle, and measured functions explain too little.
const LITTLE: f64 = 0.3;

/// The limit of the program's speed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// No function was measured.
    Nothing,
    /// The device works longer than its launches take.
    Device,
    /// The device waits for launches.
    Launches,
    /// The limit is what the recorded kernels and copies show.
    Work(Verdict),
    /// The device waits while functions without GPU times run.
    HostWork,
    /// Measured functions cover little of the run.
    Unmeasured,
    /// The threads of measured functions wait.
    Waiting,
    /// Measured functions run on the CPU, and there are no GPU times.
    Host,
}

/// The figures that decide. Fractions are of the run's time and may be above 1, because several threads and
/// streams work at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Shares {
    has_rows: bool,
    has_gpu: bool,
    /// The self times of all functions on the CPU.
    host: f64,
    /// The self times of all functions on all streams.
    device: f64,
    /// The fraction of the GPU time in functions whose launches take at least as long as their work.
    launch_bound: f64,
    /// The fraction of the CPU self time in functions without GPU times.
    host_only: f64,
    /// The fraction of the CPU self time in which threads did not run on a processor, if thread times were measured.
    off_processor: Option<f64>,
    /// The verdict from the kernels, if they were recorded.
    work: Option<Verdict>,
    /// How long they were not, in nanoseconds: it is no part of the run that `device` is a fraction of.
    unrecorded_ns: f64,
}

impl Shares {
    fn of(summary: &Summary, work: Option<&Work<'_>>, unrecorded_ns: f64) -> Self {
        let rows = &summary.rows;
        let host = sum(rows, cpu_self);
        let device = work.map_or_else(|| sum(rows, cuda_self), |work| work.busy_ns);
        let bound = |row: &Row| cuda_self(row) * row.launch_bound.unwrap_or(0.0);
        let is_on_gpu =
            |row: &Row| row.cuda.is_some() || work.is_some_and(|work| work.is_of(&row.name));
        let without_gpu = |row: &Row| if is_on_gpu(row) { 0.0 } else { cpu_self(row) };
        Self {
            has_rows: !rows.is_empty(),
            has_gpu: work.is_some() || rows.iter().any(|row| row.cuda.is_some()),
            host: ratio(host, summary.wall_ns),
            device: ratio(device, summary.wall_ns - unrecorded_ns),
            launch_bound: ratio(sum(rows, bound), device),
            host_only: ratio(sum(rows, without_gpu), host),
            off_processor: off_processor(rows),
            work: work.map(|work| work.verdict),
            unrecorded_ns,
        }
    }

    fn limit(&self) -> Limit {
        if !self.has_rows {
            return Limit::Nothing;
        }
        if !self.has_gpu {
            return match self.off_processor {
                Some(share) if share > 0.5 => Limit::Waiting,
                _ if self.host < LITTLE => Limit::Unmeasured,
                _ => Limit::Host,
            };
        }
        // The GPU time of a launch-bound call includes the gaps in which the device waits for launches.
        let is_waiting = match self.work {
            Some(verdict) => matches!(verdict, Verdict::LaunchBound | Verdict::GapBound),
            None => self.launch_bound >= 0.5,
        };
        if self.device >= LITTLE && !is_waiting {
            self.work.map_or(Limit::Device, Limit::Work)
        } else if self.host.max(self.device) < LITTLE {
            Limit::Unmeasured
        } else if self.host_only >= 0.5 && self.device < BUSY {
            Limit::HostWork
        } else if let Some(verdict) = self.work {
            Limit::Work(verdict)
        } else if is_waiting {
            Limit::Launches
        } else {
            Limit::Waiting
        }
    }
}

/// Returns both sentences. `kernels` are those of the window, if there is one.
pub(super) fn sentences(summary: &Summary, kernels: Option<&Kernels>) -> [Sentence; 2] {
    let work = kernels.and_then(Work::of);
    let unrecorded = kernels.filter(|_| work.is_some());
    // For each process on average, as the time of the run is.
    let unrecorded = unrecorded.map_or(0.0, |kernels| {
        kernels.unrecorded_ns / kernels.processes.max(1) as f64
    });
    let shares = Shares::of(summary, work.as_ref(), unrecorded);
    [
        where_it_went(summary, &shares, work.as_ref()),
        what_limits(summary, &shares, work.as_ref()),
    ]
}

fn where_it_went(summary: &Summary, shares: &Shares, work: Option<&Work<'_>>) -> Sentence {
    let rows = &summary.rows;
    if !shares.has_rows {
        let reason = summary.nothing_measured.as_deref();
        let reason = reason.unwrap_or("there are no rows");
        return Sentence::new()
            .text("Nothing was measured: ")
            .text(reason)
            .text(".");
    }
    let mut sentence = Sentence::new().text("On the CPU, ");
    sentence = push_largest(sentence, rows, cpu_self);
    if shares.has_gpu {
        sentence = sentence.text("; on the GPU, ");
        let has_times = rows.iter().any(|row| row.cuda.is_some());
        sentence = match work.filter(|_| !has_times) {
            Some(work) => work.push_largest(sentence),
            None => push_largest(sentence, rows, cuda_self),
        };
    }
    sentence.text(".")
}

/// Names the function with the largest self time, and the second one if that is a fifth of all too.
fn push_largest(sentence: Sentence, rows: &[Row], own: fn(&Row) -> f64) -> Sentence {
    let all = sum(rows, own);
    if all <= 0.0 {
        return sentence.text("no call has ended");
    }
    let mut sorted: Vec<&Row> = rows.iter().collect();
    sorted.sort_by(|left, right| own(right).total_cmp(&own(left)));
    let [first, rest @ ..] = &sorted[..] else {
        return sentence;
    };
    let sentence = sentence.name(&first.name).text(&format!(
        " takes {} of the measured {}",
        percent(own(first) / all),
        units::time(all)
    ));
    match rest.first() {
        Some(second) if own(second) >= 0.2 * all => sentence
            .text(" and ")
            .name(&second.name)
            .text(&format!(" {}", percent(own(second) / all))),
        _ => sentence,
    }
}

fn what_limits(summary: &Summary, shares: &Shares, work: Option<&Work<'_>>) -> Sentence {
    let busy = percent(shares.device.min(1.0));
    let sentence = Sentence::new();
    let sentence = match shares.limit() {
        Limit::Nothing => return sentence,
        Limit::Device => sentence.strong("The GPU limits it").text(&format!(
            ": it was busy for {busy} of the run, and most work takes longer than its launch"
        )),
        Limit::Work(_) => match work {
            Some(work) => work.push_limit(sentence, &busy),
            None => return sentence,
        },
        Limit::Launches => sentence.strong("It is launch-bound").text(&format!(
            ": {} of the GPU time is in calls whose launches take at least as long as their work, so the GPU waits for the \
             CPU",
            percent(shares.launch_bound)
        )),
        Limit::HostWork => {
            let sentence = sentence.strong("Work on the CPU limits it").text(&format!(
                ": the GPU was busy for {busy} of the run, while {} of the CPU time is in functions without GPU work",
                percent(shares.host_only)
            ));
            push_first_host_only(sentence, &summary.rows, work)
        }
        Limit::Unmeasured => sentence.strong("What limits it was not measured").text(&format!(
            ": measured functions took {} of the run{}",
            percent(shares.host),
            if shares.has_gpu {
                format!(", and the GPU was busy for {busy}")
            } else {
                String::new()
            }
        )),
        Limit::Waiting => {
            let sentence = sentence.strong("Waiting limits it");
            match shares.off_processor {
                Some(share) if !shares.has_gpu => sentence.text(&format!(
                    ": for {} of the measured time, its threads did not run",
                    percent(share)
                )),
                _ => sentence.text(&format!(
                    ": the GPU was busy for {busy} of the run, although its work takes longer than the launches"
                )),
            }
        }
        Limit::Host => sentence.strong("Work on the CPU limits it").text(&format!(
            ": measured functions took {} of the run",
            if shares.host > 1.0 {
                format!("{:.1} times the length", shares.host)
            } else {
                percent(shares.host)
            }
        )),
    };
    if work.is_some() {
        // The kernels show what GPU times lack.
        return match shares.unrecorded_ns {
            ns if ns > 0.0 => sentence.text(&format!(
                "; {}, in which kernels were not recorded, are left out of its share.",
                units::time(ns)
            )),
            _ => sentence.text("."),
        };
    }
    about_missing_times(sentence, summary, shares)
}

fn push_first_host_only(sentence: Sentence, rows: &[Row], work: Option<&Work<'_>>) -> Sentence {
    let host_only = rows.iter().filter(|row| row.cuda.is_none());
    let host_only = host_only.filter(|row| work.is_none_or(|work| !work.is_of(&row.name)));
    let first = host_only.max_by(|left, right| cpu_self(left).total_cmp(&cpu_self(right)));
    match first {
        Some(row) => sentence.text(", first of all ").name(&row.name),
        None => sentence,
    }
}

/// Ends a sentence with what it does not know: that there are no GPU times, or that many are missing.
fn about_missing_times(sentence: Sentence, summary: &Summary, shares: &Shares) -> Sentence {
    if !shares.has_gpu {
        return sentence.text(&format!(
            "; what the GPU did is not known ({}).",
            summary.cuda.status
        ));
    }
    let rows = summary.rows.iter();
    let missing = rows.clone().map(|row| row.without_cuda);
    let missing = missing.fold(0, u64::saturating_add);
    let measured = rows.filter_map(|row| row.cuda.map(|cuda| cuda.calls));
    let measured = measured.fold(0, u64::saturating_add);
    if missing.saturating_mul(20) > measured {
        return sentence.text(&format!(
            "; this is uncertain, since {missing} of {} GPU times are missing.",
            missing.saturating_add(measured)
        ));
    }
    sentence.text(".")
}

/// Returns the share of the CPU self time in which threads waited or were preempted, over the rows with thread times.
fn off_processor(rows: &[Row]) -> Option<f64> {
    let measured = rows
        .iter()
        .filter_map(|row| Some((cpu_self(row), row.self_thread_time_total_ns?)));
    let (elapsed, on_processor) = measured.fold((0.0, 0.0), |(elapsed, ran), row| {
        (elapsed + row.0, ran + row.1)
    });
    (elapsed > 0.0).then(|| (1.0 - on_processor / elapsed).max(0.0))
}

fn cpu_self(row: &Row) -> f64 {
    row.cpu.map_or(0.0, |cpu| cpu.self_ns)
}

fn cuda_self(row: &Row) -> f64 {
    row.cuda.map_or(0.0, |cuda| cuda.self_ns)
}

fn sum(rows: &[Row], of: impl Fn(&Row) -> f64) -> f64 {
    rows.iter().map(of).sum()
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
