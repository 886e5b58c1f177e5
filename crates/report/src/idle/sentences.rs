//! What limits a device, and how that came, in sentences.

use super::verdict::{Limit, exceeds_half};
use super::{DeviceIdle, GpuIdle, IdleCharge};
use crate::in_order::InOrder as _;
use crate::sentence::{Sentence, percent};
use crate::text::shorten;
use crate::text::units::time;
use crate::well_known::is_collective;

/// From this share on, it is said how idle or busy times came.
const LABELLED: f64 = 0.25;
/// From this bound on, it is said how much faster the work would be done at most.
const WORTH_SAYING: f64 = 1.01;
/// A call that launches work and does nothing else takes less than this long.
const LONG_CALL_NS: i64 = 1_000_000;
/// Idle times are few if they are at most one of so many.
const FEW: u64 = 4;
/// From this share of a device's time on, a difference of the times in collectives says which process comes last.
const IMBALANCE: f64 = 0.1;
/// How many characters of the name of a kernel a sentence has.
const MAX_NAME: usize = 100;
/// From this share of the busy time on, a kernel is named.
const WORK_NAMED: f64 = 0.1;

impl DeviceIdle {
    /// Returns the sentences: what limits the device, by how much, and what is known of how that came.
    pub(crate) fn sentences(&self) -> Vec<Sentence> {
        let busy = percent(self.busy_share().unwrap_or(0.0));
        let idle = percent(1.0 - self.busy_share().unwrap_or(0.0));
        let window = self.window_ns() as f64;
        let of_window = |ns: i64| percent(ns as f64 / window);
        let between = "between its first work and its last";
        let sentence = Sentence::new();
        let first = match self.limit() {
            Limit::NotRecorded => sentence
                .strong("What limits the GPU was not recorded")
                .text(&format!(
                    ": work is missing for {} of the window.",
                    of_window(self.not_recorded_ns)
                )),
            Limit::StartUp => start_up(self.before_first_ns, self.window_ns()),
            Limit::AfterLast => after_last(self.after_last_ns, self.window_ns()),
            Limit::Device | Limit::MostlyDevice => {
                let is_copying = self.copy_ns > self.busy_ns / 2;
                let copies = percent(self.copy_ns as f64 / self.busy_ns.max(1) as f64);
                sentence
                    .strong(match (self.limit(), is_copying) {
                        (Limit::Device, false) => "The GPU limits the program",
                        (Limit::Device, true) => "Copies limit the program",
                        (_, false) => "Mostly the GPU limits the program",
                        (_, true) => "Mostly copies limit the program",
                    })
                    .text(&if is_copying {
                        format!(
                            ": the GPU was busy for {busy} of the time {between}, {copies} of that with copies and fills and \
                             without kernels."
                        )
                    } else {
                        format!(": the GPU was busy for {busy} of the time {between}.")
                    })
            }
            Limit::Communication => {
                let share = self.collectives_ns.min(self.busy_ns) as f64 / self.busy_ns.max(1) as f64;
                sentence.strong("Communication limits the program").text(&format!(
                    ": kernels in which processes wait for the last of them took {} of the GPU's busy time, and the GPU was busy for \
                     {busy} of the time {between}.",
                    percent(share)
                ))
            }
            Limit::Launched => sentence.strong("Launched work begins late").text(&format!(
                ": the GPU was idle for {idle} of the time {between}, {} of that with work that was launched at least 10 µs \
                 before it began.",
                percent(self.share_of_waiting(self.unexplained_ns))
            )),
            Limit::Charged(charge) => charge
                .push_name(sentence)
                .strong(" keeps the GPU waiting")
                .text(&format!(
                    ": the GPU was idle for {idle} of the time {between}, {} of that {}{}.",
                    percent(self.share_of_waiting(charge.inclusive_ns)),
                    charge.place(),
                    self.rarely()
                )),
            Limit::Host => sentence.strong("The host keeps the GPU waiting").text(&format!(
                ": the GPU was idle for {idle} of the time {between}, and no function dominates."
            )),
        };
        let mut sentences = vec![first];
        let more = [
            self.bound(),
            self.inside(),
            self.drained(),
            self.on_processor(),
            self.meanwhile(),
        ];
        sentences.extend(more.into_iter().flatten());
        sentences.extend(self.work().into_iter().chain(self.blocked()));
        sentences
    }

