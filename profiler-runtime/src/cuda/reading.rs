//! What the resolver does in a round: takes what was measured, reads the events that the device has passed.

use std::collections::{BTreeMap, VecDeque};

use super::anchor::{Anchor, Place};
use super::children::Children;
use super::code::{Code, Fault};
use super::context::Context;
use super::driver::Driver;
use super::graphs::Graphs;
use super::item::{Item, Line, Recorded};
use super::loss::CudaLoss;
use super::outcome::{Outbox, Timed};
use super::{resolver, ring, totals};
use crate::clock::{clock, now};

/// Idle for this long, a pool keeps no more than [`KEPT_PAIRS`].
const IDLE_NS: f64 = 5e9;
const KEPT_PAIRS: usize = 64;

/// An item whose events the device has not passed.
struct Pending {
    item: Item,
    recorded: Recorded,
    /// In the order in which items left the rings.
    number: u64,
}

/// What a question came to.
enum Answer {
    Passed,
    NotYet,
    /// The driver refuses to say; the item has been given up.
    Removed,
}

pub(super) struct Reading {
    driver: &'static Driver,
    batch: Vec<Item>,
    drained: u64,
    lines: BTreeMap<Line, VecDeque<Pending>>,
    contexts: BTreeMap<u32, InUse>,
    graphs: Graphs,
    children: Children,
    outbox: Outbox,
}

/// A context that something was measured in.
struct InUse {
    context: &'static Context,
    /// Its number in the driver, where that tells.
    id: Option<u64>,
    anchor: Option<Anchor>,
    last_used: u64,
}

impl Reading {
    pub(super) fn new(driver: &'static Driver) -> Self {
        Self {
            driver,
            batch: Vec::new(),
            drained: 0,
            lines: BTreeMap::new(),
            contexts: BTreeMap::new(),
            graphs: Graphs::default(),
            children: Children::default(),
            outbox: Outbox::default(),
        }
    }

    /// True where anything was taken or read.
    pub(super) fn round(&mut self) -> bool {
        let mut progress = false;
        // Loggers that keep it waiting make it take no more.
        if self.outbox.send() {
            progress |= self.take();
        }
        resolver::set_pending(self.pending());
        let suspicion = resolver::take_suspicion();
        for index in self.contexts.keys().copied().collect::<Vec<_>>() {
            progress |= self.visit(index, suspicion);
        }
        self.outbox.send();
        resolver::set_pending(self.pending());
        progress
    }

    /// Items that left the rings so far.
    pub(super) fn drained(&self) -> u64 {
        self.drained
    }

    pub(super) fn pending(&self) -> usize {
        self.lines.values().map(VecDeque::len).sum()
    }

    /// The number of the first item that is not read yet.
    pub(super) fn oldest_pending(&self) -> u64 {
        let fronts = self.lines.values().filter_map(VecDeque::front);
        fronts
            .map(|pending| pending.number)
            .min()
            .unwrap_or(u64::MAX)
    }

    /// Whether all that was read is on its way to the loggers.
    pub(super) fn is_delivered(&self) -> bool {
        self.outbox.is_empty()
    }

    fn take(&mut self) -> bool {
        ring::drain(&mut self.batch);
        if self.batch.is_empty() {
            return false;
        }
        // Each ring is in order already; among threads, the order of time comes next to that of the device.
        self.batch.sort_by_key(|item| item.span.end);
        let mut batch = std::mem::take(&mut self.batch);
        for item in batch.drain(..) {
            self.file(item);
        }
        self.batch = batch;
        true
    }

    fn file(&mut self, mut item: Item) {
        let number = self.drained;
        self.drained += 1;
        self.outbox.number(&mut item);
        match std::mem::replace(&mut item.outcome, Err(CudaLoss::Abandoned)) {
            Err(loss) => self.lose(item, loss),
            Ok(recorded) => {
                self.meet(recorded.context);
                if recorded.is_graph {
                    if let Some(item) = self.graphs.add(item, recorded) {
                        self.lose(item, CudaLoss::PoolEmpty);
                    }
                } else {
                    let line = self.lines.entry(item.link.line).or_default();
                    line.push_back(Pending {
                        item,
                        recorded,
                        number,
                    });
                }
            }
        }
    }

    fn lose(&mut self, item: Item, loss: CudaLoss) {
        self.children.take(item.link.key);
        totals::count_without(item.link.name, loss);
        self.outbox.without(item);
    }

    fn meet(&mut self, context: &'static Context) {
        let in_use = self.contexts.entry(context.index).or_insert(InUse {
            context,
            id: None,
            anchor: None,
            last_used: 0,
        });
        in_use.last_used = now();
    }

