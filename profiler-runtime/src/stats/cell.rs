//! The statistics of one name on one thread: one writer, any number of readers, no locked instruction.

use std::ptr;
use std::sync::atomic::AtomicPtr;

use profiler_host::process::thread;

use super::Totals;
use super::cell_fields::stat_cell;
use super::cell_times::CellTimes;
use super::fast_range::Prepared;
use super::single_writer::SingleWriterU64;

/// In the number of the name of a cell: the cell says which handle a thread is inside of, and counts nothing.
pub(crate) const ENTERED: u32 = 1 << 31;

/// How a scope ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It returned, early or late.
    Returned,
    /// A panic unwound through it.
    Panicked,
    /// Its future was dropped before it was ready.
    Dropped,
}

/// A scope has ended before others inside it, or on another thread. The cell knows the outermost open scope of its name alone, so
/// scopes of its name that were inside may be open without its knowledge.
const STRAYS: u64 = 1 << 63;

stat_cell! {
    /// The statistics of one name on one thread, in ticks.
    ///
    /// Only the thread that holds the cell writes; see [`SingleWriterU64`].
    // The fields that every call writes come first: with the first ones of `times`, they are one cache line.
    #[repr(C, align(64))]
    pub(crate) struct StatCell {
        first {
            /// The serial number of the outermost open scope of this name on this thread, or 0.
            outermost: state,
            /// The time of outermost calls. It counts a recursive frame once.
            total: ticks(total),
            own: ticks(own),
        }
        times: CellTimes,
        others {
            recursive: count(recursive_calls),
            recursive_total: ticks(recursive_total),
            panicked: count(panicked),
            dropped: count(dropped_futures),
            /// The time that futures spent in polls.
            polled: ticks(polled),
            /// Futures whose first poll was on this thread.
            futures_begun: count(futures_begun),
            /// Futures that ended on this thread.
            futures: count(futures),
            /// 1 if the outermost open scope is a poll.
            polling: state,
            /// Open scopes that were presumed leaked when an older scope closed, and [`STRAYS`].
            presumed_leaked: state,
            /// Scopes that ended out of order: before a scope inside them, after the one around them, or on another thread. Their
            /// self time is an upper bound.
            out_of_order: count(out_of_order),
            /// The thread time of outermost calls, in nanoseconds.
            thread_time: count(thread_time),
            own_thread_time: count(own_thread_time),
            /// Log entries that found the ring full since the last one that did not.
            pub(crate) skipped: on_drain(unreported_skips),
            /// Log entries that found the ring full.
            pub(crate) ring_full: count(ring_full),
            /// Calls whose GPU time found the ring full.
            pub(crate) without_cuda: count(without_cuda),
            /// Calls without a stream while a CUDA context was current.
            pub(crate) without_stream: count(without_stream),
            /// Spans that were entered several times, of which each enter is a call.
            reentered_spans: count(reentered_spans),
            /// The number of the name in the lower half, that of the thread in the upper one; see [`belong_to`](StatCell::belong_to).
            identity: identity,
            /// Calls until the next one that is logged.
            pub(crate) until_logged: state,
            /// The sampling of the call site that last opened a scope here: one call in `every` is logged.
            pub(crate) every: state,
        }
    }
}

impl StatCell {
    /// Makes zeroed memory a value as [`new`](Self::new) returns it.
    pub(super) fn initialize_zeroed(&self) {
        self.times.initialize_zeroed();
    }

    /// Makes the cell that of a name on the calling thread.
    pub(crate) fn belong_to(&self, name: u32) {
        let thread = thread::number() << 32;
        self.identity.set(thread | u64::from(name));
    }

    /// Makes a cell without counts say that the calling thread has entered a handle of this name, with this serial number.
    pub(crate) fn show_entered(&self, name: u32, serial: u64) {
        self.belong_to(name | ENTERED);
        self.outermost.set(serial);
    }

    /// Makes such a cell say that the thread has left all handles.
    pub(crate) fn show_left(&self) {
        self.outermost.set(0);
    }

    /// Makes the cell that of no name and no thread.
    pub(super) fn belong_to_none(&self) {
        self.identity.set(u64::MAX);
    }

    /// Returns the number of the name, with [`ENTERED`] if the cell is that of handles.
    #[allow(clippy::cast_possible_truncation, reason = "the lower half")]
    #[inline(always)]
    pub(crate) fn name(&self) -> u32 {
        self.identity.get() as u32
    }

    /// Returns the lower half of the number of the thread that holds the cell, or held it last.
    pub(crate) fn thread(&self) -> u32 {
        (self.identity.get() >> 32) as u32
    }

