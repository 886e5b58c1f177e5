//! Steps of the environment's session.

use crate::session::environment;

/// Ends a step of the session that the environment asked for (`PROFILER_TRACE`, `PROFILER_SCHEDULE`) and begins the next
/// one.
///
/// Does nothing if the environment asked for no session. [`step!`](crate::step!) does the same. Sessions that the program
/// starts have their own steps: [`Profile::step`](crate::Profile::step).
///
/// # Examples
///
/// ```
/// for _epoch in 0..3 {
///     // the training
///     profiler_runtime::step();
/// }
/// ```
pub fn step() {
    super::ensure_started();
    environment::step();
}
