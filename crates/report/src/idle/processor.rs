//! Whether a thread worked or waited: bounds from samples of its time on a processor.

use std::collections::HashMap;

use super::threads::Threads;
use crate::timeline::Timeline;

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

/// What a thread did between two samples.
struct Span {
    start: i64,
    end: i64,
    did: AtLeast,
}

/// What is known of the threads, by their numbers.
pub(super) struct Processors {
    threads: HashMap<usize, Vec<Span>>,
}

impl Processors {
    pub(super) fn of(timeline: &Timeline, threads: &Threads) -> Self {
        let known = timeline.processor.iter().filter_map(|of_thread| {
            let thread = threads.of_track(of_thread.track)?;
            let spans = of_thread.spans().map(|span| {
                let all = span.end.saturating_sub(span.start);
                let (running, ready) = (span.running, span.ready);
                let off = all.saturating_sub(running).saturating_sub(ready);
                Span {
                    start: span.start,
                    end: span.end,
                    did: AtLeast {
                        running,
                        ready,
                        off,
                    },
                }
            });
            let mut spans: Vec<Span> = spans.collect();
            leave_out_unplaced(&mut spans);
            Some((thread, spans))
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
            let least = |of_span: i64| of_span.saturating_sub(outside).max(0);
            sum.running = sum.running.saturating_add(least(span.did.running));
            sum.ready = sum.ready.saturating_add(least(span.did.ready));
            sum.off = sum.off.saturating_add(least(span.did.off));
        }
        sum
    }
}

/// Leaves out what may have been in an earlier span. That a thread was ready is known when it gets a processor, and counts as late
/// as it can have been: in the span in which it ran then, and in earlier ones if it does not fit in there. It may have begun
/// earlier, up to where it ran before.
fn leave_out_unplaced(spans: &mut [Span]) {
    let (mut ran_in, mut left) = (None, 0);
    for place in (0..spans.len()).rev() {
        let Some(span) = spans.get_mut(place) else {
            continue;
        };
        let moved = span.did.off.min(left);
        let (ran, ready) = (span.did.running > 0, span.did.ready);
        span.did.off -= moved;
        left -= moved;
        if let Some(later) = ran_in.and_then(|later| spans.get_mut::<usize>(later)) {
            later.did.ready -= moved;
        }
        if ran {
            (ran_in, left) = (Some(place), ready);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::tests::Drawn;

    /// By samples of a thread, in microseconds.
    fn at_least(samples: &[(i64, i64, i64)], times: &[(i64, i64)]) -> [i64; 3] {
        let mut drawn = Drawn::new(100);
        let thread = drawn.thread(1);
        drawn.processor(thread, samples);
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
        // It ran for 2 of 10, then for 10 of 10, then was ready for 6 of 10.
        let samples = [(0, 0, 0), (10, 2, 0), (20, 12, 0), (30, 12, 6)];
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
            assert_eq!(at_least(&samples, times), expected, "{times:?}");
        }
    }

    #[test]
    fn a_thread_that_may_have_been_ready_earlier_was_neither_off_a_processor_there_nor_ready_later()
    {
        // It got a processor in the second span, after 6 of 20: all of these, or none, were in the first one.
        let samples = [(0, 0, 0), (10, 0, 0), (20, 4, 6)];
        assert_eq!(at_least(&samples, &[(0, 10)]), [0, 0, 4]);
        assert_eq!(at_least(&samples, &[(10, 20)]), [4, 0, 0]);
        // It was ready in all of the second span, for 9 of the third at most, and for 3 of the first at least, where it ran.
        let samples = [(0, 0, 0), (10, 5, 3), (20, 5, 13), (30, 6, 22)];
        assert_eq!(at_least(&samples, &[(0, 10)]), [5, 3, 0]);
        assert_eq!(at_least(&samples, &[(10, 30)]), [1, 17, 0]);
        // It ran in the second span: that it was ready in the third one began after that.
        let samples = [(0, 0, 0), (10, 0, 0), (20, 5, 0), (30, 9, 6)];
        assert_eq!(at_least(&samples, &[(0, 10)]), [0, 0, 10]);
    }
}
