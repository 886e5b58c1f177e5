//! Which spans a layer asks for.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tracing::subscriber::Interest;
use tracing::{Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

/// Crates whose spans are about themselves: how tasks wait and frames are sent.
const INTERNALS: [&str; 8] = [
    "h2",
    "hyper",
    "hyper_util",
    "mio",
    "tokio",
    "tokio_util",
    "tower",
    "want",
];

/// Crates whose spans are parts of a model, also those of the level `TRACE`.
const MODELS: [&str; 3] = ["burn", "candle", "cubecl"];

/// The layer's own filter. As it is one of the layer alone, it decides nothing for others.
#[derive(Debug)]
pub(super) struct SpanFilter {
    /// `true` if no span is left out.
    pub(super) takes_all: bool,
    /// `true` if all are.
    takes_none: AtomicBool,
}

impl SpanFilter {
    pub(super) const fn new() -> Self {
        Self {
            takes_all: false,
            takes_none: AtomicBool::new(false),
        }
    }

    /// Leaves all spans out from now on. Relaxed ordering suffices: no call site has asked yet.
    pub(super) fn take_none(&self) {
        self.takes_none.store(true, Relaxed);
    }

    fn takes(&self, metadata: &Metadata<'_>) -> bool {
        if !metadata.is_span() || self.takes_none.load(Relaxed) {
            return false;
        }
        let target = metadata.target();
        let is_shown = || *metadata.level() != Level::TRACE || is_of_model(target);
        self.takes_all || !is_internal(target) && is_shown()
    }
}

/// Returns `true` if spans with this target are parts of a model, which are there as long as the model.
pub(super) fn is_of_model(target: &str) -> bool {
    MODELS.iter().any(|prefix| target.starts_with(prefix))
}

fn is_internal(target: &str) -> bool {
    let root = target.split("::").next().unwrap_or_default();
    INTERNALS.contains(&root)
}

impl<S: Subscriber> Filter<S> for SpanFilter {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        self.takes(metadata)
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.takes(metadata) {
            Interest::always()
        } else {
            Interest::never()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn internals_are_whole_crates() {
        for target in ["tokio", "tokio::task", "hyper::proto", "h2::codec"] {
            assert!(is_internal(target), "{target}");
        }
        for target in [
            "tokio_postgres",
            "tower_http::trace",
            "app::tokio",
            "app",
            "",
        ] {
            assert!(!is_internal(target), "{target}");
        }
    }
}
