//! The open GPU scopes of one thread.

use std::num::NonZero;
use std::sync::Arc;

use profiler_host::sync::ReentrancyGuard;
use profiler_report::internal::{RawStream, StreamKey};

use super::scope::{OpenGpuScope, StreamOwnership, TaskGpuScope, abandon, abandon_without_owner};
use super::target::NamedBy;
use crate::cuda::context::measurement::{
    Bound, Enclosing, GpuMeasurement, Pair, ScopeRef, StartEvent,
};
use crate::cuda::stream::{Stream, StreamHandles};
use crate::local::SharedScope;

/// The most displaced scopes. The oldest one more is abandoned.
const MAX_DISPLACED: usize = 64;

/// The most open scopes. If there is one more, the older half counts as forgotten and is abandoned.
const MAX_OPEN: usize = 4096;

/// The open scopes of a thread, innermost last.
///
/// Scopes usually end in reverse order of their beginning. One that does not is displaced: a scope whose enclosing
/// scope ends first, or a guard that a future holds from one poll to the next. It may still end, and is found by its
/// serial number.
#[derive(Debug)]
pub(super) struct ScopeStack {
    frames: Vec<GpuFrame>,
    displaced: Vec<GpuFrame>,
    /// The serials of the polls that are among the frames. Not in those, which are no larger than that of a scope.
    polls: Vec<u64>,
}

/// How the stream of an open scope or poll was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// It was not, or another one is bound.
    None,
    /// This one is bound.
    Bound,
    /// By its call, or that of the future.
    Named,
    /// By the thread, the process or the settings.
    Implied,
}

#[derive(Debug)]
enum GpuFrame {
    /// A scope that is open on this thread.
    Scope { serial: u64, opened: OpenGpuScope },
    /// A future that is being polled. The future keeps its open scope.
    Poll {
        scope: ScopeRef,
        start: Option<StartEvent>,
    },
}

impl GpuFrame {
    #[inline]
    fn is_scope(&self, number: u64) -> bool {
        matches!(self, Self::Scope { serial, .. } if *serial == number)
    }

    #[inline]
    fn scope(&self) -> &ScopeRef {
        match self {
            Self::Scope { opened, .. } => &opened.measurement.scope,
            Self::Poll { scope, .. } => scope,
        }
    }

    /// Returns the start of the scope if the scopes inside may overlap: because one of them is a future, or because the
    /// scope itself is one.
    #[inline]
    fn start_if_overlapped(&self, is_future: bool) -> Option<StartEvent> {
        match self {
            Self::Scope { opened, .. } if opened.has_futures || is_future => opened.start(),
            Self::Scope { .. } => None,
            Self::Poll { start, .. } => *start,
        }
    }

    #[inline]
    fn into_opened(self) -> Option<OpenGpuScope> {
        match self {
            Self::Scope { opened, .. } => Some(opened),
            Self::Poll { .. } => None,
        }
    }
}

impl ScopeStack {
    pub(super) const fn new() -> Self {
        Self {
            frames: Vec::new(),
            displaced: Vec::new(),
            polls: Vec::new(),
        }
    }

    /// Returns `true` if no scope is open, and no future is polled.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Stores the scopes around a new scope in its measurement.
    #[inline(never)]
    pub(super) fn enclose(&self, measurement: &mut GpuMeasurement, is_future: bool) {
        let enclosing = self.enclosing(measurement.scope.stream_key, is_future);
        measurement.set_enclosing(&enclosing);
    }

    /// Returns the scopes around a new scope on a stream.
    fn enclosing(&self, stream_key: StreamKey, is_future: bool) -> Enclosing {
        let Some(innermost) = self.frames.last() else {
            return Enclosing::NONE;
        };
        let is_parent = |scope: &ScopeRef| scope.stream_key == stream_key && scope.has_begun;
        let mut frames = self.frames.iter().rev();
        let parent = frames.find(|frame| is_parent(frame.scope()));
        let is_elsewhere = innermost.scope().stream_key != stream_key;
        Enclosing {
            parent: parent.and_then(|frame| NonZero::new(frame.scope().key)),
            parent_start: parent.and_then(|frame| frame.start_if_overlapped(is_future)),
            parent_on_other_stream: is_elsewhere.then_some(innermost.scope().name),
        }
    }

