//! A run that forbids waiting for a device aborts with a message when a thread waits.

use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use crate::support::{Driver, again, installed, is_child};
use profiler_simulated_driver::Simulator;

fn driver() -> Driver {
    let driver = Driver::of(Simulator::open("libcuda.so.1".as_ref()).expect("it is on the path"));
    assert_eq!(driver.cuInit(0), 0);
    assert_eq!(driver.cuCtxSetCurrent(driver.primary(0)), 0);
    driver
}

fn run(name: &str, script: &str) -> Output {
    let folder = tempfile::tempdir().expect("a folder");
    again(module_path!(), name, &installed(folder.path()), script)
        .output()
        .expect("it runs")
}

fn was_aborted(output: &Output, call: &str) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    output.status.signal() == Some(6) && said.contains(&format!("simulated driver: {call} would"))
}

#[test]
fn a_waiting_call_aborts() {
    if is_child() {
        let driver = driver();
        let event = driver.recorded(0);
        assert_eq!(driver.cuEventQuery(event), 0);
        assert_eq!(driver.cuEventSynchronize(event), 0);
        return;
    }
    let name = "a_waiting_call_aborts";
    assert!(was_aborted(
        &run(name, "synchronise abort"),
        "cuEventSynchronize"
    ));
    assert!(run(name, "").status.success());
}

#[test]
fn a_copy_to_pageable_memory_is_a_waiting_call() {
    if is_child() {
        let driver = driver();
        let device: usize = crate::support::made(|address| driver.cuMemAllocAsync(address, 4, 0));
        assert_eq!(
            driver.cuMemcpyDtoHAsync_v2([0; 4].as_mut_ptr(), device, 4, 0),
            0
        );
        return;
    }
    let name = "a_copy_to_pageable_memory_is_a_waiting_call";
    assert!(was_aborted(
        &run(name, "synchronise abort"),
        "cuMemcpyDtoHAsync_v2"
    ));
    assert!(run(name, "").status.success());
}

#[test]
fn a_region_can_allow_waiting_on_its_thread() {
    if is_child() {
        let driver = driver();
        driver.allow_waiting(|| {
            assert_eq!(driver.cuCtxSynchronize(), 0);
            driver.allow_waiting(|| ());
            assert_eq!(driver.cuStreamSynchronize(0), 0);
        });
        assert_eq!(driver.report().waiting_calls(), 2);
        if std::env::var_os("AND_OUTSIDE").is_some() {
            driver.cuCtxSynchronize();
        }
        return;
    }
    let name = "a_region_can_allow_waiting_on_its_thread";
    assert!(run(name, "synchronise abort").status.success());
    let folder = tempfile::tempdir().expect("a folder");
    let mut outside = again(
        module_path!(),
        name,
        &installed(folder.path()),
        "synchronise abort",
    );
    let output = outside.env("AND_OUTSIDE", "1").output().expect("it runs");
    assert!(was_aborted(&output, "cuCtxSynchronize"));
}

mod suspect {
    /// Calls the driver without the functions of `support`.
    #[inline(never)]
    pub(super) fn waits(driver: &super::Driver) -> u32 {
        // SAFETY: the driver exports the function with this type.
        let call = unsafe {
            driver
                .library()
                .get::<extern "C" fn() -> u32>(b"cuCtxSynchronize")
        };
        std::hint::black_box(call.expect("the driver has this function"))()
    }
}

#[test]
fn waiting_can_be_forbidden_to_one_crate() {
    if is_child() {
        let driver = driver();
        assert_eq!(driver.cuCtxSynchronize(), 0);
        println!("other code waited");
        assert_eq!(suspect::waits(&driver), 0);
        return;
    }
    let name = "waiting_can_be_forbidden_to_one_crate";
    let blamed = "synchronise abort-from driver::waiting::suspect::";
    let output = run(name, blamed);
    assert!(was_aborted(&output, "cuCtxSynchronize"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("other code waited"));
    assert!(
        run(name, "synchronise abort-from another_crate::")
            .status
            .success()
    );
}
