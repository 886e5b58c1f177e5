//! Measures the queue that all launching threads share while kernels are recorded, by itself: one thread, and two at once.
//!
//! It needs neither a driver nor a device. The callback of a launch makes one push; the simulated CUPTI takes locks around
//! it, which would hide what two threads cost each other there.

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use bench_harness::{Table, median, row};

use crate::sync::queue::Queue;

/// As large as a launch.
type Item = [u64; 12];

/// As many as the profiler's queue holds.
const CAPACITY: usize = 1 << 15;
const PUSHES: u32 = 2_000;
const BATCHES: usize = 400;

/// Measures the nanoseconds of a push.
pub(crate) fn measure() -> Table {
    let mut table = Table::new(
        format!("ns of a push to the shared queue, median of {BATCHES} batches on each thread"),
        "between two pushes | one thread .1 | two threads at once .1 | ratio .2",
    );
    for (name, pause) in [("nothing", 0), ("2 µs", 2_000)] {
        let pause = Duration::from_nanos(pause);
        let [one, two] = [1, 2].map(|threads| push(threads, pause));
        row!(table, name, one, two, two / one);
    }
    table
}

/// Returns the median over all batches of all threads, which begin each batch together.
fn push(threads: usize, pause: Duration) -> f64 {
    let queue: Queue<Item> = Queue::new(CAPACITY);
    let together = Barrier::new(threads);
    let batch = |is_first: bool| {
        together.wait();
        let mut pushing = Duration::ZERO;
        let begin = Instant::now();
        for number in 0..PUSHES {
            let start = (!pause.is_zero()).then(Instant::now);
            let _ = queue.push(black_box([u64::from(number); 12]));
            if let Some(start) = start {
                let after = Instant::now();
                pushing += after - start;
                while after.elapsed() < pause {
                    spin_loop();
                }
            }
        }
        let pushing = if pause.is_zero() {
            begin.elapsed()
        } else {
            pushing
        };
        together.wait();
        if is_first {
            // The profiler's thread takes what the batch has left.
            while queue.pop().is_some() {}
        }
        pushing.as_nanos() as f64 / f64::from(PUSHES)
    };
    let of_all: Vec<f64> = thread::scope(|scope| {
        let batches = |is_first| move || (0..BATCHES).map(|_| batch(is_first)).collect();
        let threads: Vec<_> = (0..threads)
            .map(|number| scope.spawn(batches(number == 0)))
            .collect();
        let results = threads.into_iter().map(thread::ScopedJoinHandle::join);
        results
            .flat_map(|batches: thread::Result<Vec<f64>>| batches.expect("no panic"))
            .collect()
    });
    median(&of_all)
}
