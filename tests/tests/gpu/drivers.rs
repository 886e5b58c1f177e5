//! A program runs with any state of CUDA, from no driver to the newest one, and reports that state once, in words.

use profiler_runtime::cuda::{IntoStream, Status, Stream, status};
use profiler_runtime::{InitError, init, scope, summary};
use profiler_tests::gpu::{Gpu, OnDriver, Ran, driver, row, settle, started, told};

/// The functions that every driver from CUDA 11 on has, and that the profiler needs.
const REQUIRED: [&str; 22] = [
    "cuInit",
    "cuDriverGetVersion",
    "cuGetErrorName",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxGetDevice",
    "cuDevicePrimaryCtxGetState",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamGetCtx",
    "cuStreamIsCapturing",
    "cuThreadExchangeStreamCaptureMode",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventSynchronize",
];

/// A folder for a driver that does not exist.
const NOWHERE: &str = "/nonexistent/libcuda.so.1";

/// No driver is to be found.
fn nowhere() -> OnDriver {
    driver()
        .env("LD_LIBRARY_PATH", "")
        .env("PROFILER_CUDA_LIBRARY", NOWHERE)
        .is_not_called()
}

/// A few measured calls of a program that uses no CUDA; all of them are counted.
fn a_program_on_the_cpu() {
    for _ in 0..3 {
        let _outer = scope!("outer");
        let _inner = scope!("inner");
    }
    for name in ["outer", "inner"] {
        assert_eq!(row(name).calls, 3);
        assert_eq!(
            (row(name).cuda.is_none(), row(name).without_cuda),
            (true, 0)
        );
    }
}

/// Returns the status with which `init` must fail; the program continues.
fn refused() -> Status {
    let Err(InitError::Cuda(error)) = init() else {
        panic!("PROFILER_BACKEND=cuda is refused where there is none");
    };
    assert!(
        error.to_string().contains("by the backend `cuda`"),
        "{error}"
    );
    assert!(
        error.to_string().ends_with(&error.status.to_string()),
        "{error}"
    );
    assert!(!error.to_string().contains('\n'), "one line: {error}");
    a_program_on_the_cpu();
    error.status
}

#[test(on = nowhere().env("PROFILER_BACKEND", "cuda"))]
fn no_library_is_a_typed_error_of_init() {
    let status = refused();
    assert!(matches!(status, Status::NoLibrary { .. }), "{status:?}");
    let text = status.to_string();
    for part in ["there is no CUDA driver", NOWHERE, "PROFILER_CUDA_LIBRARY"] {
        assert!(text.contains(part), "{text}");
    }
    assert_eq!((summary().cuda.status, summary().cuda.ready), (text, false));
}

fn backend(driver: OnDriver, backend: &&str) -> OnDriver {
    driver.env("PROFILER_BACKEND", backend)
}

#[test(on = nowhere().each(["cuda", "auto"], backend).warnings(1).says([NOWHERE]))]
fn no_library_is_one_warning_without_init() {
    a_program_on_the_cpu();
    // SAFETY: the default stream exists wherever there is a driver, and there is none.
    let stream = unsafe { Stream::from_raw(std::ptr::null_mut(), std::ptr::null_mut()) };
    for _ in 0..3 {
        let _scope = scope!("on a stream", stream = &stream);
    }
    assert_eq!(row("on a stream").calls, 3);
    assert!(row("on a stream").cuda.is_none());
}

#[test(on = driver().script("devices 0").env("PROFILER_BACKEND", "cuda"))]
fn a_library_without_a_device_is_told_apart() {
    assert_eq!(refused(), Status::NoDevice);
    assert!(Status::NoDevice.to_string().contains("no device"));
    assert_eq!(summary().cuda.status, Status::NoDevice.to_string());
}

#[test(on = driver().script("devices 0").env("PROFILER_BACKEND", "cuda").warnings(1).says(["no device"]))]
fn no_device_is_one_warning_without_init() {
    a_program_on_the_cpu();
}

/// None of its functions is called, and the caller of `init` has the error.
fn without_each() -> OnDriver {
    let driver = driver().is_not_called().env("PROFILER_BACKEND", "cuda");
    let of_times = driver
        .clone()
        .cases(["cuEventElapsedTime"])
        .installed(|of| {
            of.without("cuEventElapsedTime")
                .without("cuEventElapsedTime_v2")
        });
    let required = driver.each(REQUIRED, |driver, lacking| {
        let lacking = *lacking;
        driver.installed(move |of| of.without(lacking))
    });
    required.and(of_times)
}

#[test(on = without_each().warnings(0))]
fn a_driver_that_lacks_anything_is_too_old_and_the_lack_is_named() {
    let lacking = told();
    assert_eq!(
        refused(),
        Status::TooOld {
            symbol: lacking.clone()
        }
    );
    let text = status().to_string();
    assert!(text.contains(&format!("lacks {lacking}:")), "{text}");
    // A stream does not make the driver any newer.
    let stream = simulated_stream();
    let _scope = scope!("on a stream", stream = stream);
}

/// Something that is handed over as a stream.
fn simulated_stream() -> impl IntoStream<'static> {
    // SAFETY: the default stream exists for as long as its context, and no context is current.
    unsafe { Stream::from_raw(std::ptr::null_mut(), std::ptr::null_mut()) }
}

