//! Where items go that are done with: told to their parents, counted, logged.

use std::num::NonZero;

use super::anchor::Anchor;
use super::children::Children;
use super::driver::Driver;
use super::gpu_record;
use super::item::{Item, Pair, Parcel};
use super::loss::CudaLoss;
use super::outcome::{Outbox, Timed};
use super::{report, totals};

pub(super) struct Sink {
    pub(super) driver: &'static Driver,
    children: Children,
    pub(super) outbox: Outbox,
    /// The name of the scope that is being dealt with, until it is counted: what is lost if the thread panics.
    pub(super) at_hand: Option<u32>,
}

impl Sink {
    pub(super) fn new(driver: &'static Driver) -> Self {
        Self {
            driver,
            children: Children::default(),
            outbox: Outbox::default(),
            at_hand: None,
        }
    }

    /// A scope without a GPU time.
    pub(super) fn lose(&mut self, mut item: Parcel, loss: CudaLoss) {
        self.at_hand = Some(item.link.name);
        // What ran inside of it ran inside of what is around it.
        if item.link.has_begun {
            let around = item.inside.map(NonZero::get);
            self.children.pass_on(item.link.key, around);
        }
        self.at_hand = None;
        totals::count_without(item.link.name, loss);
        if gpu_record::are_wanted() {
            report::lost(&item, loss);
        }
        self.outbox.without(&mut item);
        item.give_back();
    }

    /// A scope whose events have been read.
    pub(super) fn resolve(
        &mut self,
        mut item: Parcel,
        pair: Pair,
        ns: f64,
        anchor: Option<&Anchor>,
    ) {
        self.at_hand = Some(item.link.name);
        let own = (ns - self.children.take(item.link.key)).max(0.0);
        self.tell_parents(&item, pair, ns);
        let is_recorded = gpu_record::are_wanted();
        let wanted = anchor.filter(|_| item.log.is_some() || is_recorded);
        let place = wanted.and_then(|anchor| anchor.place(self.driver, pair.begin));
        if is_recorded {
            report::read(&item, pair.context.device(), ns, own, place);
        }
        // Counted first of all in there.
        self.at_hand = None;
        self.outbox.timed(Timed {
            item: &mut item,
            ns,
            own,
            place,
        });
        item.give_back();
    }

    fn tell_parents(&mut self, item: &Item, pair: Pair, ns: f64) {
        if let Some(parent) = item.inside {
            let begin = item
                .from
                .and_then(|begin| begin.event(pair.life))
                .and_then(|begin| self.driver.distance(begin, pair.begin));
            match begin {
                Some(begin) => self.children.add_piece(parent.get(), begin, begin + ns),
                None => self.children.add(parent.get(), ns),
            }
        }
        if let Some(parent) = item.apart {
            totals::count_elsewhere(parent, ns);
        }
    }
}
