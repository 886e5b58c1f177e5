//! Functions whose own time may be a wait for other threads, which nothing links with them.

use std::collections::HashMap;

use crate::in_order::InOrder as _;
use crate::text::list::first_of;
use crate::text::units;
use crate::timeline::{Slice, SliceKind, Timeline, TrackKind};
use crate::walk::NONE;

/// The least share of all own time that a function must have to be named, and the least part of it that other threads must
/// have covered.
const SHARE: f64 = 0.1;
const COVERED: f64 = 0.5;
/// The most functions of other threads that are named.
const NAMED: usize = 3;
/// The most comparisons: a time line that needs more gets no note.
const MOST_STEPS: usize = 20_000_000;

/// A call without a caller.
struct Root {
    start: i64,
    end: i64,
    track: u32,
    name: u32,
}

/// Names the function whose own time lies most in that of calls on other threads which began and ended inside of it, and have
/// no caller. `callers` are the calls that slices belong to, `texts` the number of the text of each name.
pub(super) fn note(timeline: &Timeline, callers: &[u32], texts: &[u32]) -> Option<String> {
    let text_of = |name: u32| texts.get(name as usize).copied().unwrap_or(NONE);
    let process = |track: u32| {
        let track = timeline.tracks.get(track as usize)?;
        (track.kind == TrackKind::HostThread).then_some((track.rank, track.process))
    };
    let calls = || {
        let slices = timeline.slices.iter().zip(callers);
        slices.filter(|(slice, _)| slice.kind == SliceKind::Call)
    };
    let mut roots: HashMap<_, Vec<Root>> = HashMap::new();
    let (mut all, mut own) = (0.0, HashMap::<u32, f64>::new());
    for (slice, caller) in calls() {
        all += slice.self_ns as f64;
        *own.entry(text_of(slice.name)).or_default() += slice.self_ns as f64;
        if let (NONE, Some(process)) = (*caller, process(slice.track)) {
            roots.entry(process).or_default().push(Root {
                start: slice.start_ns,
                end: slice.start_ns.saturating_add(slice.duration_ns),
                track: slice.track,
                name: text_of(slice.name),
            });
        }
    }
    // A program without work on other threads is the common one.
    let on_others = |roots: &Vec<Root>| roots.windows(2).any(|pair| pair[0].track != pair[1].track);
    if !roots.values().any(on_others) {
        return None;
    }
    for roots in roots.values_mut() {
        roots.order_by_key(|root| root.start);
    }
    let mut steps = 0;
    let mut waits: HashMap<u32, (f64, HashMap<u32, i64>)> = HashMap::new();
    for (slice, _) in calls() {
        let name = text_of(slice.name);
        let is_large = own.get(&name).is_some_and(|own| *own >= SHARE * all);
        let Some(roots) = process(slice.track)
            .filter(|_| is_large)
            .and_then(|process| roots.get(&process))
        else {
            continue;
        };
        let inside = inside(roots, slice);
        steps += inside.len();
        if steps > MOST_STEPS {
            return None;
        }
        let (covered, by_name) = cover(inside, slice);
        // What they cover may be time of its children too.
        let wait = covered - (slice.duration_ns - slice.self_ns).max(0);
        if wait > 0 {
            let (waited, names) = waits.entry(name).or_default();
            *waited += wait as f64;
            for (name, ns) in by_name {
                *names.entry(name).or_default() += ns;
            }
        }
    }
    let own_of = |name: &u32| own.get(name).copied().unwrap_or_default();
    let longest = waits
        .into_iter()
        .filter(|(name, (waited, _))| *waited >= COVERED * own_of(name))
        .max_by(|one, other| one.1.0.total_cmp(&other.1.0).then(other.0.cmp(&one.0)));
    let (name, (waited, others)) = longest?;
    let text = |name: u32| {
        let name = timeline.names.get(name as usize);
        name.map_or_else(String::new, |name| format!("`{}`", name.text))
    };
    let mut others: Vec<(u32, i64)> = others.into_iter().collect();
    others.order_by_key(|(name, ns)| (std::cmp::Reverse(*ns), *name));
    Some(format!(
        "{}: for {} of its own {}, other threads ran {}, which have no caller: if it waits for them, give them a \
         `Handle` of it, and that time is theirs alone",
        text(name),
        units::time(waited),
        units::time(own_of(&name)),
        first_of(others.iter().map(|(name, _)| text(*name)), NAMED),
    ))
}