    /// Returns what [`thread`](Self::thread) and [`name`](Self::name) return, of one moment.
    #[allow(clippy::cast_possible_truncation, reason = "both halves")]
    pub(crate) fn holder(&self) -> (u32, u32) {
        let identity = self.identity.get();
        ((identity >> 32) as u32, identity as u32)
    }

    /// Notes that the scope with this serial number opens. It is the outermost one of the name unless another is open.
    #[inline(always)]
    pub(crate) fn enter(&self, serial: u64) {
        // SAFETY: scopes are opened by the thread that holds the cell.
        if unsafe { self.outermost.get_by_writer() } == 0 {
            self.outermost.set(serial);
        }
    }

    /// Returns the serial number of the outermost open scope, or 0.
    pub(crate) fn outermost(&self) -> u64 {
        self.outermost.get()
    }

    /// Presumes the outermost scope leaked if it is younger than the one with this serial number, which has just
    /// closed: guards usually close in the reverse order.
    pub(crate) fn presume_leaked_above(&self, serial: u64) {
        if self.outermost.get() > serial {
            self.outermost.set(0);
            // A poll, or a handle that was entered inside the name, has no guard that would close late.
            if self.polling.get() == 0 {
                self.presumed_leaked.add(1);
            }
            self.polling.set(0);
        } else if self.outermost.get() != 0 {
            // Calls of the name that are younger are recursive, and not known one by one.
            self.note_strays();
        }
    }

    /// Notes that the scope with this serial number closes out of order. Returns `true` if it counts as an outermost
    /// call.
    pub(crate) fn leave_late(&self, serial: u64) -> bool {
        if self.leave(serial) {
            return true;
        }
        if self.leaked() == 0 {
            // Another call of the name was open when it opened, and may have closed before it: the time of both is in that one's.
            return false;
        }
        // It had been presumed leaked: undo that. The call is recursive only if an outer call of the name is open.
        self.forget_presumed_leaked();
        self.outermost.get() == 0
    }

    /// Notes that the scope with this serial number closes. Returns `true` if it was the outermost one.
    #[inline(always)]
    pub(crate) fn leave(&self, serial: u64) -> bool {
        // SAFETY: scopes are closed by the thread that holds the cell.
        let outermost = unsafe { self.outermost.get_by_writer() } == serial;
        if outermost {
            self.outermost.set(0);
        }
        outermost
    }

    /// Notes that a scope that is not the outermost one of the name has closed in order. Returns `true` if it counts as an
    /// outermost call after all: it had been presumed leaked, and became the innermost scope again when a younger one closed
    /// late.
    pub(crate) fn leave_presumed_leaked(&self) -> bool {
        // A recursive call ends here, and needs no second comparison.
        if self.leaked() == 0 || self.outermost.get() != 0 {
            return false;
        }
        self.forget_presumed_leaked();
        true
    }

    /// Returns `true` if a scope of the name is open on this thread.
    pub(crate) fn is_open(&self) -> bool {
        self.outermost.get() != 0 || self.leaked() != 0
    }

    /// Notes that scopes may be open that the cell does not know.
    pub(crate) fn note_strays(&self) {
        self.presumed_leaked
            .set(self.presumed_leaked.get() | STRAYS);
    }

    /// Returns `true` if scopes may be open that the cell does not know.
    pub(crate) fn has_strays(&self) -> bool {
        self.presumed_leaked.get() & STRAYS != 0
    }

    /// Returns `true` if a guard that was made on this thread may still be held.
    pub(crate) fn may_be_held(&self) -> bool {
        self.outermost.get() != 0 || self.presumed_leaked.get() != 0
    }

    /// Returns how many open scopes were presumed leaked.
    fn leaked(&self) -> u64 {
        self.presumed_leaked.get() & !STRAYS
    }

    /// Notes that a poll with this serial number begins. Returns `true` if it is the outermost scope of the name.
    pub(crate) fn enter_poll(&self, serial: u64) -> bool {
        self.enter(serial);
        let outermost = self.outermost.get() == serial;
        if outermost {
            self.polling.set(1);
        }
        outermost
    }

    /// Notes that the poll with this serial number ends.
    pub(crate) fn leave_poll(&self, serial: u64) {
        if self.leave(serial) {
            self.polling.set(0);
        }
    }

    /// Notes that the outermost scope of the name, which was a part of a call, has closed.
    pub(crate) fn end_polling(&self) {
        self.polling.set(0);
    }

    /// Counts the first poll of a future.
    pub(crate) fn begin_future(&self) {
        self.futures_begun.add(1);
    }

    /// Counts a span that was entered several times, each of which was a call, when it is closed. Returns how many there are.
    #[cfg(all(feature = "tracing-layer", not(feature = "strip")))]
    pub(crate) fn count_reentered_span(&self) -> u64 {
        self.reentered_spans.add(1);
        self.reentered_spans.get()
    }