fn refuses_to_initialise() -> OnDriver {
    let codes = [
        ("999 CUDA_ERROR_UNKNOWN", 999),
        ("803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 803),
        ("12345 CUDA error 12345", 12_345),
    ];
    let driver = driver().env("PROFILER_BACKEND", "cuda");
    driver.table(codes, |driver, code| {
        driver.script(&format!("fault cuInit always return {code}"))
    })
}

#[test(on = refuses_to_initialise())]
fn a_driver_that_cannot_be_initialised_says_its_code() {
    let status = refused();
    let Status::InitFailed { code, name } = &status else {
        panic!("{status:?}");
    };
    assert_eq!(format!("{code} {name}"), told());
    let text = status.to_string();
    assert!(text.contains("could not be initialised"), "{text}");
    assert!(
        text.contains(name) && text.contains(&code.to_string()),
        "{text}"
    );
}

fn refuses_each(calls: [&str; 3]) -> OnDriver {
    let driver = driver().env("PROFILER_BACKEND", "cuda");
    driver.each(calls, |driver, call| {
        driver.script(&format!("fault {call} always return 12345"))
    })
}

#[test(on = refuses_each(["cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName"]))]
fn what_goes_wrong_after_initialising_is_said_too() {
    let status = refused();
    assert!(
        matches!(status, Status::InitFailed { code: 12_345, .. }),
        "{status:?}"
    );
}

fn of_three_devices() -> OnDriver {
    driver()
        .installed(|of| of.driver_version(12_040))
        .script("devices 3; device 0 name First; device 1 name Other; device 2 name First")
        .env("PROFILER_BACKEND", "cuda")
}

#[test(on = of_three_devices().warnings(0))]
fn a_driver_that_is_ready_tells_its_devices_and_version() {
    let _profiler = init().expect("there is CUDA");
    let status = status();
    let Status::Ready {
        devices,
        driver_version,
        ..
    } = &status
    else {
        panic!("{status:?}");
    };
    assert_eq!(devices, &["First", "Other", "First"]);
    assert_eq!(*driver_version, 12_040);
    assert!(status.is_ready());
    assert_eq!(status.to_string(), "CUDA 12.4 on 2 x First, Other");
    assert_eq!(
        (summary().cuda.status, summary().cuda.ready),
        (status.to_string(), true)
    );
}

fn named() -> OnDriver {
    driver()
        .env("LD_LIBRARY_PATH", "")
        .env("PROFILER_BACKEND", "cuda")
        .file("PROFILER_CUDA_LIBRARY", "libcuda.so")
}

#[test(on = named())]
fn the_library_may_be_named() {
    let _profiler = init().expect("the library is named");
    assert!(status().is_ready(), "{}", status());
}

/// The stream has no effect on the CPU.
fn on_each() -> OnDriver {
    let driver = driver().legacy_stream();
    let cpu = driver
        .clone()
        .cases(["cpu"])
        .env("PROFILER_BACKEND", "cpu")
        .warnings(1);
    let unmeasured = driver
        .clone()
        .cases(["0"])
        .env("PROFILER_ENABLED", "0")
        .warnings(0);
    let auto = driver
        .cases(["auto"])
        .env("PROFILER_BACKEND", "auto")
        .warnings(0);
    cpu.and(unmeasured).and(auto)
}

fn calls_are_the_programs(rans: &[Ran]) {
    let [cpu, unmeasured, auto] = [0, 1, 2].map(|case| &rans[case].report.calls);
    assert_eq!(cpu, unmeasured, "the calls are the program's own");
    assert!(
        cpu["cuLaunchKernel"] == 10 && !cpu.contains_key("cuEventRecord"),
        "{cpu:?}"
    );
    assert!(auto["cuEventRecord"] >= 40, "{auto:?}");
}

#[test(on = on_each().compare(calls_are_the_programs))]
fn on_the_cpu_the_driver_is_not_called_at_all() {
    let (_profiler, gpu, stream) = started();
    for _ in 0..10 {
        let _scope = scope!("launch", stream = &stream);
        let _inner = scope!("on the default stream");
        gpu.spin(&stream, 1_000);
    }
    stream.synchronize().expect("nothing failed");
    if told() == "cpu" {
        assert_eq!(status(), Status::Off);
        assert_eq!(
            (row("launch").calls, row("on the default stream").calls),
            (10, 10)
        );
        assert!(row("launch").cuda.is_none());
        assert_eq!(row("launch").without_cuda, 0);
    }
    settle();
}

#[test(on = driver().is_not_called().env("PROFILER_BACKEND", "auto").warnings(0))]
fn a_program_without_cuda_never_loads_the_driver() {
    let profiler = init().expect("set up");
    a_program_on_the_cpu();
    let thread = std::thread::spawn(|| drop(scope!("elsewhere")));
    thread.join().expect("it ends");
    assert_eq!(summary().cuda.status, Status::NotLoaded.to_string());
    settle();
    drop(profiler);
    let maps = std::fs::read_to_string("/proc/self/maps").expect("this is Linux");
    let loaded: Vec<_> = maps
        .lines()
        .filter(|line| line.contains("cuda") || line.contains("simulated_driver.so"))
        .collect();
    assert!(loaded.is_empty(), "{loaded:?}");
}

#[test(on = driver().legacy_stream())]
fn a_name_built_at_run_time_notices_a_driver_that_is_loaded_later() {
    let profiler = init().expect("set up");
    let name = format!("late {}", "driver");
    // The process has no driver yet. The decision for this name says so.
    drop(scope!(name.as_str()));
    let gpu = Gpu::new(0);
    let stream = gpu.context.default_stream();
    // Calls look for a driver again, at growing intervals. No other call site does it for them.
    for _ in 0..20 {
        let scope = scope!(name.as_str());
        gpu.spin(&stream, 1_000);
        drop(scope);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    stream.synchronize().expect("the work is done");
    settle();
    let row = row(&name);
    drop(profiler);
    assert_eq!(row.calls, 21);
    let timed = row.cuda.map_or(0, |cuda| cuda.calls);
    assert!((1..=20).contains(&timed), "{timed} calls have a GPU time");
}
