//! What limits a device, by the thresholds of its account.

use super::{DeviceIdle, IdleCharge};
use crate::well_known::is_step_range;

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
    /// Kernels in which processes wait for each other, for more than half of its busy time.
    Communication,
    /// Work that was launched began late.
    Launched,
    /// A function that kept it waiting for at least half of its idle time, or no function.
    Charged(&'d IdleCharge),
    /// The host, and no function more than others.
    Host,
}

/// The function that the sentences name, or no function.
pub(super) struct Subject<'d> {
    pub(super) charge: &'d IdleCharge,
    /// How long it kept the device waiting, and the part of it in the calls that launch work.
    pub(super) ns: i64,
    pub(super) in_call_ns: i64,
    /// `true` if that contains what it calls.
    pub(super) is_inclusive: bool,
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
        } else if busy >= MOSTLY_BUSY && self.is_communicating() {
            Limit::Communication
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

    /// Returns `true` if the device was in collectives for more than half of its busy time: what looks like work may be a wait.
    fn is_communicating(&self) -> bool {
        exceeds_half(self.collectives_ns.min(self.busy_ns), self.busy_ns)
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
    pub(super) fn largest(&self) -> Option<&IdleCharge> {
        let functions = self.charges.iter().filter(|charge| !charge.is_step());
        functions.max_by_key(|charge| charge.idle_ns)
    }

    /// Returns the function that the sentences name, or no function, and its time: with all that it calls where that is why it is
    /// named, or else by itself.
    pub(super) fn subject(&self) -> Option<Subject<'_>> {
        if self.charged_ns() == 0 {
            return None;
        }
        let subject = |charge, (ns, in_call_ns), is_inclusive| Subject {
            charge,
            ns,
            in_call_ns,
            is_inclusive,
        };
        if let Some(named) = self.named() {
            let times = (named.inclusive_ns, named.inclusive_in_call_ns);
            return Some(subject(named, times, true));
        }
        let largest = self.largest()?;
        Some(subject(
            largest,
            (largest.idle_ns, largest.in_call_ns),
            false,
        ))
    }
}

impl IdleCharge {
    fn is_step(&self) -> bool {
        self.name.as_deref().is_some_and(is_step_range)
    }
}

pub(super) fn exceeds_half(part: i64, whole: i64) -> bool {
    part > whole.saturating_sub(part)
}
