//! The statistics of one node of the call tree on one thread.

use super::single_writer::SingleWriterU64;

/// How a call relates to the calls that are open around it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// No other call of its caller and callee is open.
    #[default]
    Primitive,
    /// As `Primitive`, but another call of the function is open, which is not on the path of the node.
    Hidden,
    /// Another call of its caller and callee is open. It is counted on the node of that call.
    Recursive,
}

/// The calls of one node on one thread. One writer, any reader; see [`SingleWriterU64`].
#[derive(Debug)]
pub(crate) struct NodeCell {
    /// The id of the node. Changed with the lock of all nodes held.
    node: SingleWriterU64,
    calls: SingleWriterU64,
    recursive_calls: SingleWriterU64,
    hidden_calls: SingleWriterU64,
    total: SingleWriterU64,
    hidden_total: SingleWriterU64,
    own: SingleWriterU64,
}

/// Sums of the calls of a node, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodeTotals {
    pub(crate) calls: u64,
    pub(crate) recursive_calls: u64,
    pub(crate) hidden_calls: u64,
    /// The time of all calls but the recursive ones.
    pub(crate) total: i64,
    /// The time of hidden calls.
    pub(crate) hidden_total: i64,
    pub(crate) own: i64,
}

impl NodeTotals {
    /// Counts a finished call.
    pub(crate) fn count(&mut self, elapsed: i64, own: i64, kind: CallKind) {
        self.calls += 1;
        self.own += own;
        match kind {
            CallKind::Primitive => self.total += elapsed,
            CallKind::Hidden => {
                self.total += elapsed;
                self.hidden_calls += 1;
                self.hidden_total += elapsed;
            }
            CallKind::Recursive => self.recursive_calls += 1,
        }
    }
}

impl NodeCell {
    /// The [`node`](Self::node) of a cell that no thread uses.
    const NO_NODE: u64 = u64::MAX;

    pub(crate) const fn new() -> Self {
        let node = SingleWriterU64::new();
        Self {
            node,
            calls: SingleWriterU64::new(),
            recursive_calls: SingleWriterU64::new(),
            hidden_calls: SingleWriterU64::new(),
            total: SingleWriterU64::new(),
            hidden_total: SingleWriterU64::new(),
            own: SingleWriterU64::new(),
        }
    }

    /// Sets the node whose calls are counted, or none.
    pub(crate) fn set_node(&self, node: Option<u32>) {
        self.node.set(node.map_or(Self::NO_NODE, u64::from));
    }

    /// Returns the node whose calls are counted.
    pub(crate) fn node(&self) -> Option<u32> {
        u32::try_from(self.node.get()).ok()
    }

    /// Counts a finished call.
    pub(crate) fn count(&self, elapsed: i64, own: i64, kind: CallKind) {
        self.calls.add(1);
        self.own.add_ticks(own);
        match kind {
            CallKind::Primitive => self.total.add_ticks(elapsed),
            CallKind::Hidden => {
                self.total.add_ticks(elapsed);
                self.hidden_calls.add(1);
                self.hidden_total.add_ticks(elapsed);
            }
            CallKind::Recursive => self.recursive_calls.add(1),
        }
    }

    /// Adds the counts to `totals`.
    pub(crate) fn read_into(&self, totals: &mut NodeTotals) {
        totals.calls += self.calls.get();
        totals.recursive_calls += self.recursive_calls.get();
        totals.hidden_calls += self.hidden_calls.get();
        totals.total += self.total.ticks();
        totals.hidden_total += self.hidden_total.ticks();
        totals.own += self.own.ticks();
    }

    /// Moves the counts to `totals`, for the next thread that uses the cell.
    pub(crate) fn drain_into(&self, totals: &mut NodeTotals) {
        self.read_into(totals);
        let counts = [
            &self.calls,
            &self.recursive_calls,
            &self.hidden_calls,
            &self.total,
            &self.hidden_total,
            &self.own,
        ];
        for count in counts {
            count.set(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recursive_call_counts_in_calls_and_self_time() {
        let cell = NodeCell::new();
        cell.set_node(Some(7));
        assert_eq!(cell.node(), Some(7));
        let mut expected = NodeTotals::default();
        for (elapsed, own, kind) in [
            (30, 30, CallKind::Recursive),
            (100, 70, CallKind::Primitive),
            (20, 5, CallKind::Hidden),
        ] {
            cell.count(elapsed, own, kind);
            expected.count(elapsed, own, kind);
        }
        assert_eq!((expected.calls, expected.recursive_calls), (3, 1));
        assert_eq!((expected.total, expected.own), (120, 105));
        assert_eq!((expected.hidden_calls, expected.hidden_total), (1, 20));
        let mut totals = NodeTotals::default();
        cell.drain_into(&mut totals);
        assert_eq!(totals, expected);
        cell.read_into(&mut totals);
        assert_eq!(totals, expected, "a drained cell has no counts");
        cell.set_node(None);
        assert_eq!(cell.node(), None);
    }
}
