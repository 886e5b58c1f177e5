//! How far the program's streams have come. A launch that has finished and has no record has none to come: a graph may be
//! empty.
//!
//! # Which launches have finished
//!
//! A stream executes in order. So what was launched on it has finished, if the call that launched it had returned before
//!
//! - another launch on it began, and there is a record of that launch's work: a record comes once the work has ended. Work
//!   that a program allows to overlap with the work before it (programmatic dependent launches) still ends after it, unless
//!   its kernels never wait;
//! - a call began that waits for the stream or for its context, and that call has succeeded;
//! - a scope on the stream ended whose GPU time has been read.
//!
//! # When their records have come
//!
//! CUPTI gives a buffer back once all records in it are complete. Buffers are filled in the order of the launches, those of
//! each thread by themselves in newer releases. So the record of a launch that has finished is among those that a flush
//! gives which begins later, unless a later launch of that thread has not finished and shares its buffer. That is no
//! longer so once a record of a later launch of the thread has come, or while CUPTI records no launches. The exception
//! is a buffer that is full of earlier work of another stream; its records are late then, and count as such.

use std::collections::HashMap;

use profiler_report::internal::{RawStream, StreamKey};

use super::record::NONE;
use super::work_builder::stream_key;
use crate::cuda::{self, Effect, GpuRecord, Launch};

/// The most streams, and threads, that are remembered. Programs have some dozens; those that make new ones without end
/// begin anew, and some windows wait longer.
const MAX_REMEMBERED: usize = 1 << 12;

/// The context, the stream, and for per-thread streams the thread.
type StreamOfContext = (usize, RawStream, u64);

/// Times are in ticks. All launches whose calls ended before such a time have finished.
#[derive(Debug, Default)]
pub(super) struct WorkProgress {
    numbers: HashMap<StreamOfContext, u32>,
    /// By the numbers of the streams.
    streams: Vec<u64>,
    contexts: HashMap<usize, u64>,
    /// Of the streams of GPU times.
    timed: HashMap<StreamKey, u64>,
    /// When each thread made the last launch that has a record.
    threads: HashMap<u64, u64>,
}

impl WorkProgress {
    /// Returns the number of a launch's stream; [`NONE`] if it has none, or memory is short.
    pub(super) fn stream_of(&mut self, launch: &Launch) -> u32 {
        let Some(handle) = handle(launch) else {
            return NONE;
        };
        if let Some(number) = self.numbers.get(&handle) {
            return *number;
        }
        let has_room = self.streams.len() < MAX_REMEMBERED
            && self.streams.try_reserve(1).is_ok()
            && self.numbers.try_reserve(1).is_ok();
        if !has_room {
            return NONE;
        }
        let number = u32::try_from(self.streams.len()).unwrap_or(NONE);
        self.streams.push(0);
        self.numbers.insert(handle, number);
        number
    }

    /// Notes a call that waited.
    pub(super) fn called(&mut self, launch: &Launch) {
        match launch.effect {
            Effect::StreamFinished => {
                let stream = self.stream_of(launch);
                self.finished(stream, launch.start);
            }
            Effect::ContextFinished => raise(&mut self.contexts, launch.context, launch.start),
            Effect::Work | Effect::MaybeWork | Effect::Nothing => {}
        }
    }

    /// Notes a record of a launch that a thread made at this time, and that has ended.
    pub(super) fn recorded(&mut self, stream: u32, thread: u64, start: u64) {
        self.finished(stream, start);
        raise(&mut self.threads, thread, start);
    }

    /// Notes a GPU time.
    pub(super) fn timed(&mut self, gpu: &GpuRecord) {
        if !gpu.is_replay && gpu.loss.is_none() {
            raise(&mut self.timed, gpu.stream_key, gpu.cpu_end);
        }
    }

    fn finished(&mut self, stream: u32, before: u64) {
        if let Some(known) = self.streams.get_mut(stream as usize) {
            *known = before.max(*known);
        }
    }

    /// Returns which of some launches have finished.
    pub(super) fn look(&self) -> Look<'_> {
        Look {
            progress: self,
            contexts: cuda::context_numbers(),
        }
    }

    /// Returns `true` if a launch that the same thread made later has a record.
    pub(super) fn is_passed(&self, launch: &Launch) -> bool {
        let last = self.threads.get(&launch.thread);
        last.is_some_and(|last| *last > launch.start)
    }
}

