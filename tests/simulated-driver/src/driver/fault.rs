//! Injected faults, by entry point and call number.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::code::Code;

/// The number of faults that were triggered.
static HAPPENED: AtomicU64 = AtomicU64::new(0);

/// The calls that a fault affects. Calls are counted from 1 since the fault was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Nth(u64),
    Every(u64),
    From(u64),
    Always,
}

impl When {
    pub(crate) fn holds(self, call: u64) -> bool {
        match self {
            Self::Nth(number) => call == number,
            Self::Every(step) => call.is_multiple_of(step),
            Self::From(number) => call >= number,
            Self::Always => true,
        }
    }
}

/// The effect of a fault on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The call returns this code.
    Return(Code),
    /// The call returns this code, and so does every later call that uses its context.
    Sticky(Code),
    /// The work that the call queues fails when it ends, and so does its context.
    Fail(Code),
    /// The call takes this many nanoseconds longer.
    Delay(u64),
    /// The call does not return before it is released.
    Hang,
    /// The work that the call queues does not end before it is released.
    Stall,
    /// The call reports this many milliseconds between two events, given as the bits of an `f32`.
    Time(u32),
}

/// A fault of one entry point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) when: When,
    pub(crate) action: Action,
    /// The call does its work before it returns the code.
    pub(crate) after: bool,
    /// The number of calls before the fault was set.
    pub(crate) since: u64,
}

/// The combined effect of all faults on one call.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) code: Option<Code>,
    pub(crate) after: bool,
    pub(crate) sticky: Option<Code>,
    pub(crate) work: Option<super::thread::WorkFault>,
    pub(crate) delay_ns: u64,
    pub(crate) hang: bool,
    /// How many releases there were before the faults were read.
    pub(crate) releases: u64,
    /// The milliseconds that the call reports.
    pub(crate) time: Option<f32>,
}

impl Plan {
    /// Combines the effects of `faults` on call number `call` of their entry point.
    pub(crate) fn of(faults: &[Fault], call: u64) -> Self {
        let mut plan = Self::default();
        // A call that was counted before the fault was set is not affected.
        let affects = |fault: &&Fault| {
            let since = call.checked_sub(fault.since).filter(|calls| *calls > 0);
            since.is_some_and(|calls| fault.when.holds(calls))
        };
        for fault in faults.iter().filter(affects) {
            HAPPENED.fetch_add(1, Relaxed);
            match fault.action {
                Action::Return(code) => (plan.code, plan.after) = (Some(code), fault.after),
                Action::Sticky(code) => plan.sticky = Some(code),
                Action::Fail(code) => plan.work = Some(super::thread::WorkFault::Fail(code)),
                Action::Stall => plan.work = Some(super::thread::WorkFault::Stall),
                Action::Delay(ns) => plan.delay_ns += ns,
                Action::Hang => plan.hang = true,
                Action::Time(bits) => plan.time = Some(f32::from_bits(bits)),
            }
        }
        plan
    }
}

pub(crate) fn happened() -> u64 {
    HAPPENED.load(Relaxed)
}

pub(crate) fn forget_happened() {
    HAPPENED.store(0, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::{Action, Fault, Plan, When};

    fn hits(when: When, since: u64) -> Vec<u64> {
        let fault = Fault {
            when,
            action: Action::Return(1),
            after: false,
            since,
        };
        (since + 1..since + 8)
            .filter(|call| Plan::of(&[fault], *call).code.is_some())
            .collect()
    }

    #[test]
    fn faults_count_calls_from_when_they_were_set() {
        assert_eq!(hits(When::Nth(3), 10), [13]);
        assert_eq!(hits(When::Every(3), 10), [13, 16]);
        assert_eq!(hits(When::From(5), 10), [15, 16, 17]);
        assert_eq!(hits(When::Always, 1), [2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_call_that_was_counted_before_a_fault_is_not_affected() {
        let fault = Fault {
            when: When::Always,
            action: Action::Hang,
            after: false,
            since: 10,
        };
        let hangs = [9, 10, 11].map(|call| Plan::of(&[fault], call).hang);
        assert_eq!(hangs, [false, false, true]);
    }

    #[test]
    fn faults_of_one_call_add_up() {
        let fault = |action| Fault {
            when: When::Always,
            action,
            after: false,
            since: 0,
        };
        let plan = Plan::of(
            &[
                fault(Action::Delay(2)),
                fault(Action::Delay(3)),
                fault(Action::Hang),
            ],
            1,
        );
        assert_eq!((plan.delay_ns, plan.hang, plan.code), (5, true, None));
    }
}
