//! All checks, by theme.

mod beside;
mod captures;
mod contexts;
mod cost;
mod cupti_records;
mod default_stream;
mod ends;
mod failures;
mod gone_contexts;
pub(crate) mod launches;
mod lengths;
mod limits;
mod loops;
mod math;
mod places;
mod pool;
mod processes;
mod questions;
mod sensors;
mod start;
mod streams;
mod threads;

use crate::child::Part;
use crate::findings::Theme;

/// All themes, in the order in which they run.
pub(crate) const THEMES: &[Theme] = &[
    start::THEME,
    places::THEME,
    lengths::THEME,
    beside::THEME,
    cupti_records::THEME,
    streams::THEME,
    threads::THEME,
    captures::THEME,
    default_stream::THEME,
    contexts::THEME,
    pool::THEME,
    cost::THEME,
    loops::THEME,
    math::THEME,
    gone_contexts::THEME,
    failures::THEME,
    ends::THEME,
    processes::THEME,
    limits::THEME,
    questions::THEME,
    launches::THEME,
    sensors::THEME,
];

/// The roles of child processes.
pub(crate) const PARTS: &[&[Part]] = &[
    cupti_records::PARTS,
    pool::PARTS,
    gone_contexts::PARTS,
    failures::PARTS,
    ends::PARTS,
    processes::PARTS,
    limits::PARTS,
    launches::PARTS,
];
