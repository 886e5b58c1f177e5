//! The program, with ONNX Runtime for the CPU and a stand-in for its CUDA provider, on the simulated driver.
//!
//! `ORT_DYLIB_PATH` names the library of ONNX Runtime, which is that of Python's package `onnxruntime`.

use check::{Program, Ran};

const FUNCTIONS: [&str; 2] = ["ort_stream::embed", "ort_stream::rank"];
/// The times of their kernels.
const EACH_NS: [f64; 2] = [300e3, 50e3];
const CALLS: u64 = 20;

fn program(script: &str) -> Program {
    let onnxruntime = std::env::var_os("ORT_DYLIB_PATH")
        .expect("ORT_DYLIB_PATH names the library of ONNX Runtime");
    let test = std::env::current_exe().expect("the path of this test");
    let provider = test.with_file_name("libort_cuda_provider.so");
    let script = format!("kernel embed 300us; kernel rank 50us; {script}");
    let mut program = Program::new(env!("CARGO_BIN_EXE_ort-stream"), &script);
    // The window waits for CUPTI.
    program.command.env("PROFILER_KERNELS", "1");
    program.command.env("ONNXRUNTIME", onnxruntime);
    program.command.env("ORT_DYLIB_PATH", provider);
    program
}

/// The models have computed, the device has done what they asked for and nothing else, and the profiler has measured the
/// stream on which it did so.
fn has_run(ran: &Ran) {
    assert!(
        ran.stdout.contains("the last ranks: [0.1"),
        "{}",
        ran.stdout
    );
    let all: f64 = EACH_NS.iter().map(|each| CALLS as f64 * each).sum();
    assert!((ran.truth_ns() - all).abs() < 1.0, "{:?}", ran.report);
    // The times alone would not tell: `Run` waits for its kernels, so the events of any idle stream are as far apart.
    let stream = ran.report.kernels().next().map(|kernel| kernel.stream);
    assert!(
        ran.report
            .kernels()
            .all(|kernel| Some(kernel.stream) == stream)
    );
    let events = ran.report.event_records();
    let on_it = events.filter(|event| Some(event.stream) == stream).count();
    assert_eq!(on_it as u64, 2 * FUNCTIONS.len() as u64 * CALLS);
}

#[test]
fn with_cupti_each_kernel_stands_at_its_function() {
    // However slowly CUPTI starts: here, more slowly than ONNX Runtime loads.
    let ran = program("clock real; fault cuptiActivityEnable nth 1 delay 2s").run();
    has_run(&ran);
    let share = ran.share_of(&FUNCTIONS);
    assert!(share >= 0.99, "{share}: {:?}", ran.device_ns());
    for (function, kernel) in FUNCTIONS.iter().zip(["embed", "rank"]) {
        let kernels = ran.timeline.key_averages().kernels();
        let scope = kernels
            .scopes
            .iter()
            .find(|scope| scope.scope.as_deref() == Some(function));
        let rows = &scope.expect("the function launches kernels").rows;
        let names: Vec<_> = rows.iter().map(|row| &row.name).collect();
        assert_eq!(names, [kernel]);
    }
}

#[test]
fn without_cupti_each_function_has_the_time_of_the_stream() {
    let ran = program("clock virtual").without_cupti().run();
    has_run(&ran);
    let averages = ran.timeline.key_averages();
    for (function, each_ns) in FUNCTIONS.iter().zip(EACH_NS) {
        let row = averages
            .rows
            .iter()
            .find(|row| row.name == *function)
            .expect("it ran");
        let cuda = row.cuda.expect("it has GPU times");
        assert_eq!((row.calls, cuda.calls), (CALLS, CALLS));
        // On the virtual clock nothing else takes time: an event is recorded the moment that the kernel before it ends.
        let expected = CALLS as f64 * each_ns;
        assert!(
            (cuda.total_ns - expected).abs() < 0.001 * expected,
            "{function}: {cuda:?}"
        );
    }
}
