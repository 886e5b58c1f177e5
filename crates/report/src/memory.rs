//! The memory that scopes used.

/// The memory that a scope used, in bytes.
///
/// Futures have none: allocations between two polls of a future belong to other scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MemoryUse {
    /// Host bytes allocated minus those freed on the scope's thread, including functions called.
    pub host_net: i64,
    /// Host bytes allocated on the scope's thread, including functions called.
    pub host_allocated: u64,
    /// The peak of the host bytes in use on the thread, above those in use when the scope opened.
    pub host_peak: u64,
    /// Host bytes in use by the process when the scope ended, above the minimum since the recording began. The absolute
    /// number is unknown, because blocks allocated before the recording are not counted.
    pub host_total: u64,
    /// Device bytes in use at the end minus those at the beginning, in the current context of the scope's thread; `None`
    /// if no context was current.
    pub device_net: Option<i64>,
    /// Device bytes in use when the scope ended.
    pub device_total: Option<u64>,
    /// Device bytes that the driver had reserved when the scope ended.
    pub device_reserved: Option<u64>,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
}
