//! Older drivers lack functions, some machines have no device, and every driver shuts down
//! eventually.

use std::ffi::{CString, c_void};
use std::ptr::{null, null_mut};

use crate::support::{Driver, again, installed, is_child, made};
use profiler_simulated_driver::{Installation, Report, Simulator};

fn has(simulator: &Simulator, name: &str) -> bool {
    // SAFETY: the symbol is only looked up, not used.
    unsafe { simulator.library().get::<*const c_void>(name.as_bytes()) }.is_ok()
}

/// Returns the result of `cuGetProcAddress_v2`, `true` if it found a function, and the status.
fn look_up(driver: &Driver, symbol: &str, version: i32) -> (u32, bool, u32) {
    let symbol = CString::new(symbol).expect("no zero byte");
    let (mut function, mut status) = (null(), 77);
    let (function_out, status_out) = (&raw mut function, &raw mut status);
    let code = driver.cuGetProcAddress_v2(symbol.as_ptr(), function_out, version, 0, status_out);
    (code, !function.is_null(), status)
}

#[test]
fn an_old_driver_lacks_newer_functions() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = Installation::new(folder.path())
        .driver_version(11_000)
        .create()
        .expect("a driver");
    let simulator = Simulator::open(&old.library()).expect("the driver loads");
    for name in [
        "cuInit",
        "cuEventRecord",
        "cuEventElapsedTime",
        "cuStreamIsCapturing",
    ] {
        assert!(has(&simulator, name), "{name}");
    }
    for name in [
        "cuEventRecordWithFlags",
        "cuGetProcAddress",
        "cuStreamGetId",
        "cuEventElapsedTime_v2",
    ] {
        assert!(!has(&simulator, name), "{name}");
    }
}

#[test]
fn single_functions_can_be_missing() {
    let folder = tempfile::tempdir().expect("a folder");
    let driver = Installation::new(folder.path())
        .without("cuEventQuery")
        .create();
    let simulator = Simulator::open(&driver.expect("a driver").library()).expect("it loads");
    assert!(!has(&simulator, "cuEventQuery"));
    assert!(has(&simulator, "cuEventRecord"));
    let nothing = Installation::new(folder.path())
        .without("cuNothing")
        .create();
    assert!(
        nothing
            .expect_err("there is none")
            .to_string()
            .contains("cuNothing")
    );
}

#[test]
fn entry_points_are_found_by_name_and_version() {
    let driver = Driver::untouched("driver-version 12040; hide cuEventQuery");
    assert_eq!(
        made::<i32>(|version| driver.cuDriverGetVersion(version)),
        12_040
    );
    assert_eq!(look_up(&driver, "cuEventRecord", 12_000), (0, true, 0));
    assert_eq!(
        look_up(&driver, "cuMemAlloc", 12_000),
        (0, true, 0),
        "the variant with _v2"
    );
    assert_eq!(
        look_up(&driver, "cuStreamGetId", 11_000),
        (500, false, 2),
        "too new for the caller"
    );
    assert_eq!(
        look_up(&driver, "cuStreamGetDevice", 13_000),
        (500, false, 1),
        "and for the driver"
    );
    assert_eq!(
        look_up(&driver, "cuEventQuery", 12_000),
        (500, false, 1),
        "hidden"
    );
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
    assert_eq!(
        made::<i32>(|major| several.cuDeviceGetAttribute(major, 75, 2)),
        9
    );
    assert_eq!(several.cuDevicePrimaryCtxRetain(null_mut(), 3), 101);
}

#[test]
fn a_driver_that_has_shut_down_returns_4() {
    let driver = Driver::ready();
    let event = driver.recorded(0);
    driver.run("shutdown").expect("a right script");
    assert_eq!(
        (driver.cuEventQuery(event), driver.cuEventDestroy_v2(event)),
        (4, 4)
    );
    assert_eq!(driver.cuInit(0), 4);
}

#[test]
fn a_process_writes_its_report_when_it_exits() {
    if is_child() {
        let driver =
            Driver::of(Simulator::open("libcuda.so.1".as_ref()).expect("it is on the path"));
        assert_eq!(driver.cuInit(0), 0);
        assert_eq!(driver.cuCtxSetCurrent(driver.primary(0)), 0);
        driver.event();
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.json");
    let name = "a_process_writes_its_report_when_it_exits";
    let script = format!("report-at-exit {}\nshutdown at-exit", path.display());
    let status = again(module_path!(), name, &installed(folder.path()), &script)
        .status()
        .expect("it runs");
    assert!(status.success());
    let report = Report::read(&path).expect("a report");
    assert_eq!((report.alive.events, report.calls_of("cuInit")), (1, 1));
}

#[test]
fn a_context_can_be_current_everywhere() {
    let driver = Driver::untouched("current-context everywhere");
    let here: usize = made(|context| driver.cuCtxGetCurrent(context));
    let there = std::thread::scope(|scope| {
        let ask = || made::<usize>(|context| driver.cuCtxGetCurrent(context));
        scope.spawn(ask).join().expect("no panic")
    });
    assert_ne!(here, 0, "without cuInit");
    assert_eq!(here, there);
}
