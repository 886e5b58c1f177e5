//! A simulated CUPTI on the time line of the simulated driver: callbacks around driver calls, and
//! records of what the devices did.
//!
//! The order of locks is: delivery, driver, CUPTI. A function of the client runs under no lock but
//! that of the delivery, and only if it takes or hands out a buffer on another thread than the one
//! that launches.

mod call;
#[cfg(test)]
mod declared;
mod delivery;
mod entry;
mod exports;
mod fault;
mod ids;
mod layout;
mod record;
mod runtime;
mod script;
mod state;

pub(crate) use call::{ApiCall, Origin, is_active, origin};
#[cfg(test)]
pub(crate) use declared::records;
pub(crate) use exports::TABLE;
#[cfg(test)]
pub(crate) use exports::{declared as functions, structures};
pub(crate) use ids::callback_of;
#[cfg(test)]
pub(crate) use ids::declared as numbers;
pub(crate) use record::operation_ended;
pub(crate) use script::{command, version_of};
pub(crate) use state::{report, reset};

/// The version of CUPTI that is simulated by default: that of CUDA 12.8.
pub(crate) const DEFAULT_VERSION: u32 = 26;