    /// Returns `true` if the scope with this key is a segment.
    pub(super) fn is_segment(&self, key: u64) -> bool {
        let mut frames = self.frames.iter().rev();
        let frame = frames.find(|frame| frame.scope().key == key);
        matches!(frame, Some(GpuFrame::Scope { opened, .. }) if opened.measurement.bound.is_some())
    }

    /// Makes room for one more frame.
    #[inline(always)]
    pub(super) fn reserve(&mut self) {
        if self.frames.len() == self.frames.capacity() {
            self.grow();
        }
    }

    /// Pushes a scope, for which [`reserve`](Self::reserve) has made room.
    #[inline(always)]
    pub(super) fn push(&mut self, serial: u64, opened: OpenGpuScope) {
        // Not `Vec::push`, which may allocate and unwind: the compiler would write the scope to the call's stack first, so that
        // it can be dropped from there, and copy it.
        let Some(free) = self.frames.spare_capacity_mut().first_mut() else {
            return abandon_without_owner(opened);
        };
        free.write(GpuFrame::Scope { serial, opened });
        // SAFETY: there is a free place behind the last frame, which has just been written.
        unsafe { self.frames.set_len(self.frames.len() + 1) };
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        // Do not attribute the memory to the program's scopes.
        let _reentrancy = ReentrancyGuard::try_enter();
        if self.frames.len() >= MAX_OPEN {
            self.abandon_older_half();
        }
        // Exactly, since the bound is checked only when the vector is full.
        let wanted = self.frames.len().clamp(8, MAX_OPEN);
        let free = self.frames.capacity() - self.frames.len();
        if free == 0 {
            let missing = MAX_OPEN.saturating_sub(self.frames.len());
            self.frames.reserve_exact(wanted.min(missing).max(1));
        }
    }

    /// Returns the innermost scope.
    pub(super) fn innermost(&mut self) -> Option<&mut OpenGpuScope> {
        match self.frames.last_mut() {
            Some(GpuFrame::Scope { opened, .. }) => Some(opened),
            _ => None,
        }
    }

    /// Takes the innermost scope out.
    #[inline(always)]
    pub(super) fn pop_innermost(&mut self) -> Option<OpenGpuScope> {
        self.frames.pop()?.into_opened()
    }

    /// Polls stay: the code that polls removes them.
    ///
    /// The streams that the scopes own are dropped while the thread's state is borrowed. If the destructor of one is measured,
    /// its scope has no GPU time.
    #[cold]
    fn abandon_older_half(&mut self) {
        let is_scope = |frame: &mut GpuFrame| matches!(frame, GpuFrame::Scope { .. });
        let old = self.frames.extract_if(..MAX_OPEN / 2, is_scope);
        old.filter_map(GpuFrame::into_opened).for_each(abandon);
    }

    /// Takes the scope with a serial number out, after making it the innermost one. Scopes inside it are displaced: they
    /// may still end, but no later scope is inside them.
    #[inline(always)]
    pub(super) fn take(&mut self, serial: u64) -> Option<OpenGpuScope> {
        if let Some(GpuFrame::Scope { opened, .. }) =
            self.frames.pop_if(|last| last.is_scope(serial))
        {
            return Some(opened);
        }
        self.make_innermost(serial)?;
        self.pop_innermost()
    }

    #[cold]
    #[inline(never)]
    fn make_innermost(&mut self, serial: u64) -> Option<()> {
        let is_it = |frame: &GpuFrame| frame.is_scope(serial);
        if let Some(index) = self.frames.iter().rposition(is_it) {
            self.displace(index + 1);
        } else {
            let index = self.displaced.iter().rposition(is_it)?;
            let frame = self.displaced.remove(index);
            self.reserve();
            self.frames.push(frame);
        }
        Some(())
    }

