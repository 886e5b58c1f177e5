//! A driver lacks what it is to lack, and a machine has the devices that it is to have.

use std::ffi::{CString, c_void};
use std::ptr::null;

use crate::support::{Driver, made};
use profiler_simulated_driver::{Installation, Simulator};

#[test]
fn a_driver_lacks_what_is_newer_and_what_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = Installation::new(folder.path())
        .driver_version(11_000)
        .without("cuEventQuery")
        .create()
        .expect("a driver");
    let simulator = Simulator::open(&old.library()).expect("the driver loads");
    let has = |name: &str| {
        // SAFETY: the symbol is only looked up, not used.
        unsafe { simulator.library().get::<*const c_void>(name.as_bytes()) }.is_ok()
    };
    let present = ["cuInit", "cuEventElapsedTime", "cuStreamIsCapturing"];
    let newer = [
        "cuEventRecordWithFlags",
        "cuGetProcAddress",
        "cuStreamGetId",
    ];
    assert_eq!(present.map(has), [true; 3]);
    assert_eq!(newer.map(has), [false; 3]);
    assert!(!has("cuEventQuery") && !has("cuptiSubscribe_v2"));
    let nothing = Installation::new(folder.path()).without("cuNothing");
    let refused = nothing.create().expect_err("there is none");
    assert!(refused.to_string().contains("cuNothing"));
}

#[test]
fn entry_points_are_found_by_name_and_version() {
    let driver = Driver::untouched("driver-version 12040; hide cuEventQuery");
    let version = made::<i32>(|version| driver.cuDriverGetVersion(version));
    assert_eq!(version, 12_040);
    for (name, version, code, status) in [
        ("cuEventRecord", 12_000, 0, 0),
        // The variant with `_v2`.
        ("cuMemAlloc", 12_000, 0, 0),
        // Too new for the caller, too new for the driver, and hidden.
        ("cuStreamGetId", 11_000, 500, 2),
        ("cuStreamGetDevice", 13_000, 500, 1),
        ("cuEventQuery", 12_000, 500, 1),
    ] {
        let symbol = CString::new(name).expect("no zero byte");
        let (mut function, mut told) = (null(), 77);
        let (out, status_out) = (&raw mut function, &raw mut told);
        let found = driver.cuGetProcAddress_v2(symbol.as_ptr(), out, version, 0, status_out);
        assert_eq!(
            (found, told, function.is_null()),
            (code, status, code != 0),
            "{name}"
        );
    }
}

#[test]
fn a_machine_can_have_no_device_or_several() {
    let none = Driver::untouched("devices 0");
    assert_eq!((none.cuInit(0), none.cuDeviceGetCount(&mut 0)), (100, 3));
    let several =
        Driver::untouched("devices 3; device 1 name Tesla of 2031; device 2 attribute 75 9");
    assert_eq!(several.cuDeviceGetCount(&mut 0), 3, "not initialised");
    assert_eq!(several.cuInit(0), 0);
    assert_eq!(made::<i32>(|count| several.cuDeviceGetCount(count)), 3);
    let mut name = [1; 9];
    assert_eq!(several.cuDeviceGetName(name.as_mut_ptr(), 9, 1), 0);
    assert_eq!(&name, b"Tesla of\0");
    let major = made::<i32>(|major| several.cuDeviceGetAttribute(major, 75, 2));
    assert_eq!(major, 9);
    assert_eq!(several.cuDevicePrimaryCtxRetain(&mut 0, 3), 101);
}
