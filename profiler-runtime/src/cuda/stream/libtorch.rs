//! The current stream of libtorch, on which scopes are measured that name no stream, if `PROFILER_CUDA_STREAM` asks for it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

use profiler_cuda_sys::libtorch::Libtorch;
use profiler_host::diagnostics;
use profiler_host::sync::{RaceCell, ReentrancyGuard};
use profiler_report::internal::RawStream;

static LIBTORCH: RaceCell<Libtorch> = RaceCell::new();
/// How often it was looked for.
static SEARCHES: AtomicU32 = AtomicU32::new(0);
/// `true` once the legacy default stream was refused.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Returns the stream on which libtorch launches what this thread asks for, in the context that is current.
///
/// A context must be current: libtorch would look for devices otherwise, and print why it finds none. The legacy default stream,
/// which libtorch has unless the program chooses another one, is returned if `allows_legacy`.
#[cold]
#[inline(never)]
pub(crate) fn current_stream(allows_legacy: bool) -> Option<RawStream> {
    // A measured allocator must not open a scope in here.
    let _guard = ReentrancyGuard::try_enter();
    let stream = libtorch()?.current_stream()?;
    if stream == RawStream::LEGACY && !allows_legacy {
        if !REFUSED.swap(true, Relaxed) {
            warn_of_legacy();
        }
        return None;
    }
    Some(stream)
}

/// Returns libtorch, if the process has loaded it. Looks for it at the first, second, fourth … call: that takes the loader's lock.
fn libtorch() -> Option<&'static Libtorch> {
    if let Some(known) = LIBTORCH.get() {
        return Some(known);
    }
    let search = SEARCHES.fetch_add(1, Relaxed).wrapping_add(1);
    if !search.is_power_of_two() {
        return None;
    }
    let found = Libtorch::loaded()?;
    Some(LIBTORCH.get_or_init(|| found))
}

/// Returns `true` if libtorch was looked for, and the process has none with CUDA.
pub(crate) fn was_missed() -> bool {
    // It may have been loaded after the last search.
    SEARCHES.load(Relaxed) > 0 && LIBTORCH.get().is_none() && Libtorch::loaded().is_none()
}

fn warn_of_legacy() {
    diagnostics::warn_once(
        "PROFILER_CUDA_STREAM: libtorch launches on the legacy default stream, where an event waits for all blocking streams and \
         they wait for it, so nothing is measured there; have libtorch launch on a stream of the program's \
         (`torch_set_current_cuda_stream` of its C interface), or accept that with PROFILER_CUDA_STREAM=libtorch-or-legacy",
    );
}