    /// Returns the key of an open scope.
    pub(super) fn key_of(&self, serial: u64) -> Option<u64> {
        let mut frames = self.frames.iter().rev().chain(&self.displaced);
        let frame = frames.find(|frame| frame.is_scope(serial))?;
        Some(frame.scope().key)
    }

    /// Returns the stream of a scope that is open on this thread.
    pub(super) fn stream_of(&self, serial: u64) -> Option<RawStream> {
        let mut frames = self.frames.iter().rev();
        let frame = frames.find(|frame| frame.is_scope(serial))?;
        Some(frame.scope().stream_key.stream)
    }

    /// Returns how the stream of a scope or poll with this serial was chosen.
    pub(super) fn choice(&self, serial: u64, handles: StreamHandles) -> Choice {
        let mut frames = self.frames.iter().rev().chain(&self.displaced);
        let opened = match frames.find(|frame| frame.is_scope(serial)) {
            Some(GpuFrame::Scope { opened, .. }) => opened,
            _ if self.polls.contains(&serial) => return Choice::Named,
            _ => return Choice::None,
        };
        let measurement = &opened.measurement;
        let in_context = |pair: Pair| pair.context.raw == handles.context;
        match measurement.bound.as_ref() {
            None if opened.named_by == NamedBy::Call => Choice::Named,
            None => Choice::Implied,
            Some(_)
                if measurement.scope.stream_key.stream == handles.stream
                    && measurement.pair.is_none_or(in_context) =>
            {
                Choice::Bound
            }
            Some(_) => Choice::None,
        }
    }

    /// Returns the scope of the segment that is open in the scope or poll with this serial, and when it began, in ticks.
    pub(super) fn segment_of(&self, serial: u64) -> Option<(Arc<SharedScope>, u64)> {
        let mut frames = self.frames.iter().rev().chain(&self.displaced);
        match frames.find(|frame| frame.is_scope(serial))? {
            GpuFrame::Scope { opened, .. } => match opened.measurement.bound.as_ref() {
                Some(Bound::Segment { scope, begun }) => Some((Arc::clone(scope), *begun)),
                _ => None,
            },
            GpuFrame::Poll { .. } => None,
        }
    }

    /// Makes a future's scope the innermost one during the poll with this serial. Returns the key for
    /// [`pop_poll`](Self::pop_poll).
    pub(super) fn push_poll(&mut self, serial: u64, task: &TaskGpuScope) -> Option<u64> {
        let (scope, start) = (task.scope()?, task.start());
        // The future may be pending while its enclosing scope opens others, which then overlap it.
        let is_parent = |other: &ScopeRef| other.stream_key == scope.stream_key && other.has_begun;
        let mut frames = self.frames.iter_mut().rev();
        let parent = frames.find(|frame| is_parent(frame.scope()));
        if let Some(GpuFrame::Scope { opened, .. }) = parent {
            opened.has_futures = true;
        }
        self.reserve();
        self.frames.push(GpuFrame::Poll { scope, start });
        if self.polls.len() == self.polls.capacity() {
            // Do not attribute the memory to the program's scopes.
            let _reentrancy = ReentrancyGuard::try_enter();
            self.polls.reserve(8);
        }
        self.polls.push(serial);
        Some(scope.key)
    }

    /// Ends the poll with this serial. Scopes that were opened during the poll and are still open may end in a later poll.
    pub(super) fn pop_poll(&mut self, serial: u64, key: u64) {
        self.polls.retain(|poll| *poll != serial);
        let is_it =
            |frame: &GpuFrame| matches!(frame, GpuFrame::Poll { scope, .. } if scope.key == key);
        if let Some(index) = self.frames.iter().rposition(is_it) {
            self.displace(index + 1);
            self.frames.truncate(index);
        }
    }

