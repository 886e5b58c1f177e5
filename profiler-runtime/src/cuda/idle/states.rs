//! What a device did, by the event pairs that were read: three states, without gaps and without overlaps.
//!
//! - *busy*: a pair ran with no other pair inside it, and the device took longer than the host.
//! - *host-paced*: only other pairs ran. The host took at least as long, so the device waited between the
//!   launches; or other pairs were inside of it, so what it did between those is not known.
//! - *idle*: no pair ran.
//!
//! Where no pair ran and it is not known whether the device worked, it counts in none of them: measuring was off, or a call has
//! no GPU time although it should have. See [`Unknown`].
//!
//! The account begins with the first pair, and ends where the newest one does. Pairs arrive in the order of their ends, so
//! those that began long ago may be missing yet. That is why states are settled some seconds later.

use crate::clock::Spans;

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
    /// How long no pair ran, and it is not known what the device did.
    pub(super) unknown: u64,
    /// The part of `idle` in which the next scope was open, and its first event was not passed.
    pub(super) launched: u64,
    /// The time of pairs that were read after it had been settled without them.
    pub(super) late: u64,
}

/// What is not known of the devices.
#[derive(Clone, Debug, Default)]
pub(super) struct Unknown {
    /// When measuring was off.
    pub(super) off: Spans,
    /// The times on the CPU of the calls whose GPU times were lost.
    pub(super) lost: Spans,
}

impl Unknown {
    /// Calls `f` with the parts of a time without pairs in which a device was idle. The last pair before was opened at
    /// `opened`.
    ///
    /// The device had done the work of calls that ended before that: it works in order. That of a later one may have taken any
    /// part of the time from the beginning of the call on.
    fn known(&self, (from, until): (u64, u64), opened: u64, f: impl FnMut(u64, u64)) {
        let lost = self.lost.begin_of_first_after(opened);
        let until = lost.map_or(until, |begin| begin.clamp(from, until));
        self.off.outside((from, until), f);
    }
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
    /// When the latest of those was opened.
    opened: u64,
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

    /// Returns when the latest call of the pairs that are settled was opened.
    pub(super) fn opened(&self) -> u64 {
        self.opened
    }

    /// Settles the time up to the last pair that began before `until`. Passes on the idle pieces in it.
    pub(super) fn settle(&mut self, until: u64, unknown: &Unknown, mut found: impl FnMut(Piece)) {
        self.pending.sort_unstable();
        let count = self.pending.partition_point(|pair| pair.begin < until);
        let mut pending = std::mem::take(&mut self.pending);
        for pair in pending.drain(..count) {
            self.begin(&pair, unknown, &mut found);
        }
        self.pending = pending;
    }

    /// Settles everything that is known, up to the end of the last pair. Nothing may be added any more.
    pub(super) fn finish(mut self, unknown: &Unknown, found: impl FnMut(Piece)) -> Sums {
        self.settle(u64::MAX, unknown, found);
        if let Some(end) = self.open_since() {
            self.advance(end);
        }
        self.sums
    }

    /// Settles the time until a pair begins.
    fn begin(&mut self, pair: &Pair, unknown: &Unknown, found: &mut impl FnMut(Piece)) {
        let at = *self.at.get_or_insert(pair.begin);
        let begin = pair.begin.max(at);
        self.sums.late += pair.end.min(at).saturating_sub(pair.begin);
        let from = self.advance(begin);
        self.sums.unknown += begin - from;
        unknown.known((from, begin), self.opened, |from, until| {
            self.sums.unknown -= until - from;
            self.sums.idle += until - from;
            let launched_at = pair.opened.clamp(from, until);
            self.sums.launched += until - launched_at;
            found(Piece {
                from,
                until: launched_at,
                thread: pair.thread,
            });
        });
        self.opened = self.opened.max(pair.opened);
        let covered = if pair.is_busy {
            &mut self.busy_until
        } else {
            &mut self.host_paced_until
        };
        *covered = (*covered).max(pair.end);
    }

    /// Adds the states up to a time but for where no pair ran. Returns since when none did then, at most that time.
    fn advance(&mut self, to: u64) -> u64 {
        let at = self.at.replace(to).unwrap_or(to);
        let busy = self.busy_until.clamp(at, to);
        let paced = self.host_paced_until.clamp(busy, to);
        self.sums.busy += busy - at;
        self.sums.host_paced += paced - busy;
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
        let sums = states.finish(&Unknown::default(), |piece| pieces.push(piece));
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
        states.settle(45, &Unknown::default(), |piece| {
            idle += piece.until - piece.from;
        });
        assert_eq!(idle, 30);
        states.add(pair(5, 60, false));
        let sums = states.finish(&Unknown::default(), |_| idle += 1_000);
        let expected = Sums {
            busy: 20,
            host_paced: 10,
            idle: 30,
            late: 35,
            ..Sums::default()
        };
        assert_eq!((sums, idle), (expected, 30));
    }

    #[test]
    fn an_idle_piece_is_settled_when_the_next_pair_is_known() {
        let mut states = States::default();
        states.add(pair(0, 10, true));
        states.settle(1_000_000, &Unknown::default(), |piece| panic!("{piece:?}"));
        assert_eq!(states.open_since(), Some(10));
        // It began long ago, and nothing else ran: it is not late.
        states.add(pair(30, 2_000_000, true));
        let sums = states.finish(&Unknown::default(), |_| ());
        assert_eq!((sums.idle, sums.late), (20, 0));
    }

    #[test]
    fn where_measuring_was_off_the_device_is_not_known_to_be_idle() {
        let mut states = States::default();
        for pair in [pair(0, 10, true), pair(50, 60, true), pair(90, 95, true)] {
            states.add(pair);
        }
        let mut unknown = Unknown::default();
        unknown.off.add(5, 30);
        unknown.off.add(40, 70);
        let mut pieces = Vec::new();
        let sums = states.finish(&unknown, |piece| pieces.push((piece.from, piece.until)));
        assert_eq!((sums.busy, sums.idle, sums.unknown), (25, 30, 40));
        assert_eq!(pieces, [(30, 40), (70, 90)]);
    }

    #[test]
    fn the_work_of_a_call_whose_time_was_lost_may_have_run_until_a_later_call_began() {
        let opened = |begin: u64, end: u64, opened: u64| Pair {
            opened,
            ..pair(begin, end, true)
        };
        let mut unknown = Unknown::default();
        unknown.lost.add(20, 25);
        // The device begins the second pair with a delay, but it was called before the lost one; the third was called later.
        let pairs = [
            opened(0, 10, 0),
            opened(40, 50, 15),
            opened(70, 80, 60),
            opened(100, 110, 100),
        ];
        let mut states = States::default();
        for pair in pairs {
            states.add(pair);
        }
        let mut pieces = Vec::new();
        let sums = states.finish(&unknown, |piece| pieces.push((piece.from, piece.until)));
        assert_eq!((sums.busy, sums.unknown), (40, 20 + 20));
        assert_eq!((sums.idle, sums.launched), (10 + 20, 5));
        assert_eq!(pieces, [(10, 15), (80, 100)]);
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
                states.settle(cut, &Unknown::default(), |piece| pieces.push(piece));
            }
            prop_assert_eq!(states.finish(&Unknown::default(), |piece| pieces.push(piece)), model);
            let found: Vec<u64> = pieces.iter().flat_map(|piece| piece.from..piece.until).collect();
            prop_assert_eq!(found, idle);
        }
    }
}
