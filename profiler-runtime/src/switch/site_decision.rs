//! The decision of a call site, packed into words.

/// The decision for the calls under a name: the name's id and flags, in one word.
///
/// The id is the word itself if no flag is set. With a flag the word is larger than any id, so that the fast path needs
/// one comparison to find both that the id is in range and that the call is an ordinary one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SiteDecision(u32);

impl SiteDecision {
    /// The filter excludes the name, or measuring is off.
    pub(crate) const EXCLUDED: u32 = 1 << 31;
    /// A default logger logs calls.
    pub(crate) const LOGGED: u32 = 1 << 30;
    /// The clock is not a counter that can be read in place.
    pub(crate) const SYSTEM_CLOCK: u32 = 1 << 29;
    /// Calls that have a stream have a GPU time.
    pub(crate) const CUDA: u32 = 1 << 28;
    /// A session records calls.
    pub(crate) const RECORDED: u32 = 1 << 26;
    /// Each call ends a step of the environment's session.
    pub(crate) const STEP: u32 = 1 << 25;
    /// Calls have a thread time.
    pub(crate) const THREAD_TIME: u32 = 1 << 24;
    /// Callers are counted.
    pub(crate) const CALLERS: u32 = 1 << 23;
    /// Calls are ranges in an NVTX tool.
    pub(crate) const RANGES: u32 = 1 << 22;

    const FLAGS: u32 = Self::EXCLUDED
        | Self::LOGGED
        | Self::SYSTEM_CLOCK
        | Self::CUDA
        | Self::RECORDED
        | Self::STEP
        | Self::THREAD_TIME
        | Self::CALLERS
        | Self::RANGES;

    /// Returns the decision without a flag for the name with this id.
    pub(crate) const fn new(id: u32) -> Self {
        Self(id)
    }

    /// Returns the decision with `flag` added if `is_set`.
    #[must_use]
    pub(crate) const fn with(self, flag: u32, is_set: bool) -> Self {
        Self(self.0 | if is_set { flag } else { 0 })
    }

    /// Returns the id of the name.
    pub(crate) fn id(self) -> u32 {
        self.0 & !Self::FLAGS
    }

    /// Returns `true` if no flag is set: the fast path will do.
    pub(super) fn is_plain(self) -> bool {
        self.0 & Self::FLAGS == 0
    }

    /// Returns `true` if no flags are set but those of calls that are logged, recorded or have a GPU time.
    #[inline]
    pub(crate) fn is_direct(self) -> bool {
        self.0 & (Self::FLAGS & !(Self::LOGGED | Self::RECORDED | Self::CUDA)) == 0
    }

    /// Returns the whole word: the id if no flag is set, else more than any id.
    #[inline]
    pub(crate) fn raw(self) -> u32 {
        self.0
    }

    /// Returns the decision without `LOGGED`, for a call whose logging has been decided.
    #[inline]
    pub(crate) fn without_logging(self) -> Self {
        Self(self.0 & !Self::LOGGED)
    }

    /// Returns the decision for one part of a call, without what is done once the call has ended.
    #[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
    pub(crate) fn for_part(self) -> Self {
        Self(self.0 & !(Self::LOGGED | Self::STEP | Self::CALLERS))
    }

    /// Returns `true` if calls are not measured.
    pub(crate) fn is_excluded(self) -> bool {
        self.0 & Self::EXCLUDED != 0
    }

    /// Returns `true` if calls that have a stream have a GPU time.
    #[inline]
    pub(crate) fn is_cuda(self) -> bool {
        self.0 & Self::CUDA != 0
    }

    /// Returns `true` if a session records calls.
    #[inline]
    pub(crate) fn is_recorded(self) -> bool {
        self.0 & Self::RECORDED != 0
    }

    /// Returns `true` if each call ends a step of the environment's session.
    #[inline]
    pub(crate) fn is_step(self) -> bool {
        self.0 & Self::STEP != 0
    }

    /// Returns `true` if calls have a thread time.
    #[inline]
    pub(crate) fn has_thread_time(self) -> bool {
        self.0 & Self::THREAD_TIME != 0
    }

    /// Returns `true` if callers are counted.
    #[inline]
    pub(crate) fn counts_callers(self) -> bool {
        self.0 & Self::CALLERS != 0
    }

    /// Returns `true` if calls are ranges in an NVTX tool.
    #[inline]
    pub(crate) fn has_ranges(self) -> bool {
        self.0 & Self::RANGES != 0
    }

    /// Returns `true` if a default logger logs calls.
    #[inline]
    pub(crate) fn is_logged(self) -> bool {
        self.0 & Self::LOGGED != 0
    }
}

