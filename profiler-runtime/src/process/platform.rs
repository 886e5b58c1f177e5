//! Clocks, the process id and the environment, also on targets whose standard library panics when asked for them.
//!
//! `wasm32-unknown-unknown` has no operating system: no clock, threads, files, environment or process id. WASI has
//! clocks, files and an environment, but no process id. Elsewhere everything here is the standard library's.

pub(crate) use self::clocks::{HAS_CLOCK, Instant, wall_time};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub(crate) use std::env::vars_os;

/// Clocks of the standard library.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod clocks {
    use std::time::SystemTime;

    pub(crate) use std::time::Instant;

    /// `true` if the target has clocks. Without them nothing is measured.
    pub(crate) const HAS_CLOCK: bool = true;

    /// Returns the wall time.
    pub(crate) fn wall_time() -> SystemTime {
        SystemTime::now()
    }
}

/// Clocks that stand still, where reading one of the standard library's panics.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod clocks {
    use std::time::{Duration, SystemTime};

    pub(crate) const HAS_CLOCK: bool = false;

    /// Stands in for [`std::time::Instant`]. All readings are equal.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Instant(Duration);

    impl Instant {
        pub(crate) fn now() -> Self {
            Self(Duration::ZERO)
        }

        pub(crate) fn elapsed(self) -> Duration {
            Self::now().saturating_duration_since(self)
        }

        pub(crate) fn checked_add(self, duration: Duration) -> Option<Self> {
            self.0.checked_add(duration).map(Self)
        }

        pub(crate) fn saturating_duration_since(self, earlier: Self) -> Duration {
            self.0.saturating_sub(earlier.0)
        }
    }

    /// Returns the Unix epoch.
    pub(crate) fn wall_time() -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Returns the id of the process, or 1 on a target that has no processes.
pub(crate) fn process_id() -> u32 {
    #[cfg(target_family = "wasm")]
    return 1;
    #[cfg(not(target_family = "wasm"))]
    std::process::id()
}

/// Returns no variables: the target has no environment.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub(crate) fn vars_os() -> std::iter::Empty<(std::ffi::OsString, std::ffi::OsString)> {
    std::iter::empty()
}
