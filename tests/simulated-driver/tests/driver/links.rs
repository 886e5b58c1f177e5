//! The linker joins PTX to an image that can be loaded.

use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};

use crate::support::{Driver, made};

const PTX_INPUT: u32 = 1;
const CUBIN_INPUT: u32 = 0;

const FIRST: &CStr =
    c".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry work_10us() { ret; }";
const SECOND: &CStr =
    c".version 7.0\n.target sm_75\n// simulated: other = 3us\n.entry other() { ret; }";

fn created(driver: &Driver) -> usize {
    made(|link| driver.cuLinkCreate_v2(0, null_mut(), null_mut(), link))
}

fn add(driver: &Driver, link: usize, kind: u32, text: &CStr) -> u32 {
    let bytes = text.count_bytes() + 1;
    let (name, none) = (c"kernel".as_ptr(), null_mut());
    driver.cuLinkAddData_v2(link, kind, text.as_ptr(), bytes, name, 0, none, null_mut())
}

fn complete(driver: &Driver, link: usize) -> Result<(*const c_char, usize), u32> {
    let (mut image, mut bytes) = (null(), 0);
    match driver.cuLinkComplete(link, &raw mut image, &raw mut bytes) {
        0 => Ok((image, bytes)),
        code => Err(code),
    }
}

#[test]
fn kernels_of_all_inputs_are_in_the_image() {
    let driver = Driver::ready();
    let link = created(&driver);
    assert_eq!(add(&driver, link, PTX_INPUT, FIRST), 0);
    assert_eq!(add(&driver, link, PTX_INPUT, SECOND), 0);
    let (image, bytes) = complete(&driver, link).expect("an image");
    // SAFETY: the image lives until the linker is destroyed, and has this length.
    let kept = unsafe { std::slice::from_raw_parts(image.cast::<u8>(), bytes) }.to_vec();
    assert_eq!(driver.cuLinkDestroy(link), 0);
    let module: usize = made(|module| driver.cuModuleLoadData(module, kept.as_ptr().cast()));
    for name in [c"work_10us", c"other"] {
        let kernel = made(|kernel| driver.cuModuleGetFunction(kernel, module, name.as_ptr()));
        assert_eq!(driver.launch(kernel, 0), 0);
    }
    assert_eq!(driver.cuCtxSynchronize(), 0);
    let lengths: Vec<u64> = driver
        .report()
        .kernels()
        .map(|ran| ran.end - ran.start)
        .collect();
    assert_eq!(lengths, [10_000, 3_000]);
}

#[test]
fn an_image_stays_as_it_is_until_the_linker_is_destroyed() {
    let driver = Driver::ready();
    let link = created(&driver);
    assert_eq!(complete(&driver, link), Err(1));
    assert_eq!(add(&driver, link, PTX_INPUT, c"no PTX"), 218);
    assert_eq!(add(&driver, link, CUBIN_INPUT, FIRST), 801);
    assert_eq!(add(&driver, link, PTX_INPUT, FIRST), 0);
    let image = complete(&driver, link);
    assert_eq!(add(&driver, link, PTX_INPUT, SECOND), 1);
    assert_eq!(complete(&driver, link), image);
    assert_eq!(driver.cuLinkDestroy(link), 0);
    assert_eq!(driver.report().misuses.len(), 0);
    assert_eq!(
        (complete(&driver, link), driver.cuLinkDestroy(link)),
        (Err(400), 400)
    );
    assert_eq!(driver.report().misuses.len(), 2);
}