    /// Counts a finished call. Returns `true` if [`maintain`](Self::maintain) is to be called.
    #[must_use]
    pub(crate) fn count(&self, elapsed: i64, own: i64, outermost: bool) -> bool {
        if outermost {
            self.total.add_ticks(elapsed);
        } else {
            self.recursive.add(1);
            self.recursive_total.add_ticks(elapsed);
        }
        self.own.add_ticks(own);
        self.times.record(elapsed)
    }

    /// Counts a finished call that was not made from a call of the same name. Returns `false` if
    /// [`record_slowly`](Self::record_slowly) is to be called.
    ///
    /// Does not check for overflows, which [`is_nearly_full`](Self::is_nearly_full) must do in time: once in 2²⁶ calls.
    #[inline(always)]
    #[must_use]
    pub(crate) fn count_outermost(&self, newest: Prepared, elapsed: i64, own: i64) -> bool {
        self.total.add_ticks(elapsed);
        self.own.add_ticks(own);
        self.times.record_fast(newest, elapsed)
    }

    /// Prepares the call that was counted last for [`count_outermost`](Self::count_outermost).
    #[inline(always)]
    pub(crate) fn prepare(&self) -> Prepared {
        self.times.prepare()
    }

    /// Records the time of a call for which [`count_outermost`](Self::count_outermost) returned `false`. Returns `true` if
    /// [`maintain`](Self::maintain) is to be called.
    #[cold]
    pub(crate) fn record_slowly(&self, elapsed: i64) -> bool {
        self.times.record_slowly(elapsed)
    }

    /// Returns `true` if [`maintain`](Self::maintain) is to be called before 2²⁶ further calls.
    pub(crate) fn is_nearly_full(&self) -> bool {
        self.times.is_nearly_full()
    }

    /// Counts a call that did not return.
    #[cold]
    pub(crate) fn count_ending(&self, ending: Ending) {
        match ending {
            Ending::Returned => {}
            Ending::Panicked => self.panicked.add(1),
            Ending::Dropped => self.dropped.add(1),
        }
    }

    /// Counts a future that has ended, and the time that it spent in polls.
    pub(crate) fn count_future(&self, polled: i64) {
        self.futures.add(1);
        self.polled.add_ticks(polled);
    }

    /// Counts the thread time of a call or of a poll, in nanoseconds.
    pub(crate) fn count_thread_time(&self, total: u64, own: u64, outermost: bool) {
        if outermost {
            self.thread_time.add(total);
        }
        self.own_thread_time.add(own);
    }

    /// Counts a scope that ended out of order.
    #[cold]
    pub(crate) fn count_disordered(&self) {
        self.out_of_order.add(1);
        self.note_strays();
    }

    /// Moves counts that are about to overflow to `totals`, whose lock the caller holds, and the histogram's buckets to
    /// where the times are. Called by the thread that holds the cell.
    #[cold]
    pub(crate) fn maintain(&self, totals: &mut Totals) {
        // The memory is only for counts that are about to overflow.
        let can_spill = !self.is_nearly_full() || totals.buckets.reserve();
        self.times.maintain(totals, can_spill);
    }

    /// Returns how many scopes are open, those inside of others not counted.
    pub(crate) fn open_scopes(&self) -> u64 {
        // An open poll is a part of a future, which `futures_begun` counts as open.
        let open = u64::from(self.outermost.get() != 0).saturating_sub(self.polling.get());
        open + self.leaked()
    }

    /// Forgets a scope that was presumed leaked, and has closed on another thread.
    pub(crate) fn forget_presumed_leaked(&self) {
        let leaked = self.leaked();
        self.presumed_leaked
            .set(self.presumed_leaked.get() - leaked.min(1));
    }

    /// Adds the counts of the cell to `totals`.
    pub(crate) fn read_into(&self, totals: &mut Totals) {
        totals.open += self.open_scopes();
        self.times.read_into(totals);
        self.read_fields(totals);
    }

