//! Initializes the tool that [`injection`](super::injection) finds.

use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use profiler_cuda_sys::nvtx::{Domain, core2, export_table};
use profiler_host::diagnostics;
use profiler_host::process::fork;
use profiler_host::sync::{RaceCell, ReentrancyGuard};

use super::Category;
use super::injection::{Injection, VARIABLE};
use crate::config::Nvtx;
use crate::switch::{Control, with_control};

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
pub(super) enum NoTool {
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
    #[error("PROFILER_NVTX asks for ranges, but {VARIABLE} asks for no tool: correct one of them")]
    Declined,
    #[error(
        "PROFILER_NVTX asks for ranges, and a tool says that it waits in the CUDA driver, which has none: update the driver, \
         or start the program with the tool"
    )]
    NotInDriver,
    #[error("no NVTX tool gets ranges: {0} refuses this program")]
    Refused(String),
    #[error("no NVTX tool gets ranges: {0} takes none")]
    TakesNone(String),
}

/// Looks for a tool and initializes it, once in the process. Call sites decide again if there is one.
pub(crate) fn attach(setting: Nvtx) {
    static TRIED: AtomicBool = AtomicBool::new(false);

    if setting == Nvtx::Off || fork::is_child() || TRIED.load(Relaxed) {
        return;
    }
    let injection = Injection::find();
    let is_wanted = setting == Nvtx::On || injection.is_somewhere();
    if !is_wanted || TRIED.swap(true, Relaxed) {
        return;
    }
    let attached = {
        // Memory that the loader takes is not the program's.
        let _reentrancy = ReentrancyGuard::try_enter();
        initialize(injection)
    };
    match attached {
        Ok(tool) => {
            TOOL.get_or_init(|| tool);
            with_control(Control::new_generation);
            warn_of_missing_functions();
        }
        // The file is for all programs of the user or the system.
        Err(NoTool::NotInDriver) if setting == Nvtx::Auto => {}
        Err(reason) => diagnostics::warn_once(&reason.to_string()),
    }
}

fn initialize(injection: Injection) -> Result<Tool, NoTool> {
    let (library, initialize, shown) = injection.load()?;
    // SAFETY: the function is called once, and gets the function that the interface asks for.
    if unsafe { initialize(export_table) } == 0 {
        return Err(NoTool::Refused(shown));
    }
    // Never closed: the tool's functions are called until the process ends.
    let _library = ManuallyDrop::new(library);
    if !takes_scopes() && !takes_futures() {
        return Err(NoTool::TakesNone(shown));
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
