//! Divides slices into groups in which they nest.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use crate::in_order::InOrder as _;

/// A slice from its start to its end, and what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) frame: usize,
}

/// Divides slices into as few lanes as necessary, usually one, so that two slices of a lane follow one another or one lies
/// inside the other. The slices of each lane are sorted: outer ones before inner ones, earlier ones before later ones.
pub(super) fn divide(mut spans: Vec<Span>) -> Vec<Vec<Span>> {
    spans.order_by_key(|span| (span.start, Reverse(span.end)));
    let mut lanes: Vec<Vec<Span>> = Vec::new();
    // The ends of the open slices of each lane, the outermost first.
    let mut open: Vec<Vec<i64>> = Vec::new();
    // Lanes with open slices by the end of the innermost one, and those without.
    let mut busy: BTreeSet<(i64, usize)> = BTreeSet::new();
    let mut free: BTreeSet<usize> = BTreeSet::new();
    for span in spans {
        // Close what has ended.
        while let Some((end, lane)) = busy.first().copied() {
            if end > span.start {
                break;
            }
            busy.remove(&(end, lane));
            let ends = &mut open[lane];
            while ends.last().is_some_and(|end| *end <= span.start) {
                ends.pop();
            }
            match ends.last() {
                Some(end) => {
                    busy.insert((*end, lane));
                }
                None => {
                    free.insert(lane);
                }
            }
        }
        // The slice lies inside the innermost slice that encloses it, else in a lane without open slices.
        let enclosing = busy.range((span.end, 0)..).next().copied();
        let lane = if let Some(key) = enclosing {
            busy.remove(&key);
            key.1
        } else if let Some(lane) = free.pop_first() {
            lane
        } else {
            lanes.push(Vec::new());
            open.push(Vec::new());
            lanes.len() - 1
        };
        lanes[lane].push(span);
        open[lane].push(span.end);
        busy.insert((span.end, lane));
    }
    lanes
}
