//! Measures how long kernels take: a launch returns long before its kernel has finished.
//!
//! Computes `y = a * x + y` for four million numbers, by a kernel whose PTX is below, on a stream
//! that this program creates. `stream = …` specifies where the work is launched; it makes nothing
//! wait for the device. Without a GPU, the CPU computes the same values.
//!
//! ```text
//! cargo run --release --example cuda_kernels
//! ```

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use profiler_examples::device;
use profiler_runtime::report::Row;
use profiler_runtime::{Summary, flush, measure_execution_time, scope, summary};

/// Any driver from CUDA 11 on compiles this for any device from `sm_75` on. The comment is for the
/// simulated driver of the tests.
const PTX: &str = "
.version 6.4
.target sm_75
.address_size 64

// simulated: saxpy = 20us
.visible .entry saxpy(
    .param .u32 count,
    .param .f32 a,
    .param .u64 x,
    .param .u64 y
)
{
    .reg .pred %outside;
    .reg .b32 %block, %size, %thread, %count;
    .reg .f32 %a, %of_x, %of_y;
    .reg .b64 %x, %y, %offset;

    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.u32 %thread, %block, %size, %thread;
    ld.param.u32 %count, [count];
    setp.ge.u32 %outside, %thread, %count;
    @%outside bra DONE;

    ld.param.f32 %a, [a];
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    cvta.to.global.u64 %x, %x;
    cvta.to.global.u64 %y, %y;
    mul.wide.u32 %offset, %thread, 4;
    add.u64 %x, %x, %offset;
    add.u64 %y, %y, %offset;
    ld.global.f32 %of_x, [%x];
    ld.global.f32 %of_y, [%y];
    fma.rn.f32 %of_y, %a, %of_x, %of_y;
    st.global.f32 [%y], %of_y;
DONE:
    ret;
}
";

const COUNT: u32 = 1 << 22;
const STEPS: u16 = 50;
const LAUNCHES: u16 = 4;
const FACTOR: f32 = 0.5;

struct Saxpy {
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
}

impl Saxpy {
    fn new(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let module = context.load_module(Ptx::from_src(PTX))?;
        Ok(Self {
            stream: context.new_stream()?,
            kernel: module.load_function("saxpy")?,
        })
    }

    // As for `log`, the expression may use `self` and the parameters.
    #[measure_execution_time(stream = &self.stream)]
    fn add(&self, x: &CudaSlice<f32>, y: &mut CudaSlice<f32>) -> Result<(), DriverError> {
        let mut launch = self.stream.launch_builder(&self.kernel);
        launch.arg(&COUNT).arg(&FACTOR).arg(x).arg(y);
        // SAFETY: these are the kernel's parameters, and both slices hold `COUNT` numbers.
        unsafe { launch.launch(LaunchConfig::for_num_elems(COUNT)) }?;
        Ok(())
    }

    fn run(&self, x: &[f32], y: &[f32]) -> Result<Vec<f32>, DriverError> {
        let stream = &self.stream;
        let (x, mut y) = {
            // Copies are stream work like kernels, and are measured too.
            let _scope = scope!("upload", stream = stream);
            (stream.clone_htod(x)?, stream.clone_htod(y)?)
        };
        for _ in 0..STEPS {
            // The time of the scopes inside is subtracted from this scope's self time, on the GPU
            // as on the CPU.
            let _scope = scope!("step", stream = stream);
            for _ in 0..LAUNCHES {
                self.add(&x, &mut y)?;
            }
        }
        let _scope = scope!("download", stream = stream);
        let result = stream.clone_dtoh(&y)?;
        stream.synchronize()?;
        Ok(result)
    }
}

/// Computes the same values as the kernel.
#[measure_execution_time]
fn add_on_the_cpu(x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += FACTOR * x;
    }
}

fn run_on_the_cpu(x: &[f32], y: &[f32]) -> Vec<f32> {
    let mut y = y.to_vec();
    for _ in 0..STEPS {
        let _scope = scope!("step");
        for _ in 0..LAUNCHES {
            add_on_the_cpu(x, &mut y);
        }
    }
    y
}

/// Returns small integers: sums of their halves are exact in `f32`, in any order.
fn data() -> [Vec<f32>; 2] {
    [1000, 7].map(|period| (0..COUNT).map(|item| (item % period) as f32).collect())
}

fn verify(x: &[f32], y: &[f32], result: &[f32]) -> Result<(), String> {
    let factor = FACTOR * f32::from(STEPS * LAUNCHES);
    let expected = x.iter().zip(y).map(|(x, y)| factor * x + y);
    let wrong = expected
        .zip(result)
        .filter(|(expected, got)| expected.to_bits() != got.to_bits());
    match wrong.count() {
        0 if result.len() == y.len() => Ok(()),
        wrong => Err(format!("{wrong} of {} numbers are wrong", y.len())),
    }
}

/// Compares the time of a launch on the CPU with that of its kernel.
fn compare(summary: &Summary) {
    let is_kernel = |row: &&Row| row.name.ends_with("Saxpy::add");
    let Some(row) = summary.rows.iter().find(is_kernel) else {
        return;
    };
    if let (Some(cpu), Some(cuda), Some(verdict)) = (row.cpu, row.cuda, row.verdict()) {
        println!(
            "\na launch took {:.1} µs on the CPU, and its kernel {:.1} µs on the GPU: {verdict}",
            cpu.mean_ns / 1e3,
            cuda.mean_ns / 1e3
        );
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let _profiler = profiler_runtime::init()?;
    let [x, y] = data();
    let count = STEPS * LAUNCHES;
    match device::open() {
        Ok(context) => {
            let result = Saxpy::new(&context)?.run(&x, &y)?;
            let name = device::name(&context);
            if device::is_simulated(&context) {
                println!("{count} kernels on {name}, which computes nothing: not verified\n");
            } else {
                verify(&x, &y, &result)?;
                println!("{count} kernels on {name}; the result is correct\n");
            }
        }
        Err(reason) => {
            verify(&x, &y, &run_on_the_cpu(&x, &y))?;
            println!("{count} runs on the CPU; the result is correct. No GPU: {reason}\n");
        }
    }
    // GPU times of work that is still running are in no column yet: wait until they are read.
    flush(Duration::from_secs(5));
    let summary = summary();
    print!("{summary}");
    compare(&summary);
    Ok(())
}
