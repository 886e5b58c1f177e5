//! What is innermost on a thread, in one word.

/// The bits of a serial. Words that hold one have flags in the bits above.
pub(crate) const SERIALS: u64 = (1 << 48) - 1;

/// The serial of the innermost open scope, poll or entered handle of a thread, and whether it has a link; see
/// [`links`](super::links).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Innermost(u64);

impl Innermost {
    /// Nothing is open.
    pub(crate) const NONE: Self = Self(0);
    /// The thread has ended.
    pub(crate) const ENDED: Self = Self(u64::MAX);
    /// The bit that tells that there is a link.
    pub(crate) const LINKED: u64 = 1 << 54;

    /// Returns the word for what has this serial and no link.
    #[inline(always)]
    pub(crate) const fn new(serial: u64) -> Self {
        Self(serial)
    }

    /// Returns the word for what has this serial and a link.
    pub(crate) const fn linked(serial: u64) -> Self {
        Self(serial | Self::LINKED)
    }

    /// Returns the serial; 0 if nothing is open.
    pub(crate) const fn serial(self) -> u64 {
        self.0 & SERIALS
    }

    /// Returns the serial if there is a link.
    pub(super) fn if_linked(self) -> Option<u64> {
        (self.is_linked() && self != Self::ENDED).then_some(self.serial())
    }

    /// Returns the serial of what has no link.
    // Without the mask, which the direct path need not apply.
    #[inline(always)]
    pub(crate) const fn unlinked(self) -> u64 {
        self.0
    }

    pub(crate) const fn is_linked(self) -> bool {
        self.0 & Self::LINKED != 0
    }
}

const _: () = assert!(SERIALS & Innermost::LINKED == 0);
