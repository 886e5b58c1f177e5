//! What a device did, by the event pairs that were read: three states, without gaps and without overlaps.
//!
//! - *busy*: a pair ran with no other pair inside it, and the device took longer than the host.
//! - *host-paced*: only other pairs ran. The host took at least as long, so the device waited between the
//!   launches; or other pairs were inside of it, so what it did between those is not known.
//! - *idle*: no pair ran.
//!
//! The account begins with the first pair, and ends where the newest one does. Pairs arrive in the order of their ends, so
//! those that began long ago may be missing yet. That is why states are settled some seconds later.

/// The most pairs of a device that wait to be settled: 160 KiB.
pub(super) const MAX_PENDING: usize = 1 << 12;

/// The GPU time of a scope on the time line of the host, in ticks.
// The order of the fields is that of the pairs: of several that begin at once, the earliest call ends an idle piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub(super) begin: u64,
    /// When the thread opened the scope; `begin` if the device began at once.
    pub(super) opened: u64,
    pub(super) end: u64,
    /// The thread that opened the scope; `None` if it is not known.
    pub(super) thread: Option<u32>,
    /// `true` if the device was busy all the time.
    pub(super) is_busy: bool,
}

/// A time in which a device was idle, and a thread had not launched what came next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) from: u64,
    pub(super) until: u64,
    /// The thread that launched what came next.
    pub(super) thread: Option<u32>,
}

/// How long a device was in each state, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) busy: u64,
    pub(super) host_paced: u64,
    pub(super) idle: u64,
    /// The part of `idle` in which the next scope was open, and its first event was not passed.
    pub(super) launched: u64,
    /// The time of pairs that were read after it had been settled without them.
    pub(super) late: u64,
}

/// The states of one device.
#[derive(Clone, Debug, Default)]
pub(super) struct States {
    pending: Vec<Pair>,
    /// Up to where the time is settled; `None` before the first pair.
    at: Option<u64>,
    /// The ends of the pairs that began before `at`.
    busy_until: u64,
    host_paced_until: u64,
    sums: Sums,
}

impl States {
    /// Adds a pair that was read. Returns `false` if so many wait that some must be settled.
    pub(super) fn add(&mut self, pair: Pair) -> bool {
        self.pending.push(pair);
        self.pending.len() < MAX_PENDING
    }

    /// Returns a time before which half of the waiting pairs began, or more.
    pub(super) fn median(&mut self) -> u64 {
        self.pending.sort_unstable();
        let middle = self.pending.get(self.pending.len() / 2);
        middle.map_or(0, |pair| pair.begin.saturating_add(1))
    }

    /// Returns since when the state may be idle and is not settled; `None` before the first pair.
    pub(super) fn open_since(&self) -> Option<u64> {
        let at = self.at?;
        Some(at.max(self.busy_until).max(self.host_paced_until))
    }

    /// Settles the time up to the last pair that began before `until`. Passes on the idle pieces in it.
    pub(super) fn settle(&mut self, until: u64, mut found: impl FnMut(Piece)) {
        self.pending.sort_unstable();
        let count = self.pending.partition_point(|pair| pair.begin < until);
        let mut pending = std::mem::take(&mut self.pending);
        for pair in pending.drain(..count) {
            self.begin(&pair, &mut found);
        }
        self.pending = pending;
    }

    /// Settles everything that is known, up to the end of the last pair. Nothing may be added any more.
    pub(super) fn finish(mut self, found: impl FnMut(Piece)) -> Sums {
        self.settle(u64::MAX, found);
        if let Some(end) = self.open_since() {
            self.advance(end);
        }
        self.sums
    }

    /// Settles the time until a pair begins.
    fn begin(&mut self, pair: &Pair, found: &mut impl FnMut(Piece)) {
        let at = *self.at.get_or_insert(pair.begin);
        let begin = pair.begin.max(at);
        self.sums.late += pair.end.min(at).saturating_sub(pair.begin);
        let from = self.advance(begin);
        if from < begin {
            let until = pair.opened.clamp(from, begin);
            self.sums.launched += begin - until;
            found(Piece {
                from,
                until,
                thread: pair.thread,
            });
        }
        let covered = if pair.is_busy {
            &mut self.busy_until
        } else {
            &mut self.host_paced_until
        };
        *covered = (*covered).max(pair.end);
    }

