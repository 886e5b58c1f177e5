//! Checks that slices nest.

use std::cmp::Reverse;

use super::event::Category;
use super::rule::Rule;

#[derive(Clone, Copy)]
pub(super) struct Slice {
    pub(super) pid: i64,
    pub(super) tid: i64,
    /// Microseconds.
    pub(super) ts: f64,
    pub(super) dur: f64,
    pub(super) name: u32,
    pub(super) event: usize,
    pub(super) category: Category,
}

impl Slice {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "what is longer than centuries ends with them"
    )]
    fn ns(self) -> (i64, i64) {
        let start = (self.ts * 1000.0).round() as i64;
        (
            start,
            start.saturating_add((self.dur * 1000.0).round() as i64),
        )
    }

    /// `true` if TensorBoard's trace plugin puts it in its tree. The tree is selected by thread id, whatever the
    /// process.
    fn is_in_tree(self) -> bool {
        matches!(self.category, Category::Operator | Category::Python)
    }
}

type Found = Vec<(Rule, Slice, String)>;

pub(super) fn check(slices: &mut Vec<Slice>) -> Found {
    let mut found = Found::new();
    slices.sort_by_key(|slice| {
        let (start, end) = slice.ns();
        (slice.pid, slice.tid, start, Reverse(end), slice.event)
    });
    for track in slices.chunk_by(|one, next| (one.pid, one.tid) == (next.pid, next.tid)) {
        check_track(track, &mut found);
    }
    slices.retain(|slice| slice.is_in_tree());
    slices.sort_by(|one, next| {
        let ends = |slice: &Slice| slice.ts + slice.dur;
        let by_time = one
            .ts
            .total_cmp(&next.ts)
            .then(ends(next).total_cmp(&ends(one)));
        one.tid
            .cmp(&next.tid)
            .then(by_time)
            .then(one.event.cmp(&next.event))
    });
    for tree in slices.chunk_by(|one, next| one.tid == next.tid) {
        check_tree(tree, &mut found);
    }
    found
}

/// From 2^42 µs on, a time in microseconds has less than nanosecond precision in 53 bits. The times of torch reach
/// this.
const BLURRED_NS: i64 = 1000 << 42;

fn check_track(track: &[Slice], found: &mut Found) {
    let mut open: Vec<(i64, usize)> = Vec::new();
    for slice in track {
        let (start, end) = slice.ns();
        let blur = i64::from(start >= BLURRED_NS);
        while open
            .last()
            .is_some_and(|(top, _)| *top <= start.saturating_add(blur))
        {
            open.pop();
        }
        match open.last() {
            Some((top, around)) if end > top.saturating_add(blur) => {
                let what = format!(
                    "it begins inside of event {around} and ends after it: show it on another track"
                );
                found.push((Rule::Nesting, *slice, what));
            }
            _ => open.push((end, slice.event)),
        }
    }
}

/// An operator that has not ended, and the operators directly inside it.
struct OpenSpan {
    slice: Slice,
    end: f64,
    inside: usize,
    last: Option<Slice>,
}

fn check_tree(tree: &[Slice], found: &mut Found) {
    let mut open: Vec<OpenSpan> = Vec::new();
    for slice in tree {
        let end = slice.ts + slice.dur;
        while open.last().is_some_and(|top| top.end <= slice.ts) {
            close(&mut open, found);
        }
        if let Some(top) = open.last_mut() {
            if end > top.end {
                // If the exact times cross too, that was reported already.
                if slice.ns().1 <= top.slice.ns().1 || slice.ns().0 >= top.slice.ns().1 {
                    let around = top.slice.event;
                    let what = format!(
                        "`ts` + `dur` is after that of event {around}: make it 0.001 shorter"
                    );
                    found.push((Rule::Nesting, *slice, what));
                }
                continue;
            }
            (top.inside, top.last) = (top.inside + 1, Some(*slice));
        }
        open.push(OpenSpan {
            slice: *slice,
            end,
            inside: 0,
            last: None,
        });
    }
    while !open.is_empty() {
        close(&mut open, found);
    }
}

fn close(open: &mut Vec<OpenSpan>, found: &mut Found) {
    let Some(ended) = open.pop() else { return };
    let Some(inside) = ended.last.filter(|_| ended.inside == 1) else {
        return;
    };
    let both = [ended.slice, inside]
        .iter()
        .all(|slice| slice.category == Category::Operator);
    if both && inside.name == ended.slice.name {
        let what = format!(
            "it is alone inside of event {}, which has its name: put a slice of the category `python` beside it",
            ended.slice.event
        );
        found.push((Rule::Recursion, inside, what));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Rule, validate_bytes};

    /// Any JSON number.
    fn number() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<f64>()
                .prop_filter("JSON has no others", |number| number.is_finite())
                .prop_map(|number| format!("{number:e}")),
            any::<i64>().prop_map(|number| number.to_string()),
            any::<u64>().prop_map(|number| number.to_string()),
            prop::sample::select(vec![
                "1e300", "-1e300", "9e18", "-9e18", "9.3e15", "-0.0", "0"
            ])
            .prop_map(str::to_owned),
        ]
    }

    fn slice() -> impl Strategy<Value = String> {
        let category = prop::sample::select(vec!["cpu_op", "kernel", "python", "user_annotation"]);
        (category, prop::array::uniform6(number())).prop_map(
            |(category, [ts, dur, pid, tid, id, stream])| {
                format!(
                    r#"{{"ph":"X","cat":"{category}","name":"odd","ts":{ts},"dur":{dur},"pid":{pid},"tid":1,"args":
                    {{"External id":{id},"correlation":{id},"device":{pid},"stream":{stream},"rank":{tid}}}}},
                    {{"ph":"X","cat":"{category}","name":"odd","ts":{ts},"dur":{dur},"pid":1,"tid":1}}"#
                )
            },
        )
    }

    proptest! {
        #[test]
        fn odd_numbers_are_numbers_like_others(
            slices in prop::collection::vec(slice(), 0..8),
            rank in number(),
        ) {
            let slices = slices.join(",");
            let trace = format!(r#"{{"distributedInfo":{{"rank": {rank}}},"traceEvents":[{slices}]}}"#);
            let found = validate_bytes(trace.as_bytes());
            prop_assert!(found.iter().all(|found| found.rule != Rule::Json), "{found:?}");
        }
    }
}
