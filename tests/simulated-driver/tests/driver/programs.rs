//! What programs need that no test of the profiler asks for: frameworks link PTX and change what they have copied.

use std::ffi::CStr;
use std::ptr::{null, null_mut};
use std::thread;

use crate::support::{Driver, NON_BLOCKING, made};

const FIRST: &CStr = c".version 7.0\n.target sm_75\n.entry work_10us() { ret; }";
const SECOND: &CStr =
    c".version 7.0\n.target sm_75\n// simulated: other = 3us\n.entry other() { ret; }";

#[test]
fn linked_texts_of_ptx_are_an_image_until_the_linker_is_destroyed() {
    let driver = Driver::ready();
    let link: usize = made(|link| driver.cuLinkCreate_v2(0, null_mut(), null_mut(), link));
    let add = |kind: u32, text: &CStr| {
        let (bytes, name, none) = (text.count_bytes() + 1, c"kernel".as_ptr(), null_mut());
        driver.cuLinkAddData_v2(link, kind, text.as_ptr(), bytes, name, 0, none, null_mut())
    };
    let (mut image, mut bytes) = (null(), 0);
    let mut complete = || driver.cuLinkComplete(link, &raw mut image, &raw mut bytes);
    assert_eq!(complete(), 1, "nothing to link");
    let codes = [(1, c"no PTX"), (0, FIRST), (1, FIRST), (1, SECOND)];
    assert_eq!(codes.map(|(kind, text)| add(kind, text)), [218, 801, 0, 0]);
    assert_eq!((complete(), add(1, FIRST)), (0, 1));
    // SAFETY: the image lives until the linker is destroyed, and has this length.
    let kept = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), bytes) }.to_vec();
    let destroyed = [(); 2].map(|()| driver.cuLinkDestroy(link));
    assert_eq!(destroyed, [0, 400]);
    let module: usize = made(|module| driver.cuModuleLoadData(module, kept.as_ptr().cast()));
    for name in [c"work_10us", c"other"] {
        let kernel = made(|kernel| driver.cuModuleGetFunction(kernel, module, name.as_ptr()));
        assert_eq!(driver.launch(kernel, 0), 0);
    }
    assert_eq!(driver.cuCtxSynchronize(), 0);
    let report = driver.report();
    let lengths: Vec<u64> = report.kernels().map(|ran| ran.end - ran.start).collect();
    assert_eq!(lengths, [10_000, 3_000]);
}

#[test]
fn a_copy_has_the_bytes_that_it_was_given_in_the_order_of_its_stream() {
    let driver = Driver::ready();
    let (stream, kernel) = (driver.stream(NON_BLOCKING), driver.kernel("work_10us"));
    let memory: usize = made(|address| driver.cuMemAllocAsync(address, 8, stream));
    assert_eq!(driver.cuStreamSynchronize(stream), 0);
    driver
        .run("fault cuLaunchKernel nth 1 stall")
        .expect("a right script");
    assert_eq!(driver.launch(kernel, stream), 0);
    let mut bytes = [7_u8; 8];
    let copied = driver.cuMemcpyHtoDAsync_v2(memory, bytes.as_ptr(), 8, stream);
    assert_eq!(copied, 0);
    bytes.fill(0);
    driver.run("release").expect("a right script");
    assert_eq!(driver.cuStreamSynchronize(stream), 0);
    assert_eq!(driver.cuMemsetD32_v2(memory, 0x0909_0909, 1), 0);
    let copied = driver.cuMemcpyDtoHAsync_v2(bytes.as_mut_ptr(), memory, 8, stream);
    assert_eq!((copied, bytes), (0, [9, 9, 9, 9, 7, 7, 7, 7]));
}

#[test]
fn a_context_can_be_current_everywhere() {
    let driver = Driver::untouched("current-context everywhere");
    let ask = move || made::<usize>(|context| driver.cuCtxGetCurrent(context));
    let there = thread::spawn(ask).join().expect("no panic");
    assert_ne!(there, 0, "without cuInit");
    assert_eq!(ask(), there);
}
