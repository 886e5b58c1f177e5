//! The driver: what lies behind the exported functions.

mod capture;
mod clock;
mod code;
mod context;
mod control;
mod entry;
mod event;
mod exports;
mod fault;
mod ffi;
mod graph;
mod kernel;
mod machine;
mod memory;
mod policy;
mod script;
mod settings;
mod slab;
mod stream;
mod task;
mod thread;
mod timeline;
mod truth;
mod worker;

/// The driver version that is simulated where no script says otherwise: CUDA 13.0.
pub(crate) const NEWEST: i32 = 13_000;

/// The names of entry points that are newer than a driver of `version` or, with a real driver of
/// that version, not there.
pub(crate) fn newer_than(version: i32) -> impl Iterator<Item = &'static str> {
    exports::all()
        .filter(move |entry| entry.since > version)
        .map(|entry| entry.name)
}

/// The names of all entry points that make the host wait for a device.
pub(crate) fn waiting_entry_points() -> impl Iterator<Item = &'static str> {
    exports::all()
        .filter(|entry| entry.is(entry::WAITS))
        .map(|entry| entry.name)
}
