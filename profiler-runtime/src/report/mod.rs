//! Reports: summaries, averages and traces as tables, JSON, CSV and files.

pub(crate) mod averages;
pub(crate) mod export;
mod own_cost;
pub(crate) mod summary;
#[cfg(feature = "tensorboard")]
mod tensorboard;
mod text;
mod times;

pub use own_cost::OwnCost;
