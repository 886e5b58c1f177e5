//! What else uses the device: checks that could harm others are left out beside them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::driver::{Driver, made};
use crate::nvml::{NO_FUNCTION, Nvml, VARIABLE};
use crate::trouble::Trouble;

/// What a check does that others could notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    /// It writes to an illegal address. MPS, the service by which processes share a device, may then end all of them.
    IllegalAddress,
    /// It ends a process with work on the device, which may leave the other clients of MPS in an undefined state.
    UnfinishedWork,
    /// It resets the device, as far as it is of this process.
    Reset,
    /// It uses the device from another process.
    Process,
}

/// What was found on the machine before the suite used the device.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Neighbours {
    /// Signs of MPS.
    mps: Vec<String>,
    /// If the device is divided by MIG; `None` if it is not known.
    mig: Option<bool>,
    /// The number of processes that compute on the device; `None` if it is not known.
    processes: Option<u32>,
    /// The device serves one process at a time.
    exclusive: bool,
    /// Why NVML says nothing.
    without_nvml: Option<String>,
}

static FOUND: OnceLock<Neighbours> = OnceLock::new();

/// Looks around. The first call must be made before this process has a context.
pub(crate) fn look(driver: &Driver) -> &'static Neighbours {
    FOUND.get_or_init(|| Neighbours::look(driver))
}

/// Skips a check that could harm others.
pub(crate) fn spare(harm: Harm) -> Result<(), Trouble> {
    match FOUND.get().and_then(|found| found.objection(harm)) {
        Some(reason) => Err(Trouble::Skip(reason)),
        None => Ok(()),
    }
}

impl Neighbours {
    fn look(driver: &Driver) -> Self {
        const COMPUTE_MODE: u32 = 20;
        const EXCLUSIVE_PROCESS: i32 = 3;
        let mode: Result<i32, Trouble> = made(driver, "cuDeviceGetAttribute", |mode| {
            driver.cuDeviceGetAttribute(mode, COMPUTE_MODE, 0)
        });
        let mut found = Self {
            mps: signs_of_mps(),
            mig: None,
            processes: None,
            exclusive: mode.is_ok_and(|mode| mode == EXCLUSIVE_PROCESS),
            without_nvml: None,
        };
        if let Err(trouble) = found.ask_nvml(driver) {
            found.without_nvml = Some(trouble.to_string());
        }
        found
    }

    fn ask_nvml(&mut self, driver: &Driver) -> Result<(), Trouble> {
        /// `NVML_ERROR_INSUFFICIENT_SIZE`: there are some.
        const MORE: u32 = 7;
        if driver.is_simulated() && std::env::var_os(VARIABLE).is_none() {
            let reason = "NVML does not know a simulated device";
            return Err(Trouble::Skip(reason.to_owned()));
        }
        let nvml = Nvml::open()?;
        let uuid = made(driver, "cuDeviceGetUuid", |uuid| {
            driver.cuDeviceGetUuid(uuid, 0)
        })?;
        // A slice of MIG has a UUID of its own, and the others belong to others.
        let device = nvml.device(uuid).inspect_err(|_| self.mig = Some(true))?;
        let (mut mode, mut pending) = (0, 0);
        if nvml.mig_mode(device, &raw mut mode, &raw mut pending) == 0 {
            self.mig = Some(mode == 1);
        }
        let mut count = 0;
        let nowhere = std::ptr::null_mut();
        let code = match nvml.compute_processes(device, &raw mut count, nowhere) {
            NO_FUNCTION => nvml.compute_processes_of_470(device, &raw mut count, nowhere),
            code => code,
        };
        self.processes = matches!(code, 0 | MORE).then_some(count);
        let mut clients = 0;
        let code = nvml.mps_processes(device, &raw mut clients, nowhere);
        if matches!(code, 0 | MORE) && clients > 0 {
            self.mps.push(format!("{clients} clients, says NVML"));
        }
        Ok(())
    }

    fn objection(&self, harm: Harm) -> Option<String> {
        let others = self.processes.filter(|count| *count > 0);
        let others = others.map(|count| match count {
            1 => "another process computes on the device".to_owned(),
            _ => format!("{count} other processes compute on the device"),
        });
        let mps = self.mps.first().map(|sign| format!("MPS runs ({sign})"));
        match harm {
            Harm::IllegalAddress => {
                mps.map(|mps| format!("{mps}: an illegal address may end its other clients"))
            }
            Harm::UnfinishedWork => mps.map(|mps| {
                format!("{mps}: a process that ends with work on the device may disturb its other clients")
            }),
            Harm::Reset => {
                let reason = mps.or(others)?;
                Some(format!("{reason}: the device is not reset beside others"))
            }
            Harm::Process => {
                let reason = "the device serves one process at a time (exclusive mode)";
                (self.exclusive && mps.is_none()).then(|| reason.to_owned())
            }
        }
    }
}

impl fmt::Display for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.mps.is_empty() {
            f.write_str("no MPS")?;
        } else {
            write!(f, "MPS: {}", self.mps.join(", "))?;
        }
        match self.mig {
            Some(true) => f.write_str("; MIG is on")?,
            Some(false) => f.write_str("; MIG is off")?,
            None => f.write_str("; MIG is not known")?,
        }
        match self.processes {
            Some(0) => f.write_str("; no other process on the device")?,
            Some(1) => f.write_str("; another process on the device")?,
            Some(count) => write!(f, "; {count} other processes on the device")?,
            None => f.write_str("; other processes are not known")?,
        }
        if self.exclusive {
            f.write_str("; exclusive mode")?;
        }
        match &self.without_nvml {
            Some(reason) => write!(f, " ({reason})"),
            None => Ok(()),
        }
    }
}

/// Returns what speaks for MPS: where its clients find it, and its processes.
fn signs_of_mps() -> Vec<String> {
    let named = std::env::var_os("CUDA_MPS_PIPE_DIRECTORY").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| PathBuf::from("/tmp/nvidia-mps"));
    let control = folder.join("control");
    let mut signs = Vec::new();
    if control.exists() {
        signs.push(control.display().to_string());
    }
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| name_of_process(&entry.path()));
    // Both the server and its control have this name, which is cut off here.
    if processes.into_iter().any(|name| name == "nvidia-cuda-mps") {
        signs.push("a process nvidia-cuda-mps".to_owned());
    }
    signs
}

fn name_of_process(folder: &Path) -> Option<String> {
    let name = std::fs::read_to_string(folder.join("comm")).ok()?;
    Some(name.trim_end().to_owned())
}
