use std::panic::{Location, panic_any};
use std::ptr::NonNull;

use super::*;
use crate::cuda::context::measurement::GpuMeasurement;
use crate::cuda::loss;
use crate::diagnostics::catch_own_panic;
use crate::name;

/// A driver of which nothing is called.
fn uncalled() -> &'static Driver {
    // SAFETY: the addresses lead nowhere, and no function of the table is called in these tests.
    let driver = unsafe { Driver::read(|_| Some(NonNull::dangling().as_ptr())) };
    Box::leak(Box::new(driver.expect("it has all symbols")))
}

fn item_of(name: u32) -> Box<GpuMeasurement> {
    let mut item = GpuMeasurement::without(CudaLoss::Captured);
    item.scope.name = name;
    item
}

#[test]
fn what_a_panic_takes_with_it_is_counted_for_its_names() {
    let name = name::declared("reading: panics", Location::caller());
    let counted = || {
        let counted = loss::counted();
        let of = |(reason, _): &&(CudaLoss, u64)| *reason == CudaLoss::ThreadPanicked;
        counted.iter().find(of).map_or(0, |(_, count)| *count)
    };
    let before = counted();
    let panicked = catch_own_panic("a test panicked", || {
        let mut reading = Reading::new(uncalled());
        reading.batch.push(item_of(name.id));
        reading.whole.extend([item_of(name.id), item_of(name.id)]);
        reading.sink.at_hand = Some(name.id);
        panic_any("a test panics");
    });
    assert!(panicked.is_none());
    assert_eq!(counted() - before, 4);
    let totals = name.cuda.read();
    assert_eq!(
        totals.map(|totals| (totals.calls, totals.without)),
        Some((0, 4))
    );
}

#[test]
fn what_is_left_at_the_end_is_no_panic() {
    let name = name::declared("reading: ends", Location::caller());
    let mut reading = Reading::new(uncalled());
    reading.batch.push(item_of(name.id));
    drop(reading);
    assert!(name.cuda.read().is_none());
}
