//! `profiler smi`: what the sensors of the GPUs say now.

use std::path::Path;

use clap::Args;
use profiler_sensors::{GpuState, sample_gpus};

use crate::error::Error;
use crate::exit::Exit;
use crate::output::Stdout;

/// The variable that names NVML's library, as for a measured program.
const LIBRARY: &str = "PROFILER_NVML_LIBRARY";

/// Prints what the sensors of the GPUs say now: memory, load, power, temperature and clocks.
///
/// The sensors are read once with NVML, which comes with NVIDIA's driver. `PROFILER_NVML_LIBRARY` names another library.
#[derive(Debug, Args)]
pub(crate) struct Smi {}

impl Smi {
    #[allow(clippy::unused_self, reason = "each command runs with its arguments")]
    pub(crate) fn run(self) -> Result<Exit, Error> {
        let library = std::env::var_os(LIBRARY).filter(|path| !path.is_empty());
        let gpus = sample_gpus(library.as_deref().map(Path::new)).map_err(Error::Sensors)?;
        let mut output = Stdout::new();
        let are_opened = gpus.iter().all(GpuState::is_opened);
        for gpu in gpus {
            // Its lines have no control characters.
            output.text(&format!("{gpu}\n"))?;
        }
        output.finish()?;
        Ok(if are_opened { Exit::Done } else { Exit::Found })
    }
}
