//! The history of all names, in bounded memory.
//!
//! All names share one division of the run into spans. A sample ends a span. When there are as many spans as may be, each
//! two neighbours are merged, and the next ones are twice as long. So the history reaches back to the beginning however
//! long the program runs, and no sum changes.

use std::time::Duration;

use profiler_report::HistoryPoint;

/// The most spans of a run.
pub(super) const MAX_SPANS: usize = 128;
/// The most names that have a history: the first ones with a call.
pub(super) const MAX_NAMES: usize = 1024;
/// The length of the first spans.
const FIRST_SPAN: Duration = Duration::from_millis(100);

/// The values of a name, summed up since the beginning of the run, or over a span.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) calls: u64,
    pub(super) cpu_self_ns: f64,
    pub(super) cuda_calls: u64,
    pub(super) cuda_self_ns: f64,
}

impl Sums {
    /// Returns what was added since `earlier`. A snapshot of running threads may hold less than an earlier one; the
    /// difference is added later.
    fn since(self, earlier: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            cpu_self_ns: (self.cpu_self_ns - earlier.cpu_self_ns).max(0.0),
            cuda_calls: self.cuda_calls.saturating_sub(earlier.cuda_calls),
            cuda_self_ns: (self.cuda_self_ns - earlier.cuda_self_ns).max(0.0),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            cpu_self_ns: self.cpu_self_ns + other.cpu_self_ns,
            cuda_calls: self.cuda_calls + other.cuda_calls,
            cuda_self_ns: self.cuda_self_ns + other.cuda_self_ns,
        }
    }
}

/// The history of one name.
#[derive(Clone, Debug, Default)]
struct Series {
    /// The sum of all points.
    until_now: Sums,
    /// The spans in which something was added, by their numbers.
    points: Vec<(u8, Sums)>,
}

impl Series {
    fn add(&mut self, span: u8, now: Sums) {
        let added = now.since(self.until_now);
        if added != Sums::default() {
            self.until_now = self.until_now.plus(added);
            self.points.push((span, added));
        }
    }

    fn halve(&mut self) {
        let mut merged: Vec<(u8, Sums)> = Vec::with_capacity(self.points.len());
        for (span, sums) in self.points.drain(..) {
            match merged.last_mut() {
                Some((last, into)) if *last == span / 2 => *into = into.plus(sums),
                _ => merged.push((span / 2, sums)),
            }
        }
        self.points = merged;
    }
}

/// The history of all names.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// When each span ended, in nanoseconds since the beginning.
    ends: Vec<u64>,
    /// How long the next span is to be.
    span_ns: u64,
    /// By the number of the name.
    names: Vec<Option<Series>>,
    /// The names that have a history.
    named: usize,
}

impl History {
    pub(super) const fn new() -> Self {
        Self {
            ends: Vec::new(),
            #[allow(clippy::cast_possible_truncation, reason = "a fraction of a second")]
            span_ns: FIRST_SPAN.as_nanos() as u64,
            names: Vec::new(),
            named: 0,
        }
    }

    /// Returns when the current span is to end, in nanoseconds since the beginning.
    pub(super) fn next_end(&self) -> u64 {
        self.began() + self.span_ns
    }

    /// Returns when the current span began.
    fn began(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Ends the current span at `now_ns`. `sums` are those of each name since the beginning, by the number of the name.
    pub(super) fn end_span(&mut self, now_ns: u64, sums: impl IntoIterator<Item = (u32, Sums)>) {
        if now_ns <= self.began() {
            // The clock stands still.
            return;
        }
        if self.ends.len() == MAX_SPANS {
            self.halve();
        }
        #[allow(
            clippy::cast_possible_truncation,
            reason = "there are at most MAX_SPANS"
        )]
        let span = self.ends.len() as u8;
        self.ends.push(now_ns);
        for (name, sums) in sums {
            if let Some(series) = self.series(name as usize) {
                series.add(span, sums);
            }
        }
    }

    /// Returns the history of a name, which begins here unless there are too many.
    fn series(&mut self, name: usize) -> Option<&mut Series> {
        if self.names.len() <= name {
            self.names.resize(name + 1, None);
        }
        let slot = self.names.get_mut(name)?;
        if slot.is_none() {
            if self.named == MAX_NAMES {
                return None;
            }
            self.named += 1;
        }
        Some(slot.get_or_insert_default())
    }

    /// Merges each span with an even number with the one after it.
    fn halve(&mut self) {
        self.ends = self
            .ends
            .chunks(2)
            .filter_map(<[u64]>::last)
            .copied()
            .collect();
        for series in self.names.iter_mut().flatten() {
            series.halve();
        }
        self.span_ns = self.span_ns.saturating_mul(2);
    }

    /// Returns the points of a name, with a last one from the last sample to `now_ns`, when its sums are `now`.
    ///
    /// Returns nothing if no span has ended or if the name has no history.
    pub(super) fn of(&self, name: u32, now_ns: u64, now: Sums) -> Vec<HistoryPoint> {
        let Some(Some(series)) = self.names.get(name as usize) else {
            return Vec::new();
        };
        let mut points: Vec<HistoryPoint> = series
            .points
            .iter()
            .filter_map(|(span, sums)| {
                let span = usize::from(*span);
                let end = *self.ends.get(span)?;
                let start = span.checked_sub(1).and_then(|before| self.ends.get(before));
                Some(point(start.copied().unwrap_or(0), end, *sums))
            })
            .collect();
        let rest = now.since(series.until_now);
        if rest != Sums::default() {
            points.push(point(self.began(), now_ns.max(self.began()), rest));
        }
        points
    }
}

