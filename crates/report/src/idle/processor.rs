//! Whether a thread worked or waited: bounds from samples of its time on a processor.

use std::collections::HashMap;

use super::threads::Threads;
use crate::timeline::{ProcessorSpan, Timeline};

/// What a thread did in some times, at least. Between two samples only sums are known: as much as possible of what a thread did
/// there may have been outside of these times. In nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AtLeast {
    /// It was on a processor.
    pub(super) running: i64,
    /// It was ready to run, and no processor was free.
    pub(super) ready: i64,
    /// It was neither: it slept, or waited for something.
    pub(super) off: i64,
}

/// What is known of the threads, by their numbers.
pub(super) struct Processors {
    threads: HashMap<usize, Vec<ProcessorSpan>>,
}

impl Processors {
    pub(super) fn of(timeline: &Timeline, threads: &Threads) -> Self {
        let known = timeline.processor.iter().filter_map(|of_thread| {
            let thread = threads.of_track(of_thread.track)?;
            Some((thread, of_thread.spans().collect()))
        });
        Self {
            threads: known.collect(),
        }
    }

    /// Returns what a thread did in these times, which are in their order and do not overlap.
    pub(super) fn at_least(&self, thread: usize, times: &[(i64, i64)]) -> AtLeast {
        let mut sum = AtLeast::default();
        let mut times = times.iter().copied().peekable();
        for span in self.threads.get(&thread).into_iter().flatten() {
            let mut inside: i64 = 0;
            while let Some((from, to)) = times.peek().copied() {
                let overlap = to.min(span.end).saturating_sub(from.max(span.start));
                inside = inside.saturating_add(overlap.max(0));
                if to > span.end {
                    break;
                }
                times.next();
            }
            let all = span.end.saturating_sub(span.start);
            let outside = all.saturating_sub(inside);
            let off = all.saturating_sub(span.running).saturating_sub(span.ready);
            let least = |of_span: i64| of_span.saturating_sub(outside).max(0);
            sum.running = sum.running.saturating_add(least(span.running));
            sum.ready = sum.ready.saturating_add(least(span.ready));
            sum.off = sum.off.saturating_add(least(off));
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::tests::Drawn;

    /// The times of a thread, in microseconds: it ran for 2 of 10, then for 10 of 10, then was ready for 6 of 10.
    fn at_least(times: &[(i64, i64)]) -> [i64; 3] {
        let mut drawn = Drawn::new(100);
        let thread = drawn.thread(1);
        drawn.processor(thread, &[(0, 0, 0), (10, 2, 0), (20, 12, 0), (30, 12, 6)]);
        let threads = Threads::of(&drawn.0, &[]);
        let times: Vec<(i64, i64)> = times
            .iter()
            .map(|(from, to)| (from * 1000, to * 1000))
            .collect();
        let sum = Processors::of(&drawn.0, &threads).at_least(0, &times);
        [sum.running, sum.ready, sum.off].map(|ns| ns / 1000)
    }

    #[test]
    fn a_thread_did_at_least_what_does_not_fit_outside_of_the_times() {
        for (times, expected) in [
            (&[][..], [0, 0, 0]),
            (&[(0, 10)], [2, 0, 8]),
            // Two of the six that it was off a processor fit in the rest.
            (&[(1, 4), (5, 8)], [0, 0, 4]),
            (&[(0, 30)], [12, 6, 12]),
            (&[(5, 15)], [5, 0, 3]),
            (&[(5, 15), (20, 29)], [5, 5, 6]),
            (&[(-10, 0), (30, 90)], [0, 0, 0]),
        ] {
            assert_eq!(at_least(times), expected, "{times:?}");
        }
    }
}
