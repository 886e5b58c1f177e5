//! The reasons for which something was not measured or did not reach its logger.

mod cuda_loss;
mod drop_reason;
#[cfg(feature = "serde")]
pub(crate) mod reason;
mod span_loss;

pub use cuda_loss::CudaLoss;
pub use drop_reason::DropReason;
pub use span_loss::SpanLoss;