    /// Says how much faster the work can be done at most, and without what.
    fn bound(&self) -> Option<Sentence> {
        let limit = self.limit();
        if matches!(limit, Limit::NotRecorded | Limit::Launched) {
            return None;
        }
        let subject = self.subject()?;
        let bound = self.bound_without_ns(subject.ns);
        if bound < WORTH_SAYING {
            return None;
        }
        let by = match (&subject.charge.name, subject.is_inclusive) {
            (None, _) => "",
            (Some(_), true) => ", with what it calls,",
            (Some(_), false) => " itself",
        };
        let sentence = Sentence::new();
        let sentence = if matches!(limit, Limit::Charged(_)) {
            sentence.text("Without that")
        } else {
            let share = percent(self.share_of_waiting(subject.ns));
            let idle = match limit {
                Limit::Host => "that",
                _ => "the idle time between its first work and its last",
            };
            let sentence = subject.charge.push_name(sentence);
            sentence.text(&format!(
                "{by} kept it waiting for {share} of {idle}{}: without that",
                self.rarely()
            ))
        };
        let faster = if bound.is_finite() {
            format!(", the work would be done at most {bound:.2} × as fast")
        } else {
            ", nothing would be left to wait for".to_owned()
        };
        let sentence = sentence.text(&faster);
        if !exceeds_half(subject.in_call_ns, subject.ns) {
            return Some(sentence.text("."));
        }
        let sentence = sentence.text("; most of it is in the calls that launch work");
        let longest = self.named.as_ref().map_or(0, |named| named.longest_call_ns);
        Some(if longest >= LONG_CALL_NS {
            sentence.text(&format!(
                ", {} the longest: such a call loads or compiles code, or waits for the device.",
                time(longest as f64)
            ))
        } else {
            sentence.text(".")
        })
    }

    /// Says in how many of the idle times the named function kept the device waiting for half of that, if these are few.
    fn rarely(&self) -> String {
        let named = self.named.as_ref();
        let few = named.filter(|named| named.half_in.saturating_mul(FEW) <= named.of);
        few.map_or_else(String::new, |named| {
            format!(", half of it in {} of {} waits", named.half_in, named.of)
        })
    }

    /// Says in which call the thread waited as the device ran out of work, if that began much of the idle time.
    fn drained(&self) -> Option<Sentence> {
        let drained = self.drained.first()?;
        let share = self.share_of_waiting(drained.idle_ns);
        if share < LABELLED || matches!(self.limit(), Limit::NotRecorded) {
            return None;
        }
        let share = percent(share);
        let sentence = Sentence::new()
            .text(&format!(
                "Before {share} of its idle time, the thread waited in "
            ))
            .name(&drained.call);
        let sentence = match &drained.scope {
            Some(scope) => push_function(sentence.text(" in "), scope, &drained.location),
            None => sentence,
        };
        Some(sentence.text(&format!(
            ", {}.",
            match drained.times {
                1 => "once".to_owned(),
                times => format!("{times} times"),
            }
        )))
    }

    /// Says which function itself kept the device waiting longest, if the named one mostly did so by what it calls.
    fn inside(&self) -> Option<Sentence> {
        let Limit::Charged(charge) = self.limit() else {
            return None;
        };
        let largest = self.largest()?;
        if largest == charge || exceeds_half(charge.idle_ns, charge.inclusive_ns) {
            return None;
        }
        let sentence = Sentence::new().text("Of all functions by themselves, ");
        let name = largest.name.as_deref()?;
        let share = percent(self.share_of_waiting(largest.idle_ns));
        let sentence = push_function(sentence, name, &largest.location);
        Some(sentence.text(&format!(" kept it waiting longest, for {share}.")))
    }

    /// Says what the thread did for most of the time in which the named function kept the device waiting: it computed, or waited.
    fn on_processor(&self) -> Option<Sentence> {
        let subject = self.subject()?;
        if !matches!(self.limit(), Limit::Charged(_)) {
            return None;
        }
        let named = self.named.as_ref()?;
        let did = [
            (named.running_ns, "computed", "."),
            (
                named.off_processor_ns,
                "was off the processor",
                ": it slept, or waited, as for a lock or for I/O.",
            ),
            (
                named.ready_ns,
                "was ready to run",
                ", and no processor was free for it.",
            ),
        ];
        let mut did = did.into_iter();
        let (ns, did, cause) = did.find(|(ns, ..)| exceeds_half(*ns, subject.ns))?;
        let share = percent(ns as f64 / subject.ns.max(1) as f64);
        let sentence = Sentence::new().text("While the GPU waited for ");
        let sentence = match &subject.charge.name {
            Some(name) => sentence.name(name),
            None => sentence.text("code outside of measured functions"),
        };
        let did = format!(", the thread {did} for at least {share} of the time{cause}");
        Some(sentence.text(&did))
    }

