//! What a call site has decided, in one word.

/// What a call under a name may do, in one word: the name's number and flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SiteDecision(pub(crate) u32);

impl SiteDecision {
    pub(crate) const EXCLUDED: u32 = 1 << 31;
    pub(crate) const LOGGED: u32 = 1 << 30;
    /// The clock is not a counter that can be read in place.
    pub(crate) const SYSTEM_CLOCK: u32 = 1 << 29;
    /// GPU time is taken where there is a stream.
    pub(crate) const CUDA: u32 = 1 << 28;
    /// The program may load the CUDA driver yet.
    pub(crate) const PROBING: u32 = 1 << 27;
    /// A session records calls.
    pub(crate) const RECORDED: u32 = 1 << 26;
    /// Each call ends a step of the environment's session.
    pub(crate) const STEP: u32 = 1 << 25;
    pub(crate) const FLAGS: u32 = Self::EXCLUDED
        | Self::LOGGED
        | Self::SYSTEM_CLOCK
        | Self::CUDA
        | Self::PROBING
        | Self::RECORDED
        | Self::STEP;

    pub(crate) fn id(self) -> u32 {
        self.0 & !Self::FLAGS
    }

    /// The whole word: the name's number where no flag is set, else more than any number.
    #[inline]
    pub(crate) fn raw(self) -> u32 {
        self.0
    }

    /// The same for a call whose log builder is taken care of.
    #[inline]
    pub(crate) fn unlogged(self) -> Self {
        Self(self.0 & !Self::LOGGED)
    }

    /// Whether the filter leaves the name out.
    pub(crate) fn is_excluded(self) -> bool {
        self.0 & Self::EXCLUDED != 0
    }

    /// Whether GPU time is taken where there is a stream.
    #[inline]
    pub(crate) fn is_cuda(self) -> bool {
        self.0 & Self::CUDA != 0
    }

    /// Returns `true` if the program might load the CUDA driver later.
    pub(crate) fn is_probing(self) -> bool {
        self.0 & Self::PROBING != 0
    }

    /// Whether a session records calls.
    #[inline]
    pub(crate) fn is_recorded(self) -> bool {
        self.0 & Self::RECORDED != 0
    }

    /// Whether each call ends a step of the environment's session.
    #[inline]
    pub(crate) fn is_step(self) -> bool {
        self.0 & Self::STEP != 0
    }

    /// Whether a default logger takes calls under this name.
    #[inline]
    pub(crate) fn is_logged(self) -> bool {
        self.0 & Self::LOGGED != 0
    }
}
