//! Measures a matrix product, and compares the result with that of a timer on the CPU.
//!
//! Multiplies with cuBLAS and with a kernel that NVRTC compiles, if these libraries are found, and
//! always with a plain kernel whose PTX is in this program. A timer around a launch measures how
//! long the launch took; the table shows how long the product took. Without a GPU, the CPU
//! multiplies.
//!
//! ```text
//! cargo run --release --example matmul
//! ```

#[path = "matmul/methods.rs"]
mod methods;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaContext, CudaStream};
use profiler_examples::device;
use profiler_examples::random::Random;
use profiler_runtime::{Summary, flush, measure_execution_time, scope, summary};

use crate::methods::{Matrices, Method};

/// The rows and columns of a matrix: a multiple of 16, the side of a block of threads.
const SIDE: usize = 512;
const ROUNDS: u32 = 20;

/// The results of timers on the CPU for one method.
struct Timed {
    name: &'static str,
    /// Around each launch, as such timers are usually written.
    launch: Duration,
    /// Around all launches and a wait for the last, divided by their number: correct, but the CPU
    /// must wait.
    waited: Duration,
}

fn time(
    method: &Method,
    stream: &Arc<CudaStream>,
    matrices: &mut Matrices,
) -> Result<Timed, Box<dyn Error>> {
    // The first call of a library may load and select kernels.
    method.multiply(stream, matrices)?;
    stream.synchronize()?;

    let mut launch = Duration::ZERO;
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        let before = Instant::now();
        {
            let _scope = scope!(method.name(), stream = stream);
            method.multiply(stream, matrices)?;
        }
        launch += before.elapsed();
    }
    stream.synchronize()?;
    Ok(Timed {
        name: method.name(),
        launch: launch / ROUNDS,
        waited: begin.elapsed() / ROUNDS,
    })
}

fn on_gpu(
    context: &Arc<CudaContext>,
    [left, right]: &[Vec<f32>; 2],
    expected: &[f32],
) -> Result<(), Box<dyn Error>> {
    let name = device::name(context);
    let stream = context.new_stream()?;
    let (methods, missing) = methods::all(context, &stream)?;
    let mut times = Vec::new();
    for method in &methods {
        let mut matrices = Matrices::new(&stream, left, right)?;
        times.push(time(method, &stream, &mut matrices)?);
        if !device::is_simulated(context) && matrices.product(&stream)? != expected {
            return Err(format!("{} returned a wrong product", method.name()).into());
        }
    }
    let verified = if device::is_simulated(context) {
        "which computes nothing: not verified"
    } else {
        "each product equals that of the CPU"
    };
    println!("multiplied matrices of {SIDE} x {SIDE} on {name}, {verified}");
    for reason in missing {
        println!("skipped: {reason}");
    }
    flush(Duration::from_secs(5));
    let summary = summary();
    println!("\n{summary}");
    for timed in times {
        compare(&timed, &summary);
    }
    Ok(())
}

fn compare(timed: &Timed, summary: &Summary) {
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let Some(cuda) = summary.row(timed.name).and_then(|row| row.cuda) else {
        return;
    };
    let operations = 2.0 * (SIDE as f64).powi(3);
    println!(
        "{}: a timer around the launch measured {:.1} µs; the GPU took {:.1} µs ({:.2} TFLOP/s); with a wait \
         at the end, each took {:.1} µs",
        timed.name,
        us(timed.launch),
        cuda.mean_ns / 1e3,
        operations / cuda.mean_ns / 1e3,
        us(timed.waited)
    );
}

#[measure_execution_time]
fn multiply_on_the_cpu(left: &[f32], right: &[f32]) -> Vec<f32> {
    let mut product = vec![0.0; SIDE * SIDE];
    for (row, to) in left.chunks_exact(SIDE).zip(product.chunks_exact_mut(SIDE)) {
        for (factor, from) in row.iter().zip(right.chunks_exact(SIDE)) {
            for (to, value) in to.iter_mut().zip(from) {
                *to += factor * value;
            }
        }
    }
    product
}

/// Compares traces, which suffice to detect an error: the trace of a product of two matrices does
/// not depend on their order.
fn on_the_cpu([left, right]: &[Vec<f32>; 2], product: &[f32], reason: &str) -> Result<(), String> {
    let trace = |product: &[f32]| product.iter().step_by(SIDE + 1).sum::<f32>();
    let product = trace(product);
    let swapped = trace(&multiply_on_the_cpu(right, left));
    if (product - swapped).abs() > 0.0 {
        return Err(format!("the traces are {product} and {swapped}"));
    }
    println!(
        "multiplied matrices of {SIDE} x {SIDE} on the CPU, with the correct trace. No GPU: {reason}"
    );
    print!("\n{}", summary());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let _profiler = profiler_runtime::init()?;
    let mut random = Random::seeded(29);
    // With small integers, no sum is rounded, in any order of addition.
    let matrices = [(); 2].map(|()| {
        let entry = |_| random.below(9) as f32 - 4.0;
        (0..SIDE * SIDE).map(entry).collect::<Vec<f32>>()
    });
    // This measures CPU time only: no CUDA context exists yet, so there is no stream.
    let product = multiply_on_the_cpu(&matrices[0], &matrices[1]);
    match device::open() {
        Ok(context) => on_gpu(&context, &matrices, &product),
        Err(reason) => Ok(on_the_cpu(&matrices, &product, &reason)?),
    }
}
