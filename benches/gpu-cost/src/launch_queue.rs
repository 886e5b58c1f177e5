//! Measures the queue that all launching threads share while kernels are recorded, by itself: one thread, and two at once.
//!
//! It needs neither a driver nor a device. The callback of a launch makes one push; the simulated CUPTI takes locks around
//! it, which would hide what two threads cost each other there.

use std::hint::{black_box, spin_loop};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::sync::queue::Queue;

/// As large as a launch.
type Item = [u64; 12];

/// As many as the profiler's queue holds.
const CAPACITY: usize = 1 << 15;
const PUSHES: u32 = 2_000;
const BATCHES: usize = 400;

/// Prints the median nanoseconds of a push.
pub(crate) fn measure() {
    println!(
        "Median nanoseconds of a push to the shared queue, of {BATCHES} batches on each thread.\n"
    );
    println!("| between two pushes | one thread | two threads at once | ratio |");
    println!("|--------------------|------------|---------------------|-------|");
    for (name, pause) in [("nothing", 0), ("2 µs", 2_000)] {
        let pause = Duration::from_nanos(pause);
        let [one, two] = [1, 2].map(|threads| push(threads, pause));
        println!(
            "| {name:<18} | {one:>10.1} | {two:>19.1} | {:>5.2} |",
            two / one
        );
    }
}

/// Returns the median over all batches of all threads, which begin each batch together.
fn push(threads: usize, pause: Duration) -> f64 {
    let queue: Queue<Item> = Queue::new(CAPACITY);
    let together = Barrier::new(threads);
    let batches = |is_first: bool| {
        let batch = |_| {
            together.wait();
            let mut pushing = Duration::ZERO;
            let begin = Instant::now();
            for number in 0..PUSHES {
                if pause.is_zero() {
                    let _ = queue.push(black_box([u64::from(number); 12]));
                    continue;
                }
                let pushed = Instant::now();
                let _ = queue.push(black_box([u64::from(number); 12]));
                let after = Instant::now();
                pushing += after - pushed;
                while after.elapsed() < pause {
                    spin_loop();
                }
            }
            let elapsed = if pause.is_zero() {
                begin.elapsed()
            } else {
                pushing
            };
            together.wait();
            if is_first {
                // The profiler's thread takes what the batch has left.
                while queue.pop().is_some() {}
            }
            elapsed.as_nanos() as f64 / f64::from(PUSHES)
        };
        (0..BATCHES).map(batch).collect::<Vec<f64>>()
    };
    let mut all: Vec<f64> = thread::scope(|scope| {
        let batches = &batches;
        let threads: Vec<_> = (0..threads)
            .map(|number| scope.spawn(move || batches(number == 0)))
            .collect();
        let results = threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"));
        results.flatten().collect()
    });
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
