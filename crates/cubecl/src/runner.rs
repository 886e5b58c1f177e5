//! What is known on the threads of CubeCL that launch, its runners: who has asked for the next kernel under each stream id.

use std::cell::Cell;
use std::sync::Arc;
use std::thread;

use cubecl_common::device::{DeviceId, DeviceService, ServerUtilitiesHandle};
use cubecl_environment::stream::StreamId;
use profiler_runtime::HandleId;
use profiler_runtime::cuda::{LaunchCall, LaunchHookState, launch_hook_state};

use crate::counts::{NEVER_LAUNCHED, OTHER_DEVICE, UNKNOWN};

/// How many notes a runner has at once. A note is made just before its launch: only the threads that ask at the same moment need a
/// place each. Stream ids are counted up, so threads that began one after the other have different places.
const PLACES: usize = 64;

/// Who asks for the next kernel under a stream id.
#[derive(Clone, Copy)]
struct Note {
    stream: u64,
    /// `None` for a thread outside of measured functions.
    asker: Option<HandleId>,
    /// `true` if the hook was called for launches when this was noted.
    is_taken: bool,
}

thread_local! {
    /// `true` on the runners of the devices that were named.
    static IS_NAMED: Cell<bool> = const { Cell::new(false) };
    /// Notes whose kernel has not come, since the last launch here. Where nothing is launched, none is expected.
    static LEFT: Cell<u64> = const { Cell::new(0) };
    // Made without allocating, and never dropped: the hook can read it at any time.
    static NOTES: [Cell<Option<Note>>; PLACES] = const { [const { Cell::new(None) }; PLACES] };
}

/// A service beside CubeCL's own on the runner of a device. Tasks for both run in the order in which a thread queues them.
pub(crate) struct Runner;

impl DeviceService for Runner {
    fn init(_: DeviceId) -> Self {
        IS_NAMED.set(true);
        Self
    }

    fn utilities(&self) -> ServerUtilitiesHandle {
        Arc::new(())
    }
}

/// Notes who asks for the next kernel under the stream id of the task that calls this, on a runner.
///
/// `is_only` says that the note is for this runner alone, so that its kernel comes.
pub(crate) fn note(asker: Option<HandleId>, is_only: bool) {
    let stream = StreamId::current().value;
    let is_taken = launch_hook_state() == LaunchHookState::Called;
    let note = Note {
        stream,
        asker,
        is_taken,
    };
    let before = with_place(stream, |place| place.replace(Some(note)));
    let is_left = |before: Note| before.stream == stream && before.is_taken;
    if is_only && is_taken && before.is_some_and(is_left) {
        LEFT.set(LEFT.get() + 1);
    }
}

/// The launch hook. Neither locks nor allocates.
pub(crate) fn asker(launch: &LaunchCall<'_>) -> Option<HandleId> {
    // Copies, fills and graphs are not announced.
    launch.kernel()?;
    if !IS_NAMED.get() {
        if is_runner() {
            OTHER_DEVICE.add(1);
        }
        return None;
    }
    match LEFT.take() {
        0 => {}
        left => NEVER_LAUNCHED.add(left),
    }
    let stream = StreamId::current().value;
    let note = with_place(stream, |place| {
        let note = place.get().filter(|note| note.stream == stream);
        if note.is_some() {
            place.set(None);
        }
        note
    });
    if note.is_none() {
        UNKNOWN.add(1);
    }
    note?.asker
}

fn with_place<T>(stream: u64, f: impl FnOnce(&Cell<Option<Note>>) -> T) -> T {
    let index = usize::try_from(stream % PLACES as u64).unwrap_or(0);
    NOTES.with(|places| f(&places[index]))
}

/// Returns `true` on the runner of any device, by the name that CubeCL gives it.
fn is_runner() -> bool {
    thread::current()
        .name()
        .is_some_and(|name| name.starts_with("DSD-"))
}
