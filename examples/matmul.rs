//! Measure a product of matrices, and see what a timer on the CPU makes of it.
//!
//! By cuBLAS and by a kernel that NVRTC compiles, where these libraries are found, and always by a plain
//! kernel whose PTX is in this program. A timer around a launch says how long the launch took; the table says
//! how long the product took. Without a GPU the CPU multiplies.
//!
//! ```text
//! cargo run --release --example matmul
//! ```

#[path = "matmul/ways.rs"]
mod ways;

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::{CudaContext, CudaStream};
use profiler_examples::device;
use profiler_examples::random::Random;
use profiler_runtime::{Summary, flush, measure_execution_time, scope, summary};

use crate::ways::{Matrices, Way};

/// Rows and columns of a matrix: a multiple of the 16 that a block of threads has.
const SIDE: usize = 512;
const ROUNDS: u32 = 20;

/// What a timer on the CPU made of one way.
struct Timed {
    name: &'static str,
    /// Around each launch: how such timers are mostly written.
    launch: Duration,
    /// Around all of them and a wait for the last, for each: right, but everything else waits too.
    waited: Duration,
}

fn time(
    way: &Way,
    stream: &Arc<CudaStream>,
    matrices: &mut Matrices,
) -> Result<Timed, Box<dyn Error>> {
    // The first call of a library may load and choose kernels for a while.
    way.multiply(stream, matrices)?;
    stream.synchronize()?;

    let mut launch = Duration::ZERO;
    let begin = Instant::now();
    for _ in 0..ROUNDS {
        let before = Instant::now();
        {
            let _scope = scope!(way.name(), stream = stream);
            way.multiply(stream, matrices)?;
        }
        launch += before.elapsed();
    }
    stream.synchronize()?;
    Ok(Timed {
        name: way.name(),
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
    let (ways, missing) = ways::all(context, &stream)?;
    let mut times = Vec::new();
    for way in &ways {
        let mut matrices = Matrices::new(&stream, left, right)?;
        times.push(time(way, &stream, &mut matrices)?);
        if !device::is_simulated(context) && matrices.product(&stream)? != expected {
            return Err(format!("{} multiplied wrongly", way.name()).into());
        }
    }
    let verified = if device::is_simulated(context) {
        "which computes nothing: not verified"
    } else {
        "each product as the CPU's"
    };
    println!("multiplied matrices of {SIDE} x {SIDE} on {name}, {verified}");
    for reason in missing {
        println!("not tried: {reason}");
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
    let Some(cuda) = summary.row(timed.name).and_then(|row| row.cuda.as_ref()) else {
        return;
    };
    let operations = 2.0 * (SIDE as f64).powi(3);
    println!(
        "{}: a timer around the launch says {:.1} µs; the GPU took {:.1} µs ({:.2} TFLOP/s); waited for, each \
         took {:.1} µs",
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

/// A trace is enough to tell that nothing is wrong: the sum of the diagonal of a product does not depend on
/// the order of its factors.
fn on_the_cpu([left, right]: &[Vec<f32>; 2], product: &[f32], reason: &str) -> Result<(), String> {
    let trace = |product: &[f32]| product.iter().step_by(SIDE + 1).sum::<f32>();
    let forth = trace(product);
    let back = trace(&multiply_on_the_cpu(right, left));
    if (forth - back).abs() > 0.0 {
        return Err(format!("the traces are {forth} and {back}"));
    }
    println!(
        "multiplied matrices of {SIDE} x {SIDE} on the CPU, with the right trace. No GPU: {reason}"
    );
    print!("\n{}", summary());
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let _profiler = profiler_runtime::init()?;
    let mut random = Random::seeded(29);
    // Small whole numbers: no sum is rounded, in whatever order it is taken.
    let matrices = [(); 2].map(|()| {
        let entry = |_| random.below(9) as f32 - 4.0;
        (0..SIDE * SIDE).map(entry).collect::<Vec<f32>>()
    });
    // It names no stream: it has nothing to do with a GPU, and is timed on the CPU alone.
    let product = multiply_on_the_cpu(&matrices[0], &matrices[1]);
    match device::open() {
        Ok(context) => on_gpu(&context, &matrices, &product),
        Err(reason) => Ok(on_the_cpu(&matrices, &product, &reason)?),
    }
}
