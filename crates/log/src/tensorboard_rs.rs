//! A guard around the writer of the crate `tensorboard-rs`, which panics instead of returning errors.

use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::sync::{Arc, Mutex};

use profiler_host::diagnostics;
use profiler_host::diagnostics::user_code;
use tensorboard_rs::summary_writer::SummaryWriter;

use self::rate_limit::RateLimit;
use super::{LogError, ScalarLogger};

mod rate_limit;

/// Shared by all writers, so that their queues are bounded together.
static RATE_LIMIT: RateLimit = RateLimit::new();

/// Logs to a [`SummaryWriter`] of the crate `tensorboard-rs` that the program already holds.
///
/// Prefer [`TensorBoardLogger`](crate::TensorBoardLogger) if you have the choice. `tensorboard-rs`
/// panics on a full disk or an unwritable folder, and its queue is unbounded. This logger guards it:
///
/// - It catches a panic of the writer. Every later call returns [`LogError::Closed`], and the writer
///   is neither used nor dropped again. The panic's message still goes to the panic hook, by default
///   to stderr.
/// - In a program built with `panic = "abort"` no panic can be caught: [`new`](Self::new) and
///   [`shared`](Self::shared) return an error, and values logged through
///   [`IntoLogger`](crate::IntoLogger) are refused.
/// - It passes on at most 65,536 values at once, and 50,000 a second, for all such writers together;
///   `tensorboard-rs` writes several times as fast. Further values are refused with
///   [`LogError::Refused`].
/// - `flush` asks the writer to write, and returns before it has: `tensorboard-rs` offers no more.
///   Values that are in the queue when its thread panics are lost, and their number is not known.
///   The rest of the queue is written when the last owner drops the writer.
///
/// One failure cannot be prevented from outside. A writer whose own `add_scalars` was called holds
/// several files, and the program aborts if two of them fail while the writer is dropped.
///
/// Tags are those of [`TensorBoardLogger`](crate::TensorBoardLogger#tags), such as `Trainer/forward/cuda_ms`. Steps are
/// passed on as `usize`, values as `f32`. The wall time is that of the call.
///
/// # Examples
///
/// The program keeps its writer for metrics of its own:
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use profiler_log::{ScalarLogger, TensorBoardRsLogger};
/// use tensorboard_rs::summary_writer::SummaryWriter;
///
/// # let dir = std::env::temp_dir().join(format!("tensorboard-rs-doc-{}", std::process::id()));
/// let writer = Arc::new(Mutex::new(SummaryWriter::new(&dir)));
/// let logger = TensorBoardRsLogger::shared(writer.clone())?;
/// logger.add_scalar("train/step", 12.5, 3)?;
/// writer.lock().unwrap().add_scalar("train/loss", 0.25, 3);
/// # drop((logger, writer));
/// # std::fs::remove_dir_all(dir).unwrap();
/// # Ok::<(), profiler_log::LogError>(())
/// ```
#[derive(Clone)]
pub struct TensorBoardRsLogger {
    /// Poisoned once the writer has panicked. `None` only during drop.
    writer: Option<Arc<Mutex<SummaryWriter>>>,
}

impl TensorBoardRsLogger {
    /// Wraps a writer that is used for nothing else.
    ///
    /// # Errors
    ///
    /// Returns [`LogError::Closed`] in a program built with `panic = "abort"`. The writer then writes
    /// what it was given before, and is never dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_log::{ScalarLogger, TensorBoardRsLogger};
    /// use tensorboard_rs::summary_writer::SummaryWriter;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-rs-new-{}", std::process::id()));
    /// let logger = TensorBoardRsLogger::new(SummaryWriter::new(&dir))?;
    /// logger.add_scalar("train/step", 12.5, 3)?;
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_log::LogError>(())
    /// ```
    pub fn new(writer: SummaryWriter) -> Result<Self, LogError> {
        Self::shared(Arc::new(Mutex::new(writer)))
    }

    /// Wraps a writer that the program uses as well.
    ///
    /// # Errors
    ///
    /// Returns [`LogError::Closed`] in a program built with `panic = "abort"`.
    ///
    /// # Examples
    ///
    /// See [`TensorBoardRsLogger`].
    pub fn shared(writer: Arc<Mutex<SummaryWriter>>) -> Result<Self, LogError> {
        let this = Self::unchecked(writer);
        refuse_abort().map(|()| this)
    }

