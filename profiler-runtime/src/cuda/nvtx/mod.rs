//! Ranges for tools that understand NVTX, NVIDIA's interface between programs and tools such as Nsight Systems.
//!
//! NVTX has no library. A tool starts the program with the path of its injection library in a variable, or waits in the CUDA
//! driver; the profiler loads it, and calls the functions that it provides (see [`profiler_cuda_sys::nvtx`]). Without a tool
//! nothing happens, and call sites decide as if the module did not exist.
//!
//! All ranges are in one domain, `profiler`. The scopes of a thread are pushed and popped; a future, which may end on
//! another thread than it began on, is started and ended. Each name is registered once, when its first call site decides:
//! a tool then stores a handle with each range instead of a text, and Nsight Systems can begin to capture at a range.
//!
//! A tool keeps a stack for each thread and ends the innermost range. If a guard is dropped before a younger one, the range
//! of the younger one ends with it, and the row counts both as out of order.
//!
//! A forked child gives no ranges: another thread may have held a lock of the tool.

mod attach;
mod injection;
mod names;
mod streams;

use std::ptr;

use profiler_cuda_sys::nvtx::{Attributes, core, core2};
use profiler_host::diagnostics;
use profiler_host::process::thread;

use self::attach::{Tool, tool};
pub(crate) use self::attach::{attach, is_attached};
use self::names::RegisteredName;
pub(crate) use self::names::register;
pub(crate) use self::streams::name_stream;
use crate::local;
use crate::switch::SiteDecision;

/// The category of a range, which tools can filter by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Category {
    /// A call of a function that is named by its path.
    Function = 1,
    /// A section or a function whose name the program chose.
    Section = 2,
    Future = 3,
    /// A call that ends a step of the environment's session.
    Step = 4,
}

impl Category {
    const ALL: [(Self, &'static std::ffi::CStr); 4] = [
        (Self::Function, c"function"),
        (Self::Section, c"section"),
        (Self::Future, c"future"),
        (Self::Step, c"step"),
    ];
}

/// The range of a future that has been polled, by the tool's number for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FutureRange(u64);

impl FutureRange {
    /// Tools give no range this number.
    pub(crate) const NONE: Self = Self(0);
}

/// Pushes a range on the calling thread for the scope with this serial. Returns `false` if the scope gets none.
pub(crate) fn push(decision: SiteDecision, serial: u64, step: Option<u64>) -> bool {
    let Some((tool, name)) = range_of(decision) else {
        return false;
    };
    // Both or neither: a tool that took only one of them would count wrong.
    let (Some(push), Some(_)) = (core2::range_push(), core2::range_pop()) else {
        return false;
    };
    if !local::begin_range(serial) {
        diagnostics::warn_once(
            "more scopes were open on a thread than the profiler keeps NVTX ranges for: those inside have none",
        );
        return false;
    }
    name_thread();
    let attributes = name.attributes(category(decision, name.category), step);
    // SAFETY: the tool has filled the entry in with a function of this type. The attributes and what they point to live
    // for the call, and a registered string is of the same domain.
    unsafe { push(tool.domain, &raw const attributes) };
    true
}

/// Pops the range of the scope with this serial, and the ranges inside it.
pub(crate) fn pop(serial: u64) {
    pop_times(local::end_range(serial));
}

/// Pops the ranges that the poll with this serial has left open.
#[cold]
pub(crate) fn pop_inside(poll: u64) {
    pop_times(local::end_ranges_inside(poll));
}

fn pop_times(ranges: usize) {
    let (Some(tool), Some(pop)) = (tool(), core2::range_pop()) else {
        return;
    };
    for _ in 0..ranges {
        // SAFETY: the tool has filled the entry in with a function of this type. It is the tool's domain.
        unsafe { pop(tool.domain) };
    }
}

/// Starts the range of a future.
pub(crate) fn start(decision: SiteDecision, step: Option<u64>) -> FutureRange {
    let Some((tool, name)) = range_of(decision) else {
        return FutureRange::NONE;
    };
    let (Some(start), Some(_)) = (core2::range_start(), core2::range_end()) else {
        return FutureRange::NONE;
    };
    name_thread();
    let attributes = name.attributes(category(decision, Category::Future), step);
    // SAFETY: as in `push`.
    FutureRange(unsafe { start(tool.domain, &raw const attributes) })
}

/// Ends the range of a future, on whichever thread.
#[inline]
pub(crate) fn end(range: FutureRange) {
    if range.0 != FutureRange::NONE.0 {
        end_started(range);
    }
}

#[cold]
fn end_started(range: FutureRange) {
    if let (Some(tool), Some(end)) = (tool(), core2::range_end()) {
        // SAFETY: the tool has filled the entry in with a function of this type, and has given the range this number.
        unsafe { end(tool.domain, range.0) };
    }
}

fn range_of(decision: SiteDecision) -> Option<(&'static Tool, &'static RegisteredName)> {
    Some((tool()?, names::get(decision.id())?))
}

fn category(decision: SiteDecision, other: Category) -> Category {
    if decision.is_step() {
        Category::Step
    } else {
        other
    }
}

/// Gives the calling thread its name in the tool, before its first range.
fn name_thread() {
    if local::first_range() {
        let thread = std::thread::current();
        let id = thread::system_id().and_then(|id| u32::try_from(id).ok());
        if let (Some(name), Some(id), Some(set)) = (thread.name(), id, core::name_os_thread()) {
            let name = names::c_string(name);
            // SAFETY: the tool has filled the entry in with a function of this type. It copies the text.
            unsafe { set(id, name.as_ptr()) };
        }
    }
}

impl RegisteredName {
    fn attributes(&self, category: Category, step: Option<u64>) -> Attributes {
        let mut attributes = Attributes::new(category as u32, self.colour);
        if let Some(step) = step {
            attributes.set_payload(step);
        }
        if self.handle.is_null() {
            attributes.set_text(ptr::from_ref(&*self.text).cast());
        } else {
            attributes.set_registered(self.handle);
        }
        attributes
    }
}