    /// Looks after one context; true where anything was read.
    fn visit(&mut self, index: u32, suspicion: bool) -> bool {
        let Some(in_use) = self.contexts.get_mut(&index) else {
            return false;
        };
        let context = in_use.context;
        let busy =
            self.lines.range(lines_of(index)).next().is_some() || self.graphs.are_in(context);
        let idle = clock().nanoseconds(now().saturating_sub(in_use.last_used) as f64) > IDLE_NS;
        if !busy && !suspicion && !idle && in_use.anchor.is_some() && !context.has_failed() {
            return false;
        }
        if in_use.is_gone(self.driver) {
            self.end_life(index);
            return false;
        }
        if context.has_failed() {
            self.lose_all(index, CudaLoss::ContextFailed);
            return false;
        }
        in_use.settle_in(self.driver, &mut self.graphs);
        let progress = self.read_context(index);
        self.poll_graphs(index);
        if idle {
            context.shrink_to(self.driver, KEPT_PAIRS);
        } else {
            context.grow_if_low(self.driver);
        }
        progress
    }

    fn read_context(&mut self, index: u32) -> bool {
        let lines: Vec<Line> = self
            .lines
            .range(lines_of(index))
            .map(|(line, _)| *line)
            .collect();
        let mut progress = false;
        for line in lines {
            let Some(mut queue) = self.lines.remove(&line) else {
                continue;
            };
            let result = self.read_line(&mut queue, &mut progress);
            if !queue.is_empty() {
                self.lines.insert(line, queue);
            }
            if let Err(fault) = result {
                self.draw_consequences(index, fault);
                break;
            }
        }
        progress
    }

    /// Reads what the device has passed of one line. The error is what is wrong with its context.
    fn read_line(
        &mut self,
        queue: &mut VecDeque<Pending>,
        progress: &mut bool,
    ) -> Result<(), Fault> {
        let mut passed = self.passed(queue)?;
        while passed > 0
            && let Some(pending) = queue.pop_front()
        {
            passed -= 1;
            let pair = &pending.recorded.pair;
            match self.driver.elapsed(pair.begin, pair.end) {
                Ok(ns) => {
                    *progress = true;
                    self.resolve(pending, ns);
                }
                // Threads that share a stream may record in another order than they end.
                Err(code) if code.fault() == Fault::NotReady => {
                    queue.push_front(pending);
                    break;
                }
                Err(code) => self.refused(pending, code, "cuEventElapsedTime")?,
            }
        }
        Ok(())
    }

    /// How many of the line's events the device has passed, by few questions: it passes them in order.
    fn passed(&mut self, queue: &mut VecDeque<Pending>) -> Result<usize, Fault> {
        loop {
            // Often all of them, or none; else it is found by halves.
            let all = queue.len();
            let (mut passed, mut not_passed) = (0, all + 1);
            let mut next = all;
            let mut removed = false;
            while passed + 1 < not_passed && !removed {
                match self.ask(queue, next)? {
                    Answer::Passed => passed = next,
                    Answer::NotYet => not_passed = next,
                    Answer::Removed => removed = true,
                }
                next = if passed == 0 && next == all {
                    1
                } else {
                    usize::midpoint(passed, not_passed)
                };
            }
            if !removed {
                return Ok(passed);
            }
        }
    }

    /// Whether the device has passed so many of a line's events.
    fn ask(&mut self, queue: &mut VecDeque<Pending>, place: usize) -> Result<Answer, Fault> {
        let Some(pending) = queue.get(place - 1) else {
            return Ok(Answer::NotYet);
        };
        let code = self.driver.query(pending.recorded.pair.end);
        if code.is_ok() {
            return Ok(Answer::Passed);
        }
        if matches!(code.fault(), Fault::NotReady | Fault::Capture) {
            return Ok(Answer::NotYet);
        }
        if let Some(pending) = queue.remove(place - 1) {
            self.refused(pending, code, "cuEventQuery")?;
        }
        Ok(Answer::Removed)
    }

    /// A call for this item was refused: its time is lost, and so may be its context.
    fn refused(&mut self, pending: Pending, code: Code, call: &str) -> Result<(), Fault> {
        let Pending { item, recorded, .. } = pending;
        let fault = recorded.context.learn(self.driver, code, call);
        let loss = match fault {
            Fault::Sticky => CudaLoss::ContextFailed,
            Fault::ContextGone | Fault::NoDriver => CudaLoss::ContextGone,
            Fault::NotReady | Fault::Capture | Fault::Refused => CudaLoss::DriverRefused,
        };
        recorded.context.put_back(recorded.pair);
        self.lose(item, loss);
        match fault {
            Fault::Refused | Fault::NotReady | Fault::Capture => Ok(()),
            _ => Err(fault),
        }
    }

    fn draw_consequences(&mut self, index: u32, fault: Fault) {
        match fault {
            Fault::Sticky => self.lose_all(index, CudaLoss::ContextFailed),
            Fault::ContextGone => self.end_life(index),
            // The process is ending: nothing in any context can be read any more.
            _ => self.lose_all(index, CudaLoss::ContextGone),
        }
    }

