//! Prints the time that a call of the simulated driver takes on the real clock, in nanoseconds.
//!
//! `cargo run --release -p simulated-driver --example cost_per_call`

use std::hint::black_box;
use std::time::Instant;

use profiler_simulated_driver::{Installation, Simulator};

const CALLS: u32 = 200_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("simulated-driver-{}", std::process::id()));
    let driver = Simulator::open(&Installation::new(&folder).create()?.library())?;
    std::fs::remove_dir_all(&folder)?;
    for log in ["on", "off"] {
        driver.run(&format!("reset; log {log}"))?;
        println!("log {log}");
        measure(driver.library())?;
    }
    Ok(())
}

fn measure(library: &'static libloading::Library) -> Result<(), libloading::Error> {
    macro_rules! function {
        ($name:literal, $($argument:ty),*) => {
            // SAFETY: the driver exports the function with this type.
            *unsafe { library.get::<extern "C" fn($($argument),*) -> u32>($name) }?
        };
    }
    let (mut context, mut events) = (0_usize, [0_usize; 2]);
    function!(b"cuInit", u32)(0);
    function!(b"cuDevicePrimaryCtxRetain", *mut usize, i32)(&raw mut context, 0);
    function!(b"cuCtxSetCurrent", usize)(context);
    for event in &mut events {
        function!(b"cuEventCreate", *mut usize, u32)(event, 0);
    }
    let record = function!(b"cuEventRecord", usize, usize);
    let query = function!(b"cuEventQuery", usize);
    let elapsed = function!(b"cuEventElapsedTime", *mut f32, usize, usize);
    let capturing = function!(b"cuStreamIsCapturing", usize, *mut u32);
    let current = function!(b"cuCtxGetCurrent", *mut usize);
    for event in events {
        record(event, 0);
    }
    time("cuEventRecord", || record(events[0], 0));
    time("cuEventQuery", || query(events[0]));
    time("cuEventElapsedTime", || {
        elapsed(&mut 0.0, events[0], events[1])
    });
    time("cuStreamIsCapturing", || capturing(0, &mut 0));
    time("cuCtxGetCurrent", || current(&mut 0));
    Ok(())
}

fn time(name: &str, call: impl Fn() -> u32) {
    let best = (0..5).map(|_| {
        let start = Instant::now();
        (0..CALLS).for_each(|_| assert_eq!(black_box(call()), 0));
        start.elapsed().as_nanos() as f64 / f64::from(CALLS)
    });
    println!("  {name:<22}{:>6.0} ns", best.fold(f64::INFINITY, f64::min));
}
