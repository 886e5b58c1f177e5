//! One event, as far as it is checked.

use serde_json::{Map, Value};

/// The kind of event that the tools recognise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Category {
    Operator,
    Annotation,
    GpuAnnotation,
    Launch,
    Kernel,
    Copy,
    Set,
    /// A wait of a thread or a stream.
    Wait,
    /// A Python function: it is drawn among operators, but is not one.
    Python,
    /// The whole recording, as PyTorch marks it; HTA and the plugin ignore it.
    Whole,
    Other,
}

impl Category {
    /// The plugin ignores case.
    pub(super) fn of(name: &str) -> Self {
        match name.to_ascii_lowercase().as_str() {
            "cpu_op" | "operator" => Self::Operator,
            "user_annotation" => Self::Annotation,
            "gpu_user_annotation" => Self::GpuAnnotation,
            "runtime" | "cuda_runtime" | "cuda_driver" => Self::Launch,
            "kernel" => Self::Kernel,
            "gpu_memcpy" | "memcpy" => Self::Copy,
            "gpu_memset" | "memset" => Self::Set,
            "cuda_sync" => Self::Wait,
            "python" => Self::Python,
            "trace" => Self::Whole,
            _ => Self::Other,
        }
    }

    pub(super) fn is_on_device(self) -> bool {
        matches!(self, Self::Kernel | Self::Copy | Self::Set)
    }
}

pub(super) struct TraceEvent<'e>(pub(super) &'e Map<String, Value>);

impl<'e> TraceEvent<'e> {
    pub(super) fn text(&self, key: &str) -> Option<&'e str> {
        self.0.get(key)?.as_str()
    }

    pub(super) fn number(&self, key: &str) -> Option<f64> {
        self.0.get(key)?.as_f64()
    }

    /// Returns the number of the process or the thread, which may be in quotes.
    pub(super) fn id(&self, key: &str) -> Option<i64> {
        let id = self.0.get(key)?;
        id.as_i64().or_else(|| id.as_str()?.parse().ok())
    }

    pub(super) fn get(&self, key: &str) -> Option<&'e Value> {
        self.0.get(key)
    }

    pub(super) fn arg(&self, key: &str) -> Option<&'e Value> {
        self.0.get("args")?.get(key)
    }

    pub(super) fn whole(&self, key: &str) -> Option<i64> {
        self.arg(key)?.as_i64()
    }

    /// Earlier versions of PyTorch wrote it in lower case.
    pub(super) fn external_id(&self) -> Option<i64> {
        self.whole("External id")
            .or_else(|| self.whole("external id"))
    }
}
