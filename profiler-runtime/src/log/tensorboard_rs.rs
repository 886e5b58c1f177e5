//! The guard around the writer of another crate, which panics where it should fail.

use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::sync::{Arc, Mutex};

use tensorboard_rs::summary_writer::SummaryWriter;

use self::pace::Pace;
use super::{LogError, ScalarLogger};

use crate::diagnostics;
use crate::diagnostics::user_code;

mod pace;

/// One for all writers, so that their queues together are bounded.
static PACE: Pace = Pace::new();

/// Logs to a [`SummaryWriter`] of the crate `tensorboard-rs` that the program already holds.
///
/// Prefer [`TensorBoardLogger`](crate::TensorBoardLogger) where there is the choice. This one is
/// guarded, because `tensorboard-rs` panics on a full disk or an unwritable folder:
///
/// - a panic is contained. After it every call gives [`LogError::Closed`], and the writer is
///   neither used nor dropped again. The panic's message still goes to the panic hook, by default
///   to stderr.
/// - in a program built with `panic = "abort"` nothing can be contained: [`new`](Self::new) and
///   [`shared`](Self::shared) refuse, and what is logged through [`IntoLogger`](crate::IntoLogger)
///   is refused.
/// - its queue has no bound and does not tell its length. At most 65,536 values are handed over at
///   once, and 50,000 a second, for all such writers together; it writes several times as fast.
///   What goes over is refused with [`LogError::Refused`].
/// - `flush` asks the writer to write, and returns before it has: `tensorboard-rs` offers no more.
///   Values that are still in its queue when its thread panics are lost, and their number is not
///   known. The queue is written to its end when the last owner drops the writer.
///
/// One failure cannot be contained from outside: a writer whose own `add_scalars` was used as well
/// holds several files, and the program aborts if two of them fail while it is dropped.
///
/// Steps are handed over as `usize`, values as `f32`; the wall time is that of the call.
///
/// # Examples
///
/// The program keeps its writer for metrics of its own:
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use profiler_runtime::{ScalarLogger, TensorBoardRsLogger};
/// use tensorboard_rs::summary_writer::SummaryWriter;
///
/// # let dir = std::env::temp_dir().join(format!("tensorboard-rs-doc-{}", std::process::id()));
/// let writer = Arc::new(Mutex::new(SummaryWriter::new(&dir)));
/// let logger = TensorBoardRsLogger::shared(writer.clone())?;
/// logger.add_scalar("train/step", 12.5, 3)?;
/// writer.lock().unwrap().add_scalar("train/loss", 0.25, 3);
/// # drop((logger, writer));
/// # std::fs::remove_dir_all(dir).unwrap();
/// # Ok::<(), profiler_runtime::LogError>(())
/// ```
#[derive(Clone)]
pub struct TensorBoardRsLogger {
    /// Poisoned once the writer has panicked; taken only by drop.
    writer: Option<Arc<Mutex<SummaryWriter>>>,
}

impl TensorBoardRsLogger {
    /// Takes the writer over.
    ///
    /// # Errors
    ///
    /// [`LogError::Closed`] in a program built with `panic = "abort"`; the writer then goes on
    /// writing what it was given before, and is never dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use profiler_runtime::{ScalarLogger, TensorBoardRsLogger};
    /// use tensorboard_rs::summary_writer::SummaryWriter;
    ///
    /// # let dir = std::env::temp_dir().join(format!("tensorboard-rs-new-{}", std::process::id()));
    /// let logger = TensorBoardRsLogger::new(SummaryWriter::new(&dir))?;
    /// logger.add_scalar("train/step", 12.5, 3)?;
    /// # drop(logger);
    /// # std::fs::remove_dir_all(dir).unwrap();
    /// # Ok::<(), profiler_runtime::LogError>(())
    /// ```
    pub fn new(writer: SummaryWriter) -> Result<Self, LogError> {
        Self::shared(Arc::new(Mutex::new(writer)))
    }

    /// Shares the writer with the program.
    ///
    /// # Errors
    ///
    /// [`LogError::Closed`] in a program built with `panic = "abort"`.
    ///
    /// # Examples
    ///
    /// See [`TensorBoardRsLogger`].
    pub fn shared(writer: Arc<Mutex<SummaryWriter>>) -> Result<Self, LogError> {
        let this = Self::unchecked(writer);
        refuse_abort().map(|()| this)
    }

    /// For conversions, which cannot fail: every call checks again.
    pub(super) fn unchecked(writer: Arc<Mutex<SummaryWriter>>) -> Self {
        Self {
            writer: Some(writer),
        }
    }

    /// Runs `call` on the writer unless it has panicked before; a panic in it is the last.
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
            // A panic passes the guard of the lock and poisons it: the mark for everybody.
            call(&mut writer)
        });
        outcome.unwrap_or_else(|| Err(closed()))
    }
}

impl ScalarLogger for TensorBoardRsLogger {
    fn add_scalar(&self, tag: &str, value: f64, step: u64) -> Result<(), LogError> {
        let step = usize::try_from(step).map_err(|_| step_too_large(step))?;
        // The crate takes no other type.
        #[expect(clippy::cast_possible_truncation)]
        let value = value as f32;
        self.with_writer(|writer| {
            if !PACE.admit(pace::now()) {
                return Err(too_fast());
            }
            writer.add_scalar(tag, value, step);
            Ok(())
        })
    }

    /// Asks the writer to write; see [`TensorBoardRsLogger`] for what that is worth.
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
            // Dropping it would panic, here or at another owner; this keeps it from being dropped.
            mem::forget(writer);
        } else if let Some(writer) =
            Arc::into_inner(writer).and_then(|mutex| mutex.into_inner().ok())
        {
            close(writer);
        }
    }
}

/// Drops a writer, which waits until its queue is written and panics if that fails.
fn close(writer: SummaryWriter) {
    let mut writer = ManuallyDrop::new(writer);
    if refuse_abort().is_err() {
        return;
    }
    // One that fails already is not dropped: of its several files each might panic.
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

/// Fails where a panic ends the program before anyone can contain it.
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
        "more than {} values a second, too fast for a bounded queue of tensorboard-rs; log one call \
         in so many with `every = …`, or log with `TensorBoardLogger`",
        pace::PER_SECOND
    ))
}
