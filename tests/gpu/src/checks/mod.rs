//! All checks, by theme.

mod beside;
mod captures;
mod contexts;
mod cost;
mod cost_with_kernels;
mod cupti_records;
mod default_stream;
mod ends;
mod failures;
mod gone_contexts;
mod kernels;
mod lanes;
pub(crate) mod launches;
mod lengths;
mod limits;
mod loops;
mod math;
mod places;
mod pool;
mod processes;
mod questions;
mod ranges;
mod readings;
mod sensors;
mod start;
mod streams;
mod threads;
mod work;

use crate::child::Part;
use crate::findings::Theme;

/// All themes, in the order in which they run: what judges the profiler and its costs first, and questions last.
pub(crate) const THEMES: &[Theme] = &[
    start::THEME,
    kernels::THEME,
    work::THEME,
    lanes::THEME,
    ranges::THEME,
    readings::THEME,
    places::THEME,
    lengths::THEME,
    beside::THEME,
    cupti_records::THEME,
    launches::THEME,
    streams::THEME,
    threads::THEME,
    captures::THEME,
    default_stream::THEME,
    contexts::THEME,
    pool::THEME,
    cost::THEME,
    loops::THEME,
    cost_with_kernels::THEME,
    math::THEME,
    gone_contexts::THEME,
    failures::THEME,
    ends::THEME,
    processes::THEME,
    limits::THEME,
    sensors::THEME,
    questions::THEME,
];

/// The roles of child processes.
pub(crate) const PARTS: &[&[Part]] = &[
    kernels::PARTS,
    work::PARTS,
    lanes::PARTS,
    ranges::PARTS,
    cost_with_kernels::PARTS,
    readings::PARTS,
    cupti_records::PARTS,
    pool::PARTS,
    gone_contexts::PARTS,
    failures::PARTS,
    ends::PARTS,
    processes::PARTS,
    limits::PARTS,
    launches::PARTS,
];
