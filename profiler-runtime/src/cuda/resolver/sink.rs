//! Where items go that are done with: told to their parents, counted, logged.

use std::num::NonZero;

use super::anchor::Anchor;
use super::children::Children;
use super::gpu_record;
use super::outcome::{Outbox, Timed};
use super::report;
use super::totals;
use crate::cuda::context::measurement::{GpuMeasurement, Pair};
use crate::cuda::ffi::EventApi;
use crate::cuda::ffi::driver::Driver;
use crate::cuda::loss::CudaLoss;

pub(crate) struct Sink {
    pub(crate) driver: &'static Driver,
    children: Children,
    pub(crate) outbox: Outbox,
    /// The name of the scope that is being dealt with, until it is counted: what is lost if the thread panics.
    pub(crate) at_hand: Option<u32>,
}

impl Sink {
    pub(crate) fn new(driver: &'static Driver) -> Self {
        Self {
            driver,
            children: Children::default(),
            outbox: Outbox::default(),
            at_hand: None,
        }
    }

    /// A scope without a GPU time.
    pub(crate) fn lose(&mut self, mut item: Box<GpuMeasurement>, loss: CudaLoss) {
        self.at_hand = Some(item.scope.name);
        // What ran inside of it ran inside of what is around it.
        if item.scope.has_begun {
            let around = item.parent.map(NonZero::get);
            self.children.pass_on(item.scope.key, around);
        }
        self.at_hand = None;
        totals::count_without(item.scope.name, loss);
        if gpu_record::are_wanted() {
            report::lost(&item, loss);
        }
        self.outbox.without(&mut item);
        item.give_back();
    }

    /// A scope whose events have been read.
    pub(crate) fn resolve(
        &mut self,
        mut item: Box<GpuMeasurement>,
        pair: Pair,
        ns: f64,
        anchor: Option<&Anchor>,
    ) {
        self.at_hand = Some(item.scope.name);
        let own = (ns - self.children.take(item.scope.key)).max(0.0);
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

    fn tell_parents(&mut self, item: &GpuMeasurement, pair: Pair, ns: f64) {
        if let Some(parent) = item.parent {
            let begin = item
                .parent_start
                .and_then(|begin| begin.event(pair.epoch))
                .and_then(|begin| self.driver.distance(begin, pair.begin));
            match begin {
                Some(begin) => self.children.add_piece(parent.get(), begin, begin + ns),
                None => self.children.add(parent.get(), ns),
            }
        }
        if let Some(parent) = item.parent_elsewhere {
            totals::count_elsewhere(parent, ns);
        }
    }
}
