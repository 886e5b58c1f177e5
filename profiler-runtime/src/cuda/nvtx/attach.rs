//! Finds the tool and initializes it.

use std::env;
use std::ffi::{OsString, c_void};
use std::mem::{self, ManuallyDrop};
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use profiler_cuda_sys::library::Library;
use profiler_cuda_sys::nvtx::{Domain, Initialize, core2, export_table};
use profiler_host::diagnostics;
use profiler_host::process::{fork, privileges};
use profiler_host::sync::{RaceCell, ReentrancyGuard};

use super::Category;
use crate::config::Nvtx;
use crate::switch::{Control, with_control};

/// The variable in which a tool passes the path of its injection library.
const VARIABLE: &str = if cfg!(target_pointer_width = "64") {
    "NVTX_INJECTION64_PATH"
} else {
    "NVTX_INJECTION32_PATH"
};

/// The tool, once it is initialized.
#[derive(Debug)]
pub(super) struct Tool {
    /// The domain of all ranges.
    pub(super) domain: Domain,
}

// SAFETY: the domain is a handle of the tool, which takes it on each thread. Nothing here dereferences it.
unsafe impl Send for Tool {}
// SAFETY: as above.
unsafe impl Sync for Tool {}

static TOOL: RaceCell<Tool> = RaceCell::new();

/// Returns the tool. Returns `None` in a forked child: another thread may have held a lock of the tool.
#[inline]
pub(super) fn tool() -> Option<&'static Tool> {
    TOOL.get().filter(|_| !fork::is_child())
}

/// Returns `true` if there is a tool that takes ranges.
pub(crate) fn is_attached() -> bool {
    tool().is_some()
}

/// Why there are no ranges.
#[derive(Debug, thiserror::Error)]
enum NoTool {
    #[error(
        "PROFILER_NVTX asks for ranges, but no tool is there, since {VARIABLE} is not set: start the program with one, \
         such as `nsys profile -t nvtx` or `ncu --nvtx`"
    )]
    NotSet,
    #[error(
        "{VARIABLE} is ignored, since the program runs with raised privileges and its environment must not choose what \
         it loads: no NVTX tool gets ranges"
    )]
    RaisedPrivileges,
    #[error(
        "no NVTX tool gets ranges: the library in {VARIABLE} cannot be loaded: {0}; correct the path, or set \
         PROFILER_NVTX=0"
    )]
    NotLoaded(String),
    #[error(
        "no NVTX tool gets ranges: the library in {VARIABLE}, {0}, has no function InitializeInjectionNvtx2, and so is \
         no tool for NVTX 3; correct the path, or set PROFILER_NVTX=0"
    )]
    NoFunction(String),
    #[error("no NVTX tool gets ranges: the one in {VARIABLE}, {0}, refuses this program")]
    Refused(String),
    #[error("no NVTX tool gets ranges: the one in {VARIABLE}, {0}, takes none")]
    TakesNone(String),
}

/// Looks for a tool and initializes it, once in the process. Call sites decide again if there is one.
pub(crate) fn attach(setting: Nvtx) {
    static TRIED: AtomicBool = AtomicBool::new(false);

    // An empty value counts as unset, as for the profiler's own variables.
    let path = env::var_os(VARIABLE).filter(|path| !path.is_empty());
    let is_wanted = setting == Nvtx::On || setting == Nvtx::Auto && path.is_some();
    if !is_wanted || fork::is_child() || TRIED.swap(true, Relaxed) {
        return;
    }
    let attached = {
        // Memory that the loader takes is not the program's.
        let _reentrancy = ReentrancyGuard::try_enter();
        initialize(path)
    };
    match attached {
        Ok(tool) => {
            TOOL.get_or_init(|| tool);
            with_control(Control::new_generation);
            warn_of_missing_functions();
        }
        Err(reason) => diagnostics::warn_once(&reason.to_string()),
    }
}

fn initialize(path: Option<OsString>) -> Result<Tool, NoTool> {
    let path = path.ok_or(NoTool::NotSet)?;
    if privileges::are_raised() {
        return Err(NoTool::RaisedPrivileges);
    }
    let path = Path::new(&path);
    let shown = || path.display().to_string();
    // SAFETY: runs the initialisers of the library. The user or the tool that started the program says by the variable
    // that it is a tool, for which every program that uses NVTX would load it.
    let library = unsafe { Library::load(path) }.map_err(NoTool::NotLoaded)?;
    let initialize = library.symbol(c"InitializeInjectionNvtx2");
    let initialize = initialize.ok_or_else(|| NoTool::NoFunction(shown()))?;
    // SAFETY: the interface gives the function under this name this type.
    let initialize = unsafe { mem::transmute::<*mut c_void, Initialize>(initialize) };
    // SAFETY: the function is called once, and gets the function that the interface asks for.
    if unsafe { initialize(export_table) } == 0 {
        return Err(NoTool::Refused(shown()));
    }
    // Never closed: the tool's functions are called until the process ends.
    let _library = ManuallyDrop::new(library);
    if !takes_scopes() && !takes_futures() {
        return Err(NoTool::TakesNone(shown()));
    }
    let domain = core2::domain_create().map_or(ptr::null_mut(), |create| {
        // SAFETY: the tool has filled the entry in with a function of this type. It copies the text.
        unsafe { create(c"profiler".as_ptr()) }
    });
    if let Some(name_category) = core2::name_category() {
        for (category, name) in Category::ALL {
            // SAFETY: as above; the domain is the tool's.
            unsafe { name_category(domain, category as u32, name.as_ptr()) };
        }
    }
    Ok(Tool { domain })
}

fn takes_scopes() -> bool {
    core2::range_push().is_some() && core2::range_pop().is_some()
}

fn takes_futures() -> bool {
    core2::range_start().is_some() && core2::range_end().is_some()
}

fn warn_of_missing_functions() {
    if !takes_scopes() {
        diagnostics::warn_once(
            "the NVTX tool takes no ranges that are pushed and popped: it gets those of futures only",
        );
    }
    if !takes_futures() {
        diagnostics::warn_once(
            "the NVTX tool takes no ranges that end on other threads: it gets none of futures",
        );
    }
}
