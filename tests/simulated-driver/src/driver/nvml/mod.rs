//! A simulated NVML on the time line of the simulated driver.
//!
//! Load, power and energy follow from the work that the driver has run: a device draws its idle power all the time, and
//! its busy power while any kernel, copy or fill runs on it.

mod entry;
mod exports;
mod load;
mod settings;

pub(crate) use exports::TABLE;
#[cfg(test)]
pub(crate) use exports::{declared as functions, structures};
pub(crate) use settings::{Settings, command};
