//! Names: what groups call sites, and what is kept for each.

mod circuit_breaker;
mod length;
mod path;
mod registry;

use std::panic::Location;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::diagnostics;
use crate::stats::{GpuTotals, StatCell, Totals};
use crate::sync::Lock;
use crate::sync::ReentrancyGuard;

pub(crate) use circuit_breaker::CircuitBreaker;
pub(crate) use length::{Buffer, MAX_LENGTH, cut, cut_into};
pub(crate) use registry::{OVERFLOW_NAME, all, by_id, declared, of_function, run_time};

/// Names have small numbers, so that a thread finds its cell by two indices.
pub(crate) const MAX_NAMES: usize = 1 << 16;

/// No call of the name was ever logged: the first one will be.
const NEVER_LOGGED: u64 = 1 << 63;

/// One name, for as long as the process runs.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) id: u32,
    /// As the summary shows it: at most [`MAX_LENGTH`] bytes.
    pub(crate) text: String,
    /// As loggers get it.
    pub(crate) tag: String,
    /// Where the first call site of the name stands.
    pub(crate) location: &'static Location<'static>,
    /// The name that was registered before it.
    previous: Option<&'static Self>,
    shared: Lock<Shared>,
    /// The number of the next call to be logged; written by the collector, and by threads that end with
    /// skips untold.
    pub(crate) next_step: AtomicU64,
    /// Calls of threads that have ended since each logged one last, where one in so many is logged; and
    /// [`NEVER_LOGGED`].
    calls_since_logged: AtomicU64,
    /// Whether its own loggers are called.
    pub(crate) breaker: CircuitBreaker,
    /// What is known of its GPU time.
    pub(crate) cuda: GpuTotals,
    source: AtomicU8,
}

/// Which time the loggers of a name get. It is fixed with the first call that is logged, so that one tag never
/// holds both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeSource {
    /// No call was logged so far.
    #[default]
    Undecided,
    /// That of the CPU.
    Cpu,
    /// That of the GPU. Calls without one are not logged, and counted.
    Cuda,
}

impl TimeSource {
    fn of(number: u8) -> Self {
        match number {
            1 => Self::Cpu,
            2 => Self::Cuda,
            _ => Self::Undecided,
        }
    }

    /// As the exports spell it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Undecided => "undecided",
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }
}

/// What threads have left behind, and the cells they hold.
#[derive(Debug)]
pub(crate) struct Shared {
    folded: Totals,
    live: Vec<Live>,
    /// Cells that count nothing, and stay with the name: guards of threads that have ended may still read the name's
    /// number from them.
    left_open: Vec<Live>,
    /// Whether the cells of this name are to be found first: see [`after_fork`](Self::after_fork).
    is_to_be_filled: bool,
}

impl Shared {
    const fn new() -> Self {
        Self {
            folded: Totals::new(),
            live: Vec::new(),
            left_open: Vec::new(),
            is_to_be_filled: false,
        }
    }

    /// What a child begins with that was forked while another thread changed it.
    fn after_fork() -> Self {
        Self {
            is_to_be_filled: true,
            ..Self::new()
        }
    }
}

struct Live(&'static StatCell);

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StatCell")
    }
}

impl Name {
    fn new(
        id: u32,
        text: String,
        tag: String,
        location: &'static Location<'static>,
        previous: Option<&'static Self>,
    ) -> Self {
        Self {
            id,
            text,
            tag,
            location,
            previous,
            shared: Lock::with(Shared::new(), Shared::after_fork),
            next_step: AtomicU64::new(0),
            calls_since_logged: AtomicU64::new(NEVER_LOGGED),
            breaker: CircuitBreaker::new(),
            cuda: GpuTotals::new(),
            source: AtomicU8::new(TimeSource::Undecided as u8),
        }
    }

    /// Which time loggers get; decided with the first call that is logged.
    pub(crate) fn source(&self) -> TimeSource {
        TimeSource::of(self.source.load(Relaxed))
    }

    /// The same; `first` where it is not decided yet.
    pub(crate) fn decide_time_source(&self, first: TimeSource) -> TimeSource {
        let undecided = TimeSource::Undecided as u8;
        match self
            .source
            .compare_exchange(undecided, first as u8, Relaxed, Relaxed)
        {
            Ok(_) => first,
            Err(known) => TimeSource::of(known),
        }
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        let mut shared = self.shared.lock();
        if shared.is_to_be_filled {
            shared.is_to_be_filled = false;
            // What threads had counted that ended before the fork is lost, and said to be.
            let cells =
                crate::stats::all_cells().filter(|cell| cell.id.get() == u64::from(self.id));
            shared.live = cells.map(Live).collect();
        }
        shared
    }

