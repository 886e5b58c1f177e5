//! The sentences at the top of the page: where the time went, and what limits the program, or each of its devices.

use std::collections::HashSet;
use std::fmt::Write;

use super::devices::{DEVICES, FOLDED, least_busy, recorded_busy};
use crate::idle::{GpuIdle, GpuPairs, States};
use crate::in_order::InOrder as _;
use crate::row::Row;
use crate::sentence::{Sentence, percent};
use crate::summary::Summary;
use crate::text::units;

/// Below this share of a run, measured functions explain too little.
const LITTLE: f64 = 0.3;
/// From this share of a run on, measured functions that run on processors take most of it.
const MOST: f64 = 0.6;

/// The limit of the program's speed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// No function was measured.
    Nothing,
    /// What event pairs say of the devices.
    Gpu(States),
    /// Measured functions cover little of the run.
    Unmeasured,
    /// The threads of measured functions wait.
    Waiting,
    /// Measured functions run on processors, and there are no GPU times.
    Host,
    /// Measured functions cover much of the run; whether they work or wait is not known.
    WorkOrWaits,
    /// They work and wait.
    WorkAndWaits,
}

/// The figures that decide. Fractions are of the run's time and may be above 1, because several threads and
/// streams work at once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Shares {
    has_rows: bool,
    has_gpu: bool,
    /// The self times of all functions on the CPU.
    host: f64,
    /// Of a stream on average, the time in pairs of calls that returned before their work ended, without pairs around others.
    busy: f64,
    /// Of a stream on average, the time in other pairs.
    host_paced: f64,
    /// How long the threads of measured functions ran on a processor, if thread times were measured.
    on_processor: Option<f64>,
    /// The fraction of the CPU self time in which threads did not run on a processor, if thread times were measured.
    off_processor: Option<f64>,
}

impl Shares {
    fn of(summary: &Summary) -> Self {
        let rows = &summary.rows;
        let streams = rows.iter().flat_map(|row| &row.streams);
        let streams = streams.collect::<HashSet<_>>().len().max(1) as f64;
        let of_streams = |ns: f64| ratio(ns, summary.wall_ns * streams);
        let on_gpu = sum(rows, cuda_self);
        let busy = sum(rows, busy);
        let on_processor = rows.iter().filter_map(|row| row.self_thread_time_total_ns);
        let on_processor = on_processor.reduce(|one, next| one + next);
        Self {
            has_rows: !rows.is_empty(),
            has_gpu: rows.iter().any(|row| row.cuda.is_some()),
            host: ratio(sum(rows, cpu_self), summary.wall_ns),
            busy: of_streams(busy),
            host_paced: of_streams(on_gpu - busy),
            on_processor: on_processor.map(|ns| ratio(ns, summary.wall_ns)),
            off_processor: off_processor(rows),
        }
    }

    fn limit(&self) -> Limit {
        let on_gpu = self.busy + self.host_paced;
        if !self.has_rows {
            Limit::Nothing
        } else if self.host.max(on_gpu) < LITTLE {
            Limit::Unmeasured
        } else if self.has_gpu {
            Limit::Gpu(States {
                busy: self.busy.min(1.0),
                host_paced: self.host_paced.min((1.0 - self.busy).max(0.0)),
                idle: (1.0 - on_gpu).max(0.0),
            })
        } else {
            match (self.on_processor, self.off_processor) {
                (Some(on), _) if on >= MOST => Limit::Host,
                (_, Some(off)) if off > 0.5 => Limit::Waiting,
                (Some(_), _) => Limit::WorkAndWaits,
                (None, _) => Limit::WorkOrWaits,
            }
        }
    }
}

/// The sentences of a page.
pub(super) struct Said {
    /// Those that all readers see.
    pub(super) sentences: Vec<Sentence>,
    /// What limits further devices, for those who unfold it.
    pub(super) folded: Vec<Sentence>,
}

/// What is said of a device.
struct OfDevice {
    title: String,
    /// The share of the time in which it was busy.
    busy: f64,
    sentences: Vec<Sentence>,
}

impl OfDevice {
    fn joined(self, has_title: bool) -> Sentence {
        let mut joined = Sentence::new();
        if has_title {
            joined = joined.strong(&self.title).text(": ");
        }
        for (place, sentence) in self.sentences.into_iter().enumerate() {
            joined = if place == 0 { joined } else { joined.text(" ") };
            joined = joined.then(sentence);
        }
        joined
    }
}

