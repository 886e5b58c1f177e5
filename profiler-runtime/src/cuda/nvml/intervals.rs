//! The intervals between the samples of a device, each with its energy and the GPU self times in it.
//!
//! Nothing measures the energy of one kernel: counters advance in steps of some 100 ms. But each interval between two
//! samples has an energy, and each name has GPU self time in that interval: it gets the share of the energy that its
//! time is of the interval. If scopes overlap on several streams, their times may add up to more than the interval, and
//! they share all of it. The rest belongs to no measured scope.
//!
//! # Times that are read late
//!
//! A GPU time is known when its scope has ended, which may be hours after it began. So the intervals are kept, and a GPU
//! time is divided among all that it overlaps: by the self time in each, which is the part of the scope in the interval
//! without the parts of the scopes inside it. The shares are computed when they are asked for, from the times that are
//! known by then.
//!
//! # Bounds
//!
//! Energy arrives for times before the newest ones, so times after the last interval are kept apart in bins of 10 ms
//! until a sample says where the interval ends. Long open intervals have longer bins. Where a window opens or closes, the
//! interval is cut in two, whose energies are in proportion to their lengths.
//!
//! A device keeps at most [`MAX_INTERVALS`], with [`MAX_USAGES`] entries of names. When there are more, those of the
//! older half are merged, two at a time. The shares of both are fixed then, and all sums stay exact. A time that is read
//! later gets its share of what is left, by the mean power of the merged interval.

use std::collections::{BTreeMap, HashMap, VecDeque};

use profiler_report::internal::{DeviceEnergy, EnergySource, NameEnergy};

use super::interval::Interval;

/// The most intervals that a device keeps.
const MAX_INTERVALS: usize = 1_024;
/// The most entries of names in them: 1 MiB.
const MAX_USAGES: usize = 1 << 15;
/// The most bins after the last interval.
const MAX_BINS: usize = 64;
/// The most cuts of an interval.
const MAX_CUTS: usize = 16;
/// The most parents whose children are known.
const MAX_PARENTS: usize = 1 << 14;
/// The most entries of one parent, before those of one interval are added up.
const MAX_COVERED: usize = 2 * (MAX_INTERVALS + MAX_BINS);
/// The step of the energy counter on devices of the last generations, in nanoseconds.
const STEP_NS: f64 = 1e8;
/// Stands for the time outside of all intervals.
const OUTSIDE: u64 = u64::MAX;

/// The GPU time of one scope. Times are in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct GpuSpan {
    /// The number of its name.
    pub(super) name: u32,
    /// The key of the scope, if others may be inside it.
    pub(super) key: Option<u64>,
    /// The key of the scope around it on the same stream.
    pub(super) parent: Option<u64>,
    pub(super) begin: u64,
    pub(super) end: u64,
    /// The whole time in nanoseconds.
    pub(super) ns: f64,
    /// Without the scopes inside it on the same stream, in nanoseconds.
    pub(super) own: f64,
}

/// The energy between two readings.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) source: EnergySource,
    pub(super) joules: f64,
    /// The length of the interval in nanoseconds.
    pub(super) ns: f64,
}

/// The part of a scope that lies in an interval.
#[derive(Clone, Copy, Debug)]
struct Piece {
    place: Place,
    /// The start of the interval.
    start: u64,
    end: u64,
    ns: f64,
}

#[derive(Clone, Copy, Debug)]
enum Place {
    Measured(usize),
    Bin(usize),
    Outside,
}

/// The intervals of one device.
#[derive(Debug, Default)]
pub(super) struct Intervals {
    measured: VecDeque<Interval>,
    /// When the interval began whose energy is not known yet; `None` while no samples are taken.
    open_since: Option<u64>,
    /// Bins from `open_since` on.
    bins: VecDeque<Interval>,
    source: EnergySource,
    /// The energy of all intervals. Their sum could fall by a rounding error when some are merged.
    joules: f64,
    /// The times of children by the start of the interval, for each parent that was not read yet.
    children: HashMap<u64, BTreeMap<u64, f64>>,
    /// Entries of names in `measured`.
    usages: usize,
    pieces: Vec<Piece>,
}