fn point(start: u64, end: u64, sums: Sums) -> HistoryPoint {
    HistoryPoint {
        start_ns: start,
        duration_ns: end - start,
        calls: sums.calls,
        cpu_self_ns: sums.cpu_self_ns,
        cuda_calls: sums.cuda_calls,
        cuda_self_ns: sums.cuda_self_ns,
        non_exhaustive: (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(calls: u64) -> Sums {
        Sums {
            calls,
            cpu_self_ns: 10.0 * calls as f64,
            cuda_calls: calls / 2,
            cuda_self_ns: 5.0 * calls as f64,
        }
    }

    fn total(points: &[HistoryPoint]) -> Sums {
        points.iter().fold(Sums::default(), |total, point| {
            total.plus(Sums {
                calls: point.calls,
                cpu_self_ns: point.cpu_self_ns,
                cuda_calls: point.cuda_calls,
                cuda_self_ns: point.cuda_self_ns,
            })
        })
    }

    #[test]
    fn no_sum_changes_however_often_spans_are_merged() {
        let mut history = History::new();
        for sample in 1..=5 * MAX_SPANS as u64 {
            let busy = sums(sample * sample);
            // The second name works in every seventh span.
            let rare = sums(sample / 7);
            history.end_span(sample * 1_000, [(0, busy), (3, rare)]);
            for (name, now) in [(0, busy), (3, rare)] {
                let points = history.of(name, sample * 1_000, now);
                assert!(points.len() <= MAX_SPANS, "{}", points.len());
                assert_eq!(total(&points), now, "after {sample} samples");
            }
        }
        assert_eq!(history.of(1, 0, Sums::default()), []);
    }

    #[test]
    fn spans_follow_one_another_and_grow() {
        let mut history = History::new();
        for sample in 1..=MAX_SPANS as u64 + 1 {
            history.end_span(sample * 1_000, [(0, sums(sample))]);
        }
        let points = history.of(0, 0, sums(MAX_SPANS as u64 + 1));
        assert_eq!(points.len(), MAX_SPANS / 2 + 1);
        let mut end = 0;
        for point in &points {
            assert_eq!(point.start_ns, end);
            end += point.duration_ns;
        }
        assert_eq!(end, 1_000 * (MAX_SPANS as u64 + 1));
        let (first, last) = (points[0], points[points.len() - 1]);
        assert_eq!((first.duration_ns, first.calls), (2_000, 2));
        assert_eq!((last.duration_ns, last.calls), (1_000, 1));
        assert_eq!(history.next_end() - end, 200_000_000);
    }

    #[test]
    fn an_odd_number_of_spans_keeps_its_last_one() {
        let mut series = Series::default();
        for span in [0, 1, 3, 6] {
            let so_far = series.until_now.calls;
            series.add(span, sums(so_far + 2));
        }
        series.halve();
        let spans: Vec<(u8, u64)> = series
            .points
            .iter()
            .map(|(span, sums)| (*span, sums.calls))
            .collect();
        assert_eq!(spans, [(0, 4), (1, 2), (3, 2)]);
    }

    #[test]
    fn the_last_point_reaches_to_the_summary() {
        let mut history = History::new();
        history.end_span(1_000, [(0, sums(4))]);
        history.end_span(2_000, [(0, sums(4))]);
        let points = history.of(0, 2_500, sums(10));
        let shown: Vec<_> = points
            .iter()
            .map(|point| (point.start_ns, point.duration_ns, point.calls))
            .collect();
        // Nothing ended in the second span.
        assert_eq!(shown, [(0, 1_000, 4), (2_000, 500, 6)]);
    }

    #[test]
    fn a_snapshot_that_holds_less_than_the_one_before_takes_nothing_back() {
        let mut history = History::new();
        history.end_span(1_000, [(0, sums(4))]);
        history.end_span(2_000, [(0, sums(3))]);
        history.end_span(3_000, [(0, sums(6))]);
        assert_eq!(total(&history.of(0, 3_000, sums(6))), sums(6));
    }

    #[test]
    fn the_first_names_have_a_history() {
        let mut history = History::new();
        let last = u32::try_from(MAX_NAMES).expect("a small number");
        history.end_span(1_000, (0..=last).map(|name| (name, sums(1))));
        assert_eq!(history.of(last - 1, 1_000, sums(1)).len(), 1);
        assert_eq!(history.of(last, 1_000, sums(1)), []);
    }

    #[test]
    fn a_clock_that_stands_still_ends_no_span() {
        let mut history = History::new();
        history.end_span(1_000, [(0, sums(1))]);
        history.end_span(1_000, [(0, sums(2))]);
        assert_eq!(history.of(0, 1_000, sums(2)).len(), 2);
        assert_eq!(history.ends, [1_000]);
    }
}
