//! How the calls of each name are distributed over the run: sampled while it runs.

mod sampler;
mod series;

pub(crate) use sampler::{sample, snapshot};
