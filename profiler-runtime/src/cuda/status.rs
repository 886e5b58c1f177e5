//! What there is of CUDA, in words.

use std::fmt;

use crate::cuda::ffi::library;

/// What there is of CUDA, as far as the profiler has found out. It displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// `PROFILER_BACKEND=cpu`: GPU times are not wanted.
    Off,
    /// The crate was built without its feature `cuda`.
    NotBuilt,
    /// The program has not loaded the driver's library so far, and nothing asked for GPU times.
    NotLoaded,
    /// The program has the driver's library, and has not initialised it so far.
    NotInitialised,
    /// There is no driver library to be loaded.
    NoLibrary {
        /// What the system's loader said.
        reason: String,
    },
    /// The driver's library is there, a device is not.
    NoDevice,
    /// The driver is older than CUDA 11.
    TooOld {
        /// The first function that it lacks.
        symbol: String,
    },
    /// The driver could not be initialised.
    InitFailed {
        /// The driver's code.
        code: u32,
        /// The name that the driver has for it.
        name: String,
    },
    /// GPU times can be taken.
    Ready {
        /// The names of the devices.
        devices: Vec<String>,
        /// The CUDA version of the driver: `12040` for 12.4.
        driver_version: i32,
    },
}

impl Status {
    /// Whether GPU times can be taken.
    ///
    /// # Examples
    ///
    /// ```
    /// let status = profiler_runtime::cuda::status();
    /// if !status.is_ready() {
    ///     println!("timing on the CPU: {status}");
    /// }
    /// ```
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("GPU times are off (PROFILER_BACKEND=cpu)"),
            Self::NotBuilt => f.write_str(
                "profiler-runtime was built without its feature `cuda`: build it with the feature",
            ),
            Self::NotLoaded => f.write_str("the program has not loaded the CUDA driver"),
            Self::NotInitialised => f.write_str("the program has not initialised the CUDA driver"),
            Self::NoLibrary { reason } => write!(
                f,
                "there is no CUDA driver ({reason}): install NVIDIA's driver, or name its library in \
                 PROFILER_CUDA_LIBRARY"
            ),
            Self::NoDevice => f.write_str(
                "the CUDA driver found no device: check `nvidia-smi` and CUDA_VISIBLE_DEVICES",
            ),
            Self::TooOld { symbol } => write!(
                f,
                "the CUDA driver lacks {symbol}: install a driver for CUDA 11 or later (450 or later)"
            ),
            Self::InitFailed { code, name } => write!(
                f,
                "the CUDA driver could not be initialised ({name}, code {code}): see what `nvidia-smi` says"
            ),
            Self::Ready {
                devices,
                driver_version,
            } => {
                let (major, minor) = (driver_version / 1000, driver_version % 1000 / 10);
                write!(f, "CUDA {major}.{minor} on {}", listed(devices))
            }
        }
    }
}

/// `A`, or `8 x A, B`.
fn listed(devices: &[String]) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for device in devices {
        match kinds.iter_mut().find(|(name, _)| name == device) {
            Some((_, count)) => *count += 1,
            None => kinds.push((device, 1)),
        }
    }
    let texts: Vec<String> = kinds
        .iter()
        .map(|(name, count)| match count {
            1 => (*name).to_owned(),
            _ => format!("{count} x {name}"),
        })
        .collect();
    texts.join(", ")
}

/// What there is of CUDA: looks for the driver, and initialises it.
///
/// A program that uses CUDA has done so before, or does it later anyway; in one that does not it may
/// take a part of a second, and memory on each device.
///
/// # Examples
///
/// ```
/// println!("{}", profiler_runtime::cuda::status());
/// ```
#[must_use]
pub fn status() -> Status {
    library::detect()
}

/// Why GPU times that were asked for cannot be had.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("GPU times were asked for (PROFILER_BACKEND=cuda) and cannot be had: {status}")]
pub struct CudaError {
    /// What there is instead.
    pub status: Status,
}

impl fmt::Debug for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_one_kind_are_counted() {
        let status = Status::Ready {
            devices: vec!["H200".into(), "H200".into(), "T4".into()],
            driver_version: 12_040,
        };
        assert_eq!(status.to_string(), "CUDA 12.4 on 2 x H200, T4");
    }
}
