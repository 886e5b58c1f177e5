//! Random programs of scopes and futures on two threads, and a model of what they take.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::stream;
use crate::cuda::GpuRecord;
use crate::session::RecordKind;
use crate::session::sample::Sample;

const THREADS: usize = 2;
const FUTURES: usize = 3;
const NAMES: [&str; 3] = ["property: a", "property: b", "property: c"];

#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Open {
        thread: usize,
        name: usize,
        gpu: Option<u32>,
    },
    /// Each future has a name of its own choice.
    Poll {
        thread: usize,
        future: usize,
    },
    Close {
        thread: usize,
    },
    Advance {
        ticks: u64,
    },
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let thread = || 0..THREADS;
    prop_oneof![
        4 => (thread(), 0..NAMES.len(), prop::option::of(0_u32..2))
            .prop_map(|(thread, name, gpu)| Step::Open { thread, name, gpu }),
        1 => (thread(), 0..FUTURES).prop_map(|(thread, future)| Step::Poll { thread, future }),
        4 => thread().prop_map(|thread| Step::Close { thread }),
        6 => (0_u64..2000).prop_map(|ticks| Step::Advance { ticks }),
    ]
}

/// An open scope, or an open poll of a future.
#[derive(Clone, Copy)]
struct Frame {
    record: usize,
    future: Option<usize>,
}

/// One scope or future as the model knows it.
#[derive(Clone, Default)]
struct Known {
    name: usize,
    parent: Option<usize>,
    elapsed: i64,
    own: i64,
    stream: Option<u32>,
    is_future: bool,
}

/// A program that runs on a clock of its own.
pub(super) struct Program {
    pub(super) sample: Sample,
    now: u64,
    open: [Vec<Frame>; THREADS],
    /// By record; `None` for polls.
    known: Vec<Option<Known>>,
    futures: [Option<Future>; FUTURES],
    pub(super) top_level: i64,
}

#[derive(Clone)]
struct Future {
    start: u64,
    end: u64,
    polled: i64,
    own: i64,
    /// The scope around its first poll.
    around: Option<Frame>,
}

impl Program {
    pub(super) fn run(steps: &[Step]) -> Self {
        let mut program = Self {
            sample: Sample::new(),
            now: 0,
            open: Default::default(),
            known: Vec::new(),
            futures: Default::default(),
            top_level: 0,
        };
        for step in steps {
            match *step {
                Step::Open { thread, name, gpu } => program.open(thread, name, gpu),
                Step::Poll { thread, future } => program.poll(thread, future),
                Step::Close { thread } => program.close(thread),
                Step::Advance { ticks } => program.now += ticks,
            }
        }
        for thread in 0..THREADS {
            while !program.open[thread].is_empty() {
                program.close(thread);
            }
        }
        program.end_futures();
        program.read_gpu();
        program
    }

    fn push(&mut self, thread: usize, name: usize, future: Option<usize>) -> usize {
        let parent = self.open[thread]
            .last()
            .map_or(0, |frame| frame.record as u64 + 1);
        let thread_number = u32::from(thread > 0);
        self.sample
            .on_thread(thread_number, NAMES[name], parent, self.now, 0);
        let record = self.known.len();
        self.open[thread].push(Frame { record, future });
        record
    }

    fn open(&mut self, thread: usize, name: usize, stream: Option<u32>) {
        let around = self.open[thread].last().copied();
        self.push(thread, name, None);
        self.known.push(Some(Known {
            name,
            // A future's record stands behind all others.
            parent: around.map(Self::place),
            stream,
            ..Known::default()
        }));
    }

    /// Where a frame's scope will be: futures get numbers that no record has.
    fn place(frame: Frame) -> usize {
        frame
            .future
            .map_or(frame.record, |future| usize::MAX - future)
    }

    fn poll(&mut self, thread: usize, future: usize) {
        let mut frames = self.open.iter().flatten();
        if frames.any(|frame| frame.future == Some(future)) {
            return;
        }
        let around = self.open[thread].last().copied();
        // Which poll was the first one is known by its time.
        self.now += 1;
        let start = self.now;
        self.futures[future].get_or_insert(Future {
            start,
            end: start,
            polled: 0,
            own: 0,
            around,
        });
        let record = self.push(thread, future, Some(future));
        self.sample.scopes[record].kind = RecordKind::Poll {
            future: serial(future),
        };
        self.known.push(None);
    }

    fn close(&mut self, thread: usize) {
        let Some(frame) = self.open[thread].pop() else {
            return;
        };
        let record = &mut self.sample.scopes[frame.record];
        let elapsed = (self.sample.origin + self.now - record.start).cast_signed();
        record.elapsed = elapsed;
        match self.open[thread].last().copied() {
            None => self.top_level += elapsed,
            Some(around) => *self.own(around) -= elapsed,
        }
        *self.own(frame) += elapsed;
        if let Some(known) = &mut self.known[frame.record] {
            known.elapsed = elapsed;
        }
        if let Some(future) = frame
            .future
            .and_then(|future| self.futures[future].as_mut())
        {
            future.polled += elapsed;
            future.end = self.now;
        }
    }