impl Intervals {
    /// Begins an interval. Scopes that ran since the last one have no energy.
    pub(super) fn begin(&mut self, at: u64) {
        self.bins.clear();
        self.open_since = Some(at);
    }

    /// Ends the interval without an energy.
    pub(super) fn pause(&mut self) {
        self.bins.clear();
        self.open_since = None;
    }

    /// Ends the interval with its energy, and begins the next one.
    pub(super) fn measure(&mut self, at: u64, energy: Measured) {
        self.source = energy.source;
        let Some(since) = self.open_since else {
            return self.begin(at);
        };
        self.joules += energy.joules;
        let at = at.max(since);
        let mut parts = vec![Interval::new(since, at)];
        let mut rest = VecDeque::new();
        for bin in self.bins.drain(..) {
            let before = bin.part(0, at);
            if let Some(part) = parts.last_mut() {
                for usage in &bin.usages {
                    part.add_own(usage.name, usage.self_ns * before);
                }
            }
            if bin.end > at {
                let mut after = Interval::new(bin.start.max(at), bin.end);
                after.is_cut = bin.is_cut;
                for usage in bin.usages {
                    after.add_own(usage.name, usage.self_ns * (1.0 - before));
                }
                rest.push_back(after);
            } else if bin.is_cut && bin.end < at {
                if let Some(part) = parts.last_mut() {
                    part.end = bin.end;
                }
                parts.push(Interval::new(bin.end, at));
            }
        }
        self.bins = rest;
        self.open_since = Some(at);
        if let Some(last) = parts.last_mut() {
            last.merged = 1;
        }
        let whole = (at - since).max(1) as f64;
        let is_cut = parts.len() > 1;
        for mut part in parts {
            let share = if is_cut {
                (part.end - part.start) as f64 / whole
            } else {
                1.0
            };
            part.ns = energy.ns * share;
            part.joules = energy.joules * share;
            part.usages.retain(|usage| usage.self_ns > 0.0);
            self.usages += part.usages.len();
            self.measured.push_back(part);
        }
        self.limit();
    }

    /// Cuts the open interval in two.
    pub(super) fn cut(&mut self, at: u64, bin_ticks: u64) {
        let cuts = self.bins.iter().filter(|bin| bin.is_cut).count();
        if self.open_since.is_none_or(|since| at <= since) || cuts >= MAX_CUTS {
            return;
        }
        self.extend_bins(at, bin_ticks);
        let place = self.bins.partition_point(|bin| bin.end < at);
        let Some(bin) = self.bins.get_mut(place) else {
            return;
        };
        let before = bin.part(0, at);
        let mut after = Interval::new(at, bin.end);
        after.is_cut = bin.is_cut;
        (bin.end, bin.is_cut) = (at, true);
        for usage in &mut bin.usages {
            after.add_own(usage.name, usage.self_ns * (1.0 - before));
            usage.self_ns *= before;
        }
        if after.start < after.end {
            self.bins.insert(place + 1, after);
        }
    }

    /// Merges the older half of the intervals while there is too much.
    fn limit(&mut self) {
        // More names than there is room for: two intervals are kept.
        while (self.measured.len() > MAX_INTERVALS || self.usages > MAX_USAGES)
            && self.measured.len() > 2
        {
            let recent = self.measured.split_off(self.measured.len().div_ceil(2));
            let mut older = std::mem::take(&mut self.measured).into_iter();
            while let Some(first) = older.next() {
                self.measured.push_back(match older.next() {
                    Some(second) => first.merge(&second),
                    None => first,
                });
            }
            self.measured.extend(recent);
            self.usages = self.measured.iter().map(|known| known.usages.len()).sum();
        }
    }

