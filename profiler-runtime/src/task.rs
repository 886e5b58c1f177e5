//! Scopes of futures: one for each task, whatever threads poll it.

use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::clock::{elapsed, now};
use crate::collect;
use crate::contain::contained;
use crate::cuda::{self, Begun, IntoStream, Stream, TaskSide};
use crate::entry::{Attached, Entry};
use crate::local::{self, Hot, NoCell};
use crate::log::IntoLogger;
use crate::name;
use crate::scope::Closed;
use crate::session::{self, Ended, FutureRecord, RecordEnding, ToShape};
use crate::site::{Ticket, begin_dynamic};
use crate::stats::{Ending, StatCell};
use crate::step::IntoStep;

/// The scope of a future: from its first poll to its end, and the time spent polling.
///
/// While the future is polled the scope is the innermost one of the polling thread, so that what runs
/// inside becomes its child; between polls it is no scope of any thread, so that two futures taking
/// turns on one thread never become each other's parent.
#[derive(Debug)]
pub struct TaskScope {
    entry: Entry<'static>,
    running: Option<Running>,
    /// The stream that was current where the future was made, and is so wherever it is polled.
    inherited: Option<Stream>,
}

#[derive(Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "facts that have nothing to do with each other"
)]
struct Running {
    first_poll: u64,
    polled: i64,
    children: i64,
    /// Whether no scope of the same name was open around the first poll.
    outermost: bool,
    /// Whether a panic was under way at the first poll.
    panicking: bool,
    /// When the last poll ended.
    last_end: u64,
    /// Whether a panic went through a poll, which was the last one then.
    panicked: bool,
    /// Its GPU's side, or why it had none at its first poll.
    cuda: Result<TaskSide, Begun>,
    /// What a session is to be told of it, where one recorded at the first poll.
    record: Option<Box<FutureRecord>>,
}

impl TaskScope {
    pub(crate) fn new(entry: Entry<'static>) -> Self {
        Self {
            entry,
            running: None,
            inherited: None,
        }
    }

    /// Has the future run on the stream that is current now.
    fn inheriting(mut self) -> Self {
        if self.entry.ticket.is_some() {
            self.inherited = cuda::current_stream();
        }
        self
    }

    /// Runs one poll as the innermost scope of this thread.
    fn poll<T>(&mut self, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
        let Some(ticket) = self.entry.ticket else {
            return poll();
        };
        let Self {
            entry,
            running,
            inherited,
        } = self;
        let result = cuda::poll_with(inherited.as_ref(), || {
            let _frame = PollFrame::enter(ticket, running, entry);
            poll()
        });
        if result.is_ready() {
            self.finish(Ending::Returned);
        }
        result
    }

    fn finish(&mut self, ending: Ending) {
        // Taken, so that a future is counted once however often it is dropped or polled.
        let (Some(ticket), Some(running)) = (self.entry.ticket.take(), self.running.take()) else {
            return;
        };
        // The executor may catch a panic, and drop the future much later.
        let ending = if running.panicked {
            Ending::Panicked
        } else {
            ending
        };
        let end = if ending == Ending::Dropped {
            now()
        } else {
            running.last_end
        };
        let elapsed = elapsed(running.first_poll, end);
        let count = |cell: &StatCell| {
            let own = running.polled - running.children;
            let full = cell.count(elapsed, own, running.outermost);
            cell.count_future(running.polled);
            cell.count_ending(ending);
            full
        };
        let cell = match local::cell(ticket.id()) {
            Ok(cell) => Some(cell),
            Err(NoCell::Nowhere) => None,
            // Inside the profiler nothing is measured.
            Err(NoCell::Busy) => {
                let opened = running.cuda.ok().and_then(TaskSide::into_opened);
                return opened.map_or((), cuda::give_up);
            }
        };
        match cell {
            Some(cell) if !count(cell) => {}
            _ => count_in_name(ticket.id(), cell, count),
        }
        let log = self.entry.is_due().then(|| {
            let attached = std::mem::take(&mut self.entry.attached);
            (self.entry.every, attached)
        });
        let closed = Closed::new(end, elapsed, running.outermost);
        let span = closed.span();
        if let Some(record) = running.record {
            let ended = Ended {
                name: ticket.id(),
                serial: 0,
                parent: 0,
                start: running.first_poll,
                elapsed,
                ending: match ending {
                    Ending::Returned => RecordEnding::Returned,
                    Ending::Panicked => RecordEnding::Panicked,
                    Ending::Dropped => RecordEnding::Dropped,
                },
                cuda: running.cuda.as_ref().map_or(0, TaskSide::key),
            };
            session::close_future(record, &ended, running.polled);
        }
        let no_stream = matches!(running.cuda, Err(Begun::NoStream));
        if no_stream {
            cuda::count_without_stream(cell, elapsed);
        }
        match (running.cuda.ok().and_then(TaskSide::into_opened), log) {
            (Some(opened), log) => cuda::log(cell, log, |part| cuda::finish(opened, span, part)),
            (None, Some(log)) if !no_stream && cuda::came_late() => {
                let finish = |part| cuda::end_without(ticket.id(), span, part);
                cuda::log(cell, Some(log), finish);
            }
            (None, Some((every, attached))) => {
                collect::log(cell, ticket.id(), every, &closed, attached);
            }
            (None, None) => {}
        }
        if ticket.is_step() && running.outermost {
            session::step();
        }
    }

