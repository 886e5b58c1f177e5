//! Whether slices nest.

use super::event::Category;
use super::rule::Rule;

#[derive(Clone, Copy)]
pub(super) struct Slice {
    pub(super) pid: i64,
    pub(super) tid: i64,
    /// In microseconds.
    pub(super) ts: f64,
    pub(super) dur: f64,
    pub(super) name: u32,
    pub(super) event: usize,
    pub(super) category: Category,
}

impl Slice {
    #[allow(
        clippy::cast_possible_truncation,
        reason = "times are not as long as centuries"
    )]
    fn ns(self) -> (i64, i64) {
        let start = (self.ts * 1000.0).round() as i64;
        (start, start + (self.dur * 1000.0).round() as i64)
    }

    /// Whether TensorBoard's trace plugin has it in its tree; with its number of threads, whatever the process.
    fn is_in_tree(self) -> bool {
        matches!(self.category, Category::Operator | Category::Python)
    }
}

type Found = Vec<(Rule, Slice, String)>;

pub(super) fn check(slices: &mut Vec<Slice>) -> Found {
    let mut found = Found::new();
    slices.sort_by_key(|slice| {
        let (start, end) = slice.ns();
        (slice.pid, slice.tid, start, -end, slice.event)
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

fn check_track(track: &[Slice], found: &mut Found) {
    let mut open: Vec<(i64, usize)> = Vec::new();
    for slice in track {
        let (start, end) = slice.ns();
        while open.last().is_some_and(|(top, _)| *top <= start) {
            open.pop();
        }
        match open.last() {
            Some((top, around)) if end > *top => {
                let what = format!(
                    "it begins inside of event {around} and ends after it: show it on another track"
                );
                found.push((Rule::Nesting, *slice, what));
            }
            _ => open.push((end, slice.event)),
        }
    }
}

/// An operator that has not ended, and those directly inside of it.
struct Open {
    slice: Slice,
    end: f64,
    inside: usize,
    last: Option<Slice>,
}

fn check_tree(tree: &[Slice], found: &mut Found) {
    let mut open: Vec<Open> = Vec::new();
    for slice in tree {
        let end = slice.ts + slice.dur;
        while open.last().is_some_and(|top| top.end <= slice.ts) {
            close(&mut open, found);
        }
        if let Some(top) = open.last_mut() {
            if end > top.end {
                // Where the nanoseconds cross too, it has been said.
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
        open.push(Open {
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

fn close(open: &mut Vec<Open>, found: &mut Found) {
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
