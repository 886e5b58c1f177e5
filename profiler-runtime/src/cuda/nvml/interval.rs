//! One interval, and the shares of the names in it.

use profiler_report::internal::NameEnergy;

/// The GPU self time of a name in an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Usage {
    pub(super) name: u32,
    pub(super) self_ns: f64,
    /// The part of `self_ns` whose share is fixed.
    fixed_ns: f64,
    fixed_joules: f64,
}

/// The time from one sample to another, or a bin after the last sample.
#[derive(Clone, Debug)]
pub(super) struct Interval {
    /// Ticks.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) ns: f64,
    pub(super) joules: f64,
    /// How many intervals it is merged from; 0 for a bin, and for parts of an interval but the last.
    pub(super) merged: u64,
    /// For a bin: `true` if the interval is cut at its end.
    pub(super) is_cut: bool,
    /// By the numbers of the names.
    pub(super) usages: Vec<Usage>,
}

impl Interval {
    pub(super) const fn new(start: u64, end: u64) -> Self {
        Self {
            start,
            end,
            ns: 0.0,
            joules: 0.0,
            merged: 0,
            is_cut: false,
            usages: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, added: Usage) {
        let place = self.usages.binary_search_by_key(&added.name, |u| u.name);
        match place {
            Ok(place) => {
                if let Some(known) = self.usages.get_mut(place) {
                    known.self_ns += added.self_ns;
                    known.fixed_ns += added.fixed_ns;
                    known.fixed_joules += added.fixed_joules;
                }
            }
            Err(place) => self.usages.insert(place, added),
        }
    }

    pub(super) fn add_own(&mut self, name: u32, self_ns: f64) {
        self.add(Usage {
            name,
            self_ns,
            fixed_ns: 0.0,
            fixed_joules: 0.0,
        });
    }

    /// Returns the joules per nanosecond of self time whose share is not fixed.
    fn joules_per_ns(&self) -> f64 {
        let mut fixed = 0.0;
        let (mut all_ns, mut late_ns) = (0.0, 0.0);
        for usage in &self.usages {
            fixed += usage.fixed_joules;
            all_ns += usage.self_ns;
            late_ns += usage.self_ns - usage.fixed_ns;
        }
        let whole = self.ns.max(all_ns);
        if whole <= 0.0 || late_ns <= 0.0 {
            return 0.0;
        }
        let left = (self.joules - fixed).max(0.0);
        (self.joules / whole).min(left / late_ns)
    }

    /// Returns the share of each name.
    pub(super) fn shares(&self) -> impl Iterator<Item = NameEnergy> {
        let per_ns = self.joules_per_ns();
        self.usages.iter().map(move |usage| NameEnergy {
            name: usage.name,
            joules: usage.fixed_joules + per_ns * (usage.self_ns - usage.fixed_ns),
            self_ns: usage.self_ns,
        })
    }

    /// Returns one interval for this one and the next.
    pub(super) fn merge(&self, next: &Self) -> Self {
        let mut merged = Self {
            start: self.start,
            end: next.end,
            ns: self.ns + next.ns,
            joules: self.joules + next.joules,
            merged: self.merged + next.merged,
            is_cut: false,
            usages: Vec::new(),
        };
        for share in self.shares().chain(next.shares()) {
            merged.add(Usage {
                name: share.name,
                self_ns: share.self_ns,
                fixed_ns: share.self_ns,
                fixed_joules: share.joules,
            });
        }
        merged
    }

    /// Returns which part of it lies between two times.
    pub(super) fn part(&self, from: u64, to: u64) -> f64 {
        if self.start == self.end {
            return f64::from(u8::from(from <= self.start && self.start < to));
        }
        let inside = self.end.min(to).saturating_sub(self.start.max(from));
        inside as f64 / (self.end - self.start) as f64
    }
}
