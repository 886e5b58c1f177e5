//! What is kept of each span until all of the file was read.

use profiler_report::SliceEnding;

/// The kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RawKind {
    Function,
    Annotation,
    Launch,
    Future,
    /// A poll of a future.
    Poll,
    /// One iteration of the program.
    Step,
    GpuWork,
    /// The GPU time of a scope.
    GpuScope,
    /// A range that encloses work.
    GpuRange,
}

impl RawKind {
    pub(super) const fn is_on_gpu(self) -> bool {
        matches!(self, Self::GpuWork | Self::GpuScope | Self::GpuRange)
    }
}

/// A span of time on a track. Times are in nanoseconds, as in the file.
///
/// All spans of a file are in memory at once, so this has no more than what most of them have.
#[derive(Clone, Debug)]
pub(super) struct Raw {
    pub(super) track: u32,
    pub(super) name: u32,
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) kind: RawKind,
    pub(super) ending: SliceEnding,
    /// The file says that it is a launch, also if no work is known.
    pub(super) is_launch: bool,
    /// It is a launch that tables do not count.
    pub(super) is_not_counted: bool,
    pub(super) external_id: u64,
    pub(super) correlation: u64,
    /// The number of its category; [`NONE`](super::nesting::NONE) for operators and work on a device.
    pub(super) category: u32,
    /// The number of its shapes; [`NONE`](super::nesting::NONE) if it has none.
    pub(super) shapes: u32,
    /// The index of what it did on a device, in [`Collector::work`](super::collect::Collector::work);
    /// [`NONE`](super::nesting::NONE) if the file does not say.
    pub(super) work: u32,
    /// The number of what else is known of it, in [`Collector::rares`](super::collect::Collector::rares).
    pub(super) rare: u32,
}

/// What is known of few spans.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rare {
    /// The number of a step.
    pub(super) step: u64,
    /// The track of the thread that ended a step, if the file says it.
    pub(super) step_thread: Option<u32>,
    /// The correlation and the stream that CUPTI gave, if the file has others.
    pub(super) cupti_correlation: Option<u64>,
    pub(super) cupti_stream: Option<u32>,
    /// What the `parent` of others means, if that is not the external id.
    pub(super) id: Option<u64>,
    /// The `id` of the parent, if the file says it; 0 for none.
    pub(super) parent: Option<u64>,
    /// Without waits and children, if the file says so.
    pub(super) self_ns: Option<i64>,
    /// How long it took, if that is not the time between start and end.
    pub(super) measured_ns: Option<i64>,
    /// How far its start may be off, and how far it was moved.
    pub(super) uncertainty_ns: Option<i64>,
    pub(super) moved_ns: Option<i64>,
    /// The index of its details in [`Collector::details`](super::collect::Collector::details).
    pub(super) details: Option<u32>,
    /// For how long its thread had been in the handle of its parent.
    pub(super) since_entered_ns: Option<i64>,
    /// Bytes allocated on the host without its children, and device memory in use afterwards, if the file says so.
    pub(super) own_memory: (Option<u64>, Option<i64>),
}

/// What is known of few spans, by number. The first is what is known of all others: nothing.
pub(super) struct Rares(Vec<Rare>);

impl Default for Rares {
    fn default() -> Self {
        Self(vec![Rare::default()])
    }
}

impl Rares {
    pub(super) fn of(&self, raw: &Raw) -> &Rare {
        &self.0[raw.rare as usize]
    }

    /// Returns the number of what is known of a span.
    pub(super) fn number(&mut self, rare: Rare) -> u32 {
        if rare == Rare::default() {
            return 0;
        }
        self.0.push(rare);
        u32::try_from(self.0.len() - 1).unwrap_or(0)
    }
}
