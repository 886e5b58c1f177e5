//! The pairs that the resolver has read, joined with samples of what each thread did.

use std::collections::{BTreeMap, VecDeque};

use super::states::{Pair, Piece, States, Sums, Unknown};
use crate::clock::Spans;
use crate::stats::ENTERED;

/// The name of a sample of a thread on which no scope was open.
pub(super) const OUTSIDE: u32 = u32::MAX;

/// The most samples that wait for pairs: 768 KiB.
const MAX_SAMPLES: usize = 1 << 15;

/// What a thread did at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// In ticks.
    pub(super) at: u64,
    pub(super) thread: u32,
    /// The number of the innermost name, with [`ENTERED`] if the thread is directly inside a handle of it; or [`OUTSIDE`].
    pub(super) name: u32,
    /// Whether it slept, or waited for something, if the system was asked.
    pub(super) is_off: Option<bool>,
}

/// A time in which nothing was sampled, since no scope was open on any thread.
#[derive(Clone, Copy, Debug)]
struct Rest {
    /// In ticks.
    from: u64,
    until: u64,
    /// The mean time between two samples of a thread before, in ticks: so many samples it stands for.
    interval: f64,
}

/// What the threads did.
#[derive(Debug, Default)]
struct Observed {
    samples: VecDeque<Sample>,
    rests: VecDeque<Rest>,
    /// Since when both are complete, in ticks.
    complete_since: u64,
    unknown: Unknown,
}

/// What is known of all devices.
#[derive(Debug, Default)]
pub(super) struct Account {
    observed: Observed,
    /// When the account began, and when the last round was, in ticks.
    began: u64,
    last_round: u64,
    /// For how long nothing was sampled, in ticks.
    rested: u64,
    /// How often all threads were looked at. A round of some threads is a part of a turn.
    turns: f64,
    /// The samples of each name, at all times: of the same times as its self time.
    names: Vec<Samples>,
    /// By ordinal.
    devices: BTreeMap<Option<u32>, Device>,
}

/// The samples of a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Samples {
    /// Those of threads on which it was the innermost one.
    pub(super) own: u64,
    /// Those of threads that were directly inside a handle of it.
    pub(super) entered: u64,
}

/// What is known of one device.
#[derive(Clone, Debug, Default)]
pub(super) struct Device {
    states: States,
    pub(super) counts: Counts,
    /// GPU times that have no place on the time line.
    pub(super) unplaced: u64,
}

/// The samples in the idle time of one device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// The samples in idle pieces of the thread that ended the piece, by name as in [`Sample::name`].
    pub(super) names: BTreeMap<u32, u64>,
    /// Those of them of which it is known whether the thread was off the processor, and those in which it was.
    pub(super) asked: BTreeMap<u32, u64>,
    pub(super) off: BTreeMap<u32, u64>,
    /// Those in which no scope was open on it.
    pub(super) outside: u64,
    /// The idle time for which there are no samples, in ticks: the thread is not known, or it was too long ago.
    pub(super) unsampled: u64,
}

/// What a device did up to now.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) ordinal: Option<u32>,
    pub(super) sums: Sums,
    pub(super) counts: Counts,
    pub(super) unplaced: u64,
}

impl Account {
    /// Returns an account that begins at this time.
    pub(super) fn new(at: u64) -> Self {
        Self {
            observed: Observed {
                complete_since: at,
                ..Observed::default()
            },
            began: at,
            last_round: at,
            ..Self::default()
        }
    }

    /// Adds the samples of a round that has looked at this part of all threads.
    pub(super) fn add_round(&mut self, at: u64, part: f64, samples: &[Sample]) {
        // The account may have begun while the round was under way.
        if at < self.began {
            return;
        }
        self.last_round = at;
        self.turns += part;
        for sample in samples {
            if sample.name != OUTSIDE {
                let name = (sample.name & !ENTERED) as usize;
                if self.names.len() <= name {
                    self.names.resize(name + 1, Samples::default());
                }
                match self.names.get_mut(name) {
                    Some(samples) if sample.name & ENTERED != 0 => samples.entered += 1,
                    Some(samples) => samples.own += 1,
                    None => {}
                }
            }
            let observed = &mut self.observed;
            if observed.samples.len() >= MAX_SAMPLES
                && let Some(oldest) = observed.samples.pop_front()
            {
                observed.complete_since = oldest.at + 1;
            }
            observed.samples.push_back(*sample);
        }
    }

    /// Adds a time in which nothing was sampled, up to `now`. No scope was open from `from` to `until`.
    pub(super) fn add_rest(&mut self, (from, until): (u64, u64), now: u64) {
        let interval = self.interval();
        self.rested += now.saturating_sub(self.last_round);
        self.last_round = now.max(self.last_round);
        if until > from && interval > 0.0 {
            self.observed.rests.push_back(Rest {
                from,
                until,
                interval,
            });
        }
    }

