//! The state of CUDA in this process, as users see it.

use std::fmt;

/// The state of CUDA in this process, as far as the profiler knows. It displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// GPU times are switched off: `PROFILER_BACKEND=cpu`.
    Off,
    /// The crate was built without its feature `cuda`, or for WebAssembly.
    NotBuilt,
    /// The program has not loaded the driver library yet, and GPU times were not requested.
    NotLoaded,
    /// The program has loaded the driver library and has not initialised it yet.
    NotInitialised,
    /// The driver library could not be loaded.
    NoLibrary {
        /// The error of the system's dynamic loader.
        reason: String,
    },
    /// The driver found no device.
    NoDevice,
    /// The driver is older than CUDA 11.
    TooOld {
        /// The first required function that the driver lacks.
        symbol: String,
    },
    /// The driver could not be initialised.
    InitFailed {
        /// The driver's result code.
        code: u32,
        /// The driver's name of the code.
        name: String,
    },
    /// GPU times can be measured.
    Ready {
        /// The names of the devices.
        devices: Vec<String>,
        /// The CUDA version that the driver supports: `12040` for 12.4.
        driver_version: i32,
    },
}

impl Status {
    /// Returns `true` if GPU times can be measured.
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
            Self::Off => f.write_str("GPU times are off, since the backend is `cpu`"),
            Self::NotBuilt if cfg!(target_family = "wasm") => {
                f.write_str("WebAssembly has no CUDA")
            }
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
                let version = version_text(*driver_version);
                write!(f, "CUDA {version} on {}", listed(devices))
            }
        }
    }
}

/// Returns a version as people write it: `12.4` for `12040`.
pub(crate) fn version_text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Lists device names, with equal names counted: `A`, or `8 x A, B`.
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

/// The error of [`init`](crate::init) if GPU times were requested and cannot be measured.
///
/// `Debug` shows the message of `Display` too, since a `main` that returns the error prints it with `Debug`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("GPU times were requested by the backend `cuda`, and cannot be measured: {status}")]
pub struct CudaError {
    /// The state of CUDA that makes GPU times impossible.
    pub status: Status,
}

impl fmt::Debug for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CudaError").field(&self.to_string()).finish()
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
