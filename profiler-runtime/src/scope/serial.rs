//! The serial of an open scope and its flags, in one word.

use crate::local::{Innermost, SERIALS};
use crate::switch::SiteDecision;

/// Flags of an open scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flags(u64);

impl Flags {
    pub(super) const NONE: Self = Self(0);
    /// A session may remember details of the scope.
    pub(super) const DETAILED: Self = Self(1 << 48);
    /// The scope is one part of a call, which is counted when the last part has ended: see [`super::Part`].
    pub(super) const PART: Self = Self(1 << 49);
    /// The scope is a range in an NVTX tool.
    pub(super) const RANGE: Self = Self(1 << 50);
    /// The caller of the scope is counted.
    pub(super) const CALLERS: Self = Self(1 << 51);
    /// The scope has a thread time.
    pub(super) const THREAD_TIME: Self = Self(1 << 52);
    /// The scope was opened directly inside an entry with a link: see [`Innermost::LINKED`], which has the bit above.
    pub(super) const IN_LINKED: Self = Self(1 << 53);
    /// No stream was named for the scope.
    pub(super) const NO_STREAM: Self = Self(1 << 55);
    /// The end of the scope ends a step.
    pub(super) const STEP: Self = Self(1 << 56);
    /// A session records the scope.
    pub(super) const RECORDED: Self = Self(1 << 57);
    /// The scope is on a default stream, and no context was current when it opened.
    pub(super) const NO_CONTEXT: Self = Self(1 << 58);
    /// The scope has a GPU time.
    pub(super) const CUDA: Self = Self(1 << 59);
    /// The scope must close on the slow path: its start was not read from the counter, or its cell is borrowed.
    pub(super) const SLOW_END: Self = Self(1 << 60);
    /// A default logger logs this call.
    pub(super) const LOGGED: Self = Self(1 << 61);
    /// The thread was panicking when the scope opened.
    pub(super) const UNWINDING: Self = Self(1 << 62);
    /// The thread had no cell when the scope opened: it had ended, or there was no memory. Instead of a serial the scope
    /// has the id of its name.
    pub(super) const DETACHED: Self = Self(1 << 63);

    const EACH: [Self; 15] = [
        Self::DETAILED,
        Self::PART,
        Self::RANGE,
        Self::CALLERS,
        Self::THREAD_TIME,
        Self::IN_LINKED,
        Self::NO_STREAM,
        Self::STEP,
        Self::RECORDED,
        Self::NO_CONTEXT,
        Self::CUDA,
        Self::SLOW_END,
        Self::LOGGED,
        Self::UNWINDING,
        Self::DETACHED,
    ];

    /// Returns these flags if `is_set`, else none.
    #[inline(always)]
    pub(super) const fn when(self, is_set: bool) -> Self {
        if is_set { self } else { Self::NONE }
    }

    #[inline(always)]
    pub(super) const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    pub(super) const fn except(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// Returns `true` if one of `others` is set.
    #[inline(always)]
    pub(super) const fn has(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }

    /// Returns the flags of a scope for a decision to record or to log it.
    #[inline(always)]
    pub(super) fn of_decision(decision: SiteDecision) -> Self {
        // Each flag is as many bits above that of the decision, so that the compiler moves the two with one shift.
        const _: () = {
            let (logged, recorded) = (SiteDecision::LOGGED as u64, SiteDecision::RECORDED as u64);
            assert!(Flags::LOGGED.0 / logged == Flags::RECORDED.0 / recorded);
        };
        Self::RECORDED
            .when(decision.is_recorded())
            .and(Self::LOGGED.when(decision.is_logged()))
    }
}

// No two flags share a bit, none is a bit of a serial or of `innermost`, and an id fits in the place of a serial.
const _: () = {
    let mut taken = SERIALS | Innermost::LINKED;
    let mut flags = Flags::EACH.as_slice();
    while let [flag, rest @ ..] = flags {
        assert!(flag.0.is_power_of_two() && flag.0 & taken == 0);
        taken |= flag.0;
        flags = rest;
    }
    assert!(SERIALS >= u32::MAX as u64);
};

/// The serial of an open scope, and its flags. With a flag, it has another word than any [`Innermost`], so that one
/// comparison finds both that a scope is the innermost one and that it is ordinary.
#[derive(Clone, Copy)]
pub(super) struct Serial(u64);

impl Serial {
    /// Returns a serial without flags.
    #[inline(always)]
    pub(super) const fn new(serial: u64) -> Self {
        Self(serial)
    }

    /// Returns what a [detached](Flags::DETACHED) scope of the name with this id has instead of a serial.
    pub(super) const fn detached(id: u32) -> Self {
        Self(Flags::DETACHED.0 | id as u64)
    }

    /// Returns the serial without flags.
    #[inline(always)]
    pub(super) const fn number(self) -> u64 {
        self.0 & SERIALS
    }

    /// Returns the serial without these flags. It equals what is innermost only if no other flag is set.
    #[inline(always)]
    pub(super) const fn without(self, allowed: Flags) -> u64 {
        self.0 & !allowed.0
    }

    /// Returns which of these flags are set.
    #[inline(always)]
    pub(super) const fn flags(self, of: Flags) -> Flags {
        Flags(self.0 & of.0)
    }

    #[inline(always)]
    pub(super) const fn add(&mut self, flags: Flags) {
        self.0 |= flags.0;
    }

    pub(super) const fn remove(&mut self, flags: Flags) {
        self.0 &= !flags.0;
    }
}
