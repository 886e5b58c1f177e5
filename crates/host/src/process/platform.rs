//! Clocks, the process id and the environment, also on targets whose standard library panics when asked for them.
//!
//! `wasm32-unknown-unknown` has no operating system: no clock, threads, files, environment or process id. WASI has
//! clocks, files and an environment, but no process id. Elsewhere everything here is the standard library's.

pub use self::clocks::{HAS_CLOCK, Instant, wall_time};
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub use std::env::vars_os;
use std::time::{Duration, SystemTime};

/// Clocks of the standard library.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
mod clocks {
    use std::time::SystemTime;

    pub use std::time::Instant;

    /// `true` if the target has clocks. Without them nothing is measured.
    pub const HAS_CLOCK: bool = true;

    /// Returns the wall time.
    pub fn wall_time() -> SystemTime {
        SystemTime::now()
    }
}

/// Clocks that stand still, where reading one of the standard library's panics.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
mod clocks {
    use std::time::{Duration, SystemTime};

    /// `false`: the target has no clock.
    pub const HAS_CLOCK: bool = false;

    /// Stands in for [`std::time::Instant`]. All readings are equal.
    #[derive(Clone, Copy, Debug)]
    pub struct Instant(Duration);

    impl Instant {
        /// Returns the only reading there is.
        pub fn now() -> Self {
            Self(Duration::ZERO)
        }

        /// Returns zero.
        pub fn elapsed(self) -> Duration {
            Self::now().saturating_duration_since(self)
        }

        /// Returns a later time; `None` if it is out of range.
        pub fn checked_add(self, duration: Duration) -> Option<Self> {
            self.0.checked_add(duration).map(Self)
        }

        /// Returns the time from `earlier` to this one; zero if it is later.
        pub fn saturating_duration_since(self, earlier: Self) -> Duration {
            self.0.saturating_sub(earlier.0)
        }
    }

    /// Returns the Unix epoch.
    pub fn wall_time() -> SystemTime {
        SystemTime::UNIX_EPOCH
    }
}

/// Returns the nanoseconds since the Unix epoch, negative before it. Saturates at the ends of 64 bits.
pub fn unix_ns(time: SystemTime) -> i64 {
    let signed = |duration: Duration| i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX);
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => signed(since),
        Err(error) => -signed(error.duration()),
    }
}

/// Returns the id of the process, or 1 on a target that has no processes.
pub fn process_id() -> u32 {
    #[cfg(target_family = "wasm")]
    return 1;
    #[cfg(not(target_family = "wasm"))]
    std::process::id()
}

/// Returns no variables: the target has no environment.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub fn vars_os() -> std::iter::Empty<(std::ffi::OsString, std::ffi::OsString)> {
    std::iter::empty()
}
