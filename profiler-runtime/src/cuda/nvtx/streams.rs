//! Names of streams in the tool.

use std::cell::Cell;
use std::collections::BTreeSet;

use profiler_cuda_sys::nvtx::cuda;
use profiler_host::sync::{Lock, ReentrancyGuard};
use profiler_report::internal::RawStream;

use super::attach::tool;
use super::names::c_string;
use crate::name;

/// The most streams that get a name: programs that create one for each request would fill the memory of the tool.
const MAX_STREAMS: usize = 1024;

/// The streams that have a name.
static NAMED: Lock<BTreeSet<RawStream>> = Lock::new(BTreeSet::new());

thread_local! {
    /// The stream of the thread's last scope, so that one on the same stream does not take the lock of all threads.
    static LAST: Cell<RawStream> = const { Cell::new(RawStream::LEGACY) };
}

/// Names a stream after the first scope that is measured on it, whose name has the id `first`.
pub(crate) fn name_stream(stream: RawStream, first: u32) {
    let (Some(_), Some(set)) = (tool(), cuda::name_stream()) else {
        return;
    };
    // The handle of a default stream means others in other contexts or on other threads.
    if stream.is_default() || LAST.replace(stream) == stream {
        return;
    }
    let _reentrancy = ReentrancyGuard::try_enter();
    let Some(number) = number_of_new(&mut NAMED.lock(), stream) else {
        return;
    };
    let Some(name) = name::by_id(first) else {
        return;
    };
    let text = c_string(&format!("stream {number} ({})", name.text));
    // SAFETY: the tool has filled the entry in with a function of this type. It copies the text. A stream of the
    // program lives at least until the scope on it ends.
    unsafe { set(stream, text.as_ptr()) };
}

/// Returns the number of a stream, counted from 1, if it gets its name now.
fn number_of_new(named: &mut BTreeSet<RawStream>, stream: RawStream) -> Option<usize> {
    let is_new = named.len() < MAX_STREAMS && named.insert(stream);
    is_new.then_some(named.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stream_gets_a_name_once_up_to_a_bound() {
        let mut named = BTreeSet::new();
        let stream = |number| RawStream(std::ptr::without_provenance_mut(16 * number));
        assert_eq!(number_of_new(&mut named, stream(1)), Some(1));
        assert_eq!(number_of_new(&mut named, stream(2)), Some(2));
        assert_eq!(number_of_new(&mut named, stream(1)), None);
        let more =
            (3..MAX_STREAMS + 10).filter_map(|number| number_of_new(&mut named, stream(number)));
        assert_eq!(more.max(), Some(MAX_STREAMS));
    }
}