/// Tells which launches have finished.
pub(super) struct Look<'p> {
    progress: &'p WorkProgress,
    /// The numbers of contexts, by their addresses.
    contexts: Vec<(usize, u32)>,
}

impl Look<'_> {
    pub(super) fn has_finished(&self, launch: &Launch) -> bool {
        let progress = self.progress;
        let of_stream = || {
            let number = progress.numbers.get(&handle(launch)?)?;
            progress.streams.get(*number as usize)
        };
        let of_scopes = || progress.timed.get(&stream_key(launch, &self.contexts)?);
        let of_context = progress.contexts.get(&launch.context);
        let mut before = [of_context, of_stream(), of_scopes()].into_iter().flatten();
        before.any(|before| launch.end <= *before)
    }
}

/// Returns what identifies the stream of a launch.
fn handle(launch: &Launch) -> Option<StreamOfContext> {
    let stream = launch.stream?;
    let thread = if stream.is_per_thread() {
        launch.thread
    } else {
        0
    };
    Some((launch.context, stream, thread))
}

/// Raises a time. A map that is full begins anew.
fn raise<K: std::hash::Hash + Eq>(times: &mut HashMap<K, u64>, key: K, time: u64) {
    if times.len() >= MAX_REMEMBERED {
        times.clear();
    }
    if times.try_reserve(1).is_ok() {
        let known = times.entry(key).or_default();
        *known = time.max(*known);
    }
}

#[cfg(test)]
mod tests {
    use super::super::work_joiner::tests::launch;
    use super::*;

    const STREAM: RawStream = RawStream::LEGACY;

    fn on_stream(at: u64, effect: Effect) -> Launch {
        Launch {
            stream: Some(STREAM),
            effect,
            ..launch(at, 1)
        }
    }

    #[test]
    fn a_launch_has_finished_once_a_later_one_on_its_stream_has_a_record() {
        let mut progress = WorkProgress::default();
        let graph = on_stream(100, Effect::MaybeWork);
        let stream = progress.stream_of(&graph);
        // It had not returned when this one began.
        progress.recorded(stream, 1, 100);
        assert!(!progress.look().has_finished(&graph) && !progress.is_passed(&graph));
        // On another thread, whose records may be in another buffer.
        progress.recorded(stream, 2, 200);
        assert!(progress.look().has_finished(&graph) && !progress.is_passed(&graph));
        progress.recorded(NONE, 1, 200);
        assert!(progress.is_passed(&graph));
        let other = Launch {
            stream: Some(RawStream::PER_THREAD),
            ..graph
        };
        assert!(!progress.look().has_finished(&other));
    }

    #[test]
    fn a_launch_has_finished_if_a_call_has_waited_for_its_stream_or_its_context() {
        let graph = on_stream(100, Effect::MaybeWork);
        for (effect, context, finished) in [
            (Effect::StreamFinished, 0, true),
            (Effect::ContextFinished, 0, true),
            (Effect::StreamFinished, 7, false),
            (Effect::ContextFinished, 7, false),
            (Effect::Nothing, 0, false),
            (Effect::Work, 0, false),
        ] {
            let mut progress = WorkProgress::default();
            progress.called(&Launch {
                context,
                ..on_stream(200, effect)
            });
            let found = progress.look().has_finished(&graph);
            assert_eq!(found, finished, "{effect:?} in {context}");
            // A launch that began while the call waited may not have finished.
            assert!(!progress.look().has_finished(&on_stream(200, Effect::Work)));
        }
    }

    #[test]
    fn no_more_streams_are_remembered_than_the_limit() {
        let mut progress = WorkProgress::default();
        let number = |progress: &mut WorkProgress, context: usize| {
            progress.stream_of(&Launch {
                context,
                ..on_stream(1, Effect::Work)
            })
        };
        for context in 0..MAX_REMEMBERED {
            assert_eq!(number(&mut progress, context) as usize, context);
            raise(&mut progress.contexts, context, 1);
        }
        assert_eq!(number(&mut progress, MAX_REMEMBERED), NONE);
        assert_eq!(number(&mut progress, 3), 3);
        raise(&mut progress.contexts, MAX_REMEMBERED, 1);
        assert_eq!(progress.contexts.len(), 1);
    }
}