    pub(crate) fn attached(&mut self) -> Option<&mut Attached> {
        self.pending().map(|entry| &mut entry.attached)
    }

    /// What may still be changed: nothing once it runs.
    fn pending(&mut self) -> Option<&mut Entry<'static>> {
        (self.entry.ticket.is_some() && self.running.is_none()).then_some(&mut self.entry)
    }
}

/// A panic leaves nothing half done in it: it is taken out before it is counted, and each poll closes what
/// it opened. So the future it is put around decides.
impl UnwindSafe for TaskScope {}
impl RefUnwindSafe for TaskScope {}

/// A cell whose buckets are full, or a thread that has no cells any more.
#[cold]
fn count_in_name(id: u32, cell: Option<&StatCell>, count: impl FnOnce(&StatCell) -> bool) {
    let Some(name) = name::by_id(id) else { return };
    match cell {
        Some(cell) => name.carry(cell),
        None => name.count_directly(|cell| _ = count(cell)),
    }
}

impl Drop for TaskScope {
    fn drop(&mut self) {
        contained("a future was dropped", || self.finish(Ending::Dropped));
    }
}

/// One poll: open on the thread that polls, closed even when the poll panics.
struct PollFrame<'a> {
    running: &'a mut Running,
    cell: Option<&'static StatCell>,
    start: u64,
    serial: u64,
    outer: u64,
    outer_children: i64,
    outer_floor: u64,
    /// Its place among the GPU scopes of this thread.
    cuda_place: Option<u64>,
}

impl<'a> PollFrame<'a> {
    fn enter(ticket: Ticket, running: &'a mut Option<Running>, entry: &mut Entry<'static>) -> Self {
        let ask = &mut entry.ask;
        // Before the clock is read, as for any scope.
        let cell = local::cell(ticket.id());
        // Inside the profiler nothing is measured.
        let is_busy = cell.is_err_and(|reason| reason == NoCell::Busy);
        let wants_cuda = running.is_none() && !is_busy && (ticket.is_cuda() || ask.is_some());
        let begun = wants_cuda.then(|| cuda::begin_task(ticket.id(), ask.take().as_mut()));
        let cell = cell.ok();
        let first = running.is_none();
        let record = if first && !is_busy {
            FutureRecord::begin(local::innermost(), entry.shapes.take())
        } else {
            None
        };
        let start = now();
        let running = running.get_or_insert_with(|| Running {
            first_poll: start,
            polled: 0,
            children: 0,
            outermost: true,
            panicking: std::thread::panicking(),
            last_end: start,
            panicked: false,
            cuda: begun.unwrap_or(Err(Begun::NoContext)),
            record,
        });
        let cuda_place = running.cuda.as_ref().ok().and_then(cuda::push_poll);
        let mut frame = Self {
            running,
            cell,
            start,
            serial: 0,
            outer: 0,
            outer_children: 0,
            outer_floor: 0,
            cuda_place,
        };
        local::hot(|hot| frame.push(hot, first));
        frame
    }

    fn push(&mut self, hot: &Hot, first: bool) {
        if hot.top.get() == local::ENDED {
            return;
        }
        self.serial = hot.serial.get() + 1;
        hot.serial.set(self.serial);
        self.outer = hot.top.replace(self.serial);
        self.outer_floor = hot.floor.replace(self.serial);
        self.outer_children = hot.children.replace(0);
        let Some(cell) = self.cell else { return };
        let outermost = cell.enter_poll(self.serial);
        if first {
            self.running.outermost = outermost;
            cell.begin_future();
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "the number of a name")]
    fn record(&self, cell: &StatCell, elapsed: i64) {
        let ended = Ended {
            name: cell.id.get() as u32,
            serial: self.serial,
            parent: self.outer,
            start: self.start,
            elapsed,
            ending: RecordEnding::Returned,
            cuda: 0,
        };
        let future = self.running.record.as_deref();
        session::close_poll(&ended, future.map_or(0, FutureRecord::serial));
    }