    fn end_life(&mut self, index: u32) {
        if let Some(gone) = self.contexts.remove(&index) {
            gone.context.end_life();
        }
        self.lose_all(index, CudaLoss::ContextGone);
        self.graphs.forget(index);
    }

    fn lose_all(&mut self, index: u32, loss: CudaLoss) {
        let lines: Vec<Line> = self
            .lines
            .range(lines_of(index))
            .map(|(line, _)| *line)
            .collect();
        for pending in lines
            .iter()
            .filter_map(|line| self.lines.remove(line))
            .flatten()
            .collect::<Vec<_>>()
        {
            pending.recorded.context.put_back(pending.recorded.pair);
            self.lose(pending.item, loss);
        }
    }

    fn resolve(&mut self, pending: Pending, ns: f64) {
        let Pending { item, recorded, .. } = pending;
        let ns = ns.max(0.0);
        let own = (ns - self.children.take(item.link.key)).max(0.0);
        self.tell_parents(&item, &recorded, ns);
        let place = item.log.as_ref().and_then(|_| self.place(&recorded));
        recorded.context.put_back(recorded.pair);
        self.outbox.timed(Timed {
            item,
            ns,
            own,
            is_implicit: recorded.is_implicit,
            place,
        });
    }

    fn tell_parents(&mut self, item: &Item, recorded: &Recorded, ns: f64) {
        if let Some(parent) = item.inside {
            let overlaps = parent.is_future || item.link.is_future;
            let begin = parent
                .begin
                .filter(|_| overlaps)
                .and_then(|begin| self.driver.elapsed(begin, recorded.pair.begin).ok());
            match begin {
                Some(begin) => self.children.add_piece(parent.key, begin, begin + ns),
                None => self.children.add(parent.key, ns),
            }
        }
        if let Some(parent) = item.apart {
            totals::count_elsewhere(parent, ns);
        }
    }

    fn place(&self, recorded: &Recorded) -> Option<Place> {
        let anchor = self
            .contexts
            .get(&recorded.context.index)?
            .anchor
            .as_ref()?;
        anchor.place(self.driver, recorded.pair.begin)
    }

    fn poll_graphs(&mut self, index: u32) {
        let anchor = self
            .contexts
            .get(&index)
            .and_then(|in_use| in_use.anchor.as_ref());
        let Some(anchor) = anchor else { return };
        for replay in self.graphs.poll(self.driver, index, anchor) {
            self.outbox.replayed(&replay);
        }
    }

    /// How well places are known, over all contexts.
    pub(super) fn uncertainty(&self) -> Option<f64> {
        let anchors = self
            .contexts
            .values()
            .filter_map(|in_use| in_use.anchor.as_ref());
        anchors.filter_map(Anchor::uncertainty).reduce(f64::max)
    }

    /// Gives back all that was made, at the end of the program.
    pub(super) fn close(&mut self) {
        for in_use in std::mem::take(&mut self.contexts).into_values() {
            let index = in_use.context.index;
            if self.lines.range(lines_of(index)).next().is_some() {
                self.contexts.insert(index, in_use);
            } else {
                in_use.close(self.driver);
            }
        }
    }
}

fn lines_of(context: u32) -> std::ops::Range<Line> {
    use super::driver::RawStream;

    let first = |context| Line {
        context,
        stream: RawStream::LEGACY,
        thread: 0,
    };
    first(context)..first(context + 1)
}

impl InUse {
    /// Whether the context has been destroyed since, or replaced.
    fn is_gone(&mut self, driver: &Driver) -> bool {
        let raw = self.context.raw;
        match (driver.context_id(raw), self.id) {
            (Some(Ok(id)), Some(known)) if id != known => return true,
            (Some(Err(code)), _) if code.fault() == Fault::ContextGone => return true,
            (Some(Ok(id)), _) => self.id = Some(id),
            _ => {}
        }
        driver.set_context(raw).fault() == Fault::ContextGone
    }

    /// Makes itself at home in a context that is current now.
    fn settle_in(&mut self, driver: &Driver, graphs: &mut Graphs) {
        self.context.retain_once(driver);
        if self.anchor.is_none() {
            match Anchor::new(driver) {
                Ok(anchor) => self.anchor = Some(anchor),
                Err(code) => _ = self.context.learn(driver, code, "cuStreamCreate"),
            }
        }
        let Some(anchor) = &mut self.anchor else {
            return;
        };
        match anchor.renew_if_old(driver) {
            Ok(Some(before)) => graphs.move_to(driver, self.context.index, before, anchor),
            Ok(None) => {}
            Err(code) => _ = self.context.learn(driver, code, "cuEventRecord"),
        }
    }

    fn close(mut self, driver: &Driver) {
        if self.context.has_failed()
            || self.is_gone(driver)
            || !driver.set_context(self.context.raw).is_ok()
        {
            return;
        }
        self.context.shrink_to(driver, 0);
        if let Some(anchor) = self.anchor.take() {
            anchor.destroy(driver);
        }
    }
}
