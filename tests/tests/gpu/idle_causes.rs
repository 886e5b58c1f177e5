//! Programs that keep a device waiting, each in its own way: the explanation of a window names the function and the cause.

use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use profiler_runtime::{Profile, scope};
use profiler_tests::gpu::{driver, started};
use profiler_tests::stop;

const PAUSE: Duration = Duration::from_millis(20);
const STEPS: u32 = 12;
/// Far more windows than any machine needs.
const MOST_WINDOWS: usize = 100;

/// Records windows of some steps until what the window says of its device has all of these texts. Other programs on the machine
/// may hold a thread up for any time, in any window.
#[track_caller]
fn explains(mut step: impl FnMut(u32), expected: &[&str], never: &[&str]) {
    let mut verdict = String::new();
    for _ in 0..MOST_WINDOWS {
        let profile = Profile::builder().kernels(true).start().expect("started");
        (0..STEPS).for_each(&mut step);
        stop(&profile);
        let trace = profile.trace().expect("a trace");
        assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
        let idle = trace.timeline().gpu_idle();
        let devices = idle.devices.iter().zip(0..);
        let verdicts =
            devices.map(|(device, place)| format!("GPU {place}: {}\n", device.verdict()));
        verdict = verdicts.collect();
        for text in never {
            assert!(!verdict.contains(text), "{verdict}");
        }
        if expected.iter().all(|text| verdict.contains(text)) {
            return;
        }
    }
    panic!("no window says {expected:?}: {verdict}");
}

#[test(on = driver().kernels())]
fn a_function_that_sleeps_is_off_the_processor() {
    let (_profiler, gpu, stream) = started();
    let step = |_| {
        {
            let _poll = scope!("poll_queue");
            thread::sleep(PAUSE);
        }
        let _forward = scope!("forward");
        gpu.spin(&stream, 100_000);
        stream.synchronize().expect("nothing failed");
    };
    explains(
        step,
        &[
            "`poll_queue` keeps the GPU waiting",
            "While the GPU waited for `poll_queue`, the thread was off the processor for at least ",
        ],
        &["computed"],
    );
}

#[test(on = driver().kernels())]
fn a_function_that_waits_for_a_lock_is_off_the_processor_while_another_thread_has_it() {
    static ENDS: AtomicBool = AtomicBool::new(false);

    let (_profiler, gpu, stream) = started();
    let cache = Arc::new(Mutex::new(()));
    let both = Arc::new(Barrier::new(2));
    let evicting = {
        let (cache, both) = (Arc::clone(&cache), Arc::clone(&both));
        thread::spawn(move || {
            loop {
                let evict = scope!("evict");
                let guard = cache.lock().expect("no panic");
                both.wait();
                if ENDS.load(Acquire) {
                    break;
                }
                thread::sleep(PAUSE);
                drop(guard);
                drop(evict);
                both.wait();
            }
        })
    };
    let step = |_| {
        both.wait();
        {
            let _cached = scope!("cached");
            drop(cache.lock().expect("no panic"));
        }
        // Otherwise the other thread would have the lock again before this one wakes up.
        both.wait();
        let _forward = scope!("forward");
        gpu.spin(&stream, 100_000);
        stream.synchronize().expect("nothing failed");
    };
    explains(
        step,
        &[
            "`cached` keeps the GPU waiting",
            "While the GPU waited for `cached`, the thread was off the processor for at least ",
            "Meanwhile, another thread was in `evict` (",
        ],
        &["computed"],
    );
    ENDS.store(true, Release);
    both.wait();
    evicting.join().expect("it does not panic");
}

#[test(on = driver().kernels())]
fn a_function_that_computes_is_on_the_processor_or_waits_for_one() {
    let (_profiler, gpu, stream) = started();
    let step = |_| {
        {
            let _tokenize = scope!("tokenize");
            let begin = Instant::now();
            while begin.elapsed() < PAUSE {
                std::hint::spin_loop();
            }
        }
        let _forward = scope!("forward");
        gpu.spin(&stream, 100_000);
        stream.synchronize().expect("nothing failed");
    };
    explains(
        step,
        &[
            "`tokenize` keeps the GPU waiting",
            "While the GPU waited for `tokenize`, the thread ",
        ],
        &["off the processor"],
    );
}
