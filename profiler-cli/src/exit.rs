//! The exit status: one meaning per number, for all commands.

/// The status of a command line that is not valid.
pub(crate) const USAGE: u8 = 3;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Nothing was found, or the file was written.
    Done,
    /// Something was found: a violation, a slower function.
    Found,
    /// The question has no answer, such as a comparison of too few runs.
    Unclear,
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Found => 1,
            Self::Unclear => 2,
        }
    }
}