    fn own(&mut self, frame: Frame) -> &mut i64 {
        let future = frame
            .future
            .and_then(|future| self.futures[future].as_mut());
        match (future, &mut self.known[frame.record]) {
            (Some(future), _) => &mut future.own,
            (None, Some(known)) => &mut known.own,
            (None, None) => unreachable!("a poll of no future"),
        }
    }

    fn end_futures(&mut self) {
        let first = self.known.len();
        let ran: Vec<usize> = (0..FUTURES)
            .filter(|future| self.futures[*future].is_some())
            .collect();
        // From the numbers that stood for futures to where their records are.
        let place = |number: usize| {
            let future = ran.iter().position(|future| usize::MAX - future == number);
            future.map_or(number, |place| first + place)
        };
        for known in self.known.iter_mut().flatten() {
            known.parent = known.parent.map(place);
        }
        for future in &ran {
            let Some(ended) = self.futures[*future].clone() else {
                continue;
            };
            let elapsed = (ended.end - ended.start).cast_signed();
            self.sample.scope(NAMES[*future], 0, ended.start, elapsed);
            let record = self.sample.last();
            record.serial = serial(*future);
            record.kind = RecordKind::Future {
                polled: ended.polled,
            };
            self.known.push(Some(Known {
                name: *future,
                parent: ended.around.map(|frame| place(Self::place(frame))),
                elapsed,
                own: ended.own,
                stream: None,
                is_future: true,
            }));
        }
    }

    /// The scopes around one, innermost first.
    fn around(&self, index: usize) -> impl Iterator<Item = usize> {
        let parent = |index: usize| self.known[index].as_ref().and_then(|known| known.parent);
        std::iter::successors(parent(index), move |index| parent(*index))
    }

    fn known(&self) -> impl Iterator<Item = (usize, &Known)> {
        let known = self.known.iter().enumerate();
        known.filter_map(|(index, known)| Some((index, known.as_ref()?)))
    }

    /// The device takes as long as the CPU, on independent streams.
    fn read_gpu(&mut self) {
        let mut own: BTreeMap<usize, f64> = BTreeMap::new();
        for (index, known) in self.known() {
            let Some(on) = known.stream else { continue };
            let elapsed = known.elapsed as f64;
            *own.entry(index).or_default() += elapsed;
            // The GPU time of a future's scopes is not subtracted from the scope around its first poll.
            let known = |around: &usize| self.known[*around].as_ref();
            let mut around = self
                .around(index)
                .take_while(|around| known(around).is_some_and(|known| !known.is_future));
            let on_stream =
                |around: &usize| known(around).is_some_and(|known| known.stream == Some(on));
            if let Some(around) = around.find(on_stream) {
                *own.entry(around).or_default() -= elapsed;
            }
        }
        for (key, (index, own)) in (1_u64..).zip(own) {
            let Some(known) = self.known[index].clone() else {
                continue;
            };
            let scope = &mut self.sample.scopes[index];
            scope.cuda = key;
            self.sample.gpu.push(GpuRecord {
                key,
                name: scope.name,
                is_replay: false,
                loss: None,
                is_bound: false,
                stream_key: stream(known.stream.unwrap_or_default()),
                device: None,
                start: None,
                uncertainty_ns: 0.0,
                ns: known.elapsed as f64,
                own,
                cpu_end: scope.end(),
            });
        }
    }
}

fn serial(future: usize) -> u64 {
    (1 << 40) + future as u64
}

/// Calls, primitive calls, total and self ticks on the CPU; total and self time on the GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counted {
    pub(super) calls: u64,
    pub(super) primitive_calls: u64,
    pub(super) cpu: [i64; 2],
    pub(super) cuda: [f64; 2],
    pub(super) cuda_calls: u64,
}

impl Program {
    /// Returns the expected counts for each kind of call.
    pub(super) fn count<K: Ord>(&self, kind: impl Fn(usize) -> K) -> BTreeMap<K, Counted> {
        let mut counted: BTreeMap<K, Counted> = BTreeMap::new();
        for (index, known) in self.known() {
            let alike = |around: &usize| kind(*around) == kind(index);
            let row = counted.entry(kind(index)).or_default();
            row.calls += 1;
            row.cpu[1] += known.own;
            if !self.around(index).any(|around| alike(&around)) {
                row.primitive_calls += 1;
                row.cpu[0] += known.elapsed;
            }
            let gpu = self.sample.gpu.iter();
            let gpu = gpu
                .zip(1_u64..)
                .find(|(_, key)| self.sample.scopes[index].cuda == *key);
            let Some((gpu, _)) = gpu else { continue };
            row.cuda_calls += 1;
            row.cuda[1] += gpu.own;
            let on_stream = |around: &usize| {
                self.known[*around]
                    .as_ref()
                    .is_some_and(|around| around.stream == known.stream)
            };
            if !self
                .around(index)
                .any(|around| alike(&around) && on_stream(&around))
            {
                row.cuda[0] += gpu.ns;
            }
        }
        counted
    }

    pub(super) fn name(&self, index: usize) -> &'static str {
        NAMES[self.known[index].as_ref().map_or(0, |known| known.name)]
    }

    pub(super) fn caller(&self, index: usize) -> Option<&'static str> {
        self.around(index).next().map(|around| self.name(around))
    }
}