    /// Adds the states up to a time. Returns since when the device was idle then, at most that time.
    fn advance(&mut self, to: u64) -> u64 {
        let at = self.at.replace(to).unwrap_or(to);
        let busy = self.busy_until.clamp(at, to);
        let paced = self.host_paced_until.clamp(busy, to);
        self.sums.busy += busy - at;
        self.sums.host_paced += paced - busy;
        self.sums.idle += to - paced;
        paced
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pair(begin: u64, end: u64, is_busy: bool) -> Pair {
        Pair {
            begin,
            opened: begin,
            end,
            thread: Some(1),
            is_busy,
        }
    }

    fn settled(pairs: &[Pair]) -> (Sums, Vec<Piece>) {
        let mut states = States::default();
        for pair in pairs {
            states.add(*pair);
        }
        let mut pieces = Vec::new();
        let sums = states.finish(|piece| pieces.push(piece));
        (sums, pieces)
    }

    #[test]
    fn a_child_is_busy_and_the_rest_of_its_parent_is_host_paced() {
        let (sums, pieces) =
            settled(&[pair(20, 30, true), pair(10, 50, false), pair(60, 70, true)]);
        let expected = Sums {
            busy: 20,
            host_paced: 30,
            idle: 10,
            ..Sums::default()
        };
        assert_eq!(sums, expected);
        let piece = Piece {
            from: 50,
            until: 60,
            thread: Some(1),
        };
        assert_eq!(pieces, [piece]);
    }

    #[test]
    fn the_thread_that_launches_first_ends_a_piece_and_what_it_has_launched_is_no_time_of_the_host()
    {
        let other = Pair {
            opened: 30,
            thread: Some(2),
            ..pair(40, 50, true)
        };
        let (sums, pieces) = settled(&[pair(0, 20, true), pair(40, 60, true), other]);
        assert_eq!((sums.idle, sums.launched, sums.busy), (20, 10, 40));
        let piece = Piece {
            from: 20,
            until: 30,
            thread: Some(2),
        };
        assert_eq!(pieces, [piece]);
    }

    #[test]
    fn a_pair_that_is_read_late_counts_from_where_the_time_was_settled() {
        let mut states = States::default();
        states.add(pair(0, 10, true));
        states.add(pair(40, 50, true));
        let mut idle = 0;
        states.settle(45, |piece| idle += piece.until - piece.from);
        assert_eq!(idle, 30);
        states.add(pair(5, 60, false));
        let sums = states.finish(|_| idle += 1_000);
        let expected = Sums {
            busy: 20,
            host_paced: 10,
            idle: 30,
            launched: 0,
            late: 35,
        };
        assert_eq!((sums, idle), (expected, 30));
    }

    #[test]
    fn an_idle_piece_is_settled_when_the_next_pair_is_known() {
        let mut states = States::default();
        states.add(pair(0, 10, true));
        states.settle(1_000_000, |piece| panic!("{piece:?}"));
        assert_eq!(states.open_since(), Some(10));
        // It began long ago, and nothing else ran: it is not late.
        states.add(pair(30, 2_000_000, true));
        let sums = states.finish(|_| ());
        assert_eq!((sums.idle, sums.late), (20, 0));
    }

    proptest! {
        #[test]
        fn the_states_are_those_of_a_model_that_walks_ticks(
            pairs in prop::collection::vec((0_u64..300, 1_u64..40, any::<bool>()), 1..40),
            cuts in prop::collection::vec(0_u64..350, 0..5),
        ) {
            let pairs: Vec<Pair> = pairs.iter().map(|(at, length, busy)| pair(*at, at + length, *busy)).collect();
            let first = pairs.iter().map(|pair| pair.begin).min().unwrap_or(0);
            let last = pairs.iter().map(|pair| pair.end).max().unwrap_or(0);
            let mut model = Sums::default();
            let mut idle = Vec::new();
            for at in first..last {
                let runs = |busy: bool| pairs.iter().any(|pair| pair.is_busy == busy && (pair.begin..pair.end).contains(&at));
                match (runs(true), runs(false)) {
                    (true, _) => model.busy += 1,
                    (false, true) => model.host_paced += 1,
                    (false, false) => {
                        model.idle += 1;
                        idle.push(at);
                    }
                }
            }
            // In any parts, the result is the same.
            let mut states = States::default();
            for pair in &pairs {
                states.add(*pair);
            }
            let mut pieces = Vec::new();
            let mut cuts = cuts;
            cuts.sort_unstable();
            for cut in cuts {
                states.settle(cut, |piece| pieces.push(piece));
            }
            prop_assert_eq!(states.finish(|piece| pieces.push(piece)), model);
            let found: Vec<u64> = pieces.iter().flat_map(|piece| piece.from..piece.until).collect();
            prop_assert_eq!(found, idle);
        }
    }
}
