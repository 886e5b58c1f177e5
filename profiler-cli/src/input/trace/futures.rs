//! Futures of `profiler-runtime`, and their polls.

use std::collections::HashMap;

use super::collect::{Raw, RawKind};
use super::nesting::Place;

/// Makes each poll a child of its future, and the future a child of the scope around its first poll. Returns which spans
/// are polls.
///
/// Older files do not say to which of several futures with one name a poll belongs. It is given to the one that began last,
/// so that each has its first poll.
pub(super) fn connect(raws: &[Raw], places: &mut [Place]) -> Vec<bool> {
    let mut is_poll = vec![false; raws.len()];
    let mut futures: HashMap<u32, Vec<u32>> = HashMap::new();
    for (index, raw) in (0..).zip(raws) {
        if raw.kind == RawKind::Future {
            futures.entry(raw.name).or_default().push(index);
        }
        is_poll[index as usize] = raw.is_poll;
    }
    let says_future = |raw: &Raw| raw.kind == RawKind::Annotation && raw.parent.is_some();
    if futures.is_empty() || raws.iter().any(says_future) {
        return is_poll;
    }
    for futures in futures.values_mut() {
        futures.sort_by_key(|future| raws[*future as usize].start);
    }
    let mut polls: Vec<u32> = (0..)
        .zip(raws)
        .filter(|(_, raw)| raw.kind == RawKind::Annotation)
        .map(|(index, _)| index)
        .collect();
    polls.sort_by_key(|poll| raws[*poll as usize].start);
    let mut has_poll = vec![false; raws.len()];
    for poll in polls {
        let raw = &raws[poll as usize];
        let Some(candidates) = futures.get(&raw.name) else {
            continue;
        };
        let begun = candidates.partition_point(|future| raws[*future as usize].start <= raw.start);
        // Those that began long ago have mostly ended: looking at a few keeps this linear for any file.
        let mut recent = candidates[..begun].iter().rev().take(256);
        let Some(future) = recent
            .find(|future| raws[**future as usize].end >= raw.end)
            .copied()
        else {
            continue;
        };
        is_poll[poll as usize] = true;
        let around = std::mem::replace(&mut places[poll as usize].parent, future);
        let is_first = !std::mem::replace(&mut has_poll[future as usize], true);
        // A file that lacks the first poll does not say what was around it.
        let begins_inside = |around: &Raw| around.start <= raws[future as usize].start;
        if is_first && raws.get(around as usize).is_some_and(begins_inside) {
            places[future as usize].parent = around;
        }
    }
    is_poll
}
