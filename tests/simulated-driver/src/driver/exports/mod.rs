//! The exported functions, by chapter of the driver's manual.
#![allow(non_snake_case, reason = "the names are the driver's")]
#![allow(
    clippy::similar_names,
    clippy::too_many_arguments,
    reason = "so are the signatures"
)]

mod absent;
mod context;
mod device;
mod event;
mod general;
mod graph;
mod launch;
mod memory;
mod module;
mod occupancy;
mod pool;
mod stream;

use super::entry::EntryPoint;

/// Returns the functions of the libraries that share the driver's file and time line.
pub(crate) fn tools() -> impl Iterator<Item = &'static EntryPoint> {
    let tables = [super::cupti::TABLE, super::nvml::TABLE];
    tables.into_iter().flatten().copied()
}

/// Returns the functions of all libraries as they are declared here.
#[cfg(test)]
pub(crate) fn declared() -> Vec<header_check::Item> {
    [
        general::declared(),
        device::declared(),
        context::declared(),
        stream::declared(),
        event::declared(),
        graph::declared(),
        launch::declared(),
        memory::declared(),
        module::declared(),
        occupancy::declared(),
        pool::declared(),
        launch::structures(),
        super::cupti::functions(),
        super::nvml::functions(),
    ]
    .concat()
}

/// Returns all entry points of the driver.
pub(crate) fn all() -> impl Iterator<Item = &'static EntryPoint> {
    let tables = [
        general::TABLE,
        device::TABLE,
        context::TABLE,
        stream::TABLE,
        event::TABLE,
        graph::TABLE,
        launch::TABLE,
        memory::TABLE,
        module::TABLE,
        occupancy::TABLE,
        pool::TABLE,
        absent::TABLE,
    ];
    tables.into_iter().flatten().copied()
}
