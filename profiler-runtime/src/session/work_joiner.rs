//! Joins the records of devices with the calls that launched them, and sorts both into windows.

use std::collections::HashMap;
use std::sync::Arc;

use super::Activity as Recorded;
use super::timeline::Timeline;
use super::window::{WindowBuilder, WindowSpec};
use crate::cuda::{Activity, Launch, Ready};

/// The most records that wait for their launches. A launch is in its queue once the call has returned, so nearly all
/// records find theirs.
const MAX_UNMATCHED: usize = 1 << 16;
/// The most launches that are remembered.
const MAX_KNOWN: usize = 1 << 22;

/// A launch that was sorted into its windows.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Ticks of the clock.
    start: u64,
    /// The correlation of its outermost call, by which the windows know it.
    correlation: u32,
}

#[derive(Debug, Default)]
pub(super) struct WorkJoiner {
    /// The names of kernels by their numbers.
    names: Vec<Arc<str>>,
    /// The launches of windows that have not been delivered, by both correlations.
    known: HashMap<u32, Known>,
    /// Records whose launches are not known, or not known yet.
    unmatched: Vec<Activity>,
    /// Records that were lost since the last window was delivered, because too many waited for their launches.
    lost: u64,
    /// The windows at the last call.
    windows: Vec<u64>,
}

impl WorkJoiner {
    /// Sorts what is ready into windows.
    pub(super) fn sort(
        &mut self,
        ready: Ready,
        specs: &[WindowSpec],
        builders: &mut HashMap<u64, WindowBuilder>,
    ) {
        self.names.extend(ready.names);
        self.forget_before(specs);
        let mut into = |at: u64, add: &mut dyn FnMut(&WindowSpec, &mut WindowBuilder)| {
            let specs = specs.iter().filter(|spec| spec.has_launch(at));
            specs.for_each(|spec| add(spec, builders.entry(spec.id).or_default()));
        };
        for launch in ready.launches {
            into(launch.start, &mut |spec, builder| {
                builder.work.add_launch(spec, launch);
            });
            self.remember(&launch);
        }
        let waiting = std::mem::take(&mut self.unmatched);
        for activity in waiting.into_iter().chain(ready.activities) {
            match self.known.get(&activity.details.correlation) {
                Some(known) => into(known.start, &mut |spec, builder| {
                    builder.work.add_activity(spec, known.correlation, activity);
                }),
                None if self.unmatched.len() < MAX_UNMATCHED => self.unmatched.push(activity),
                None => self.lost += 1,
            }
        }
    }

    fn remember(&mut self, launch: &Launch) {
        let [correlation, inner] = launch.correlations;
        if self.known.len() < MAX_KNOWN && self.known.try_reserve(2).is_ok() {
            let known = Known {
                start: launch.start,
                correlation,
            };
            self.known.insert(correlation, known);
            self.known.insert(inner, known);
        }
    }

    /// Adds what ran in a window and has no launch to it: it was launched before CUPTI recorded calls, or the launch was
    /// lost. Called before the window is delivered.
    pub(super) fn deliver(&mut self, spec: &WindowSpec, builder: &mut WindowBuilder) {
        builder.work.lost += std::mem::take(&mut self.lost);
        builder.work.set_names(&self.names);
        if !spec.has_kernels() {
            return;
        }
        let line = Timeline::through(spec.first, spec.first);
        let window = line.unix_ns(spec.opened)..line.unix_ns(spec.closed.unwrap_or(u64::MAX));
        for activity in &self.unmatched {
            // Without times, it belongs to the first window that is delivered.
            let start = activity.span().map(|(start, _)| start);
            if start.is_none_or(|start| window.contains(&start)) {
                builder.work.add_without_launch(spec, *activity);
            }
        }
        self.unmatched.retain(|activity| activity.span().is_some());
    }

    /// Forgets what is older than all windows, if these have changed.
    fn forget_before(&mut self, specs: &[WindowSpec]) {
        let with_kernels = || specs.iter().filter(|spec| spec.has_kernels());
        let windows = with_kernels().map(|spec| spec.id);
        if windows.clone().eq(self.windows.iter().copied()) {
            return;
        }
        self.windows = windows.collect();
        let oldest = with_kernels().min_by_key(|spec| spec.opened);
        let Some(oldest) = oldest else {
            (self.known, self.unmatched) = (HashMap::new(), Vec::new());
            return;
        };
        self.known.retain(|_, known| known.start >= oldest.opened);
        let opened = Timeline::through(oldest.first, oldest.first).unix_ns(oldest.opened);
        self.unmatched
            .retain(|activity| activity.span().is_none_or(|(start, _)| start >= opened));
    }
}

impl WindowSpec {
    /// Returns `true` if the window has kernels, where CUPTI records them.
    pub(super) fn has_kernels(&self) -> bool {
        self.options.has_kernels()
    }

    /// Returns `true` if a call of CUDA that began at this time, in ticks, belongs to the window.
    fn has_launch(&self, at: u64) -> bool {
        let closed = self.closed.unwrap_or(u64::MAX);
        let is_inside = (self.opened..closed).contains(&at);
        self.has_kernels() && is_inside && self.records(Recorded::Cuda, at)
    }
}
