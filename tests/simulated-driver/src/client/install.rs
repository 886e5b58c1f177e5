//! Installs the driver into a folder, from which programs load it like a real one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{FILE, Simulator, SimulatorError, hide};

/// The names under which programs look for the driver.
const NAMES: [&str; 2] = ["libcuda.so", "libcuda.so.1"];

/// The version of a driver to install, and the entry points that it lacks.
#[derive(Clone, Debug)]
pub struct Installation {
    folder: PathBuf,
    version: i32,
    cupti_release: String,
    hidden: Vec<String>,
    has_libtorch: bool,
}

impl Installation {
    /// Describes a driver of the newest version. It is installed into `folder`, which is created if
    /// necessary.
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            version: crate::driver::NEWEST,
            cupti_release: crate::driver::CUPTI_RELEASE.to_owned(),
            hidden: Vec::new(),
            has_libtorch: false,
        }
    }

    /// Sets the version, such as 11040 for CUDA 11.4. The driver lacks newer entry points.
    #[must_use]
    pub fn driver_version(mut self, version: i32) -> Self {
        self.version = version;
        self
    }

    /// Sets the release of CUDA whose CUPTI is simulated, such as 13.0. The library lacks newer
    /// functions.
    #[must_use]
    pub fn cupti_release(mut self, release: &str) -> Self {
        release.clone_into(&mut self.cupti_release);
        self
    }

    /// Removes an entry point.
    #[must_use]
    pub fn without(mut self, entry_point: &str) -> Self {
        self.hidden.push(entry_point.to_owned());
        self
    }

    /// Adds a libtorch, which keeps a stream for each thread.
    #[must_use]
    pub fn libtorch(mut self) -> Self {
        self.has_libtorch = true;
        self
    }

    /// Installs a copy of the library, which shares no state with other copies, and links to it
    /// under the names of a CUDA driver.
    ///
    /// # Errors
    ///
    /// Returns an error if no driver was built, a file cannot be written, or an entry point to
    /// remove does not exist.
    pub fn create(self) -> Result<Installed, SimulatorError> {
        let mut hidden = self.hidden;
        hidden.extend(crate::driver::newer_than(self.version).map(str::to_owned));
        hidden.extend(crate::driver::cupti_newer_than(&self.cupti_release).map(str::to_owned));
        hidden.sort_unstable();
        hidden.dedup();
        std::fs::create_dir_all(&self.folder).map_err(|error| failed(&self.folder, error))?;
        let built = Simulator::built()?;
        let mut library = std::fs::read(&built).map_err(|error| failed(&built, error))?;
        for symbol in &hidden {
            hide::hide(&mut library, symbol).ok_or_else(|| SimulatorError::Hide {
                symbol: symbol.clone(),
            })?;
        }
        let path = self.folder.join(FILE);
        std::fs::write(&path, &library).map_err(|error| failed(&path, error))?;
        if self.has_libtorch {
            // No link: the loader would take it for the driver.
            let path = self.folder.join("libtorch_cuda.so");
            std::fs::write(&path, &library).map_err(|error| failed(&path, error))?;
        }
        for name in NAMES {
            let link = self.folder.join(name);
            if !link.exists() {
                std::os::unix::fs::symlink(FILE, &link).map_err(|error| failed(&link, error))?;
            }
        }
        let mut script = format!(
            "driver-version {}\ncupti release {}\n",
            self.version, self.cupti_release
        );
        for symbol in hidden {
            script.extend(["hide ", &symbol, "\n"]);
        }
        Ok(Installed {
            folder: self.folder,
            script,
        })
    }
}

fn failed(path: &Path, source: std::io::Error) -> SimulatorError {
    SimulatorError::File {
        path: path.to_owned(),
        source,
    }
}

/// An installed driver.
#[derive(Clone, Debug)]
pub struct Installed {
    folder: PathBuf,
    script: String,
}

impl Installed {
    /// Returns the path of the library file.
    pub fn library(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Returns the script that sets the driver's version. `SIMULATED_DRIVER` must begin with it.
    pub fn script(&self) -> &str {
        &self.script
    }

    /// Returns a command that runs `program` with this driver, which runs `script` first.
    pub fn command(&self, program: impl AsRef<OsStr>, script: &str) -> Command {
        let mut command = Command::new(program);
        self.set_up(&mut command, script);
        command
    }

    /// Makes `command` use this driver, which runs `script` first.
    pub fn set_up(&self, command: &mut Command, script: &str) {
        let mut path = self.folder.clone().into_os_string();
        if let Some(rest) = std::env::var_os("LD_LIBRARY_PATH").filter(|rest| !rest.is_empty()) {
            path.push(":");
            path.push(rest);
        }
        command.env("LD_LIBRARY_PATH", path);
        command.env("SIMULATED_DRIVER", format!("{}{script}", self.script));
    }
}