/// A [`SiteDecision`] and the switch word it was made under, in one word that a call site loads and stores at once.
///
/// The decision holds while the switch word is the same. The upper half is the switch word, the lower half the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StampedDecision(u64);

impl StampedDecision {
    /// No decision: no switch word is zero, except while measuring is off.
    pub(crate) const NONE: Self = Self(0);

    pub(crate) const fn new(switch: u32, decision: SiteDecision) -> Self {
        Self((switch as u64) << 32 | decision.0 as u64)
    }

    pub(crate) const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    pub(crate) const fn raw(self) -> u64 {
        self.0
    }

    /// Returns the same with `flag` added to the decision if `is_set`.
    #[must_use]
    pub(crate) const fn with(self, flag: u32, is_set: bool) -> Self {
        Self::new(self.switch(), self.decision().with(flag, is_set))
    }

    /// Returns the decision if it was made under this switch word.
    #[inline]
    pub(crate) fn under(self, switch: u32) -> Option<SiteDecision> {
        (self.switch() == switch).then_some(self.decision())
    }

    /// Returns the decision, unless it was made while measuring was off.
    pub(crate) fn if_on(self) -> Option<SiteDecision> {
        (!super::is_off(self.switch())).then_some(self.decision())
    }

    /// Returns the same as made under no switch word of a program that has begun to measure.
    #[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
    pub(crate) fn not_current(self) -> Self {
        Self::new(super::UNINITIALIZED, self.decision())
    }

    /// Returns the decision under whatever switch word it was made.
    #[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
    pub(crate) fn last(self) -> Option<SiteDecision> {
        (self != Self::NONE).then_some(self.decision())
    }

    /// Returns the id of the name it was made for. It holds under any switch word.
    pub(crate) fn id(self) -> Option<u32> {
        (self != Self::NONE).then_some(self.decision().id())
    }

    #[inline]
    const fn switch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "the lower half")]
    const fn decision(self) -> SiteDecision {
        SiteDecision(self.0 as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::MAX_NAMES;

    const FLAGS: [u32; 9] = [
        SiteDecision::EXCLUDED,
        SiteDecision::LOGGED,
        SiteDecision::SYSTEM_CLOCK,
        SiteDecision::CUDA,
        SiteDecision::RECORDED,
        SiteDecision::STEP,
        SiteDecision::THREAD_TIME,
        SiteDecision::CALLERS,
        SiteDecision::RANGES,
    ];

    #[test]
    fn each_flag_has_a_bit_of_its_own_above_all_ids() {
        let largest = u32::try_from(MAX_NAMES - 1).unwrap();
        let mut all = 0;
        for flag in FLAGS {
            assert_eq!(flag.count_ones(), 1);
            assert_eq!(all & flag, 0);
            all |= flag;
            assert!(flag > largest);
            let decision = SiteDecision::new(largest).with(flag, true);
            assert_eq!(decision.id(), largest);
            assert!(decision.raw() > largest);
        }
        assert_eq!(all, SiteDecision::FLAGS);
    }

    #[test]
    fn a_flag_is_set_only_where_it_is_wanted() {
        let plain = SiteDecision::new(7);
        assert_eq!(plain.with(SiteDecision::CUDA, false), plain);
        let logged = plain
            .with(SiteDecision::LOGGED, true)
            .with(SiteDecision::STEP, true);
        assert!(logged.is_logged() && logged.is_step() && !logged.is_cuda());
        let without = logged.without_logging();
        assert!(!without.is_logged() && without.is_step());
    }

    #[test]
    fn a_decision_holds_under_the_switch_word_it_was_made_under() {
        let decision = SiteDecision::new(9).with(SiteDecision::RECORDED, true);
        let stamped = StampedDecision::new(5, decision);
        assert_eq!(stamped.under(5), Some(decision));
        assert_eq!(stamped.under(7), None);
        assert_eq!(StampedDecision::from_raw(stamped.raw()), stamped);
        assert_eq!(stamped.id(), Some(9));
        assert_eq!(StampedDecision::NONE.id(), None);
        assert_eq!(stamped.if_on(), Some(decision));
        assert_eq!(StampedDecision::new(4, decision).if_on(), None);
    }

    #[test]
    fn adding_a_flag_keeps_the_switch_word() {
        let stamped = StampedDecision::new(u32::MAX, SiteDecision::new(3));
        let decision = stamped.with(SiteDecision::CUDA, true).under(u32::MAX);
        assert!(decision.is_some_and(SiteDecision::is_cuda));
    }
}
