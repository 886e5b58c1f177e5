//! The implementation of the exported functions.

mod capture;
mod clock;
mod code;
mod context;
mod control;
mod cupti;
mod entry;
mod event;
mod exports;
mod fault;
mod ffi;
mod graph;
#[cfg(test)]
mod headers;
mod kernel;
mod link;
mod log;
mod memory;
mod nvml;
mod policy;
mod script;
mod settings;
mod slab;
mod state;
mod stream;
mod task;
mod thread;
mod timeline;
mod worker;

/// Returns the UUID of a device.
pub(crate) fn uuid(device: usize) -> [u8; 16] {
    let mut bytes = *b"simulated-driver";
    let ordinal = i32::try_from(device).unwrap_or(i32::MAX);
    bytes[12..].copy_from_slice(&ordinal.to_be_bytes());
    bytes
}

/// The driver version that is simulated by default: CUDA 13.0.
pub(crate) const NEWEST: i32 = 13_000;

/// Returns the names of the entry points that a driver of `version` does not have.
pub(crate) fn newer_than(version: i32) -> impl Iterator<Item = &'static str> {
    exports::all()
        .filter(move |entry| entry.since > version)
        .map(|entry| entry.name)
}

/// The release of CUDA whose CUPTI is simulated by default.
pub(crate) const CUPTI_RELEASE: &str = "12.8";

/// Returns the names of the functions that the CUPTI of a release of CUDA does not have.
pub(crate) fn cupti_newer_than(release: &str) -> impl Iterator<Item = &'static str> {
    let version = cupti::version_of(release).unwrap_or(0);
    let version = i32::try_from(version).unwrap_or(i32::MAX);
    cupti::TABLE
        .iter()
        .filter(move |entry| entry.since > version)
        .map(|entry| entry.name)
}

/// Returns the names of all entry points that make the host wait for a device.
pub(crate) fn waiting_entry_points() -> impl Iterator<Item = &'static str> {
    exports::all()
        .filter(|entry| entry.is(entry::WAITS))
        .map(|entry| entry.name)
}
