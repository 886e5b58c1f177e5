//! Pairs of begin and end.

use std::collections::HashMap;

use profiler_report::internal::InOrder as _;

use super::collect::{Collector, HalfSpan};

/// Makes spans of all begins and ends: on each track, an end belongs to the last begin that is open.
pub(super) fn pair(collector: &mut Collector) {
    let mut halves = std::mem::take(&mut collector.halves);
    // Stable: events with equal times stay in the order of the file.
    halves.order_by_key(|half| half.raw.start);
    let mut open: HashMap<u32, Vec<HalfSpan>> = HashMap::new();
    let (mut without_begin, mut without_end) = (0, 0);
    for half in halves {
        let on_track = open.entry(half.raw.track).or_default();
        if half.is_begin {
            on_track.push(half);
        } else if let Some(mut begin) = on_track.pop() {
            begin.raw.end = half.raw.end;
            collector.raws.push(begin.raw);
        } else {
            without_begin += 1;
        }
    }
    for on_track in open.into_values() {
        without_end += on_track.len() as u64;
    }
    for (reason, count) in [
        ("ends (of the phase E) have no begin", without_begin),
        ("begins (of the phase B) have no end", without_end),
    ] {
        if count > 0 {
            collector.missing.insert(reason.to_owned(), count);
        }
    }
}
