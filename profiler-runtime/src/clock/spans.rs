//! Spans of time.

/// The most spans that are kept apart: 64 KiB.
const MAX_SPANS: usize = 1 << 12;

/// Spans of time in ticks, disjoint and in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans(Vec<(u64, u64)>);

impl Spans {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a span. If there are too many, or there is no memory, some become one with the time between them.
    pub(crate) fn add(&mut self, from: u64, until: u64) {
        // Those that overlap the new one or touch it.
        let first = self.0.partition_point(|span| span.1 < from);
        let last = self.0.partition_point(|span| span.0 <= until);
        if let [one, .., other] | [one @ other] = &self.0[first..last] {
            let joined = (from.min(one.0), until.max(other.1));
            self.0[first] = joined;
            self.0.drain(first + 1..last);
            return;
        }
        if self.0.len() >= MAX_SPANS {
            self.merge_neighbours();
            return self.add(from, until);
        }
        if self.0.try_reserve(1).is_ok() {
            self.0.insert(first, (from, until));
        } else if let Some(newest) = self.0.last_mut() {
            *newest = (newest.0.min(from), newest.1.max(until));
        }
    }

    /// Joins every two spans.
    fn merge_neighbours(&mut self) {
        let joined = self.0.len().div_ceil(2);
        for index in 0..joined {
            let last = (2 * index + 1).min(self.0.len() - 1);
            self.0[index] = (self.0[2 * index].0, self.0[last].1);
        }
        self.0.truncate(joined);
    }

    /// Returns when the first span begins that ends after this time.
    pub(crate) fn begin_of_first_after(&self, at: u64) -> Option<u64> {
        let first = self.0.partition_point(|span| span.1 <= at);
        self.0.get(first).map(|span| span.0)
    }

    /// Calls `f` with the parts of a time that are in no span.
    pub(crate) fn outside(&self, (from, until): (u64, u64), mut f: impl FnMut(u64, u64)) {
        let first = self.0.partition_point(|span| span.1 <= from);
        let mut at = from;
        for (begin, end) in &self.0[first..] {
            let begin = (*begin).clamp(at, until.max(at));
            if begin > at {
                f(at, begin);
            }
            at = at.max(*end);
            if at >= until {
                return;
            }
        }
        if at < until {
            f(at, until);
        }
    }

    /// Forgets the spans that end before this time.
    pub(crate) fn forget_before(&mut self, at: u64) {
        let first = self.0.partition_point(|span| span.1 < at);
        self.0.drain(..first);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spans_are_bounded_and_cover_what_was_added() {
        let mut spans = Spans::new();
        let last = 3 * MAX_SPANS as u64;
        for number in 0..last {
            spans.add(10 * number, 10 * number + 5);
        }
        assert!(spans.0.len() <= MAX_SPANS);
        spans.outside((0, 10 * last), |from, until| {
            assert!(from % 10 == 5 && until == from + 5, "{from} to {until}");
        });
    }

    proptest! {
        #[test]
        fn what_is_outside_is_in_no_span(
            added in prop::collection::vec((0_u64..100, 1_u64..20), 0..20),
            (from, length) in (0_u64..120, 0_u64..60),
        ) {
            let mut spans = Spans::new();
            for (begin, length) in &added {
                spans.add(*begin, begin + length);
            }
            let is_outside = |at: &u64| !added.iter().any(|(begin, length)| (*begin..begin + length).contains(at));
            let expected: Vec<u64> = (from..from + length).filter(is_outside).collect();
            let mut found = Vec::new();
            spans.outside((from, from + length), |from, until| found.extend(from..until));
            prop_assert_eq!(found, expected);
        }
    }
}
