//! Measuring any future.

use super::begin_dynamic;
use crate::cuda;
use crate::scope::future::{Measured, measure_on};

/// Measures any future: `future.measure_execution_time("name").await`.
///
/// # Examples
///
/// ```
/// use profiler_runtime::MeasureFuture;
///
/// # async fn fetch() -> u32 { 7 }
/// async fn load() -> u32 {
///     fetch().measure_execution_time("fetch").await
/// }
/// # let mut future = std::pin::pin!(load());
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert!(future.as_mut().poll(&mut context).is_ready());
/// # if profiler_runtime::is_enabled() {
/// # assert_eq!(profiler_runtime::summary().row("fetch").unwrap().calls, 1);
/// # }
/// ```
pub trait MeasureFuture: Future + Sized {
    /// Measures this future under a name, from its first poll to its end.
    ///
    /// The name may be built at run time; `PROFILER_MAX_NAMES` bounds the number of such names. The stream that is current
    /// on this thread now ([`cuda::with_stream`](crate::cuda::with_stream)) is current in all polls of the future,
    /// whichever thread polls it.
    #[track_caller]
    fn measure_execution_time(self, name: impl AsRef<str>) -> Measured<Self> {
        let scope = begin_dynamic(&name).task();
        let inherited = scope.is_measured().then(cuda::current_stream).flatten();
        measure_on(inherited, scope, self)
    }
}

impl<F: Future> MeasureFuture for F {}