    /// Displaces the scopes from an index on.
    fn displace(&mut self, from: usize) {
        let frames = self.frames.drain(from.min(self.frames.len())..);
        self.displaced
            .extend(frames.filter(|frame| matches!(frame, GpuFrame::Scope { .. })));
        while self.displaced.len() > MAX_DISPLACED {
            let oldest = self.displaced.remove(0);
            oldest.into_opened().into_iter().for_each(abandon);
        }
    }

    /// Has the scopes on the thread's current stream own it, because it will not be current any more.
    pub(super) fn own_stream(&mut self, stream: &Stream) {
        for frame in self.frames.iter_mut().chain(&mut self.displaced) {
            if let GpuFrame::Scope { opened, .. } = frame
                && opened.is_on_current_stream()
            {
                opened.ownership = StreamOwnership::owned(stream.clone());
            }
        }
    }

    /// Abandons all scopes, when the thread ends.
    pub(super) fn abandon_all(&mut self) {
        self.frames
            .drain(..)
            .chain(self.displaced.drain(..))
            .filter_map(GpuFrame::into_opened)
            .for_each(abandon);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::loss;
    use crate::cuda::thread::target::NamedBy;
    use profiler_report::CudaLoss;
    use profiler_report::internal::RawStream;

    fn on_stream(thread: u32) -> StreamKey {
        StreamKey {
            context: 0,
            thread,
            stream: RawStream::PER_THREAD,
        }
    }

    /// Opens a scope whose key is its serial number.
    fn open(stack: &mut ScopeStack, serial: u64, stream: u32) -> Enclosing {
        let enclosing = stack.enclosing(on_stream(stream), false);
        stack.reserve();
        stack.push(serial, opened(serial, stream));
        enclosing
    }

    fn scope(key: u64, stream: u32) -> ScopeRef {
        ScopeRef {
            key,
            stream_key: on_stream(stream),
            name: name_of(key),
            has_begun: true,
        }
    }

    fn opened(key: u64, stream: u32) -> OpenGpuScope {
        let mut measurement = GpuMeasurement::new(None);
        measurement.scope = scope(key, stream);
        OpenGpuScope::new(measurement, NamedBy::Call)
    }

    /// The number of no name, so that the counts of other tests' names stay theirs.
    fn name_of(key: u64) -> u32 {
        u32::MAX - u32::try_from(key).unwrap()
    }

    fn task(key: u64, stream: u32) -> TaskGpuScope {
        let mut task = TaskGpuScope::default();
        task.set(opened(key, stream));
        task
    }

    fn parent(enclosing: &Enclosing) -> u64 {
        enclosing.parent.map_or(0, NonZero::get)
    }

    /// Ends a scope as `ending` does. Returns `false` if it is not open any more.
    fn end(stack: &mut ScopeStack, serial: u64) -> bool {
        let Some(opened) = stack.take(serial) else {
            return false;
        };
        assert_eq!(opened.measurement.scope.key, serial);
        true
    }

    fn abandoned() -> u64 {
        let counted = loss::counted();
        let abandoned = counted
            .iter()
            .find(|(reason, _)| *reason == CudaLoss::Abandoned);
        abandoned.map_or(0, |(_, count)| *count)
    }

    #[test]
    fn the_parent_is_the_innermost_scope_on_the_same_stream() {
        let mut stack = ScopeStack::new();
        assert_eq!(parent(&open(&mut stack, 1, 7)), 0);
        let other = open(&mut stack, 2, 8);
        assert_eq!(
            (parent(&other), other.parent_on_other_stream),
            (0, Some(name_of(1)))
        );
        let inner = open(&mut stack, 3, 7);
        assert_eq!(
            (parent(&inner), inner.parent_on_other_stream),
            (1, Some(name_of(2)))
        );
        let innermost = open(&mut stack, 4, 7);
        assert_eq!(
            (parent(&innermost), innermost.parent_on_other_stream),
            (3, None)
        );
    }

    #[test]
    fn a_scope_without_a_start_event_is_no_parent() {
        let mut stack = ScopeStack::new();
        open(&mut stack, 1, 7);
        open(&mut stack, 2, 7);
        stack.innermost().unwrap().measurement.scope.has_begun = false;
        assert_eq!(parent(&open(&mut stack, 3, 7)), 1);
    }

    #[test]
    fn guards_may_end_in_any_order() {
        let mut stack = ScopeStack::new();
        for serial in 1..=3 {
            open(&mut stack, serial, 7);
        }
        assert!(end(&mut stack, 1));
        assert_eq!(stack.key_of(3), Some(3), "displaced, and still open");
        assert_eq!(
            parent(&open(&mut stack, 4, 7)),
            0,
            "inside no displaced one"
        );
        assert!(end(&mut stack, 2) && end(&mut stack, 4) && end(&mut stack, 3));
        assert!(!end(&mut stack, 3), "ended already");
    }

    #[test]
    fn displaced_and_open_scopes_are_bounded() {
        let mut stack = ScopeStack::new();
        for serial in 1..=1 + MAX_DISPLACED as u64 + 5 {
            open(&mut stack, serial, 7);
        }
        let before = abandoned();
        assert!(end(&mut stack, 1));
        assert_eq!(stack.displaced.len(), MAX_DISPLACED);
        assert!(abandoned() >= before + 5);
        assert!(stack.take(6).is_none(), "abandoned");
        assert!(stack.take(7).is_some());
        for serial in 0..2 * MAX_OPEN as u64 {
            open(&mut stack, 1_000 + serial, 7);
            assert!(stack.frames.len() <= MAX_OPEN);
        }
    }

    #[test]
    fn the_stack_stays_bounded_after_a_displaced_scope_has_ended() {
        let mut stack = ScopeStack::new();
        open(&mut stack, 1, 7);
        open(&mut stack, 2, 7);
        assert!(end(&mut stack, 1), "which displaces the other one");
        for serial in 0..MAX_OPEN as u64 {
            open(&mut stack, 1_000 + serial, 7);
        }
        assert!(end(&mut stack, 2));
        for serial in 0..2 * MAX_OPEN as u64 {
            open(&mut stack, 100_000 + serial, 7);
            assert!(stack.frames.len() <= MAX_OPEN);
        }
    }

    #[test]
    fn scopes_of_a_poll_stay_open_for_the_next_one() {
        let mut stack = ScopeStack::new();
        open(&mut stack, 1, 7);
        let task = task(9, 7);
        let key = stack.push_poll(10, &task).unwrap();
        assert_eq!(parent(&open(&mut stack, 2, 7)), 9);
        stack.pop_poll(10, key);
        assert_eq!(parent(&open(&mut stack, 3, 7)), 1);
        assert!(end(&mut stack, 3));
        let key = stack.push_poll(11, &task).unwrap();
        assert!(end(&mut stack, 2), "in the second poll");
        stack.pop_poll(11, key);
        assert!(end(&mut stack, 1));
        assert!(stack.frames.is_empty() && stack.displaced.is_empty());
    }

    #[test]
    fn a_poll_tells_the_scope_around_it_that_scopes_inside_may_overlap() {
        let mut stack = ScopeStack::new();
        open(&mut stack, 1, 7);
        open(&mut stack, 2, 8);
        let key = stack.push_poll(10, &task(9, 7)).unwrap();
        stack.pop_poll(10, key);
        assert!(!stack.take(2).unwrap().has_futures);
        assert!(stack.take(1).unwrap().has_futures);
    }

    #[test]
    fn a_future_without_a_gpu_scope_is_not_pushed() {
        let mut stack = ScopeStack::new();
        assert_eq!(stack.push_poll(1, &TaskGpuScope::default()), None);
        assert!(stack.frames.is_empty());
    }
}
