//! The measured threads: each keeps its open GPU scopes and a few free event pairs, and sends finished scopes to the
//! resolver.

pub(crate) mod context_cache;
pub(crate) mod context_seen;
pub(crate) mod ending;
pub(crate) mod record_times;
pub(crate) mod ring;
pub(crate) mod scope;
pub(crate) mod state;
mod synchronous;
