//! Programs that keep a device waiting, each in its own way: the explanation of a window names the function and the cause.

use std::io::{self, Read, Write};
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use profiler_runtime::{Profile, scope};
use profiler_tests::gpu::{driver, simulator, started};
use profiler_tests::stop;

const PAUSE: Duration = Duration::from_millis(20);
const STEPS: u32 = 12;
/// Far more windows than any machine needs.
const MOST_WINDOWS: usize = 100;

/// Records windows of some steps until what most of them say of their device has all of these texts. Other programs on the machine
/// may hold a thread up for any time, in any window.
#[track_caller]
fn explains(mut step: impl FnMut(u32), expected: &[&str], never: &[&str]) {
    let mut others = Vec::new();
    for window in 1..=MOST_WINDOWS {
        let profile = Profile::builder().kernels(true).start().expect("started");
        (0..STEPS).for_each(&mut step);
        stop(&profile);
        let trace = profile.trace().expect("a trace");
        assert!(trace.has_kernels(), "{:?}", trace.no_kernels_reason());
        let idle = trace.timeline().gpu_idle();
        let devices = idle.devices.iter().zip(0..);
        let verdicts =
            devices.map(|(device, place)| format!("GPU {place}: {}\n", device.verdict()));
        let verdict: String = verdicts.collect();
        for text in never {
            assert!(!verdict.contains(text), "{verdict}");
        }
        if !expected.iter().all(|text| verdict.contains(text)) {
            others.push(verdict);
        }
        if window > 1 && 2 * others.len() < window {
            return;
        }
    }
    panic!("most windows do not say {expected:?}: {others:?}");
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
fn a_loader_that_waits_for_bytes_is_off_the_processor() {
    let (_profiler, gpu, stream) = started();
    let (mut reader, mut writer) = io::pipe().expect("a pipe");
    let (asks, asked) = mpsc::channel::<()>();
    let disk = thread::spawn(move || {
        for () in asked {
            thread::sleep(PAUSE);
            writer.write_all(&[1]).expect("the other end is open");
        }
    });
    let step = |_| {
        {
            let _load = scope!("load_batch");
            asks.send(()).expect("it listens");
            reader.read_exact(&mut [0]).expect("it writes");
        }
        let _forward = scope!("forward");
        gpu.spin(&stream, 100_000);
        stream.synchronize().expect("nothing failed");
    };
    explains(
        step,
        &[
            "`load_batch` keeps the GPU waiting",
            "While the GPU waited for `load_batch`, the thread was off the processor for at least ",
        ],
        &["computed"],
    );
    drop(asks);
    disk.join().expect("it does not panic");
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

/// Launches a kernel that is shorter than the time between two launches.
const SHORT_NS: u64 = 1_000;

#[test(on = driver().kernels())]
fn a_checkpoint_every_few_steps_is_half_of_the_time_in_few_waits() {
    let (_profiler, gpu, stream) = started();
    let step = |number| {
        {
            let _forward = scope!("forward");
            gpu.spin(&stream, SHORT_NS);
        }
        stream.synchronize().expect("nothing failed");
        if number == STEPS / 2 {
            let _checkpoint = scope!("save_checkpoint");
            thread::sleep(5 * PAUSE);
        }
    };
    explains(
        step,
        &[
            "`save_checkpoint` keeps the GPU waiting",
            ", half of it in 1 of ",
        ],
        &[],
    );
}

#[test(on = driver().script("clock real").kernels())]
fn a_call_that_compiles_is_the_longest_of_the_calls_that_launch() {
    let (_profiler, gpu, stream) = started();
    let step = |number| {
        let _forward = scope!("forward");
        if number == STEPS / 2 {
            let compile = "clear-faults\nfault cuLaunchKernel nth 1 delay 100ms";
            simulator().run(compile).expect("a command");
        }
        gpu.spin(&stream, SHORT_NS);
        stream.synchronize().expect("nothing failed");
    };
    explains(
        step,
        &[
            "`forward` keeps the GPU waiting",
            "; most of it is in the calls that launch work, ",
            " the longest: such a call loads or compiles code, or waits for the device.",
        ],
        &[],
    );
}

#[test(on = driver().script("clock real\nfault cuLaunchKernel always delay 500us").kernels())]
fn tiny_launches_are_charged_to_the_calls_that_launch() {
    let (_profiler, gpu, stream) = started();
    let step = |_| {
        let _layer = scope!("layer");
        gpu.spin(&stream, SHORT_NS);
    };
    explains(
        step,
        &[
            "`layer` keeps the GPU waiting",
            "; most of it is in the calls that launch work",
        ],
        &[],
    );
}

#[test(on = driver().kernels())]
fn a_long_kernel_limits_the_program_however_slow_the_host_is() {
    let (_profiler, gpu, stream) = started();
    let step = |number| {
        {
            let _forward = scope!("forward");
            gpu.spin(&stream, 100_000_000);
        }
        if number + 1 == STEPS {
            stream.synchronize().expect("nothing failed");
        }
    };
    explains(
        step,
        &[
            "The GPU limits the program",
            "`spin_ns` in `forward` (",
            ") took 100 % of its busy time.",
        ],
        &["keeps the GPU waiting"],
    );
}

#[test(on = driver().script("clock real").kernels())]
fn a_wait_in_the_loop_and_a_copy_that_blocks_are_where_the_thread_waited_before() {
    let (_profiler, gpu, stream) = started();
    let memory = stream.alloc_zeros::<u8>(1 << 10).expect("memory");
    let mut host = vec![0_u8; 1 << 10];
    let mut is_copying = false;
    for (call, scope) in [
        ("cuStreamSynchronize", "log_loss"),
        ("cuMemcpyDtoHAsync", "download"),
    ] {
        let step = |_| {
            {
                let _update = scope!("update");
                thread::sleep(PAUSE);
                gpu.spin(&stream, 5_000_000);
            }
            if is_copying {
                let _download = scope!("download");
                stream
                    .memcpy_dtoh(&memory, &mut host)
                    .expect("nothing failed");
            } else {
                let _log = scope!("log_loss");
                stream.synchronize().expect("nothing failed");
            }
        };
        let waited = format!("the thread waited in `{call}` in `{scope}`");
        explains(step, &["`update` keeps the GPU waiting", &waited], &[]);
        is_copying = true;
    }
}
