//! The open GPU scopes of one thread.

use std::iter;
use std::num::NonZero;

use profiler_host::sync::ReentrancyGuard;
use profiler_report::internal::{RawStream, StreamKey};

use super::scope::{OpenGpuScope, StreamOwnership, TaskGpuScope, abandon, abandon_without_owner};
use crate::cuda::context::measurement::{Enclosing, GpuMeasurement, NO_NAME, StartEvent};
use crate::cuda::stream::Stream;
use crate::local;

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
}

#[derive(Debug)]
pub(super) enum GpuFrame {
    /// A scope that is open on this thread.
    Scope { serial: u64, opened: OpenGpuScope },
    /// A future that is being polled, and its open scope, if it has one. The future keeps that between its polls.
    Poll {
        serial: u64,
        task: Option<TaskGpuScope>,
    },
}

impl GpuFrame {
    #[inline]
    fn is_scope(&self, number: u64) -> bool {
        matches!(self, Self::Scope { serial, .. } if *serial == number)
    }

    #[inline]
    fn is_ordinary_scope(&self, number: u64) -> bool {
        matches!(self, Self::Scope { serial, opened } if *serial == number && !opened.is_late)
    }

    /// Returns the serial of the scope or of the poll.
    fn serial(&self) -> u64 {
        let (Self::Scope { serial, .. } | Self::Poll { serial, .. }) = self;
        *serial
    }

    /// Returns the open scope; `None` for a future that has none.
    #[inline]
    pub(super) fn opened(&self) -> Option<&OpenGpuScope> {
        match self {
            Self::Scope { opened, .. } => Some(opened),
            Self::Poll { task, .. } => task.as_ref()?.opened(),
        }
    }

    /// [`opened`](Self::opened), to be changed.
    pub(super) fn opened_mut(&mut self) -> Option<&mut OpenGpuScope> {
        match self {
            Self::Scope { opened, .. } => Some(opened),
            Self::Poll { task, .. } => task.as_mut()?.opened_mut(),
        }
    }

    /// Returns the start of the scope if the scopes inside may overlap: because one of them is a future, or because the
    /// scope itself is one.
    #[inline]
    fn start_if_overlapped(&self, is_future: bool, stream_key: StreamKey) -> Option<StartEvent> {
        let opened = match self {
            Self::Scope { opened, .. } if opened.has_futures || is_future => opened,
            Self::Scope { .. } => return None,
            Self::Poll { .. } => self.opened()?,
        };
        // Of a scope with streams of several contexts, it is that of the first one.
        let is_known = opened.measurement.scope.stream_key.context == stream_key.context;
        opened.start().filter(|_| is_known)
    }

    #[inline]
    fn into_opened(self) -> Option<OpenGpuScope> {
        match self {
            Self::Scope { opened, .. } => Some(opened),
            Self::Poll { task, .. } => task?.take(),
        }
    }
}

impl ScopeStack {
    pub(super) const fn new() -> Self {
        Self {
            frames: Vec::new(),
            displaced: Vec::new(),
        }
    }

    /// Returns `true` if no scope is open, and no future is polled.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns `true` if no scope is displaced either.
    pub(super) fn has_nothing(&self) -> bool {
        self.frames.is_empty() && self.displaced.is_empty()
    }

    /// Stores the scopes around a new scope in its measurement.
    #[inline(never)]
    pub(super) fn enclose(&self, measurement: &mut GpuMeasurement, is_future: bool) {
        let enclosing = enclosing(&self.frames, measurement.scope.stream_key, is_future);
        measurement.set_enclosing(&enclosing);
    }

