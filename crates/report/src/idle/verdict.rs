//! What limits a device, in a sentence, and what would be gained, in another one if that is known.

use super::{DeviceIdle, IdleCharge};
use crate::sentence::{Sentence, percent};
use crate::text::units::time;

/// From this busy share on, the device limits the program.
pub(super) const BUSY: f64 = 0.9;
/// From this busy share on, it mostly does.
pub(super) const MOSTLY_BUSY: f64 = 0.6;
/// From this share of its idle time on, a function is named.
const NAMED: f64 = 0.5;

/// What limits a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Limit<'d> {
    /// More than half of the window is not recorded.
    NotRecorded,
    /// For more than half of the window, no work had come yet.
    StartUp,
    /// For more than half of the window, no more work came.
    AfterLast,
    /// The device itself.
    Device,
    /// The device itself, for the most part.
    MostlyDevice,
    /// Work that was launched began late.
    Launched,
    /// A function that kept it waiting for at least half of its idle time, or no function.
    Charged(&'d IdleCharge),
    /// The host, and no function more than others.
    Host,
}

impl DeviceIdle {
    pub(super) fn limit(&self) -> Limit<'_> {
        let window = self.window_ns();
        let Some(busy) = self.busy_share() else {
            return Limit::NotRecorded;
        };
        if exceeds_half(self.not_recorded_ns, window) {
            Limit::NotRecorded
        } else if exceeds_half(self.before_first_ns, window) {
            Limit::StartUp
        } else if exceeds_half(self.after_last_ns, window) {
            Limit::AfterLast
        } else if busy >= BUSY {
            Limit::Device
        } else if busy >= MOSTLY_BUSY {
            Limit::MostlyDevice
        } else if let Some(charge) = self.named() {
            Limit::Charged(charge)
        } else if exceeds_half(self.unexplained_ns, self.waiting_ns()) {
            Limit::Launched
        } else {
            Limit::Host
        }
    }

    /// Returns the idle time between the first work and the last.
    fn waiting_ns(&self) -> i64 {
        self.charged_ns() + self.launched_ns
    }

    /// Returns what an amount of idle time is of that between the first work and the last.
    pub(super) fn share_of_waiting(&self, ns: i64) -> f64 {
        let waiting = self.waiting_ns();
        if waiting > 0 {
            ns as f64 / waiting as f64
        } else {
            0.0
        }
    }

    /// Returns the most specific function in which at least half of the idle time passed. A step is no function.
    pub(super) fn named(&self) -> Option<&IdleCharge> {
        let is_most = |charge: &&IdleCharge| self.share_of_waiting(charge.inclusive_ns) >= NAMED;
        let most = self
            .charges
            .iter()
            .filter(is_most)
            .filter(|charge| !charge.is_step());
        most.min_by_key(|charge| (charge.inclusive_ns, std::cmp::Reverse(charge.idle_ns)))
    }

    /// Returns the function, or no function, in which most of the idle time passed itself.
    fn largest(&self) -> Option<&IdleCharge> {
        let functions = self.charges.iter().filter(|charge| !charge.is_step());
        functions.max_by_key(|charge| charge.idle_ns)
    }

    /// Returns the sentences: what limits the device, and by how much.
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
            Limit::StartUp => sentence.strong("Most of the window is start-up").text(&format!(
                ": the first work began after {}, {} of the window.",
                time(self.before_first_ns as f64),
                of_window(self.before_first_ns)
            )),
            Limit::AfterLast => sentence.strong("Most of the window came after the last work").text(
                &format!(
                    " of the GPU: {}, {} of it.",
                    time(self.after_last_ns as f64),
                    of_window(self.after_last_ns)
                ),
            ),
            Limit::Device | Limit::MostlyDevice => {
                let is_copying = self.copy_ns > self.busy_ns / 2;
                let copies = percent(self.copy_ns as f64 / self.busy_ns.max(1) as f64);
                sentence
                    .strong(match (self.limit(), is_copying) {
                        (Limit::Device, false) => "The GPU limits it",
                        (Limit::Device, true) => "Copies limit it",
                        (_, false) => "Mostly the GPU limits it",
                        (_, true) => "Mostly copies limit it",
                    })
                    .text(&if is_copying {
                        format!(
                            ": the GPU was busy for {busy} of the time {between}, {copies} of that with copies and fills and \
                             without kernels."
                        )
                    } else {
                        format!(": it was busy for {busy} of the time {between}.")
                    })
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
                    ": the GPU was idle for {idle} of the time {between}, {} of that {}.",
                    percent(self.share_of_waiting(charge.inclusive_ns)),
                    charge.place()
                )),
            Limit::Host => sentence.strong("The host keeps the GPU waiting").text(&format!(
                ": it was idle for {idle} of the time {between}, and no function dominates."
            )),
        };
        let mut sentences = vec![first];
        sentences.extend(self.bound());
        sentences
    }

    /// Says how much faster the work can be done at most, and without what.
    fn bound(&self) -> Option<Sentence> {
        let limit = self.limit();
        if matches!(limit, Limit::NotRecorded | Limit::Launched) || self.charged_ns() == 0 {
            return None;
        }
        // A function counts with all that it calls where that is why it is named, or else by itself.
        let (charge, waited_ns, in_call_ns, by) = match (limit, self.named()) {
            (Limit::Charged(charge), _) | (_, Some(charge)) => {
                let by = ", with what it calls,";
                (charge, charge.inclusive_ns, charge.inclusive_in_call_ns, by)
            }
            (_, None) => {
                let largest = self.largest()?;
                (largest, largest.idle_ns, largest.in_call_ns, " itself")
            }
        };
        let by = charge.name.as_ref().map_or("", |_| by);
        let mut sentence = Sentence::new();
        sentence = if matches!(limit, Limit::Charged(_)) {
            sentence.text("Without that")
        } else {
            let share = percent(self.share_of_waiting(waited_ns));
            let idle = match limit {
                Limit::Host => "that",
                _ => "the idle time between its first work and its last",
            };
            charge.push_name(sentence).text(&format!(
                "{by} kept it waiting for {share} of {idle}: without that"
            ))
        };
        let bound = self.bound_without_ns(waited_ns);
        let faster = if bound.is_finite() {
            format!(", the work would be done at most {bound:.2} × as fast")
        } else {
            ", nothing would be left to wait for".to_owned()
        };
        sentence = sentence.text(&faster);
        if exceeds_half(in_call_ns, waited_ns) {
            sentence = sentence.text("; most of it is in the calls that launch work");
        }
        Some(sentence.text("."))
    }
}

impl IdleCharge {
    fn is_step(&self) -> bool {
        self.name.as_deref().is_some_and(is_step)
    }

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

fn exceeds_half(part: i64, whole: i64) -> bool {
    part > whole.saturating_sub(part)
}

/// Returns `true` for the range that PyTorch draws around a step.
pub(super) fn is_step(name: &str) -> bool {
    name.starts_with("ProfilerStep")
}
