//! The work of a thread in a round: operations of random kinds.

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use cudarc::driver::CudaStream;
use profiler_runtime::{measure_execution_time, scope};

use crate::account::{Account, DYNAMIC_NAMES, Name};
use crate::gpu::Gpu;

/// The number of kinds of operations.
const KINDS: u64 = 9;

/// Selects if a round measures futures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Futures {
    Measured,
    LeftOut,
}

pub(crate) struct Worker<'a> {
    /// The state of a xorshift generator, which is never zero.
    random: Cell<u64>,
    gpu: &'a Gpu,
    stream: Arc<CudaStream>,
    account: &'a Account,
    futures: Futures,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        seed: u64,
        gpu: &'a Gpu,
        account: &'a Account,
        futures: Futures,
    ) -> Result<Self, String> {
        Ok(Self {
            random: Cell::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
            gpu,
            stream: gpu.stream()?,
            account,
            futures,
        })
    }

    /// Runs this many operations.
    pub(crate) fn run(&mut self, pieces: u64) -> Result<(), String> {
        for _ in 0..pieces {
            self.piece()?;
        }
        self.stream
            .synchronize()
            .map_err(|error| format!("a kernel failed: {error}"))
    }

    fn piece(&self) -> Result<(), String> {
        match self.random() % KINDS {
            0 => self.plain(),
            1 => self.recurse(),
            2 => self.panic(),
            3 => self.logged(),
            4 => self.on_the_device()?,
            5 if self.futures == Futures::Measured => self.future(),
            6 if self.futures == Futures::Measured => self.dropped(),
            7 => self.out_of_order(),
            _ => self.dynamic(),
        }
        Ok(())
    }

    fn random(&self) -> u64 {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        state
    }

    fn plain(&self) {
        let inner = self.random() % 4;
        plain(inner);
        self.account.add(Name::Plain, 1);
        self.account.add(Name::Inner, inner);
    }

    fn recurse(&self) {
        let depth = self.random() % 20;
        recursive(depth);
        self.account.add(Name::Recursive, depth + 1);
    }

    fn panic(&self) {
        // Without a message: the test only needs the unwinding through the scope.
        let panicked = catch_unwind(|| {
            let _scope = scope!("panics");
            resume_unwind(Box::new(()));
        });
        debug_assert!(panicked.is_err(), "it panics");
        self.account.add(Name::Panics, 1);
    }

    fn logged(&self) {
        logged(self.account);
        self.account.add(Name::Logged, 1);
    }

    fn on_the_device(&self) -> Result<(), String> {
        let _scope = scope!("on the device", stream = &self.stream);
        self.account.add(Name::OnTheDevice, 1);
        self.gpu.launch(&self.stream, 1_000)
    }

    fn future(&self) {
        let polls = self.random() % 5;
        let mut future = pin!(future(polls));
        let mut context = Context::from_waker(Waker::noop());
        while future.as_mut().poll(&mut context).is_pending() {}
        self.account.add(Name::Future, 1);
    }

    /// Drops a future before its end, on this thread or another one.
    fn dropped(&self) {
        let mut future = Box::pin(dropped());
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..=self.random() % 3 {
            let _ = future.as_mut().poll(&mut context);
        }
        if self.random().is_multiple_of(64) {
            let elsewhere = std::thread::spawn(move || drop(future));
            let ended = elsewhere.join();
            debug_assert!(ended.is_ok(), "dropping it does not panic");
        } else {
            drop(future);
        }
        self.account.add(Name::Dropped, 1);
    }

    fn out_of_order(&self) {
        let first = scope!("out of order");
        let second = scope!("out of order");
        let ended = catch_unwind(AssertUnwindSafe(|| drop(first)));
        debug_assert!(ended.is_ok(), "the end of a scope does not panic");
        drop(second);
        self.account.add(Name::OutOfOrder, 2);
    }

    fn dynamic(&self) {
        let number = self.random() % DYNAMIC_NAMES;
        drop(scope!(format!("dynamic {number}")));
        self.account.add_dynamic(1);
    }
}

#[measure_execution_time(name = "plain")]
fn plain(calls: u64) {
    for _ in 0..calls {
        inner();
    }
}

#[measure_execution_time(name = "inner")]
fn inner() {}

#[measure_execution_time(name = "recursive")]
fn recursive(depth: u64) {
    if depth > 0 {
        recursive(depth - 1);
    }
}

#[measure_execution_time(name = "logged", log = account.logger())]
fn logged(account: &Account) {
    let _ = account;
}

#[measure_execution_time(name = "future")]
async fn future(polls: u64) {
    for _ in 0..polls {
        pending_once().await;
    }
}

#[measure_execution_time(name = "dropped")]
async fn dropped() {
    loop {
        pending_once().await;
    }
}

async fn pending_once() {
    let mut polled = false;
    std::future::poll_fn(|_| {
        if std::mem::replace(&mut polled, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}