/// Returns the sentences: where the time went, and what limits the program. If kernels were recorded, `idle` says the latter
/// for each device; of a window without kernels, `pairs` does; of a run, the account of the running statistics. Without any, it
/// follows from the sums of the rows. Of more than four devices, all but the one that was busy least are folded.
pub(super) fn sentences(summary: &Summary, idle: &GpuIdle, pairs: &GpuPairs) -> Said {
    let shares = Shares::of(summary);
    let mut sentences = vec![where_it_went(summary, &shares)];
    sentences.extend(idle.ranks());
    let mut devices = of_devices(summary, idle, pairs);
    let all = devices.len();
    let mut folded = Vec::new();
    if all > DEVICES {
        let least = least_busy(devices.iter().map(|device| device.busy), 1);
        let first = least.first().map(|least| devices.remove(*least));
        folded = std::mem::replace(&mut devices, first.into_iter().collect());
        for device in &mut devices {
            let _ = write!(device.title, ", the least busy of {all}");
        }
    }
    if devices.is_empty() {
        sentences.push(what_limits(summary, &shares));
    }
    sentences.extend(devices.into_iter().map(|device| device.joined(all > 1)));
    sentences.retain(|sentence| !sentence.is_empty());
    let left_out = folded.len().saturating_sub(FOLDED);
    folded.truncate(FOLDED);
    let mut folded: Vec<Sentence> = folded
        .into_iter()
        .map(|device| device.joined(true))
        .collect();
    if left_out > 0 {
        let text = format!("{left_out} more are left out here: `profiler explain` shows all.");
        folded.push(Sentence::new().text(&text));
    }
    Said { sentences, folded }
}

/// Returns what is said of each device.
fn of_devices(summary: &Summary, idle: &GpuIdle, pairs: &GpuPairs) -> Vec<OfDevice> {
    let idle = idle.devices.iter().map(|device| OfDevice {
        title: device.title(),
        busy: recorded_busy(device),
        sentences: device.sentences(),
    });
    let pairs = pairs.devices.iter().map(|device| OfDevice {
        title: device.title(),
        busy: ratio(device.busy_ns as f64, device.window_ns() as f64),
        sentences: device.sentences(),
    });
    let devices: Vec<OfDevice> = idle.chain(pairs).collect();
    if !devices.is_empty() {
        return devices;
    }
    // A device that was observed for little of the run does not say what limits that.
    let least = (LITTLE * summary.wall_ns).max(1.0);
    let sampled = summary.gpu_idle.iter();
    let sampled = sampled.filter(|device| device.wall_ns() >= least);
    let sampled = sampled.map(|device| OfDevice {
        title: device.title(),
        busy: ratio(device.busy_ns, device.wall_ns()),
        sentences: device.sentences(),
    });
    sampled.collect()
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
    sorted.order_by(|left, right| own(right).total_cmp(&own(left)));
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
    let sentence = Sentence::new();
    let took = if shares.host > 1.0 {
        format!("{:.1} times the length", shares.host)
    } else {
        percent(shares.host)
    };
    let took = format!(": measured functions took {took} of the run");
    let on_processor = percent(shares.on_processor.unwrap_or(0.0).min(1.0));
    let sentence = match shares.limit() {
        Limit::Nothing => return sentence,
        Limit::Gpu(states) => states.sentence("run"),
        Limit::Unmeasured => {
            let on_gpu = if shares.has_gpu {
                let on_gpu = percent(shares.busy + shares.host_paced);
                format!(", and their work on the GPU {on_gpu}")
            } else {
                String::new()
            };
            let more = took + &on_gpu;
            sentence.strong("What limits the program was not measured").text(&more)
        }
        Limit::Waiting => {
            let off = percent(shares.off_processor.unwrap_or(0.0));
            sentence.strong("Waiting limits the program").text(&format!(
                ": for {off} of the measured time, its threads did not run"
            ))
        }
        Limit::Host => sentence.strong("Work on the CPU limits the program").text(&format!(
            ": measured functions ran on processors for {on_processor} of the run"
        )),
        Limit::WorkAndWaits => sentence.strong("Work and waits limit the program").text(&format!(
            "{took}, and ran on processors for {on_processor} of it"
        )),
        Limit::WorkOrWaits => sentence
            .strong("What limits the program is not known")
            .text(&format!(
                "{took}, and whether they worked or waited was not measured (PROFILER_THREAD_TIME=1)"
            )),
    };
    about_missing_times(sentence, summary, shares)
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

fn busy(row: &Row) -> f64 {
    cuda_self(row) * row.busy_part()
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
