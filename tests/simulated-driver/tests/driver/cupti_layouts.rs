//! The records have the layouts of NVIDIA's libraries, which walk the simulated buffers as this library does.

use libloading::Library;

use crate::cupti_client::{
    Cupti, DRIVER, KERNEL, MEMCPY, MEMCPY2, MEMSET, NextRecord, OVERHEAD, Record, SYNCHRONIZATION,
    starts_of_records,
};
use crate::support::{Driver, NON_BLOCKING, made};

/// The variable that names NVIDIA's libraries: releases and paths, as in `12.8=/path/libcupti.so.12:13.0=…`.
const LIBRARIES: &str = "NVIDIA_CUPTI_LIBRARIES";

/// Returns the address and the used bytes of a buffer that has records of all kinds, in the layout of `release`, and
/// the kinds of those records.
fn buffer_of(release: &str) -> (usize, usize, Vec<u32>) {
    let driver = Driver::ready_after("clock virtual; devices 2");
    driver
        .run(&format!("cupti release {release}"))
        .expect("a right script");
    let cupti = Cupti::<23>::new(&driver);
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    let (first, second) = (driver.primary(0), driver.primary(1));
    let memory: usize = made(|address| driver.cuMemAlloc_v2(address, 4_096));
    cupti.record(
        &[
            KERNEL,
            MEMCPY,
            MEMCPY2,
            MEMSET,
            SYNCHRONIZATION,
            DRIVER,
            OVERHEAD,
        ],
        &[1 << 16],
    );
    for _ in 0..2 {
        assert_eq!(driver.launch(kernel, stream), 0);
        assert_eq!(driver.cuMemcpyHtoD_v2(memory, [7; 64].as_ptr(), 64), 0);
        let copied = driver.cuMemcpyPeerAsync(memory, second, memory + 64, first, 64, stream);
        assert_eq!(copied, 0);
        assert_eq!(driver.cuMemsetD32_v2(memory, 1, 4), 0);
        assert_eq!(driver.cuStreamSynchronize(stream), 0);
    }
    let records = cupti.flushed(0);
    let buffers = std::mem::take(&mut *cupti.shared.buffers.lock().expect("no panic"));
    let [(address, valid)] = buffers[..] else {
        panic!("all records are in one buffer: {buffers:?}");
    };
    let kinds = records.iter().map(Record::kind).collect();
    (address, valid, kinds)
}

#[test]
fn nvidias_library_finds_the_same_records_in_a_simulated_buffer() {
    let Ok(libraries) = std::env::var(LIBRARIES) else {
        eprintln!("skipped: {LIBRARIES} names no library");
        return;
    };
    for named in libraries.split(':') {
        let (release, path) = named.split_once('=').expect("a release and a path");
        let (address, valid, kinds) = buffer_of(release);
        for kind in [
            KERNEL,
            MEMCPY,
            MEMCPY2,
            MEMSET,
            SYNCHRONIZATION,
            DRIVER,
            OVERHEAD,
        ] {
            assert!(
                kinds.contains(&kind),
                "{release}: no record of kind {kind} in {kinds:?}"
            );
        }
        // SAFETY: NVIDIA's library needs no driver to be loaded. It is never unloaded.
        let library = Box::leak(Box::new(
            unsafe { Library::new(path) }.expect("the library loads"),
        ));
        // SAFETY: the function has this type in all releases.
        let next = *unsafe { library.get::<NextRecord>(b"cuptiActivityGetNextRecord") }
            .expect("all releases have this function");
        let starts = starts_of_records(next, address, valid);
        // SAFETY: each record begins with its kind, and the buffer is never freed.
        let found: Vec<u32> = starts
            .iter()
            .map(|at| unsafe { (*at as *const u32).read() })
            .collect();
        assert_eq!(found, kinds, "{release}");
        println!("CUDA {release}: {} records, {valid} bytes", kinds.len());
    }
}