    /// Stores the scopes around an open scope, or around a future that is polled, in its measurement on a further stream.
    #[cold]
    #[inline(never)]
    pub(super) fn enclose_late(&mut self, measurement: &mut GpuMeasurement, serial: u64) {
        let is_it = |frame: &GpuFrame| frame.serial() == serial;
        let place = self.frames.iter().rposition(is_it);
        let place = place.unwrap_or(self.frames.len());
        let around = &mut self.frames[..place];
        let is_future = local::innermost_poll() == serial;
        if is_future {
            note_future(around, |other| other.is_on(measurement.scope.stream_key));
        }
        let enclosing = enclosing(around, measurement.scope.stream_key, is_future);
        measurement.set_enclosing(&enclosing);
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

    /// Takes the scope with a serial number out if it is the innermost one and no streams were bound late.
    #[inline(always)]
    pub(super) fn take_ordinary(&mut self, serial: u64) -> Option<OpenGpuScope> {
        match self.frames.pop_if(|last| last.is_ordinary_scope(serial)) {
            Some(GpuFrame::Scope { opened, .. }) => Some(opened),
            _ => None,
        }
    }

    /// Takes the scope with a serial number out, after making it the innermost one. Scopes inside it are displaced: they
    /// may still end, but no later scope is inside them.
    pub(super) fn take(&mut self, serial: u64) -> Option<OpenGpuScope> {
        self.make_innermost(serial)?;
        self.pop_innermost()
    }

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
        frame.opened().map(OpenGpuScope::key)
    }

    /// Returns the stream of a scope that is open on this thread.
    pub(super) fn stream_of(&self, serial: u64) -> Option<RawStream> {
        let mut frames = self.frames.iter().rev();
        let frame = frames.find(|frame| frame.is_scope(serial))?;
        Some(frame.opened()?.measurement.scope.stream_key.stream)
    }

    /// Makes a future the innermost entry during a poll, with its scope if it has one.
    pub(super) fn push_poll(&mut self, serial: u64, task: Option<TaskGpuScope>) {
        if let Some(opened) = task.as_ref().and_then(TaskGpuScope::opened) {
            let first = &*opened.measurement;
            for on_stream in iter::once(first).chain(first.further()) {
                let stream_key = on_stream.scope.stream_key;
                note_future(&mut self.frames, |other| other.is_on(stream_key));
            }
        }
        self.reserve();
        self.frames.push(GpuFrame::Poll { serial, task });
    }

    /// Ends a poll, and returns the scope of the future. Scopes that were opened during the poll and are still open may end in
    /// a later poll.
    pub(super) fn pop_poll(&mut self, number: u64) -> Option<TaskGpuScope> {
        let is_it =
            |frame: &GpuFrame| matches!(frame, GpuFrame::Poll { serial, .. } if *serial == number);
        let frame = if let Some(index) = self.frames.iter().rposition(is_it) {
            self.displace(index + 1);
            self.frames.pop()
        } else {
            // A scope around the poll was closed inside.
            let index = self.displaced.iter().rposition(is_it)?;
            Some(self.displaced.remove(index))
        };
        match frame {
            Some(GpuFrame::Poll { task, .. }) => task,
            _ => None,
        }
    }

    /// Returns the frame of an open scope or poll of this thread, also if it is displaced.
    pub(super) fn frame_of(&mut self, serial: u64) -> Option<&mut GpuFrame> {
        let mut frames = self.frames.iter_mut().rev().chain(&mut self.displaced);
        frames.find(|frame| frame.serial() == serial)
    }

    /// Returns an open scope of this thread, also if it is displaced.
    pub(super) fn scope_of(&mut self, serial: u64) -> Option<&mut OpenGpuScope> {
        let mut frames = self.frames.iter_mut().rev().chain(&mut self.displaced);
        let frame = frames.find(|frame| frame.is_scope(serial))?;
        frame.opened_mut()
    }