    /// Says what other threads ran for much of the time in which the named function kept the device waiting.
    fn meanwhile(&self) -> Option<Sentence> {
        let subject = self.subject()?;
        let named = self.named.as_ref()?;
        // A thread that computed waited for no other one.
        let has_computed = exceeds_half(named.running_ns, subject.ns);
        if !matches!(self.limit(), Limit::Charged(_)) || has_computed {
            return None;
        }
        let meanwhile = named.meanwhile.first()?;
        let share = meanwhile.ns as f64 / subject.ns.max(1) as f64;
        if share < LABELLED {
            return None;
        }
        let sentence = Sentence::new().text("Meanwhile, another thread was in ");
        let sentence = push_function(sentence, &meanwhile.name, &meanwhile.location);
        Some(sentence.text(&format!(" for {} of that time.", percent(share))))
    }

    /// Says what a busy device worked on.
    fn work(&self) -> Option<Sentence> {
        let is_busy = matches!(
            self.limit(),
            Limit::Device | Limit::MostlyDevice | Limit::Communication
        );
        if !is_busy {
            return None;
        }
        let longest = self.longest_work.as_ref()?;
        let busy = self.busy_ns.max(1) as f64;
        let name = shorten(&[&longest.name], MAX_NAME).concat();
        let sentence = Sentence::new().name(&name);
        let sentence = match &longest.function {
            Some(function) => push_function(sentence.text(" in "), function, &longest.location),
            None => sentence,
        };
        let share = (longest.ns as f64 / busy).min(1.0);
        if share < WORK_NAMED {
            return None;
        }
        let share = percent(share);
        let sentence = sentence.text(&format!(" took {share} of its busy time"));
        Some(sentence.text(if is_collective(&longest.name) {
            ": in it, processes wait for the last of them."
        } else {
            "."
        }))
    }

    /// Says that streams waited for each other.
    fn blocked(&self) -> Option<Sentence> {
        let share = self.blocked_ns as f64 / self.busy_ns.max(1) as f64;
        (share >= LABELLED).then(|| {
            Sentence::new().text(&format!(
                "For {} of its busy time, work of another stream had been launched and waited: either one fills the GPU, or \
                 streams wait for each other, as all others do for the default stream.",
                percent(share)
            ))
        })
    }
}

impl GpuIdle {
    /// Says which process the others wait for in collectives, if one is in them for much less time than another one.
    pub(crate) fn ranks(&self) -> Option<Sentence> {
        let share =
            |device: &DeviceIdle| device.collectives_ns as f64 / device.working_ns().max(1) as f64;
        // Of other devices, it is not known how long they were in collectives.
        let is_known = |device: &&DeviceIdle| {
            let not_recorded = device.not_recorded_ns as f64;
            device.rank.is_some()
                && device.collectives_ns > 0
                && not_recorded < IMBALANCE * device.window_ns() as f64
        };
        let known = self.devices.iter().filter(is_known);
        let mut known: Vec<&DeviceIdle> = known.collect();
        known.order_by(|one, other| share(one).total_cmp(&share(other)));
        let [least, .., most] = known[..] else {
            return None;
        };
        (share(most) - share(least) >= IMBALANCE).then(|| {
            let sentence = Sentence::new().strong(&least.title()).strong(" comes last");
            sentence.text(&format!(
                ": it was in collectives for {}, {} of its time from the first work to the last, and {} for {}, {} of its time.",
                time(least.collectives_ns as f64),
                percent(share(least)),
                most.title(),
                time(most.collectives_ns as f64),
                percent(share(most))
            ))
        })
    }
}

/// Says that most of a window came before the first work.
pub(super) fn start_up(before_ns: i64, window_ns: i64) -> Sentence {
    let sentence = Sentence::new().strong("Most of the window is start-up");
    sentence.text(&format!(
        ": the first work began after {}, {} of the window.",
        time(before_ns as f64),
        percent(before_ns as f64 / window_ns.max(1) as f64)
    ))
}

/// Says that most of a window came after the last work.
pub(super) fn after_last(after_ns: i64, window_ns: i64) -> Sentence {
    let sentence = Sentence::new().strong("Most of the window came after the last work");
    sentence.text(&format!(
        " of the GPU: {}, {} of it.",
        time(after_ns as f64),
        percent(after_ns as f64 / window_ns.max(1) as f64)
    ))
}

fn push_function(sentence: Sentence, name: &str, location: &str) -> Sentence {
    let sentence = sentence.name(name);
    if location.is_empty() {
        sentence
    } else {
        sentence.text(&format!(" ({location})"))
    }
}

impl IdleCharge {
    pub(super) fn push_name(&self, sentence: Sentence) -> Sentence {
        match &self.name {
            Some(name) => sentence.name(name),
            None => sentence.strong("Code outside of measured functions"),
        }
    }

    fn place(&self) -> String {
        match (&self.name, &*self.location) {
            (None, _) => "outside of measured functions".to_owned(),
            (Some(_), "") => "inside of it".to_owned(),
            (Some(_), location) => format!("inside of it ({location})"),
        }
    }
}
