//! The sentences at the top of the page: where the time went, and what limits the program, or each of its devices.

use crate::idle::GpuIdle;
use crate::row::Row;
use crate::sentence::{Sentence, percent};
use crate::summary::Summary;
use crate::text::units;

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
}

impl Shares {
    fn of(summary: &Summary) -> Self {
        let rows = &summary.rows;
        let host = sum(rows, cpu_self);
        let device = sum(rows, cuda_self);
        let bound = |row: &Row| cuda_self(row) * row.launch_bound.unwrap_or(0.0);
        let without_gpu = |row: &Row| {
            if row.cuda.is_some() {
                0.0
            } else {
                cpu_self(row)
            }
        };
        Self {
            has_rows: !rows.is_empty(),
            has_gpu: rows.iter().any(|row| row.cuda.is_some()),
            host: ratio(host, summary.wall_ns),
            device: ratio(device, summary.wall_ns),
            launch_bound: ratio(sum(rows, bound), device),
            host_only: ratio(sum(rows, without_gpu), host),
            off_processor: off_processor(rows),
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
        let is_waiting = self.launch_bound >= 0.5;
        if self.device >= LITTLE && !is_waiting {
            Limit::Device
        } else if self.host.max(self.device) < LITTLE {
            Limit::Unmeasured
        } else if self.host_only >= 0.5 && self.device < BUSY {
            Limit::HostWork
        } else if is_waiting {
            Limit::Launches
        } else {
            Limit::Waiting
        }
    }
}

/// The most devices that the page has sentences for.
const DEVICES: usize = 4;

/// Returns the sentences: where the time went, and what limits the program. If kernels were recorded, `idle` says the latter
/// for each device.
pub(super) fn sentences(summary: &Summary, idle: &GpuIdle) -> Vec<Sentence> {
    let shares = Shares::of(summary);
    let mut sentences = vec![where_it_went(summary, &shares)];
    for device in idle.devices.iter().take(DEVICES) {
        let mut of_device = device.sentences();
        if idle.devices.len() > 1 {
            let title = Sentence::new().strong(&device.title()).text(": ");
            let first = of_device.first_mut();
            if let Some(first) = first {
                *first = title.then(std::mem::take(first));
            }
        }
        let joined = of_device
            .into_iter()
            .reduce(|one, next| one.text(" ").then(next));
        sentences.extend(joined);
    }
    let more = idle.devices.len().saturating_sub(DEVICES);
    if more > 0 {
        let gpus = if more == 1 { "GPU is" } else { "GPUs are" };
        let text = format!("{more} more {gpus} left out here: `profiler explain` shows all.");
        sentences.push(Sentence::new().text(&text));
    }
    if idle.devices.is_empty() {
        sentences.push(what_limits(summary, &shares));
    }
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn where_it_went(summary: &Summary, shares: &Shares) -> Sentence {
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
        sentence = push_largest(sentence, rows, cuda_self);
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

fn what_limits(summary: &Summary, shares: &Shares) -> Sentence {
    let busy = percent(shares.device.min(1.0));
    let sentence = Sentence::new();
    let sentence = match shares.limit() {
        Limit::Nothing => return sentence,
        Limit::Device => sentence.strong("The GPU limits it").text(&format!(
            ": it was busy for {busy} of the run, and most work takes longer than its launch"
        )),
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
            push_first_host_only(sentence, &summary.rows)
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
    about_missing_times(sentence, summary, shares)
}

fn push_first_host_only(sentence: Sentence, rows: &[Row]) -> Sentence {
    let host_only = rows.iter().filter(|row| row.cuda.is_none());
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