/// Returns the calls without a caller that began in a slice.
fn inside<'r>(roots: &'r [Root], slice: &Slice) -> &'r [Root] {
    let end = slice.start_ns.saturating_add(slice.duration_ns);
    let first = roots.partition_point(|root| root.start < slice.start_ns);
    let last = roots.partition_point(|root| root.start < end);
    roots.get(first..last).unwrap_or_default()
}

/// Returns for how long any of the calls ran that ended in the slice, on other threads; and for how long each name did.
fn cover(roots: &[Root], slice: &Slice) -> (i64, HashMap<u32, i64>) {
    let end = slice.start_ns.saturating_add(slice.duration_ns);
    let (mut covered, mut until) = (0, i64::MIN);
    let mut by_name = HashMap::new();
    let roots = roots.iter();
    for root in roots.filter(|root| root.track != slice.track && root.end <= end) {
        covered += (root.end - root.start.max(until)).max(0);
        until = until.max(root.end);
        *by_name.entry(root.name).or_default() += root.end - root.start;
    }
    (covered, by_name)
}

#[cfg(test)]
mod tests {
    use crate::{Slice, SliceName, Timeline, Track};

    /// A slice: its name, its thread, its start, its length and its own time.
    type Call = (&'static str, u32, i64, i64, i64);

    fn note(calls: &[Call], is_linked: bool) -> Option<String> {
        let mut line = Timeline {
            tracks: vec![Track::default(); 3],
            ..Timeline::default()
        };
        for (name, track, start_ns, duration_ns, self_ns) in calls {
            line.slices.push(Slice {
                track: *track,
                name: u32::try_from(line.names.len()).expect("few"),
                start_ns: *start_ns,
                duration_ns: *duration_ns,
                self_ns: *self_ns,
                parent: (is_linked && *track > 0).then_some(0),
                ..Slice::default()
            });
            line.names.push(SliceName {
                text: (*name).into(),
                ..SliceName::default()
            });
        }
        let callers: Vec<u32> = line
            .slices
            .iter()
            .map(|slice| slice.parent.unwrap_or(super::NONE))
            .collect();
        let mut texts: Vec<u32> = Vec::new();
        for name in &line.names {
            let known = line.names.iter().position(|other| other.text == name.text);
            texts.push(u32::try_from(known.expect("itself")).expect("few"));
        }
        super::note(&line, &callers, &texts)
    }

    const JOIN: [Call; 4] = [
        ("train", 0, 0, 1_000_000, 1_000_000),
        ("chunk", 1, 100_000, 700_000, 700_000),
        ("chunk", 2, 200_000, 700_000, 700_000),
        ("chunk", 1, 950_000, 100_000, 100_000),
    ];

    #[test]
    fn a_function_that_waits_for_others_is_named_with_the_remedy() {
        let note = note(&JOIN, false).expect("a note");
        assert_eq!(
            note,
            "`train`: for 800 µs of its own 1.00 ms, other threads ran `chunk`, which have no caller: if it waits for them, \
             give them a `Handle` of it, and that time is theirs alone"
        );
    }

    #[test]
    fn linked_work_short_waits_and_own_threads_need_no_note() {
        assert_eq!(note(&JOIN, true), None);
        let mut short = JOIN;
        (short[1].3, short[1].4) = (200_000, 200_000);
        (short[2].3, short[2].4) = (100_000, 100_000);
        assert_eq!(
            note(&short, false),
            None,
            "other threads ran for less than half of it"
        );
        let mut one = JOIN;
        for call in &mut one[1..] {
            call.1 = 0;
        }
        assert_eq!(
            note(&one, false),
            None,
            "the calls follow each other on one thread"
        );
        // The time of its children, which others cover as well, is no wait.
        let mut busy = JOIN;
        busy[0].4 = 150_000;
        assert_eq!(note(&busy, false), None);
    }
}
