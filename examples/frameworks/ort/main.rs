//! Runs two models in ONNX Runtime on a stream of the program's own, so that the functions around them have GPU times.
//!
//! ```text
//! ORT_DYLIB_PATH=libonnxruntime.so cargo run --release -p ort-stream
//! ```

use std::error::Error;
use std::time::Duration;

use cudarc::driver::CudaContext;
use ort::ep;
use ort::session::Session;
use ort::value::Tensor;
use profiler_runtime::{cuda, flush, measured, summary};

#[measured]
fn embed(model: &mut Session, text: Vec<f32>) -> ort::Result<Vec<f32>> {
    run(model, text)
}

#[measured]
fn rank(model: &mut Session, embedding: Vec<f32>) -> ort::Result<Vec<f32>> {
    run(model, embedding)
}

fn run(model: &mut Session, input: Vec<f32>) -> ort::Result<Vec<f32>> {
    let input = Tensor::from_array(([1, input.len()], input))?;
    let outputs = model.run(ort::inputs![input])?;
    Ok(outputs[0].try_extract_tensor::<f32>()?.1.to_vec())
}

fn main() -> Result<(), Box<dyn Error>> {
    // The profiler finds the driver here, and CUPTI before the first kernels.
    println!("{}", cuda::status());
    let _profiler = profiler_runtime::init()?;
    let stream = CudaContext::new(0)?.new_stream()?;
    // One line for all functions and threads. With a stream for each session, `cuda::with_stream` around the calls instead.
    cuda::set_default_stream(&stream);

    let onnx_runtime = ort::init().build()?;
    let load = |model: &str| -> ort::Result<Session> {
        // SAFETY: the stream is dropped at the end of `main`, after the sessions.
        let gpu = unsafe { ep::CUDA::default().with_compute_stream(stream.cu_stream().cast()) };
        let gpu = gpu.build().error_on_failure();
        let builder = Session::builder(&onnx_runtime)?;
        let mut builder = builder.with_execution_providers([gpu])?;
        builder.commit_from_file(format!("{}/models/{model}", env!("CARGO_MANIFEST_DIR")))
    };
    let (mut embedder, mut ranker) = (load("embed.onnx")?, load("rank.onnx")?);

    let mut ranks = Vec::new();
    for step in 0..20_u8 {
        let text = (0..8).map(|letter| f32::from(letter + step)).collect();
        ranks = rank(&mut ranker, embed(&mut embedder, text)?)?;
    }
    println!("the last ranks: {ranks:.3?}");

    flush(Duration::from_secs(5));
    print!("{}", summary());
    Ok(())
}
