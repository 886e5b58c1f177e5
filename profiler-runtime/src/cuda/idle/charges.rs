//! From counts of samples to the idle time of each function.
//!
//! To count samples alone would be biased: a thread that sleeps is sampled more often than one that works, which the sampler
//! competes with for a processor. So samples only say which part of a function's time was idle time of the device: its self
//! time, which is exact, times the samples of it in idle time, over all samples of it. Both counts have the same bias.
//!
//! The self time of a call that has not ended is not known. What is left of the idle time, when all charges are subtracted,
//! is shared by the functions that are open and by the time outside of all functions, in proportion to what samples alone say
//! of each beyond its charge. If nothing is left, since the errors of the charges add up, all are made smaller by one factor. So
//! the parts are the idle time.

use profiler_report::{SampledCharge, SampledIdle};

use super::account::Counts;

/// A name with fewer samples has no charge.
pub(super) const LEAST_SAMPLES: u64 = 10;

/// What is known of a name.
#[derive(Clone, Debug)]
pub(super) struct NameTime {
    pub(super) id: u32,
    pub(super) text: String,
    /// Its self time on all threads since the first sample, in nanoseconds. Of the calls that have ended.
    pub(super) self_ns: f64,
    /// How often it was the innermost name of a thread.
    pub(super) samples: u64,
    /// `true` if a call has not ended.
    pub(super) is_open: bool,
}

/// Shares the idle time out: fills `charges`, `outside_ns` and `not_sampled_ns` of `idle`, whose other times are known.
pub(super) fn share(idle: &mut SampledIdle, counts: &Counts, names: &[NameTime]) {
    let sampled_ns = (idle.idle_ns - idle.launched_ns - idle.not_sampled_ns).max(0.0);
    let in_idle = |name: &NameTime| counts.names.get(&name.id).copied().unwrap_or(0);
    let all: u64 = counts.names.values().sum::<u64>() + counts.outside;
    idle.samples = all;
    // What samples alone say.
    let plain = |count: u64| sampled_ns * ratio(count, all);
    let (known, rare): (Vec<&NameTime>, Vec<&NameTime>) =
        names.iter().partition(|name| name.samples >= LEAST_SAMPLES);
    let mut parts: Vec<Part> = known
        .into_iter()
        .map(|name| Part::of(name.self_ns, name, in_idle(name), plain(in_idle(name))))
        .collect();
    // All rare names together have samples enough, if it matters.
    let rare_idle: u64 = rare.iter().map(|name| in_idle(name)).sum();
    let rare_all: u64 = rare.iter().map(|name| name.samples).sum();
    let rare_self: f64 = rare.iter().map(|name| name.self_ns).sum();
    let rest = NameTime {
        id: u32::MAX,
        text: String::new(),
        self_ns: rare_self,
        samples: rare_all,
        is_open: rare.iter().any(|name| name.is_open && in_idle(name) > 0),
    };
    parts.push(Part::of(rare_self, &rest, rare_idle, plain(rare_idle)));
    let outside = share_rest(&mut parts, sampled_ns, plain(counts.outside));
    let rest = parts.pop().map_or(0.0, |part| part.ns);
    idle.not_sampled_ns += rest;
    idle.not_sampled_names = rare.iter().filter(|name| name.self_ns > 0.0).count() as u64;
    idle.not_sampled_self_ns = rare_self;
    idle.outside_ns = outside;
    idle.outside_error_ns = sampled_ns * error(counts.outside, all);
    let mut charges: Vec<SampledCharge> = parts
        .into_iter()
        .filter(|part| part.ns > 0.0)
        .map(|part| part.charge(sampled_ns, all))
        .collect();
    charges.sort_by(|one, other| {
        let longest = other.idle_ns.total_cmp(&one.idle_ns);
        longest.then_with(|| one.name.cmp(&other.name))
    });
    idle.charges = charges;
}

/// A part of the idle time.
struct Part<'n> {
    name: &'n NameTime,
    in_idle: u64,
    /// By its self time.
    ns: f64,
    /// What samples alone say beyond that, of a name that is open.
    more: f64,
    /// `true` if it has a part of what was left.
    has_more: bool,
}

impl<'n> Part<'n> {
    fn of(self_ns: f64, name: &'n NameTime, in_idle: u64, plain: f64) -> Self {
        let ns = self_ns * ratio(in_idle, name.samples);
        Self {
            name,
            in_idle,
            ns,
            more: if name.is_open {
                (plain - ns).max(0.0)
            } else {
                0.0
            },
            has_more: false,
        }
    }

    fn charge(self, sampled_ns: f64, all: u64) -> SampledCharge {
        let name = self.name;
        let of_self = name.self_ns * error(self.in_idle, name.samples);
        let of_rest = if self.has_more {
            sampled_ns * error(self.in_idle, all)
        } else {
            0.0
        };
        SampledCharge {
            name: name.text.clone(),
            idle_ns: self.ns,
            error_ns: of_self.max(of_rest),
            samples: name.samples,
            idle_samples: self.in_idle,
            ..SampledCharge::default()
        }
    }
}

