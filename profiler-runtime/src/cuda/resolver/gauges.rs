//! Figures about the resolver that the summary shows.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::rings;

/// Scopes that have left the rings and wait for the device.
static PENDING: AtomicUsize = AtomicUsize::new(0);
/// The largest value of [`PENDING`] so far.
static HIGH_WATER: AtomicUsize = AtomicUsize::new(0);
/// The bits of the uncertainty in nanoseconds; zero while it is unknown.
static UNCERTAINTY: AtomicU64 = AtomicU64::new(0);

pub(super) fn set_pending(pending: usize) {
    PENDING.store(pending, Relaxed);
    HIGH_WATER.fetch_max(pending, Relaxed);
}

pub(super) fn set_uncertainty(ns: f64) {
    UNCERTAINTY.store(ns.to_bits(), Relaxed);
}

/// Returns the number of scopes whose events have not been read: in the rings, or waiting for the device.
pub(crate) fn in_flight() -> usize {
    rings::waiting() + PENDING.load(Relaxed)
}

/// Returns the most scopes that were seen waiting for the device at once.
pub(crate) fn high_water() -> usize {
    HIGH_WATER.load(Relaxed)
}

/// Returns how uncertain the begin of GPU times on the host's time line is, in nanoseconds, if that is known.
pub(crate) fn uncertainty() -> Option<f64> {
    Some(f64::from_bits(UNCERTAINTY.load(Relaxed))).filter(|ns| *ns > 0.0)
}
