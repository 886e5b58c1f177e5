//! Which name is innermost on a thread, read from its cells while it opens and closes scopes.
//!
//! # Memory orderings
//!
//! All accesses are relaxed, and need no more. Each word is read by itself, and once: while a cell moves to another thread, or a
//! scope opens between the reads of two cells, a sample may name a scope that was open a moment before or after. Such a sample is
//! wrong by the time that the scan takes, some microseconds, in the place of an instant. No decision depends on it. But the
//! thread of a cell and its name are one word: no sample of a thread names a scope that only others had.

/// What is read of a cell.
pub(super) trait Shown {
    /// Returns the serial number of the outermost open scope of the name, or 0.
    fn outermost(&self) -> u64;

    /// Returns the lower half of the number of the thread, and the name, which were stored together.
    fn holder(&self) -> (u32, u32);
}

/// Returns the innermost name of a thread that holds these cells, or held them some time ago.
pub(super) fn innermost<'c, C: Shown + 'c>(
    thread: u32,
    cells: impl Iterator<Item = &'c C>,
) -> Option<u32> {
    let open = cells.filter_map(|cell| {
        let serial = cell.outermost();
        if serial == 0 {
            return None;
        }
        let (holder, name) = cell.holder();
        (holder == thread).then_some((serial, name))
    });
    // Of equal serials, the one with `ENTERED`, the highest bit.
    open.max().map(|(_, name)| name)
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::atomic::Ordering::Relaxed as Counted;

    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use loom::thread;

    use super::*;

    const ONE: u32 = 1;
    const OTHER: u32 = 2;
    const OUTER: u32 = 10;
    const INNER: u32 = 11;
    const AGAIN: u32 = 12;

    /// The two words of a cell that the scan reads, written as its holder does.
    struct Words {
        outermost: AtomicU64,
        identity: AtomicU64,
    }

    impl Words {
        fn new(thread: u32, name: u32) -> Self {
            let words = Self {
                outermost: AtomicU64::new(0),
                identity: AtomicU64::new(0),
            };
            words.belong_to(thread, name);
            words
        }

        fn belong_to(&self, thread: u32, name: u32) {
            let identity = u64::from(thread) << 32 | u64::from(name);
            self.identity.store(identity, Relaxed);
        }

        fn show(&self, serial: u64) {
            self.outermost.store(serial, Relaxed);
        }
    }

    impl Shown for Words {
        fn outermost(&self) -> u64 {
            self.outermost.load(Relaxed)
        }

        #[allow(clippy::cast_possible_truncation, reason = "the lower half")]
        fn holder(&self) -> (u32, u32) {
            let identity = self.identity.load(Relaxed);
            ((identity >> 32) as u32, identity as u32)
        }
    }

    fn name_on(thread: u32, cells: &[Words; 2]) -> Option<u32> {
        innermost(thread, cells.iter())
    }

    #[test]
    fn a_scan_names_a_scope_that_its_thread_had_and_afterwards_the_innermost() {
        static FOUND: [std::sync::atomic::AtomicU32; 3] =
            [const { std::sync::atomic::AtomicU32::new(0) }; 3];

        loom::model(|| {
            let cells = Arc::new([Words::new(ONE, OUTER), Words::new(ONE, INNER)]);
            let measured = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || {
                    cells[0].show(5);
                    cells[1].show(6);
                    cells[1].show(0);
                    cells[0].show(7);
                })
            };
            let found = name_on(ONE, &cells);
            let place = match found {
                None => 0,
                Some(OUTER) => 1,
                Some(INNER) => 2,
                Some(other) => panic!("nobody has {other}"),
            };
            FOUND[place].fetch_add(1, Counted);
            measured.join().expect("it does not panic");
            assert_eq!(name_on(ONE, &cells), Some(OUTER));
            assert_eq!(name_on(OTHER, &cells), None);
        });
        let found = FOUND.each_ref().map(|count| count.load(Counted));
        assert!(found.iter().all(|count| *count > 0), "{found:?}");
    }

    #[test]
    fn a_cell_that_moves_to_another_thread_is_never_sampled_with_a_name_of_the_other() {
        loom::model(|| {
            let cells = Arc::new([Words::new(ONE, OUTER), Words::new(ONE, INNER)]);
            cells[0].show(5);
            cells[1].show(6);
            let moving = {
                let cells = Arc::clone(&cells);
                thread::spawn(move || {
                    // A cell is given back when nothing of its name is open, under a lock, and then opened by the other thread.
                    cells[1].show(0);
                    cells[1].belong_to(OTHER, AGAIN);
                    cells[1].show(9);
                })
            };
            let (one, other) = (name_on(ONE, &cells), name_on(OTHER, &cells));
            assert!(matches!(one, Some(OUTER | INNER)), "{one:?}");
            assert!(matches!(other, None | Some(AGAIN)), "{other:?}");
            moving.join().expect("it does not panic");
            assert_eq!(name_on(ONE, &cells), Some(OUTER));
            assert_eq!(name_on(OTHER, &cells), Some(AGAIN));
        });
    }
}
