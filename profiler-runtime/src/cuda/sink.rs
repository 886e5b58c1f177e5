//! Where items go that are done with: told to their parents, counted, logged.

use super::anchor::Anchor;
use super::children::Children;
use super::driver::Driver;
use super::item::{Item, Recorded};
use super::loss::CudaLoss;
use super::outcome::{Outbox, Timed};
use super::{report, totals};
use crate::session;

pub(super) struct Sink {
    pub(super) driver: &'static Driver,
    children: Children,
    pub(super) outbox: Outbox,
}

impl Sink {
    pub(super) fn new(driver: &'static Driver) -> Self {
        Self {
            driver,
            children: Children::default(),
            outbox: Outbox::default(),
        }
    }

    /// A scope without a GPU time.
    pub(super) fn lose(&mut self, item: Item, loss: CudaLoss) {
        // What ran inside of it ran inside of what is around it.
        if item.link.begin.is_some() {
            let around = item.inside.map(|parent| parent.key);
            self.children.pass_on(item.link.key, around);
        }
        totals::count_without(item.link.name, loss);
        if session::wants_gpu() {
            report::lost(&item, loss);
        }
        self.outbox.without(item);
    }

    /// A scope whose events have been read.
    pub(super) fn resolve(
        &mut self,
        item: Item,
        recorded: Recorded,
        ns: f64,
        anchor: Option<&Anchor>,
    ) {
        let ns = ns.max(0.0);
        let own = (ns - self.children.take(item.link.key)).max(0.0);
        self.tell_parents(&item, &recorded, ns);
        let is_recorded = session::wants_gpu();
        let wanted = anchor.filter(|_| item.log.is_some() || is_recorded);
        let place = wanted.and_then(|anchor| anchor.place(self.driver, recorded.pair.begin));
        if is_recorded {
            report::read(&item, recorded.context.device(), ns, own, place);
        }
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
                .and_then(|begin| begin.event(recorded.pair.life))
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
}