    /// A cell of this name for the calling thread, which alone may write it until it calls
    /// [`retire`](Self::retire). None where there is no memory for it.
    pub(crate) fn new_cell(&self) -> Option<&'static StatCell> {
        let mut shared = self.shared();
        shared.live.try_reserve(1).ok()?;
        let cell = match shared.left_open.pop() {
            Some(Live(cell)) => cell,
            None => crate::stats::take()?,
        };
        cell.id.set(self.id.into());
        shared.live.push(Live(cell));
        Some(cell)
    }

    /// Keeps what a cell of this name has counted and gives the cell back, at the thread's end.
    ///
    /// If scopes are open in it, a destructor that runs later may still close them, or they were forgotten. They count
    /// as open from now on, and the cell stays with this name: such a guard finds the name by it (see
    /// [`count_late`](Self::count_late)), and another thread may write it meanwhile.
    pub(crate) fn retire(&self, cell: &'static StatCell) {
        let mut shared = self.shared();
        if !shared.folded.buckets.reserve() {
            // Nothing is lost: the cell is one of the name's for good.
            return;
        }
        let every = cell.every.get();
        if let Some(left) = cell.until_logged.get().checked_sub(1) {
            let turn = every.saturating_sub(1);
            self.calls_since_logged
                .fetch_add(turn.saturating_sub(left), Relaxed);
        }
        let is_open = cell.is_open();
        shared.live.retain(|live| !std::ptr::eq(live.0, cell));
        cell.drain_into(&mut shared.folded);
        self.next_step
            .fetch_add(std::mem::take(&mut shared.folded.unreported_skips), Relaxed);
        if is_open {
            // The guard reads it, should it end after all.
            cell.every.set(every);
            if shared.left_open.try_reserve(1).is_ok() {
                shared.left_open.push(Live(cell));
            }
            return;
        }
        drop(shared);
        crate::stats::put_back(cell);
    }

    /// How many calls a thread that meets the name leaves unlogged at first, where one in `every` is
    /// logged: none for the first call of all, else a turn, less the calls that ended threads have made
    /// towards one.
    pub(crate) fn initial_skips(&self, every: u32) -> u64 {
        let made = self.calls_since_logged.swap(0, Relaxed);
        let turn = u64::from(every) - 1;
        if made & NEVER_LOGGED != 0 {
            self.calls_since_logged
                .fetch_add(made & !NEVER_LOGGED, Relaxed);
            return 0;
        }
        let used = made.min(turn);
        self.calls_since_logged.fetch_add(made - used, Relaxed);
        turn - used
    }

    /// Counts a call on a thread that has no cells, since it is ending or there is no memory for them.
    pub(crate) fn count_directly(&self, count: impl FnOnce(&StatCell)) {
        self.count_in(count, |_| ());
    }

    /// Counts a call that was open when its thread ended, and is not any more.
    pub(crate) fn count_late(&self, count: impl FnOnce(&StatCell)) {
        self.count_in(count, |folded| folded.open = folded.open.saturating_sub(1));
    }

    fn count_in(&self, count: impl FnOnce(&StatCell), then: impl FnOnce(&mut Totals)) {
        // What is allocated under the lock must not be counted under it.
        let Some(_busy) = ReentrancyGuard::try_enter() else {
            return;
        };
        let cell = StatCell::new();
        count(&cell);
        let mut shared = self.shared();
        then(&mut shared.folded);
        if shared.folded.buckets.reserve() {
            cell.drain_into(&mut shared.folded);
        } else {
            diagnostics::count_unmeasured();
        }
    }

    /// Makes room in the buckets of a cell that are about to overflow.
    #[cold]
    pub(crate) fn carry(&self, cell: &StatCell) {
        // There is room for as many again until the next time.
        let Some(_busy) = ReentrancyGuard::try_enter() else {
            return;
        };
        let mut shared = self.shared();
        // Without memory it is tried again with the next call.
        if shared.folded.buckets.reserve() {
            cell.carry(&mut shared.folded);
        }
    }

    /// What all threads have counted by now.
    pub(crate) fn totals(&self) -> Totals {
        let _busy = ReentrancyGuard::try_enter();
        let shared = self.shared();
        let mut totals = shared.folded.clone();
        for live in &shared.live {
            live.0.read_into(&mut totals);
        }
        totals
    }
}