/// Makes the parts and the time outside of all functions add up to the idle time. Returns the latter. The last part is that
/// of the names without a charge.
fn share_rest(parts: &mut [Part<'_>], sampled_ns: f64, outside: f64) -> f64 {
    let charged: f64 = parts.iter().map(|part| part.ns).sum();
    let left = sampled_ns - charged;
    let wanted = outside + parts.iter().map(|part| part.more).sum::<f64>();
    if left <= 0.0 || wanted <= 0.0 && charged > 0.0 {
        let factor = if charged > 0.0 {
            sampled_ns / charged
        } else {
            0.0
        };
        for part in parts {
            part.ns *= factor;
        }
        return 0.0;
    }
    if wanted <= 0.0 {
        // Nothing says whose it is.
        if let Some(rest) = parts.last_mut() {
            rest.ns = left;
        }
        return 0.0;
    }
    for part in parts {
        part.has_more = part.more > 0.0;
        part.ns += left * part.more / wanted;
    }
    left * outside / wanted
}

fn ratio(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

/// Returns the standard error of a ratio of samples, by the binomial distribution. It is not zero for all or none of few samples.
fn error(part: u64, all: u64) -> f64 {
    let all = all as f64 + 2.0;
    let ratio = (part as f64 + 1.0) / all;
    (ratio * (1.0 - ratio) / all).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(id: u32, self_ns: f64, samples: u64, is_open: bool) -> NameTime {
        NameTime {
            id,
            text: format!("name {id}"),
            self_ns,
            samples,
            is_open,
        }
    }

    fn shared(
        idle_ns: f64,
        counts: &[(u32, u64)],
        outside: u64,
        names: &[NameTime],
    ) -> SampledIdle {
        let mut idle = SampledIdle {
            idle_ns,
            ..SampledIdle::default()
        };
        let counts = Counts {
            names: counts.iter().copied().collect(),
            outside,
            unsampled: 0,
        };
        share(&mut idle, &counts, names);
        let charged: f64 = idle.charges.iter().map(|charge| charge.idle_ns).sum();
        let sum = charged + idle.outside_ns + idle.not_sampled_ns + idle.launched_ns;
        assert!(
            (sum - idle_ns).abs() < 1e-6 * idle_ns,
            "{sum} of {idle_ns}: {idle:?}"
        );
        idle
    }

    fn charge(idle: &SampledIdle, id: u32) -> f64 {
        let name = format!("name {id}");
        let found = idle.charges.iter().find(|charge| charge.name == name);
        found.map_or(0.0, |charge| charge.idle_ns)
    }

    #[test]
    fn a_charge_is_the_self_time_by_the_part_of_the_samples_that_are_in_idle_time() {
        // `load` sleeps, and has twice the samples for its time that `step` has.
        let names = [name(1, 1_000.0, 200, false), name(2, 3_000.0, 300, false)];
        let idle = shared(1_300.0, &[(1, 200), (2, 30)], 0, &names);
        assert!((charge(&idle, 1) - 1_000.0).abs() < 1e-6);
        assert!((charge(&idle, 2) - 300.0).abs() < 1e-6);
        assert_eq!(idle.charges[0].name, "name 1");
        assert!(
            idle.charges[0].error_ns > 0.0,
            "all of 200 samples are not all there could be"
        );
    }

    #[test]
    fn what_no_call_that_has_ended_explains_belongs_to_open_ones_and_to_the_time_outside() {
        let names = [
            name(1, 500.0, 50, false),
            name(2, 0.0, 400, true),
            name(3, 0.0, 400, false),
        ];
        let idle = shared(1_000.0, &[(1, 50), (2, 30), (3, 0)], 20, &names);
        assert!((charge(&idle, 1) - 500.0).abs() < 1e-6);
        assert!((charge(&idle, 2) - 300.0).abs() < 1e-6, "{idle:?}");
        assert!((idle.outside_ns - 200.0).abs() < 1e-6);
    }

    #[test]
    fn names_with_few_samples_are_together_not_sampled() {
        let names = [
            name(1, 900.0, 90, false),
            name(2, 80.0, 8, false),
            name(3, 90.0, 9, false),
        ];
        let idle = shared(917.0, &[(1, 90), (3, 1)], 0, &names);
        assert!((charge(&idle, 1) - 907.0).abs() < 1.0);
        assert_eq!((idle.charges.len(), idle.not_sampled_names), (1, 2));
        assert!((idle.not_sampled_self_ns - 170.0).abs() < 1e-6);
        assert!(idle.not_sampled_ns > 9.0 && idle.not_sampled_ns < 11.0);
    }

    #[test]
    fn charges_that_are_more_than_the_idle_time_are_made_smaller() {
        let names = [name(1, 1_000.0, 100, false), name(2, 1_000.0, 100, false)];
        let idle = shared(900.0, &[(1, 60), (2, 40)], 7, &names);
        assert!((charge(&idle, 1) - 540.0).abs() < 1e-6);
        assert!(idle.outside_ns.abs() < 1e-6);
    }

    #[test]
    fn without_samples_nothing_is_charged() {
        let idle = shared(100.0, &[], 0, &[]);
        assert!(idle.charges.is_empty() && idle.outside_ns.abs() < 1e-6);
    }
}
