//! The sensors of the moment: the function of the runtime and the command line read the same, and each fault has one line.

use std::process::ExitCode;

use profiler_runtime::report::{GpuQuantity, GpuState, SensorError, ThrottleReasons, sample_gpus};
use profiler_tests::gpu::{OnDriver, Ran, driver, finish, started, tell, told};

/// The simulated NVML is in the driver's file, which the loader finds by this name.
fn nvml() -> OnDriver {
    driver().env("PROFILER_NVML_LIBRARY", "libcuda.so.1")
}

/// Runs `profiler smi`, which prints to the standard output of this process.
fn smi() -> ExitCode {
    profiler_runtime_cli::main(["profiler", "smi"])
}

fn is(code: ExitCode, expected: ExitCode) -> bool {
    format!("{code:?}") == format!("{expected:?}")
}

fn prints_the_readings(ran: &Ran) {
    let lines = "
  memory       1 of 16384 MiB
  utilization  50 %, memory 0 %
  power        210.0 of 400 W
  temperature  71 °C
  clocks       1200 of 1410 MHz, memory 1593 of 1593 MHz, P0
  held back    power cap, hardware thermal slowdown
";
    let block = format!("GPU 0 Simulated Device 0\n  UUID         {UUID}{lines}");
    assert!(ran.stdout.contains(&block), "{}", ran.stdout);
}

const UUID: &str = "GPU-73696d75-6c61-7465-642d-647200000000";

#[test(on = nvml().script("nvml device 0 watts 60 300").then(prints_the_readings))]
fn one_call_reads_all_sensors_as_the_command_line_prints_them() {
    const SECOND: u64 = 1_000_000_000;
    let before = sample_gpus().expect("the sensors are read");
    assert_eq!(before[0].device.ordinal, None, "CUDA is not initialised");
    let (_profiler, device, stream) = started();
    let memory = stream.alloc_zeros::<u8>(1 << 20).expect("memory");
    device.spin(&stream, SECOND / 2);
    finish(&stream);
    let simulator = profiler_tests::gpu::simulator();
    simulator.advance(SECOND / 2).expect("the clock is virtual");
    tell("nvml device 0 temperature 71; nvml device 0 throttle 69; nvml device 0 sm-clock 1200");

    let gpus = sample_gpus().expect("the sensors are read");
    let [gpu] = &gpus[..] else {
        panic!("one device: {gpus:?}");
    };
    assert_eq!(gpu.device.ordinal, Some(0));
    assert_eq!(gpu.device.nvml_index, 0);
    assert_eq!(gpu.device.name, "Simulated Device 0");
    assert_eq!(gpu.memory_used_bytes(), Some(memory.len() as u64));
    assert_eq!(gpu.memory_total_bytes(), Some(16 << 30));
    assert_eq!(gpu.power_limit_w(), Some(400.0));
    assert_eq!(gpu.temperature_c(), Some(71.0));
    assert_eq!(gpu.sm_clock_mhz(), Some(1_200.0));
    assert_eq!(gpu.memory_clock_mhz(), Some(1_593.0));
    assert_eq!(gpu.get(GpuQuantity::PerformanceState), Some(0.0));
    let throttle = gpu.sample.throttle.expect("reasons");
    assert!(throttle.intersects(ThrottleReasons::POWER_CAP));
    let is_near =
        |read: Option<f64>, expected: f64| read.is_some_and(|read| (read - expected).abs() <= 2.1);
    assert!(is_near(gpu.utilization_percent(), 50.0), "{gpu:?}");
    assert!(is_near(gpu.power_w(), 210.0), "{gpu:?}");
    assert_eq!(gpu.missing, [""; 0]);
    assert!(gpu.sample.unix_ns > 0);
    assert!(is(smi(), ExitCode::SUCCESS));
}

fn faults() -> OnDriver {
    let refused = nvml().table(
        [
            (
                "refused",
                (
                    "fault nvmlInitWithFlags always return 9",
                    "profiler: NVML cannot be used (code 9",
                ),
            ),
            (
                "no list",
                (
                    "fault nvmlDeviceGetCount_v2 always return 999",
                    "profiler: NVML lists no devices (code 999",
                ),
            ),
        ],
        |driver, (script, line)| driver.script(script).says([*line]),
    );
    let missing = nvml()
        .cases(["missing"])
        .env("PROFILER_NVML_LIBRARY", "/nowhere/libnvidia-ml.so.1")
        .is_not_called()
        .says(["profiler: /nowhere/libnvidia-ml.so.1 cannot be loaded"]);
    let old = nvml()
        .cases(["too old"])
        .installed(|of| of.without("nvmlDeviceGetUUID"))
        .is_not_called()
        .says(["lacks nvmlDeviceGetUUID: update NVIDIA's driver"]);
    refused.and(missing).and(old)
}

#[test(on = faults().warnings(0))]
fn without_sensors_there_is_an_error_and_the_command_line_says_so_in_one_line() {
    let error = sample_gpus().expect_err("there are no sensors");
    let is_right = match told().as_str() {
        "refused" => matches!(error, SensorError::Refused { .. }),
        "no list" => matches!(error, SensorError::NotListed { .. }),
        "missing" => matches!(error, SensorError::NoLibrary { .. }),
        _ => matches!(error, SensorError::TooOld { .. }),
    };
    assert!(is_right, "{error}");
    assert!(is(smi(), ExitCode::from(2)));
}

#[test(on = nvml().script("fault nvmlDeviceGetTemperature always return 3").warnings(0))]
fn a_reading_that_a_device_does_not_have_is_named() {
    let gpus = sample_gpus().expect("the other sensors are read");
    assert_eq!(gpus[0].temperature_c(), None);
    assert!(gpus[0].power_w().is_some());
    let [reason] = &gpus[0].missing[..] else {
        panic!("{:?}", gpus[0].missing);
    };
    assert!(
        reason.contains("has no reading of temperature (code 3"),
        "{reason}"
    );
}

fn names_the_device(ran: &Ran) {
    let block = "\nGPU 1\n  missing      GPU 1 of nvidia-smi cannot be opened (code 15";
    let found = ran.stdout.contains(block);
    assert!(found, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("GPU 2 Simulated Device 2\n"),
        "{}",
        ran.stdout
    );
}

fn lost() -> OnDriver {
    nvml().table(
        [
            ("handle", "nvmlDeviceGetHandleByIndex_v2"),
            ("UUID", "nvmlDeviceGetUUID"),
        ],
        |driver, call| {
            let script = format!("devices 3; fault {call} nth 2 return 15");
            driver.script(&script).then(names_the_device)
        },
    )
}

#[test(on = lost().warnings(0))]
fn a_device_that_cannot_be_opened_is_named_beside_the_others() {
    assert!(is(smi(), ExitCode::FAILURE));
    let gpus = sample_gpus().expect("the others are read");
    let opened: Vec<bool> = gpus.iter().map(GpuState::is_opened).collect();
    // The command line was at fault.
    assert_eq!(opened, [true; 3]);
}
