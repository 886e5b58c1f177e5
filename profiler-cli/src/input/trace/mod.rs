//! Reading a trace in the format of `chrome://tracing`, as PyTorch and `profiler-runtime` write it.
//!
//! The file is read event by event, in a window that is in memory: [`document`] finds them, [`event`] reads one, with [`args`], and [`collect`]
//! keeps what is needed of it. Events may be in any order, so all that connects them is done at the end ([`build`]): pairs of begin and end, nesting
//! on each track, launches and the GPU work that they launched.

mod args;
mod build;
mod collect;
mod cost;
mod counters;
mod document;
mod doubts;
mod event;
mod launches;
mod name_table;
mod names;
mod nesting;
mod pairs;
mod raw;
#[cfg(test)]
mod tests;
mod time;
mod tracks;
mod value;
mod work;

use profiler_report::Timeline;

use self::collect::Collector;
use super::source::Source;
use super::{InputError, Limits};

/// Reads a trace. `title` is the title of the time line.
pub(super) fn read(
    mut source: Source<'_>,
    title: &str,
    limits: Limits,
) -> Result<Timeline, InputError> {
    let mut collector = Collector::new(limits);
    document::read(&mut source, &mut collector)?;
    if let Some(lost) = collector.lost.take().filter(|_| limits.is_whole) {
        return Err(InputError::Partial(lost));
    }
    build::build(collector, title)
}