    fn pop(&mut self, hot: &Hot, elapsed: i64) {
        let top = hot.top.get();
        if top == local::ENDED {
            return;
        }
        hot.top.set(self.outer);
        hot.floor.set(self.outer_floor);
        if top == self.serial {
            self.running.children += hot.children.get();
        } else if let Some(cell) = self.cell {
            // The poll left a guard open, and what its children took went to that one.
            cell.count_disordered();
            local::forget_above(self.serial);
        }
        hot.children.set(self.outer_children + elapsed);
        if let Some(cell) = self.cell {
            cell.leave_poll(self.serial);
        }
    }
}

impl Drop for PollFrame<'_> {
    fn drop(&mut self) {
        let end = now();
        let elapsed = elapsed(self.start, end);
        self.running.last_end = end;
        self.running.polled += elapsed;
        self.running.panicked |= std::thread::panicking() && !self.running.panicking;
        local::hot(|hot| self.pop(hot, elapsed));
        if let Some(place) = self.cuda_place {
            contained("a poll ended", || cuda::pop_poll(place));
        }
        if let Some(cell) = self.cell.filter(|_| session::is_recording()) {
            contained("a poll ended", || self.record(cell, elapsed));
        }
    }
}

pin_project! {
    /// A future that is measured: made by the attribute on asynchronous functions, and by
    /// [`MeasureFuture`].
    ///
    /// It is measured from its first poll to its end; a future that is dropped before is counted and
    /// flagged, one that was never polled is not counted.
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are awaited or polled"]
    pub struct Measured<F> {
        #[pin]
        future: F,
        scope: TaskScope,
    }
}

/// Measures a future with a scope of its own.
pub fn measure<F: Future>(scope: TaskScope, future: F) -> Measured<F> {
    Measured { future, scope }
}

impl<F: Future> Future for Measured<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let future = this.future;
        this.scope.poll(|| future.poll(context))
    }
}

impl<F> Measured<F> {
    /// Logs the future's time, as the attribute's argument of that name.
    ///
    /// To be given before the first poll.
    pub fn log<Marker>(mut self, logger: impl IntoLogger<Marker>) -> Self {
        if self.scope.entry.wants_log()
            && let Some(attached) = self.scope.attached()
        {
            attached.logger = Some(logger.into_logger());
        }
        self
    }

    /// The step under which the time is logged, as the attribute's argument of that name.
    ///
    /// To be given before the first poll.
    pub fn global_step(mut self, step: impl IntoStep) -> Self {
        if let Some(attached) = self.scope.attached() {
            attached.step = Some(step.into_step());
        }
        self
    }

    /// The stream that the GPU time is taken on, as the attribute's argument of that name: from an event at
    /// the first poll to one at the end.
    ///
    /// To be given before the first poll.
    pub fn stream(mut self, stream: impl IntoStream<'static>) -> Self {
        if let Some(entry) = self.scope.pending()
            && entry.wants_stream()
        {
            entry.stream(stream);
        }
        self
    }

    /// The shape of one more of the things that the future works on, as those of the attribute's argument `shapes`:
    /// looked at in an active window that records shapes, and nowhere else.
    ///
    /// To be given before the first poll.
    pub fn shape(mut self, shape: &(impl ToShape + ?Sized)) -> Self {
        if let Some(entry) = self.scope.pending()
            && entry.wants_shapes()
        {
            entry.shape(shape);
        }
        self
    }
}

/// Measures any future: `future.measure_execution_time("name").await`.
///
/// # Examples
///
/// ```
/// use profiler_runtime::MeasureFuture;
///
/// # async fn fetch() -> u32 { 7 }
/// async fn load() -> u32 {
///     fetch().measure_execution_time("fetch").await
/// }
/// # let mut future = std::pin::pin!(load());
/// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
/// # assert!(future.as_mut().poll(&mut context).is_ready());
/// # if profiler_runtime::is_enabled() {
/// # assert_eq!(profiler_runtime::summary().row("fetch").unwrap().calls, 1);
/// # }
/// ```
pub trait MeasureFuture: Future + Sized {
    /// Measures this future under a name, from its first poll to its end.
    ///
    /// The name may be built at run time; how many there can be is bounded by
    /// `PROFILER_MAX_NAMES`. The thread's current stream ([`cuda::with_stream`](crate::cuda::with_stream)) is
    /// that of the future too, wherever it is polled.
    #[track_caller]
    fn measure_execution_time(self, name: impl AsRef<str>) -> Measured<Self> {
        measure(begin_dynamic(&name).task().inheriting(), self)
    }
}

impl<F: Future> MeasureFuture for F {}
