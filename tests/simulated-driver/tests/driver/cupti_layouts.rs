//! The records have the layouts of NVIDIA's libraries, which walk the simulated buffers as this library does.

use std::ffi::{CStr, c_char};

use libloading::Library;

use crate::cupti_client::{
    Cupti, KERNEL, MEMCPY, MEMCPY2, MEMSET, NextRecord, OVERHEAD, Record, SYNCHRONIZATION, walk,
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
    let cupti = Cupti::<9>::new(&driver);
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    let (first, second) = (driver.primary(0), driver.primary(1));
    let memory: usize = made(|address| driver.cuMemAlloc_v2(address, 4_096));
    cupti.record(
        &[KERNEL, MEMCPY, MEMCPY2, MEMSET, SYNCHRONIZATION, OVERHEAD],
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

/// Kinds and bytes of records.
type After = &'static [(u32, usize)];

/// What a buffer has after a kernel: a kind and bytes of its record. Then the codes that end it, before and from CUDA 12.4 on,
/// and how many records are found.
const ENDS: [(After, [u32; 2], usize); 6] = [
    (&[], [12, 12], 1),
    // Another kernel, of which a part is there.
    (&[(KERNEL, 16)], [12, 12], 1),
    (&[(KERNEL, 1_000)], [12, 12], 2),
    (&[(0, 64), (KERNEL, 1_000)], [999, 21], 1),
    (&[(9_999, 64), (KERNEL, 1_000)], [999, 21], 1),
    (&[(0, 4)], [999, 21], 1),
];

/// Walks a buffer with a kernel and what follows it. Returns where the records begin, and the code at the end.
fn walked(next: NextRecord, release: &str, after: &[(u32, usize)]) -> (Vec<usize>, u32) {
    let kernel = match release {
        "11.8" => 200,
        "13.0" => 216,
        _ => 208,
    };
    let mut words: Vec<u32> = Vec::new();
    for (kind, bytes) in [(KERNEL, kernel)].iter().chain(after) {
        let bytes = if *bytes == 1_000 { kernel } else { *bytes };
        words.push(*kind);
        words.resize(words.len() + bytes / 4 - 1, 0);
    }
    let valid = 4 * words.len();
    // Nothing after the end is a record.
    words.resize(words.len() + 64, 0);
    let aligned: Vec<u64> = words
        .chunks_exact(2)
        .map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32)
        .collect();
    let (starts, code) = walk(next, aligned.as_ptr() as usize, valid);
    let place = |start: usize| start - aligned.as_ptr() as usize;
    (starts.into_iter().map(place).collect(), code)
}

/// Walks such a buffer with the simulated library.
fn simulated(release: &str, after: &[(u32, usize)]) -> (Vec<usize>, u32) {
    let driver = Driver::ready_after("clock virtual");
    driver
        .run(&format!("cupti release {release}"))
        .expect("a right script");
    let library = driver.simulator.library();
    // SAFETY: the function has this type.
    let next = *unsafe { library.get::<NextRecord>(b"cuptiActivityGetNextRecord") }
        .expect("the library has this function");
    walked(next, release, after)
}

#[test]
fn a_record_that_cannot_be_read_ends_a_buffer() {
    for (release, codes) in [
        ("11.8", 0),
        ("12.0", 0),
        ("12.4", 1),
        ("12.9", 1),
        ("13.0", 1),
    ] {
        for (after, ends, found) in ENDS {
            let (starts, code) = simulated(release, after);
            assert_eq!(
                (starts.len(), code),
                (found, ends[codes]),
                "{release}: {after:?}"
            );
        }
    }
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
        for kind in [KERNEL, MEMCPY, MEMCPY2, MEMSET, SYNCHRONIZATION, OVERHEAD] {
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
        let (starts, end) = walk(next, address, valid);
        // SAFETY: each record begins with its kind, and the buffer is never freed.
        let found: Vec<u32> = starts
            .iter()
            .map(|at| unsafe { (*at as *const u32).read() })
            .collect();
        assert_eq!((&found, end), (&kinds, 12), "{release}");
        for (ends, ..) in ENDS {
            assert_eq!(
                walked(next, release, ends),
                simulated(release, ends),
                "{release}: {ends:?}"
            );
        }
        println!("CUDA {release}: {} records, {valid} bytes", kinds.len());
    }
}

/// A function that tells the name of something by its number.
type Named<'l> = &'l dyn Fn(u32, *mut *const c_char) -> u32;

/// Returns the code of a function and the name that it tells.
fn named(function: Named, number: u32) -> (u32, Option<String>) {
    let mut name = std::ptr::null();
    let code = function(number, &raw mut name);
    // SAFETY: null, or a text in the library's constant data.
    let text = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) });
    (code, text.map(|text| text.to_string_lossy().into_owned()))
}

/// Calls `compare` with the functions that name results and callbacks of the driver.
fn with_names<R>(library: &Library, compare: impl FnOnce([Named; 2]) -> R) -> R {
    // SAFETY: the functions have these types in all releases.
    let (results, callbacks) = unsafe {
        (
            library.get::<extern "C" fn(u32, *mut *const c_char) -> u32>(b"cuptiGetResultString"),
            library
                .get::<extern "C" fn(u32, u32, *mut *const c_char) -> u32>(b"cuptiGetCallbackName"),
        )
    };
    let results = results.expect("all releases have it");
    let callbacks = callbacks.expect("all releases have it");
    compare([&|number, name| results(number, name), &|number, name| {
        callbacks(1, number, name)
    }])
}

#[test]
fn nvidias_library_names_results_and_callbacks_as_the_simulated_one() {
    let Ok(libraries) = std::env::var(LIBRARIES) else {
        eprintln!("skipped: {LIBRARIES} names no library");
        return;
    };
    let driver = Driver::ready_after("clock virtual");
    for named_library in libraries.split(':') {
        let (release, path) = named_library.split_once('=').expect("a release and a path");
        // SAFETY: as above.
        let library = Box::leak(Box::new(
            unsafe { Library::new(path) }.expect("the library loads"),
        ));
        let known = with_names(driver.simulator.library(), |simulated| {
            with_names(library, |theirs| {
                let numbers = (0..1_000).flat_map(|number| [(0, number), (1, number)]);
                let of_both = numbers.map(|(function, number)| {
                    let of = |library: &[Named; 2]| named(library[function], number);
                    (number, of(&simulated), of(&theirs))
                });
                of_both
                    // The simulated library knows fewer of them, and older releases lack a result.
                    .filter(|(_, simulated, theirs)| simulated.0 == 0 && theirs.0 == 0)
                    .map(|(number, simulated, theirs)| {
                        assert_eq!(simulated, theirs, "{release}: {number}");
                    })
                    .count()
            })
        });
        assert!(known >= 70, "{release}: {known}");
    }
}