    /// Divides a GPU time among the intervals that it overlaps.
    pub(super) fn add(&mut self, span: &GpuSpan, bin_ticks: u64) {
        self.extend_bins(span.end, bin_ticks);
        let mut pieces = std::mem::take(&mut self.pieces);
        self.divide(span, &mut pieces);
        let covered = span.key.and_then(|key| self.children.remove(&key));
        if let Some(parent) = span.parent {
            self.cover(parent, &pieces);
        }
        if let Some(covered) = covered {
            subtract(&mut pieces, &covered);
        }
        let all: f64 = pieces.iter().map(|piece| piece.ns).sum();
        for piece in &pieces {
            let own = if all > 0.0 {
                span.own * (piece.ns / all)
            } else {
                span.own / pieces.len() as f64
            };
            if own <= 0.0 {
                continue;
            }
            match piece.place {
                Place::Measured(place) => {
                    if let Some(interval) = self.measured.get_mut(place) {
                        let before = interval.usages.len();
                        interval.add_own(span.name, own);
                        self.usages += interval.usages.len() - before;
                    }
                }
                Place::Bin(place) => {
                    if let Some(bin) = self.bins.get_mut(place) {
                        bin.add_own(span.name, own);
                    }
                }
                Place::Outside => {}
            }
        }
        pieces.clear();
        self.pieces = pieces;
        self.limit();
    }

    /// Moves the times of a scope's children to the scope around it: it has no GPU time of its own.
    pub(super) fn lose(&mut self, key: u64, parent: Option<u64>) {
        let Some(covered) = self.children.remove(&key) else {
            return;
        };
        if let Some(parent) = parent {
            let known = self.children_of(parent);
            for (start, ns) in covered {
                *known.entry(start).or_default() += ns;
            }
        }
    }

    /// Extends the bins to `end`, and no farther: a sample that is taken next ends an interval there.
    fn extend_bins(&mut self, end: u64, bin_ticks: u64) {
        let Some(since) = self.open_since else { return };
        let last = self.bins.back().map_or(since, |bin| bin.end);
        let missing = end.saturating_sub(last);
        // After a long time in which nothing was read, longer bins cover it.
        let length = bin_ticks.max(missing.div_ceil(MAX_BINS as u64)).max(1);
        let mut from = last;
        if let Some(bin) = self.bins.back_mut().filter(|bin| !bin.is_cut) {
            bin.end = bin.end.max(end.min(bin.start.saturating_add(length)));
            from = bin.end;
        }
        while from < end {
            let to = end.min(from.saturating_add(length));
            self.bins.push_back(Interval::new(from, to));
            from = to;
        }
        while self.bins.len() > MAX_BINS {
            let mut bins = std::mem::take(&mut self.bins).into_iter();
            while let Some(mut first) = bins.next() {
                if !first.is_cut
                    && let Some(second) = bins.next()
                {
                    (first.end, first.is_cut) = (second.end, second.is_cut);
                    for usage in second.usages {
                        first.add(usage);
                    }
                }
                self.bins.push_back(first);
            }
        }
    }

    /// Divides a scope into the parts in each interval and the part outside.
    fn divide(&self, span: &GpuSpan, pieces: &mut Vec<Piece>) {
        // A scope without a length lies in one interval.
        let begin = span.begin.min(span.end.saturating_sub(1));
        let length = (span.end - begin).max(1) as f64;
        let mut inside = 0.0;
        let mut cut = |intervals: &VecDeque<Interval>, place: fn(usize) -> Place| {
            let first = intervals.partition_point(|known| known.end <= begin);
            let overlapping = intervals.iter().enumerate().skip(first);
            for (index, known) in overlapping.take_while(|(_, known)| known.start < span.end) {
                let overlap = known.end.min(span.end) - known.start.max(begin).min(known.end);
                let part = overlap as f64 / length;
                inside += part;
                pieces.push(Piece {
                    place: place(index),
                    start: known.start,
                    end: known.end,
                    ns: span.ns * part,
                });
            }
        };
        cut(&self.measured, Place::Measured);
        cut(&self.bins, Place::Bin);
        let outside = span.ns * (1.0 - inside);
        if outside > 0.0 || pieces.is_empty() {
            pieces.push(Piece {
                place: Place::Outside,
                start: OUTSIDE,
                end: OUTSIDE,
                ns: outside,
            });
        }
    }

