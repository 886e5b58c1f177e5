//! The environment of this process.

use std::env::consts::{ARCH, OS};
use std::thread::available_parallelism;

use profiler_host::process::{host, platform, program};
use profiler_host::rank::own_rank_quietly;
use profiler_report::Environment;

use crate::clock::clock;
use crate::cuda;
use crate::switch::with_control;

/// Returns where and how this process measures. Asks the CUDA driver only if the program has initialised it.
pub(super) fn of_process() -> Environment {
    let processors = available_parallelism().map_or(0, usize::from);
    let is_anonymous = host::is_anonymous();
    let (devices, driver) = match cuda::known_status() {
        cuda::Status::Ready {
            devices,
            driver_version,
        } => (devices, Some(cuda::version_text(driver_version))),
        _ => (Vec::new(), None),
    };
    Environment {
        program: program::name(),
        process: platform::process_id(),
        rank: own_rank_quietly(),
        host: if is_anonymous {
            String::new()
        } else {
            host::name()
        },
        system: format!("{OS} {ARCH}"),
        processors: u32::try_from(processors).unwrap_or(u32::MAX),
        debug_build: cfg!(debug_assertions),
        profiler_version: env!("CARGO_PKG_VERSION").to_owned(),
        devices,
        driver,
        settings: if is_anonymous {
            Vec::new()
        } else {
            with_control(|control| control.settings.variables.clone())
        },
        start_unix_ns: clock().origin_unix_ns(),
        non_exhaustive: (),
    }
}
