//! Ranks with known clocks and delays, for tests.

use profiler_report::{
    GpuWork, Launch, Slice, SliceKind, SliceName, Step, Timeline, Track, TrackKind,
};

const STEP_NS: i64 = 10_000_000;
const COLLECTIVE_NS: i64 = 100_000;
const START_UNIX_NS: i64 = 1_700_000_000_000_000_000;

/// A rank of a program whose steps each end with a collective.
pub(super) struct Rank {
    number: u64,
    ahead: i64,
    late: i64,
    jitter: i64,
    first: u64,
}

impl Rank {
    pub(super) const fn new(rank: u64) -> Self {
        Self {
            number: rank,
            ahead: 0,
            late: 0,
            jitter: 0,
            first: 0,
        }
    }

    /// Its wall clock is ahead by this much.
    pub(super) const fn ahead(self, ahead: i64) -> Self {
        Self { ahead, ..self }
    }

    /// It begins its collectives this much later. They end on all ranks at one time.
    pub(super) const fn late(self, late: i64) -> Self {
        Self { late, ..self }
    }

    /// Its collectives end up to this much earlier or later.
    pub(super) const fn jitter(self, jitter: i64) -> Self {
        Self { jitter, ..self }
    }

    pub(super) const fn first_step(self, first: u64) -> Self {
        Self { first, ..self }
    }

    pub(super) fn steps(self, steps: u64) -> Timeline {
        let mut line = Timeline::default();
        let first = i64::try_from(self.first).expect("a small number");
        line.start_unix_ns = START_UNIX_NS + first * STEP_NS + self.ahead;
        line.duration_ns = i64::try_from(steps).expect("a small number") * STEP_NS;
        for text in ["train::step", "ncclAllReduce"] {
            let name = SliceName {
                text: text.into(),
                ..SliceName::default()
            };
            line.names.push(name);
        }
        for (kind, name, id) in [
            (TrackKind::HostThread, "main", 1),
            (TrackKind::GpuStream, "stream 7", 7),
        ] {
            let mut track = Track::default();
            (track.kind, track.id, track.process) = (kind, id, 4711);
            track.name = name.to_owned();
            track.process_name = "train".to_owned();
            track.rank = Some(self.number);
            line.tracks.push(track);
        }
        for number in 0..steps {
            let place = i64::try_from(number).expect("a small number");
            let start = place * STEP_NS;
            let mut step = Step::default();
            (step.number, step.start_ns, step.end_ns) =
                (self.first + number, start, start + STEP_NS);
            line.steps.push(step);
            let mut scope = Slice::default();
            (scope.start_ns, scope.duration_ns, scope.self_ns) = (start, STEP_NS, STEP_NS);
            line.slices.push(scope);
        }
        for number in 0..steps {
            let place = i64::try_from(number).expect("a small number");
            // As if at random, and the same in each run.
            let jitter = (place * 7_919 % 2_001 - 1_000) * self.jitter / 1_000;
            let mut work = Slice {
                kind: SliceKind::GpuWork,
                ..Slice::default()
            };
            (work.track, work.name) = (1, 1);
            work.parent = u32::try_from(number).ok();
            let launch = Launch {
                parent: work.parent,
                start_ns: place * STEP_NS + 1_000,
                correlation: u32::try_from(100 * self.number + number).expect("a small number"),
                ..Launch::default()
            };
            work.launch = u32::try_from(line.launches.len()).ok();
            work.work = u32::try_from(line.work.len()).ok();
            let details = GpuWork {
                correlation: launch.correlation,
                ..GpuWork::default()
            };
            line.launches.push(launch);
            line.work.push(details);
            let begins = (place + 1) * STEP_NS - 5_000_000;
            work.start_ns = begins + self.late;
            work.duration_ns = 2_000_000 + COLLECTIVE_NS - self.late + jitter;
            line.slices.push(work);
        }
        line
    }
}
