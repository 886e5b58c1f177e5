//! What is known on the threads of CubeCL that launch, its runners: who has asked for the next kernel under each stream id.

use std::cell::Cell;
use std::sync::Arc;

use cubecl_common::device::{DeviceId, DeviceService, ServerUtilitiesHandle};
use cubecl_environment::stream::StreamId;
use profiler_host::process::thread;
use profiler_runtime::HandleId;
use profiler_runtime::cuda::{LaunchCall, LaunchHookState, launch_hook_state};

use crate::counts::{NEVER_LAUNCHED, OTHER_DEVICE, UNKNOWN};

/// How many notes a runner has at once, each under a stream id of its own. A note is made just before its launch, so it is needed
/// for as long as other threads' tasks come between the two. The note of a launch that was discarded, or made elsewhere, stays
/// until the next one under its id. If all places are taken, the oldest note is dropped, which is one of these unless that
/// many threads ask at the same moment.
const PLACES: usize = 64;

/// Who asks for the next kernel under a stream id.
#[derive(Clone, Copy)]
struct Note {
    stream: u64,
    /// `None` for a thread outside of measured functions.
    asker: Option<HandleId>,
    /// `true` if the note is for this runner alone, and the hook was called for launches when it was made.
    is_expected: bool,
}

type Notes = [Cell<Option<Note>>; PLACES];

thread_local! {
    /// `true` on the runners of the devices that were named.
    static IS_NAMED: Cell<bool> = const { Cell::new(false) };
    /// Whether a thread is the runner of another device, once that was asked.
    static IS_OTHER_RUNNER: Cell<Option<bool>> = const { Cell::new(None) };
    /// Notes whose kernel has not come, since the last launch here. Where nothing is launched, none is expected.
    static LEFT: Cell<u64> = const { Cell::new(0) };
    // From the oldest to the newest, and then the free places. Made without allocating, and never dropped: the hook can read it
    // at any time.
    static NOTES: Notes = const { [const { Cell::new(None) }; PLACES] };
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

/// Returns `true` on the runner of a device that was named.
pub(crate) fn is_here() -> bool {
    IS_NAMED.get()
}

/// Notes who asks for the next kernel under the current stream id, on a runner.
///
/// `is_only` says that the note is for this runner alone, so that its kernel comes.
pub(crate) fn note(asker: Option<HandleId>, is_only: bool) {
    let stream = StreamId::current().value;
    let is_expected = is_only && launch_hook_state() == LaunchHookState::Called;
    let note = Note {
        stream,
        asker,
        is_expected,
    };
    let dropped = NOTES.with(|notes| add(notes, note));
    if is_expected && dropped.is_some_and(|dropped| dropped.is_expected) {
        LEFT.set(LEFT.get() + 1);
    }
}

/// The launch hook. Neither locks nor allocates.
pub(crate) fn asker(launch: &LaunchCall<'_>) -> Option<HandleId> {
    // Copies, fills and graphs are not announced.
    launch.kernel()?;
    if !is_here() {
        if is_other_runner() {
            OTHER_DEVICE.add(1);
        }
        return None;
    }
    match LEFT.take() {
        0 => {}
        left => NEVER_LAUNCHED.add(left),
    }
    let stream = StreamId::current().value;
    let note = NOTES.with(|notes| take(notes, stream));
    if note.is_none() {
        UNKNOWN.add(1);
    }
    note?.asker
}

/// Adds a note as the newest. Returns the one that it replaces: that of the same stream id, or else the oldest if there is no
/// place.
fn add(notes: &Notes, note: Note) -> Option<Note> {
    let mut dropped = take(notes, note.stream);
    let is_full = notes.iter().all(|place| place.get().is_some());
    if is_full {
        dropped = remove(notes, 0);
    }
    if let Some(free) = notes.iter().find(|place| place.get().is_none()) {
        free.set(Some(note));
    }
    dropped
}

/// Takes the note of a stream id.
fn take(notes: &Notes, stream: u64) -> Option<Note> {
    let mut known = notes.iter().map_while(Cell::get);
    let index = known.position(|note| note.stream == stream)?;
    remove(notes, index)
}

/// Removes a note. The newer ones move up.
fn remove(notes: &Notes, index: usize) -> Option<Note> {
    let removed = notes[index].take();
    for pair in notes[index..].windows(2) {
        if pair[1].get().is_none() {
            break;
        }
        pair[0].swap(&pair[1]);
    }
    removed
}

/// Returns `true` on the runner of any device, by the name that CubeCL gives it: where threads have names that can be read
/// without allocating.
fn is_other_runner() -> bool {
    IS_OTHER_RUNNER.get().unwrap_or_else(|| {
        let is_runner = thread::has_name("DSD-");
        IS_OTHER_RUNNER.set(Some(is_runner));
        is_runner
    })
}
