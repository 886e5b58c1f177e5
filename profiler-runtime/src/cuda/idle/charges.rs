//! From counts of samples to the idle time of each function.
//!
//! To count samples alone would be biased: a thread that sleeps is sampled more often than one that works, which the sampler
//! competes with for a processor. So samples only say which part of a function's time was idle time of the device: its self
//! time, which is exact, times the samples of it in idle time, over all samples of it. Both counts have the same bias.
//!
//! Samples alone must do where the self time of the observed time is not known:
//!
//! - Of a call that has not ended, for what is left of the idle time when all charges are subtracted.
//! - Of a call that was open when the account began. Its name gets what samples alone say, within the bounds that its self time
//!   has with all of such calls and without them.
//! - Of threads that are directly inside an entered handle: they are in no self time.
//! - Of the time outside of all functions.
//!
//! The parts are the idle time. If the charges are more, since their errors add up, all are made smaller by one factor, as
//! are their errors. If they are less, nothing is made larger: the rest counts as not sampled.

use std::collections::BTreeMap;

use profiler_report::{SampledCharge, SampledIdle};

use super::account::Counts;
use crate::stats::ENTERED;

/// A name with fewer samples has no charge.
pub(super) const LEAST_SAMPLES: u64 = 10;

/// What is known of a name.
#[derive(Clone, Debug)]
pub(super) struct NameTime {
    pub(super) id: u32,
    /// For how long it was innermost on all threads since the account began, in nanoseconds. Of the calls that have ended.
    pub(super) self_ns: f64,
    /// Up to this much of `self_ns` was before the account began: of calls that were open then.
    pub(super) before_ns: f64,
    /// How often it was the innermost name of a thread.
    pub(super) samples: u64,
    /// How often a thread was directly inside a handle of it.
    pub(super) entered: u64,
    /// `true` if a call has not ended.
    pub(super) is_open: bool,
}

impl NameTime {
    fn all_samples(&self) -> u64 {
        self.samples + self.entered
    }
}

/// Shares the idle time out: fills `charges`, `outside_ns` and `not_sampled_ns` of `idle`, whose other times are known.
/// `text` returns the text of a name.
pub(super) fn share(
    idle: &mut SampledIdle,
    counts: &Counts,
    names: &[NameTime],
    text: impl Fn(u32) -> String,
) {
    let sampled_ns = (idle.idle_ns - idle.launched_ns - idle.not_sampled_ns).max(0.0);
    let in_idle = |name: &NameTime| InIdle {
        own: counts.names.get(&name.id).copied().unwrap_or(0),
        entered: counts.names.get(&(name.id | ENTERED)).copied().unwrap_or(0),
    };
    let of_both = |counts: &BTreeMap<u32, u64>, id: u32| {
        let of = |id: u32| counts.get(&id).copied().unwrap_or(0);
        of(id) + of(id | ENTERED)
    };
    let all: u64 = counts.names.values().sum::<u64>() + counts.outside;
    idle.samples = all;
    let plain = Plain { sampled_ns, all };
    let (known, rare): (Vec<&NameTime>, Vec<&NameTime>) = names
        .iter()
        .partition(|name| name.all_samples() >= LEAST_SAMPLES);
    let mut parts: Vec<Part> = known
        .into_iter()
        .map(|name| Part::of(name, in_idle(name), &plain))
        .collect();
    // All rare names together have samples enough, if it matters.
    let rare_idle = rare
        .iter()
        .map(|name| in_idle(name))
        .fold(InIdle::default(), InIdle::plus);
    let sum = |of: fn(&NameTime) -> f64| rare.iter().map(|name| of(name)).sum::<f64>();
    let rare_self = sum(|name| name.self_ns);
    let rest = NameTime {
        id: u32::MAX,
        self_ns: rare_self,
        before_ns: sum(|name| name.before_ns.min(name.self_ns)),
        samples: rare.iter().map(|name| name.samples).sum(),
        entered: rare.iter().map(|name| name.entered).sum(),
        is_open: rare
            .iter()
            .any(|name| name.is_open && in_idle(name).own > 0),
    };
    parts.push(Part::of(&rest, rare_idle, &plain));
    let outside = share_rest(&mut parts, sampled_ns, plain.of(counts.outside));
    let rest = parts.pop().map_or(0.0, |part| part.ns);
    idle.not_sampled_ns += rest;
    idle.not_sampled_names = rare.iter().filter(|name| name.self_ns > 0.0).count() as u64;
    idle.not_sampled_self_ns = rare_self;
    idle.outside_ns = outside;
    idle.outside_error_ns = plain.error(counts.outside);
    let mut charges: Vec<SampledCharge> = parts
        .into_iter()
        .filter(|part| part.ns > 0.0)
        .map(|part| SampledCharge {
            asked_samples: of_both(&counts.asked, part.name.id),
            off_processor_samples: of_both(&counts.off, part.name.id),
            ..part.charge(text(part.name.id))
        })
        .collect();
    charges.sort_by(|one, other| {
        let longest = other.idle_ns.total_cmp(&one.idle_ns);
        longest.then_with(|| one.name.cmp(&other.name))
    });
    idle.charges = charges;
}