    /// Notes the time that a child covers of its parent.
    fn cover(&mut self, parent: u64, pieces: &[Piece]) {
        let covered = self.children_of(parent);
        for piece in pieces {
            *covered.entry(piece.start).or_default() += piece.ns;
        }
        if covered.len() > MAX_COVERED {
            let covered = std::mem::take(covered);
            let mut fewer = BTreeMap::new();
            for (at, ns) in covered {
                *fewer.entry(self.start_of(at)).or_default() += ns;
            }
            self.children.insert(parent, fewer);
        }
    }

    /// Returns the times of the children of a parent. Forgets all if there are too many parents: their ends were probably
    /// lost. The self times of those that are read nevertheless are divided as if they had no children.
    fn children_of(&mut self, parent: u64) -> &mut BTreeMap<u64, f64> {
        if self.children.len() >= MAX_PARENTS && !self.children.contains_key(&parent) {
            self.children.clear();
        }
        self.children.entry(parent).or_default()
    }

    /// Returns the start of the interval that a time is in.
    fn start_of(&self, at: u64) -> u64 {
        let of = |intervals: &VecDeque<Interval>| {
            let place = intervals.partition_point(|known| known.end <= at);
            let known = intervals.get(place).filter(|known| known.start <= at);
            known.map(|known| known.start)
        };
        of(&self.measured)
            .or_else(|| of(&self.bins))
            .unwrap_or(OUTSIDE)
    }

    /// Returns the energy of all intervals, or of the parts between two times.
    pub(super) fn energy(&self, between: Option<(u64, u64)>) -> DeviceEnergy {
        let mut energy = DeviceEnergy::default();
        let mut names = BTreeMap::<u32, NameEnergy>::new();
        for interval in &self.measured {
            let part = between.map_or(1.0, |(from, to)| interval.part(from, to));
            if part <= 0.0 {
                continue;
            }
            let mut unmeasured = interval.joules;
            for share in interval.shares() {
                unmeasured -= share.joules;
                let known = names.entry(share.name).or_insert(NameEnergy {
                    name: share.name,
                    ..NameEnergy::default()
                });
                known.joules += part * share.joules;
                known.self_ns += part * share.self_ns;
            }
            energy.source = self.source;
            energy.joules += part * interval.joules;
            energy.unmeasured_joules += part * unmeasured.max(0.0);
            energy.intervals += interval.merged;
            energy.covered_ns += part * interval.ns;
            energy.step_ns += interval.ns;
        }
        if between.is_none() {
            energy.joules = self.joules;
        }
        energy.names = names.into_values().collect();
        energy.step_ns = match self.source {
            EnergySource::Power => energy.step_ns / energy.intervals.max(1) as f64,
            EnergySource::Counter | EnergySource::None => STEP_NS,
        };
        energy
    }
}

/// Subtracts the times of children from the pieces of their parent.
fn subtract(pieces: &mut [Piece], covered: &BTreeMap<u64, f64>) {
    for piece in pieces {
        let covered: f64 = if piece.start == OUTSIDE {
            covered.get(&OUTSIDE).copied().unwrap_or(0.0)
        } else {
            let inside = covered.range(piece.start..piece.end.max(piece.start + 1));
            inside.map(|(_, ns)| ns).sum()
        };
        piece.ns = (piece.ns - covered).max(0.0);
    }
}

#[cfg(test)]
mod tests;
