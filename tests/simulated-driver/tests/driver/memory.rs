//! Copies transfer bytes and host functions run, both in stream order.

use std::ffi::CStr;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use crate::support::{Driver, NON_BLOCKING, made};

#[test]
fn copies_and_fills_move_bytes() {
    let driver = Driver::ready();
    let device: usize = made(|address| driver.cuMemAlloc_v2(address, 8));
    let (from, mut to) = ([1_u8, 2, 3, 4, 5, 6, 7, 8], [0_u8; 8]);
    assert_eq!(driver.cuMemcpyHtoD_v2(device, from.as_ptr(), 8), 0);
    assert_eq!(driver.cuMemsetD32_v2(device, 0x0909_0909, 1), 0);
    assert_eq!(driver.cuMemcpyDtoH_v2(to.as_mut_ptr(), device, 8), 0);
    assert_eq!(to, [9, 9, 9, 9, 5, 6, 7, 8]);
    assert_eq!(driver.report().bytes, 8);
    assert_eq!(driver.cuMemFree_v2(device), 0);
    assert_eq!(driver.report().alive.allocations, 0);
}

#[test]
fn memory_is_bounded_and_checked() {
    let driver = Driver::ready_after("clock virtual; device 0 memory 1000");
    let device: usize = made(|address| driver.cuMemAlloc_v2(address, 600));
    assert_eq!(driver.cuMemAlloc_v2(&mut 0, 600), 2);
    let (mut free, mut total) = (0, 0);
    assert_eq!(driver.cuMemGetInfo_v2(&raw mut free, &raw mut total), 0);
    assert_eq!((free, total), (400, 1_000));
    assert_eq!(driver.cuMemcpyHtoD_v2(device + 599, [0; 2].as_ptr(), 2), 1);
    assert_eq!(driver.cuMemFree_v2(device + 4), 1);
    assert_eq!(
        (driver.cuMemFree_v2(device), driver.cuMemFree_v2(device)),
        (0, 1)
    );
    let misuses = driver.report().misuses;
    assert_eq!(misuses.len(), 3);
    assert_eq!(misuses[0].call, "cuMemcpyHtoD_v2");
}

#[test]
fn a_kernel_writes_its_stamps() {
    const PTX: &CStr = c".version 6.3\n.target sm_75\n// simulated stamps: spin_ns = parameter 1\n\
        .entry spin_ns(.param .u64 length, .param .u64 stamps) { ret; }";
    let driver = Driver::ready();
    let stream = driver.stream(NON_BLOCKING);
    let device: usize = made(|address| driver.cuMemAlloc_v2(address, 16));
    let module: usize = made(|module| driver.cuModuleLoadData(module, PTX.as_ptr().cast()));
    let kernel: usize =
        made(|kernel| driver.cuModuleGetFunction(kernel, module, c"spin_ns".as_ptr()));
    for address in [device, 0] {
        let (mut length, mut stamps) = (7_000_u64, address as u64);
        let mut parameters = [(&raw mut length).cast(), (&raw mut stamps).cast()];
        let parameters = parameters.as_mut_ptr();
        let launched =
            driver.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, null_mut());
        assert_eq!(launched, 0);
    }
    assert_eq!(driver.cuStreamSynchronize(stream), 0);
    let mut written = [0_u64; 2];
    assert_eq!(
        driver.cuMemcpyDtoH_v2(written.as_mut_ptr().cast(), device, 16),
        0
    );
    let report = driver.report();
    let first = report.kernels().next().expect("two kernels ran");
    assert_eq!(written, [first.start, first.end]);
    assert_eq!(written[1] - written[0], 7_000);
}

#[test]
fn a_copy_takes_its_time() {
    let driver = Driver::ready_after("clock virtual; copy 2us; copy-bytes-per-us 1000");
    let device: usize = made(|address| driver.cuMemAllocAsync(address, 5_000, 0));
    let before = driver.now();
    assert_eq!(
        driver.cuMemcpyHtoD_v2(device, vec![0; 5_000].as_ptr(), 5_000),
        0
    );
    assert_eq!(driver.now() - before, 7_000);
    assert_eq!(driver.cuMemFreeAsync(device, 0), 0);
    assert_eq!(driver.report().bytes, 0);
}

