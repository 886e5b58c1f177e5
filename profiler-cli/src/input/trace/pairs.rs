//! Pairs of begin and end.

use std::collections::HashMap;

use profiler_report::internal::InOrder as _;

use super::collect::Collector;
use super::raw::Raw;

/// The most ends of one time that are kept for later begins.
const MAX_EARLY: usize = 64;

/// Makes spans of all begins and ends: on each track, an end belongs to the last begin that is open.
///
/// Among events of one time, an end belongs to a begin of its name: files may have the end of a span without length before its
/// begin, or the ends of two spans in the wrong order.
pub(super) fn pair(collector: &mut Collector) {
    let mut halves = std::mem::take(&mut collector.halves);
    // Stable: events with equal times stay in the order of the file.
    halves.order_by_key(|half| half.raw.start);
    let names = &collector.names;
    let is_named = |raw: &Raw| names.text(raw.name).is_some_and(|name| !name.is_empty());
    let mut pairs = Pairs::default();
    for half in halves {
        if pairs
            .early
            .first()
            .is_some_and(|end| end.start < half.raw.start)
        {
            pairs.end_early();
        }
        if half.is_begin {
            pairs.begin(half.raw);
        } else if is_named(&half.raw)
            && !pairs.ends_last(&half.raw)
            && pairs.early.len() < MAX_EARLY
        {
            pairs.early.push(half.raw);
        } else {
            pairs.end(&half.raw);
        }
    }
    pairs.end_early();
    let without_end = pairs
        .open
        .values()
        .map(|on_track| on_track.len() as u64)
        .sum();
    collector.raws.append(&mut pairs.whole);
    for (reason, count) in [
        ("ends (of the phase E) have no begin", pairs.without_begin),
        ("begins (of the phase B) have no end", without_end),
    ] {
        if count > 0 {
            collector.missing.insert(reason.to_owned(), count);
        }
    }
}

/// The begins and ends up to a time.
#[derive(Default)]
struct Pairs {
    /// The begins of each track that have no end yet.
    open: HashMap<u32, Vec<Raw>>,
    /// The ends of the current time whose name is not the name of the last begin of their track.
    early: Vec<Raw>,
    whole: Vec<Raw>,
    without_begin: u64,
}

impl Pairs {
    fn begin(&mut self, begin: Raw) {
        let is_end = |end: &Raw| (end.track, end.name) == (begin.track, begin.name);
        if let Some(at) = self.early.iter().position(is_end) {
            self.early.remove(at);
            self.whole.push(begin);
        } else {
            // They belong to what began before.
            let ends = self.early.extract_if(.., |end| end.track == begin.track);
            for end in ends.collect::<Vec<Raw>>() {
                self.end(&end);
            }
            self.open.entry(begin.track).or_default().push(begin);
        }
    }

    /// Returns `true` if the end has the name of the last begin of its track.
    fn ends_last(&self, end: &Raw) -> bool {
        let last = self
            .open
            .get(&end.track)
            .and_then(|on_track| on_track.last());
        last.is_some_and(|begin| begin.name == end.name)
    }

    fn end(&mut self, end: &Raw) {
        let on_track = self.open.get_mut(&end.track);
        if let Some(mut begin) = on_track.and_then(Vec::pop) {
            begin.end = end.end;
            self.whole.push(begin);
        } else {
            self.without_begin += 1;
        }
    }

    /// Ends what the early ends belong to, as no begin has their name.
    fn end_early(&mut self) {
        for end in std::mem::take(&mut self.early) {
            self.end(&end);
        }
    }
}