    /// Moves the counts of the cell to `totals` and resets it, for the next thread that uses it.
    pub(crate) fn drain_into(&self, totals: &mut Totals) {
        self.read_into(totals);
        self.drain_fields(totals);
        self.times.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(cell: &StatCell) -> Totals {
        let mut totals = Totals::new();
        cell.read_into(&mut totals);
        totals
    }

    #[test]
    fn a_recursive_call_counts_in_calls_but_not_in_the_cumulative_time() {
        let cell = StatCell::new();
        assert!(!cell.count(30, 10, false));
        assert!(!cell.count(100, 70, true));
        let totals = totals(&cell);
        assert_eq!((totals.calls(), totals.recursive_calls), (2, 1));
        assert_eq!((totals.total, totals.own), (100, 80));
        assert_eq!((totals.min, totals.max), (30, 100));
    }

    #[test]
    fn a_call_of_no_length_is_the_shortest() {
        let cell = StatCell::new();
        assert!(!cell.count(5, 5, true));
        assert!(!cell.count(0, 0, true));
        assert_eq!(totals(&cell).min, 0);
    }

    #[test]
    fn calls_beyond_the_buckets_are_counted_at_their_ends() {
        let cell = StatCell::new();
        for elapsed in [-3, 1 << 50, i64::MAX / 4] {
            assert!(!cell.count(elapsed, elapsed, true));
        }
        let totals = totals(&cell);
        assert_eq!(totals.calls(), 3);
        assert_eq!((totals.min, totals.max), (0, u64::MAX / 8));
        assert_eq!(totals.total, (1 << 50) + i64::MAX / 4 - 3);
    }

    #[test]
    fn counts_that_are_about_to_overflow_are_moved() {
        let cell = StatCell::new();
        for _ in 0..3 {
            assert!(!cell.count(9, 9, true));
        }
        cell.times.set_count(9, u32::MAX / 2);
        assert!(!cell.is_nearly_full());
        assert!(
            cell.count(9, 9, true),
            "the call before it fills the bucket"
        );
        assert!(cell.is_nearly_full() && cell.count(9, 9, true));
        let mut folded = Totals::new();
        cell.maintain(&mut folded);
        assert!(!cell.is_nearly_full() && !cell.count(9, 9, true));
        cell.read_into(&mut folded);
        assert_eq!(folded.calls(), u64::from(u32::MAX / 2) + 4);
        assert_eq!(folded.buckets.quantiles([0.5]), Some([9.0]));
    }

    #[test]
    fn a_drained_cell_is_as_new() {
        let cell = StatCell::new();
        assert!(!cell.count(42, 40, true));
        cell.count_ending(Ending::Panicked);
        cell.count_future(3);
        let mut first = Totals::new();
        cell.drain_into(&mut first);
        assert_eq!((first.calls(), first.panicked, first.futures), (1, 1, 1));
        let second = totals(&cell);
        assert_eq!((second.calls(), second.min, second.max), (0, u64::MAX, 0));
        assert!(second.buckets.quantiles([0.5]).is_none());
    }

    #[test]
    fn a_drain_resets_every_field_but_the_identity() {
        let cell = StatCell::new();
        cell.belong_to(7);
        for field in cell.drained_fields() {
            field.set(3);
        }
        let mut drained = Totals::new();
        cell.drain_into(&mut drained);
        assert!(cell.drained_fields().iter().all(|field| field.get() == 0));
        assert_eq!((cell.name(), drained.unreported_skips), (7, 3));
    }

    #[test]
    fn a_scope_that_was_presumed_leaked_may_still_close() {
        let cell = StatCell::new();
        cell.enter(5);
        cell.presume_leaked_above(5);
        assert_eq!(
            cell.outermost(),
            5,
            "only younger scopes are presumed leaked"
        );
        cell.presume_leaked_above(4);
        assert!(cell.is_open() && cell.outermost() == 0);
        assert_eq!(totals(&cell).open, 1);
        assert!(cell.leave_late(5), "no outer call of the name is open");
        assert!(!cell.is_open());
    }

    #[test]
    fn a_late_scope_inside_of_another_one_is_recursive() {
        let cell = StatCell::new();
        cell.enter(5);
        cell.presume_leaked_above(4);
        cell.enter(6);
        assert!(!cell.leave_late(5));
        assert!(cell.leave(6) && !cell.is_open());
    }

    #[test]
    fn a_scope_that_outlives_the_one_around_it_is_recursive() {
        let cell = StatCell::new();
        cell.enter(5);
        cell.enter(6);
        for (serial, is_outermost) in [(5, true), (6, false)] {
            // As it is noted of each scope that ends out of order.
            cell.count_disordered();
            assert_eq!(cell.leave_late(serial), is_outermost);
        }
        assert!(!cell.is_open() && cell.may_be_held());
        assert_eq!(totals(&cell).open(), 0);
        cell.enter(7);
        assert!(cell.leave(7), "nothing is open any more");
    }

    #[test]
    fn an_open_poll_is_open_by_its_future_alone() {
        let cell = StatCell::new();
        cell.begin_future();
        assert!(cell.enter_poll(1));
        assert!(!cell.enter_poll(2), "an inner poll of the name");
        cell.leave_poll(2);
        assert_eq!(totals(&cell).open(), 1);
        cell.leave_poll(1);
        cell.count_future(10);
        assert_eq!((totals(&cell).open(), totals(&cell).polled), (0, 10));
    }
}