/// A host function that waits for a message of the test, and a log of the order in which host
/// functions ran.
extern "C" fn wait_for_word(word: usize) {
    let word = word as *const Mutex<Receiver<()>>;
    // SAFETY: the test passes a receiver that lives until the stream has finished.
    let word = unsafe { &*word }.lock().expect("no panic");
    word.recv().expect("the test speaks");
}

extern "C" fn advance_nothing(_: usize) {}

#[test]
fn a_host_function_delays_its_stream_while_it_runs() {
    let driver = Driver::ready_after("clock real");
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    let device: usize = made(|address| driver.cuMemAllocAsync(address, 4, stream));
    let (speak, word) = channel();
    let word = Mutex::new(word);
    let start = driver.recorded(stream);
    assert_eq!(driver.launch(kernel, stream), 0);
    assert_eq!(
        driver.cuLaunchHostFunc(stream, wait_for_word, &raw const word as usize),
        0
    );
    let mut bytes = vec![7_u8; 4];
    assert_eq!(
        driver.cuMemcpyHtoDAsync_v2(device, bytes.as_ptr(), 4, stream),
        0
    );
    bytes.fill(0);
    let end = driver.recorded(stream);
    while driver.cuEventQuery(start) != 0 {
        thread::yield_now();
    }
    assert_eq!(driver.cuEventQuery(end), 600);
    assert!(driver.report().unfinished >= 3);
    speak.send(()).expect("the function waits");
    assert_eq!(driver.cuStreamSynchronize(stream), 0);
    assert!(driver.ns(start, end) >= 10_000.0);
    assert_eq!(
        driver.cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr(), device, 4, stream),
        0
    );
    assert_eq!(bytes, [7; 4], "the copy kept what it was given");
}

/// The result of a driver call in a host function.
static ANSWERS: Mutex<Vec<u32>> = Mutex::new(Vec::new());

extern "C" fn call_the_driver(driver: usize) {
    let driver = driver as *const Driver;
    // SAFETY: the test waits for its stream before the driver is dropped.
    let driver = unsafe { &*driver };
    let answers = [
        driver.cuCtxGetCurrent(&mut 0),
        driver.cuStreamIsCapturing(0, &mut 0),
        driver.cuDriverGetVersion(&mut 0),
    ];
    ANSWERS.lock().expect("no panic").extend(answers);
}

#[test]
fn a_host_function_must_not_call_the_driver() {
    let driver = Driver::ready();
    let stream = driver.stream(NON_BLOCKING);
    let call = || {
        let data = &raw const driver as usize;
        assert_eq!(driver.cuLaunchHostFunc(stream, call_the_driver, data), 0);
        assert_eq!(driver.cuStreamSynchronize(stream), 0);
        std::mem::take(&mut *ANSWERS.lock().expect("no panic"))
    };
    assert_eq!(call(), [800, 800, 0]);
    assert_eq!(driver.report().host_function_calls, 2);
    driver
        .run("host-function-calls allow")
        .expect("it is right");
    // No context is current on the thread that runs host functions.
    assert_eq!(call(), [0, 201, 0]);
    assert_eq!(driver.report().host_function_calls, 2);
}

#[test]
fn host_functions_run_when_a_virtual_clock_passes_them() {
    let driver = Driver::ready();
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    assert_eq!(driver.launch(kernel, stream), 0);
    assert_eq!(driver.cuLaunchHostFunc(stream, advance_nothing, 0), 0);
    assert_eq!(driver.launch(kernel, stream), 0);
    let (begin, end) = (driver.now(), driver.recorded(stream));
    driver.advance(9_999).expect("the clock is virtual");
    assert_eq!(driver.report().unfinished, 3);
    driver.advance(1).expect("the clock is virtual");
    assert_eq!(
        (driver.report().unfinished, driver.cuEventQuery(end)),
        (0, 600)
    );
    assert_eq!(driver.cuEventSynchronize(end), 0);
    assert_eq!(driver.now() - begin, 20_000);
}