    /// Displaces the entries from an index on.
    fn displace(&mut self, from: usize) {
        let frames = self.frames.drain(from.min(self.frames.len())..);
        self.displaced.extend(frames);
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

/// Returns the scopes around a new scope on a stream, of those in `around`.
// Inlined where each scope is enclosed.
#[inline(always)]
fn enclosing(around: &[GpuFrame], stream_key: StreamKey, is_future: bool) -> Enclosing {
    let mut frames = around.iter().rev();
    let Some(innermost) = frames.clone().find_map(GpuFrame::opened) else {
        return Enclosing::NONE;
    };
    let parent = frames.find_map(|frame| {
        let opened = frame.opened()?;
        opened.is_on(stream_key).then_some((frame, opened))
    });
    let scope = &innermost.measurement.scope;
    let is_elsewhere = scope.stream_key != stream_key && !innermost.is_bound_to(stream_key);
    Enclosing {
        parent: parent.and_then(|(_, opened)| NonZero::new(opened.key())),
        parent_start: parent
            .and_then(|(frame, _)| frame.start_if_overlapped(is_future, stream_key)),
        parent_on_other_stream: if is_elsewhere {
            name_of(scope.name, around)
        } else {
            None
        },
    }
}

/// Returns the name of the innermost open scope. One whose streams were bound late has it from its end on; until then it is looked
/// for where a scope inside is on another stream, unless it is recursive.
#[inline(always)]
fn name_of(name: u32, around: &[GpuFrame]) -> Option<u32> {
    if name == NO_NAME {
        return find_name(around);
    }
    Some(name)
}

#[cold]
#[inline(never)]
fn find_name(around: &[GpuFrame]) -> Option<u32> {
    let innermost = around.iter().rfind(|frame| frame.opened().is_some())?;
    local::name_of_open(innermost.serial())
}

/// Tells the innermost scope that `is_parent` selects that a future was polled inside.
fn note_future(around: &mut [GpuFrame], is_parent: impl Fn(&OpenGpuScope) -> bool) {
    // The future may be pending while its enclosing scope opens others, which then overlap it.
    let mut frames = around.iter_mut().rev();
    let parent = frames.find(|frame| frame.opened().is_some_and(&is_parent));
    if let Some(GpuFrame::Scope { opened, .. }) = parent {
        opened.has_futures = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::context::measurement::ScopeRef;
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
        let enclosing = enclosing(&stack.frames, on_stream(stream), false);
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
        stack.push_poll(10, Some(task));
        assert_eq!(parent(&open(&mut stack, 2, 7)), 9);
        let task = stack.pop_poll(10);
        assert_eq!(parent(&open(&mut stack, 3, 7)), 1);
        assert!(end(&mut stack, 3));
        stack.push_poll(11, task);
        assert!(end(&mut stack, 2), "in the second poll");
        assert!(stack.pop_poll(11).is_some());
        assert!(end(&mut stack, 1));
        assert!(stack.frames.is_empty() && stack.displaced.is_empty());
    }

    #[test]
    fn a_poll_tells_the_scope_around_it_that_scopes_inside_may_overlap() {
        let mut stack = ScopeStack::new();
        open(&mut stack, 1, 7);
        open(&mut stack, 2, 8);
        stack.push_poll(10, Some(task(9, 7)));
        stack.pop_poll(10);
        assert!(!stack.take(2).unwrap().has_futures);
        assert!(stack.take(1).unwrap().has_futures);
    }

    #[test]
    fn a_future_without_a_gpu_scope_is_no_parent() {
        let mut stack = ScopeStack::new();
        open(&mut stack, 1, 7);
        stack.push_poll(9, None);
        assert_eq!(parent(&open(&mut stack, 10, 7)), 1);
        assert!(stack.pop_poll(9).is_none());
        assert_eq!((stack.frames.len(), stack.displaced.len()), (1, 1));
    }

    #[test]
    fn a_poll_keeps_the_scope_of_its_future_if_a_scope_around_it_ends_inside() {
        let mut stack = ScopeStack::new();
        open(&mut stack, 1, 7);
        stack.push_poll(9, Some(task(8, 7)));
        assert!(end(&mut stack, 1));
        let task = stack.pop_poll(9).expect("it is displaced");
        assert_eq!(task.key(), 8);
        assert!(stack.frames.is_empty() && stack.displaced.is_empty());
    }
}
