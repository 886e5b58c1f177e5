//! The statistics of one pair of caller and callee on one thread.

use super::single_writer::SingleWriterU64;

/// The calls of one name from another one on one thread. One writer, any reader; see [`SingleWriterU64`].
#[derive(Debug)]
pub(crate) struct EdgeCell {
    /// The ids of both names, in one word. Changed with the lock of all edges held.
    names: SingleWriterU64,
    calls: SingleWriterU64,
    primitive_calls: SingleWriterU64,
    total: SingleWriterU64,
    own: SingleWriterU64,
    /// Such calls that are open on this thread.
    open: SingleWriterU64,
}

/// Sums of a pair of caller and callee, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EdgeTotals {
    pub(crate) calls: u64,
    pub(crate) primitive_calls: u64,
    /// The time of primitive calls.
    pub(crate) total: i64,
    pub(crate) own: i64,
}

impl EdgeCell {
    pub(crate) const fn new() -> Self {
        Self {
            names: SingleWriterU64::new(),
            calls: SingleWriterU64::new(),
            primitive_calls: SingleWriterU64::new(),
            total: SingleWriterU64::new(),
            own: SingleWriterU64::new(),
            open: SingleWriterU64::new(),
        }
    }

    /// Sets the ids of the caller's and the callee's names.
    pub(crate) fn set_names(&self, (outer, inner): (u32, u32)) {
        self.names.set(u64::from(outer) << 32 | u64::from(inner));
    }

    /// Returns the ids of the caller's and the callee's names.
    #[allow(clippy::cast_possible_truncation, reason = "two halves")]
    pub(crate) fn names(&self) -> (u32, u32) {
        let names = self.names.get();
        ((names >> 32) as u32, names as u32)
    }

    /// Notes that such a call opens. Returns `true` if no other one is open on this thread.
    pub(crate) fn enter(&self) -> bool {
        self.open.add(1);
        self.open.get() == 1
    }

    /// Notes that such a call closes.
    pub(crate) fn leave(&self) {
        self.open.set(self.open.get().saturating_sub(1));
    }

    /// Counts a finished call.
    pub(crate) fn count(&self, elapsed: i64, own: i64, is_primitive: bool) {
        self.calls.add(1);
        self.own.add_ticks(own);
        if is_primitive {
            self.primitive_calls.add(1);
            self.total.add_ticks(elapsed);
        }
    }

    /// Adds the counts to `totals`.
    pub(crate) fn read_into(&self, totals: &mut EdgeTotals) {
        totals.calls += self.calls.get();
        totals.primitive_calls += self.primitive_calls.get();
        totals.total += self.total.ticks();
        totals.own += self.own.ticks();
    }

    /// Moves the counts to `totals`, for the next thread that uses the cell.
    pub(crate) fn drain_into(&self, totals: &mut EdgeTotals) {
        self.read_into(totals);
        let counts = [&self.calls, &self.primitive_calls, &self.total, &self.own];
        for count in counts.into_iter().chain([&self.open]) {
            count.set(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_inside_of_another_one_counts_in_calls_and_self_time() {
        let cell = EdgeCell::new();
        cell.set_names((7, u32::MAX));
        assert_eq!(cell.names(), (7, u32::MAX));
        assert!(cell.enter());
        assert!(!cell.enter());
        cell.leave();
        cell.count(30, 30, false);
        cell.leave();
        cell.count(100, 70, true);
        let expected = EdgeTotals {
            calls: 2,
            primitive_calls: 1,
            total: 100,
            own: 100,
        };
        let mut totals = EdgeTotals::default();
        cell.drain_into(&mut totals);
        assert_eq!(totals, expected);
        cell.read_into(&mut totals);
        assert_eq!(totals, expected, "a drained cell has no counts");
        assert!(cell.enter());
    }
}
