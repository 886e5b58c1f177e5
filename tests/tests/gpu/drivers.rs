//! A program runs with any state of CUDA, from no driver to the newest one, and reports that state once, in words.

use std::path::Path;
use std::process::{Command, Output};

use profiler_runtime::cuda::{IntoStream, Status, Stream, status};
use profiler_runtime::{InitError, init, scope, summary};
use profiler_simulated_driver::Installation;
use profiler_tests::gpu;
use profiler_tests::gpu::{
    Gpu, TOLD, is_child, is_here_with_legacy_stream, on_driver, on_the_driver_with, row, settle,
    told,
};
use profiler_tests::{isolated, measuring};

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

/// Runs a test again where no driver is to be found; it must succeed.
fn without_a_driver(set_up: impl FnOnce(&mut Command)) -> Output {
    let mut command = isolated::again();
    command
        .env("PROFILER_TESTS_ON_THE_DRIVER", "1")
        .env("LD_LIBRARY_PATH", "")
        .env("PROFILER_CUDA_LIBRARY", NOWHERE);
    set_up(&mut command);
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    output
}

/// How many warnings of the profiler's stand in a text.
fn warnings(text: &str) -> usize {
    text.matches("profiler: warning: ").count()
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
        error.to_string().contains("PROFILER_BACKEND=cuda"),
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

#[test]
fn no_library_is_a_typed_error_of_init() {
    if !measuring() {
        return;
    }
    if is_child() {
        let status = refused();
        assert!(matches!(status, Status::NoLibrary { .. }), "{status:?}");
        let text = status.to_string();
        for part in ["there is no CUDA driver", NOWHERE, "PROFILER_CUDA_LIBRARY"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!((summary().cuda.status, summary().cuda.ready), (text, false));
        return;
    }
    without_a_driver(|command| {
        command.env("PROFILER_BACKEND", "cuda");
    });
}

#[test]
fn no_library_is_one_warning_without_init() {
    if !measuring() {
        return;
    }
    if is_child() {
        a_program_on_the_cpu();
        // SAFETY: the default stream exists wherever there is a driver, and there is none.
        let stream = unsafe { Stream::from_raw(std::ptr::null_mut(), std::ptr::null_mut()) };
        for _ in 0..3 {
            let _scope = scope!("on a stream", stream = &stream);
        }
        assert_eq!(row("on a stream").calls, 3);
        assert!(row("on a stream").cuda.is_none());
        return;
    }
    for backend in ["cuda", "auto"] {
        let output = without_a_driver(|command| {
            command.env("PROFILER_BACKEND", backend);
        });
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(warnings(&stderr), 1, "{backend}: {stderr}");
        assert!(stderr.contains(NOWHERE), "{stderr}");
    }
}

#[test]
fn a_library_without_a_device_is_told_apart() {
    if !measuring() {
        return;
    }
    if is_child() {
        assert_eq!(refused(), Status::NoDevice);
        assert!(Status::NoDevice.to_string().contains("no device"));
        assert_eq!(summary().cuda.status, Status::NoDevice.to_string());
        return;
    }
    on_the_driver_with("devices 0", |command| {
        command.env("PROFILER_BACKEND", "cuda");
    });
}

#[test]
fn no_device_is_one_warning_without_init() {
    if !measuring() {
        return;
    }
    if is_child() {
        a_program_on_the_cpu();
        return;
    }
    let ran = on_the_driver_with("devices 0", |command| {
        command.env("PROFILER_BACKEND", "cuda");
    });
    assert_eq!(warnings(&ran.stderr), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("no device"), "{}", ran.stderr);
}

#[test]
fn a_driver_that_lacks_anything_is_too_old_and_the_lack_is_named() {
    if !measuring() {
        return;
    }
    if is_child() {
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
        return;
    }
    // None of its functions is called, and so it leaves no report.
    let run = |symbol: &str, installation: &dyn Fn(&Path) -> Installation| {
        let folder = tempfile::tempdir().expect("a folder");
        installation(folder.path())
            .create()
            .expect("a driver was built");
        let output = without_a_driver(|command| {
            command
                .env("LD_LIBRARY_PATH", folder.path())
                .env_remove("PROFILER_CUDA_LIBRARY")
                .env("PROFILER_BACKEND", "cuda")
                .env(TOLD, symbol);
        });
        let stderr = String::from_utf8_lossy(&output.stderr);
        // The caller of `init` has the error.
        assert_eq!(warnings(&stderr), 0, "{symbol}: {stderr}");
    };
    for symbol in REQUIRED {
        run(symbol, &|folder| Installation::new(folder).without(symbol));
    }
    run("cuEventElapsedTime", &|folder| {
        Installation::new(folder)
            .without("cuEventElapsedTime")
            .without("cuEventElapsedTime_v2")
    });
}

/// Something that is handed over as a stream.
fn simulated_stream() -> impl IntoStream<'static> {
    // SAFETY: the default stream exists for as long as its context, and no context is current.
    unsafe { Stream::from_raw(std::ptr::null_mut(), std::ptr::null_mut()) }
}

#[test]
fn a_driver_that_cannot_be_initialised_says_its_code() {
    if !measuring() {
        return;
    }
    if is_child() {
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
        return;
    }
    for (code, said) in [
        (999, "999 CUDA_ERROR_UNKNOWN"),
        (803, "803 CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        (12_345, "12345 CUDA error 12345"),
    ] {
        let script = format!("fault cuInit always return {code}");
        on_the_driver_with(&script, |command| {
            command.env("PROFILER_BACKEND", "cuda").env(TOLD, said);
        });
    }
}

#[test]
fn what_goes_wrong_after_initialising_is_said_too() {
    if !measuring() {
        return;
    }
    if is_child() {
        let status = refused();
        assert!(
            matches!(status, Status::InitFailed { code: 12_345, .. }),
            "{status:?}"
        );
        return;
    }
    for call in ["cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName"] {
        let script = format!("fault {call} always return 12345");
        on_the_driver_with(&script, |command| {
            command.env("PROFILER_BACKEND", "cuda");
        });
    }
}

#[test]
fn a_driver_that_is_ready_tells_its_devices_and_version() {
    if !measuring() {
        return;
    }
    if is_child() {
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
        return;
    }
    let script = "devices 3; device 0 name First; device 1 name Other; device 2 name First";
    let ran = on_driver(
        |folder| Installation::new(folder).driver_version(12_040),
        script,
        |command| _ = command.env("PROFILER_BACKEND", "cuda"),
    );
    assert_eq!(warnings(&ran.stderr), 0, "{}", ran.stderr);
}

#[test]
fn the_library_may_be_named() {
    if !measuring() {
        return;
    }
    if is_child() {
        let _profiler = init().expect("the library is named");
        assert!(status().is_ready(), "{}", status());
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let installed = Installation::new(folder.path())
        .create()
        .expect("a driver was built");
    without_a_driver(|command| {
        command
            .env("PROFILER_BACKEND", "cuda")
            .env("PROFILER_CUDA_LIBRARY", installed.library());
    });
}

#[test]
fn on_the_cpu_the_driver_is_not_called_at_all() {
    if !measuring() && !is_child() {
        return;
    }
    if is_child() {
        let _profiler = init().expect("set up");
        let gpu = Gpu::new(0);
        let stream = gpu.stream();
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
        return;
    }
    let run = |variable: &str, value: &str| {
        let ran = on_the_driver_with("", |command| {
            gpu::legacy_stream(command);
            command.env(variable, value).env(TOLD, value);
        });
        // The stream has no effect on the CPU.
        let expected = usize::from(value == "cpu");
        assert_eq!(warnings(&ran.stderr), expected, "{}", ran.stderr);
        ran.report.calls
    };
    let (cpu, unmeasured) = (run("PROFILER_BACKEND", "cpu"), run("PROFILER_ENABLED", "0"));
    assert_eq!(cpu, unmeasured, "the calls are the program's own");
    assert!(
        cpu["cuLaunchKernel"] == 10 && !cpu.contains_key("cuEventRecord"),
        "{cpu:?}"
    );
    let auto = run("PROFILER_BACKEND", "auto");
    assert!(auto["cuEventRecord"] >= 40, "{auto:?}");
}

#[test]
fn a_program_without_cuda_never_loads_the_driver() {
    if !measuring() {
        return;
    }
    if is_child() {
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
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    Installation::new(folder.path())
        .create()
        .expect("a driver was built");
    let output = without_a_driver(|command| {
        // A driver is available.
        command
            .env("LD_LIBRARY_PATH", folder.path())
            .env_remove("PROFILER_CUDA_LIBRARY")
            .env("PROFILER_BACKEND", "auto");
    });
    assert_eq!(warnings(&String::from_utf8_lossy(&output.stderr)), 0);
}

#[test]
fn a_name_built_at_run_time_notices_a_driver_that_is_loaded_later() {
    if !is_here_with_legacy_stream("") {
        return;
    }
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