    /// Adds a pair. What it did before the account began is left out: there are no samples of that time.
    pub(super) fn add(&mut self, ordinal: Option<u32>, pair: Pair) {
        let begin = pair.begin.max(self.began);
        if pair.end <= begin {
            return;
        }
        let device = self.devices.entry(ordinal).or_default();
        let pair = Pair {
            begin,
            opened: pair.opened.min(begin),
            ..pair
        };
        if !device.states.add(pair) {
            let until = device.states.median();
            device.settle(until, &self.observed);
        }
    }

    /// Counts a GPU time that has no place on the time line.
    pub(super) fn add_unplaced(&mut self, ordinal: Option<u32>) {
        self.devices.entry(ordinal).or_default().unplaced += 1;
    }

    /// Sets when measuring was off.
    pub(super) fn set_off(&mut self, off: Spans) {
        self.observed.unknown.off = off;
    }

    /// Adds the time on the CPU of a call whose GPU time was lost.
    pub(super) fn add_lost(&mut self, from: u64, until: u64) {
        self.observed.unknown.lost.add(from, until);
    }

    /// Settles the time of all devices up to this one, and forgets the samples that nothing needs any more.
    pub(super) fn settle(&mut self, until: u64) {
        let mut needed_since = until;
        for device in self.devices.values_mut() {
            device.settle(until, &self.observed);
            if let Some(since) = device.states.open_since() {
                needed_since = needed_since.min(since);
            }
        }
        self.observed.forget(needed_since);
        let devices = self.devices.values();
        if let Some(opened) = devices.map(|device| device.states.opened()).min() {
            self.observed.unknown.lost.forget_before(opened);
        }
    }

    /// Returns what each device did up to now, as if no pair were missing.
    pub(super) fn settled(&self) -> Vec<Settled> {
        let settled = |(ordinal, device): (&Option<u32>, &Device)| {
            let mut counts = device.counts.clone();
            let find = |piece| counts.add(piece, &self.observed);
            let sums = device.states.clone().finish(&self.observed.unknown, find);
            Settled {
                ordinal: *ordinal,
                sums,
                counts,
                unplaced: device.unplaced,
            }
        };
        self.devices.iter().map(settled).collect()
    }

    /// Returns the samples of all names, by number. The names after the last one have none.
    pub(super) fn samples(&self) -> &[Samples] {
        &self.names
    }

    /// Returns the mean time between two samples of a thread, in ticks.
    pub(super) fn interval(&self) -> f64 {
        let sampled = (self.last_round - self.began).saturating_sub(self.rested);
        sampled as f64 / self.turns.max(1.0)
    }
}

impl Observed {
    /// Forgets what is older.
    fn forget(&mut self, needed_since: u64) {
        let is_old = |sample: &Sample| sample.at < needed_since;
        let unneeded = self.samples.partition_point(is_old);
        self.samples.drain(..unneeded);
        self.rests.retain(|rest| rest.until > needed_since);
        self.complete_since = self.complete_since.max(needed_since);
    }
}

impl Device {
    fn settle(&mut self, until: u64, observed: &Observed) {
        let counts = &mut self.counts;
        self.states.settle(until, &observed.unknown, |piece| {
            counts.add(piece, observed);
        });
    }
}

impl Counts {
    /// Counts the samples in an idle piece.
    fn add(&mut self, piece: Piece, observed: &Observed) {
        let Observed {
            samples,
            rests,
            complete_since,
            ..
        } = observed;
        let from = piece.from.max(*complete_since).min(piece.until);
        let Some(thread) = piece.thread else {
            self.unsampled += piece.until - piece.from;
            return;
        };
        self.unsampled += from - piece.from;
        for rest in rests {
            let (from, until) = (rest.from.max(from), rest.until.min(piece.until));
            let missed = until.saturating_sub(from) as f64 / rest.interval;
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a count"
            )]
            let missed = missed.round() as u64;
            self.outside += missed;
        }
        let first = samples.partition_point(|sample| sample.at < from);
        let inside = samples.range(first..);
        for sample in inside.take_while(|sample| sample.at < piece.until) {
            if sample.thread != thread {
                continue;
            }
            if sample.name == OUTSIDE {
                self.outside += 1;
            } else {
                *self.names.entry(sample.name).or_default() += 1;
                if let Some(is_off) = sample.is_off {
                    *self.asked.entry(sample.name).or_default() += 1;
                    *self.off.entry(sample.name).or_default() += u64::from(is_off);
                }
            }
        }
    }
}