    /// Wraps a writer without the check of [`shared`](Self::shared), for conversions, which cannot fail. Every call
    /// makes the check.
    pub(super) fn unchecked(writer: Arc<Mutex<SummaryWriter>>) -> Self {
        Self {
            writer: Some(writer),
        }
    }

    /// Calls `call` with the writer, unless the writer has panicked before. Catches a panic.
    fn with_writer(
        &self,
        call: impl FnOnce(&mut SummaryWriter) -> Result<(), LogError>,
    ) -> Result<(), LogError> {
        refuse_abort()?;
        let Some(writer) = &self.writer else {
            return Err(closed());
        };
        let outcome = user_code::call(|| {
            let mut writer = writer.lock().map_err(|_| closed())?;
            // A panic drops the guard and poisons the lock, which tells all owners.
            call(&mut writer)
        });
        outcome.unwrap_or_else(|| Err(closed()))
    }
}

impl ScalarLogger for TensorBoardRsLogger {
    fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
        let step = usize::try_from(step).map_err(|_| step_too_large(step))?;
        // `tensorboard-rs` stores values as `f32`.
        #[expect(clippy::cast_possible_truncation)]
        let value = value as f32;
        self.with_writer(|writer| {
            if !RATE_LIMIT.admit(rate_limit::now()) {
                return Err(too_fast());
            }
            writer.add_scalar(tag, value, step);
            Ok(())
        })
    }

    /// Asks the writer to write; see [`TensorBoardRsLogger`] for the limits of this.
    fn flush(&self) -> Result<(), LogError> {
        self.with_writer(|writer| {
            writer.flush();
            Ok(())
        })
    }
}

impl Drop for TensorBoardRsLogger {
    fn drop(&mut self) {
        let Some(writer) = self.writer.take() else {
            return;
        };
        if writer.is_poisoned() {
            // Leaked: dropping the writer would panic, here or at another owner.
            mem::forget(writer);
        } else if let Some(writer) =
            Arc::into_inner(writer).and_then(|mutex| mutex.into_inner().ok())
        {
            close(writer);
        }
    }
}

/// Drops a writer. Its destructor waits until its queue is written, and panics if that fails.
fn close(writer: SummaryWriter) {
    let mut writer = ManuallyDrop::new(writer);
    if refuse_abort().is_err() {
        return;
    }
    // A writer whose flush panics is leaked: each of its files might panic in the destructor, and two panics abort.
    let closed = user_code::call(|| writer.flush())
        .and_then(|()| user_code::call(|| drop(ManuallyDrop::into_inner(writer))));
    if closed.is_none() {
        diagnostics::warn_once(
            "the last values did not reach the log of tensorboard-rs: its writer panicked",
        );
    }
}

impl fmt::Debug for TensorBoardRsLogger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TensorBoardRsLogger")
            .finish_non_exhaustive()
    }
}

/// Returns an error in a program where a panic cannot be caught.
fn refuse_abort() -> Result<(), LogError> {
    if cfg!(panic = "abort") {
        return Err(LogError::Closed(
            "tensorboard-rs panics on a full disk, which ends a program built with \
             `panic = \"abort\"`; log with `TensorBoardLogger`, or build with `panic = \"unwind\"`"
                .to_owned(),
        ));
    }
    Ok(())
}

fn closed() -> LogError {
    LogError::Closed(
        "the writer of tensorboard-rs panicked, as it does when the disk is full or the folder \
         cannot be written; see to that and make a new one, or log with `TensorBoardLogger`"
            .to_owned(),
    )
}

fn step_too_large(step: u64) -> LogError {
    LogError::Refused(format!(
        "step {step} does not fit; give a `global_step` up to {}",
        usize::MAX
    ))
}

fn too_fast() -> LogError {
    LogError::Refused(format!(
        "more than {} values a second, too fast for a bounded queue of tensorboard-rs; log fewer calls \
         with `log_every = …`, or log with `TensorBoardLogger`",
        rate_limit::PER_SECOND
    ))
}
