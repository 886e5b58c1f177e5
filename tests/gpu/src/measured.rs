//! The profiler's results, for checks to assess.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use profiler_runtime::cuda::CudaLoss;
use profiler_runtime::report::{Row, Times};
use profiler_runtime::{flush, summary};

use crate::findings::Findings;
use crate::trouble::Trouble;

/// The times that a logger received, each with its step.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedTimes(Arc<Mutex<Vec<(u64, f64)>>>);

impl LoggedTimes {
    /// Creates a logger that keeps the values that it receives.
    pub(crate) fn logger(&self) -> impl Fn(&str, f64, u64) + Send + Sync + 'static {
        let times = Arc::clone(&self.0);
        move |_, milliseconds, step| {
            let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
            times.push((step, milliseconds * 1e6));
        }
    }

    /// Returns the nanoseconds, in the order of the calls, after a flush.
    pub(crate) fn ns(&self, calls: usize) -> Result<Vec<f64>, Trouble> {
        settle();
        let mut times = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        times.sort_unstable_by_key(|(step, _)| *step);
        if times.len() == calls {
            return Ok(times.into_iter().map(|(_, ns)| ns).collect());
        }
        let got = times.len();
        Err(Trouble::Missing(format!(
            "the logger got {got} of {calls} times"
        )))
    }
}

/// Waits until all measurements are counted.
pub(crate) fn settle() {
    flush(Duration::from_secs(5));
}

/// Returns the statistics of a name after all its calls are counted.
pub(crate) fn row(name: &str) -> Result<Row, Trouble> {
    settle();
    let row = summary().row(name).cloned();
    row.ok_or_else(|| Trouble::Missing(format!("`{name}` has no row in the summary")))
}

/// Returns the GPU times of a name.
pub(crate) fn gpu_times(name: &str) -> Result<Times, Trouble> {
    let row = row(name)?;
    let without = row.without_cuda;
    row.cuda.ok_or_else(|| {
        Trouble::Missing(format!(
            "`{name}` has no GPU time ({without} calls without; {:?})",
            lost()
        ))
    })
}

/// Returns why calls of this process have no GPU time.
pub(crate) fn lost() -> Vec<(CudaLoss, u64)> {
    summary().cuda.lost
}

pub(crate) fn lost_to(reason: CudaLoss) -> u64 {
    lost()
        .into_iter()
        .find(|(other, _)| *other == reason)
        .map_or(0, |(_, count)| count)
}

/// Checks that all calls of a name have a GPU time.
pub(crate) fn expect_all(
    findings: &mut Findings,
    name: &str,
    calls: u64,
) -> Result<Times, Trouble> {
    let row = row(name)?;
    findings.expect_count(&format!("calls of `{name}`"), row.calls, calls);
    findings.expect_count(
        &format!("calls of `{name}` without GPU time"),
        row.without_cuda,
        0,
    );
    let times = gpu_times(name)?;
    findings.expect_count(&format!("GPU times of `{name}`"), times.calls, calls);
    Ok(times)
}