/// The samples of a name in idle time.
#[derive(Clone, Copy, Default)]
struct InIdle {
    own: u64,
    /// Those of threads that were directly inside a handle of it.
    entered: u64,
}

impl InIdle {
    fn plus(self, other: Self) -> Self {
        Self {
            own: self.own + other.own,
            entered: self.entered + other.entered,
        }
    }
}

/// What samples alone say.
struct Plain {
    sampled_ns: f64,
    /// The samples in idle time.
    all: u64,
}

impl Plain {
    fn of(&self, count: u64) -> f64 {
        self.sampled_ns * ratio(count, self.all)
    }

    /// Returns the standard error of [`of`](Self::of).
    fn error(&self, count: u64) -> f64 {
        self.sampled_ns * error(count, self.all)
    }
}

/// A part of the idle time.
struct Part<'n> {
    name: &'n NameTime,
    in_idle: InIdle,
    ns: f64,
    /// What samples alone say beyond that, if a call is open.
    more: f64,
    error_ns: f64,
    /// The error if the part has some of `more`.
    error_with_more_ns: f64,
}

impl<'n> Part<'n> {
    fn of(name: &'n NameTime, in_idle: InIdle, plain: &Plain) -> Self {
        let idle_part = ratio(in_idle.own, name.samples);
        let least_self = (name.self_ns - name.before_ns).max(0.0);
        let (least, most) = (least_self * idle_part, name.self_ns * idle_part);
        let alone = plain.of(in_idle.own);
        let own = alone.max(least).min(most);
        let alone_error = plain.error(in_idle.own);
        let own_error = least_self * error(in_idle.own, name.samples);
        let own_error = own_error.max(alone_error.min(most - least));
        let entered_error = if in_idle.entered > 0 {
            plain.error(in_idle.entered)
        } else {
            0.0
        };
        Self {
            name,
            in_idle,
            ns: own + plain.of(in_idle.entered),
            more: if name.is_open {
                (alone - own).max(0.0)
            } else {
                0.0
            },
            error_ns: own_error.hypot(entered_error),
            error_with_more_ns: own_error.max(alone_error).hypot(entered_error),
        }
    }

    fn charge(&self, name: String) -> SampledCharge {
        SampledCharge {
            name,
            idle_ns: self.ns,
            error_ns: self.error_ns,
            samples: self.name.all_samples(),
            idle_samples: self.in_idle.own + self.in_idle.entered,
            ..SampledCharge::default()
        }
    }
}

/// Makes the parts and the time outside of all functions add up to the idle time. Returns the latter. The last part is that
/// of the names without a charge.
fn share_rest(parts: &mut [Part<'_>], sampled_ns: f64, outside: f64) -> f64 {
    let charged: f64 = parts.iter().map(|part| part.ns).sum();
    let left = sampled_ns - charged;
    if left < 0.0 {
        let factor = sampled_ns / charged;
        for part in parts {
            part.ns *= factor;
            part.error_ns *= factor;
        }
        return 0.0;
    }
    let wanted = outside + parts.iter().map(|part| part.more).sum::<f64>();
    let factor = if wanted > left { left / wanted } else { 1.0 };
    for part in parts.iter_mut().filter(|part| part.more > 0.0) {
        part.ns += factor * part.more;
        part.error_ns = part.error_with_more_ns;
    }
    if let Some(rest) = parts.last_mut() {
        // Nothing says whose it is.
        rest.ns += (left - factor * wanted).max(0.0);
    }
    factor * outside
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
            self_ns,
            before_ns: 0.0,
            samples,
            entered: 0,
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
            // One in two, and one in ten.
            asked: counts
                .iter()
                .map(|(name, count)| (*name, count / 2))
                .collect(),
            off: counts
                .iter()
                .map(|(name, count)| (*name, count / 10))
                .collect(),
            outside,
            unsampled: 0,
        };
        share(&mut idle, &counts, names, |id| format!("name {id}"));
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
    fn a_call_that_was_open_when_the_account_began_is_charged_by_samples_within_its_bounds() {
        // `main` ran for ten minutes before the first GPU time, and has ended.
        let main = NameTime {
            before_ns: 601_000.0,
            ..name(1, 600_500.0, 100, false)
        };
        let names = [main, name(2, 600.0, 60, false)];
        let idle = shared(1_000.0, &[(1, 40), (2, 60)], 0, &names);
        assert!((charge(&idle, 1) - 400.0).abs() < 1e-6, "{idle:?}");
        assert!((charge(&idle, 2) - 600.0).abs() < 1e-6, "{idle:?}");
        assert!(idle.charges[1].error_ns < 100.0, "{idle:?}");
        // One call of `load` was open, of a thousand: its self time is known well.
        let load = NameTime {
            before_ns: 1.0,
            ..name(1, 1_000.0, 100, false)
        };
        let idle = shared(1_400.0, &[(1, 80), (2, 20)], 0, &[load]);
        let bounds = 0.8 * 999.0..0.8 * 1_000.0 + 1e-6;
        assert!(bounds.contains(&charge(&idle, 1)), "{idle:?}");
    }

    #[test]
    fn a_thread_inside_a_handle_counts_for_the_scope_of_the_handle_by_samples() {
        // Its self time is of other threads, and has none of the time in handles.
        let one = NameTime {
            entered: 50,
            ..name(1, 200.0, 20, false)
        };
        let idle = shared(1_000.0, &[(1, 10), (1 | ENTERED, 30)], 60, &[one]);
        assert!((charge(&idle, 1) - 400.0).abs() < 1e-6, "{idle:?}");
        let [charge] = &idle.charges[..] else {
            panic!("one charge: {idle:?}")
        };
        assert_eq!((charge.samples, charge.idle_samples), (70, 40));
        assert_eq!(
            (charge.asked_samples, charge.off_processor_samples),
            (5 + 15, 1 + 3)
        );
        assert!((idle.outside_ns - 600.0).abs() < 1e-6);
    }

    #[test]
    fn what_nothing_explains_makes_no_charge_larger() {
        let names = [name(1, 100.0, 100, false), name(2, 0.0, 100, true)];
        // The samples of a name that has no time yet.
        let idle = shared(1_000.0, &[(1, 50), (2, 10), (9, 30)], 10, &names);
        assert!((charge(&idle, 1) - 50.0).abs() < 1e-6, "{idle:?}");
        assert!((charge(&idle, 2) - 100.0).abs() < 1e-6, "{idle:?}");
        assert!((idle.outside_ns - 100.0).abs() < 1e-6, "{idle:?}");
        assert!((idle.not_sampled_ns - 750.0).abs() < 1e-6, "{idle:?}");
        let idle = shared(1_000.0, &[(1, 50)], 0, &names[..1]);
        assert!((charge(&idle, 1) - 50.0).abs() < 1e-6, "{idle:?}");
    }

    #[test]
    fn names_with_few_samples_are_together_not_sampled() {
        let names = [
            name(1, 900.0, 90, false),
            name(2, 80.0, 8, false),
            name(3, 90.0, 9, false),
        ];
        let idle = shared(910.0, &[(1, 90), (3, 1)], 0, &names);
        assert!((charge(&idle, 1) - 900.0).abs() < 1e-6);
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
        let of_self = 1_000.0 * error(60, 100);
        assert!((idle.charges[0].error_ns - 0.9 * of_self).abs() < 1e-6);
    }

    #[test]
    fn without_samples_nothing_is_charged() {
        let idle = shared(100.0, &[], 0, &[]);
        assert!(idle.charges.is_empty() && idle.outside_ns.abs() < 1e-6);
    }
}
