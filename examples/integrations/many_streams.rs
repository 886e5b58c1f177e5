//! Measures work on several streams: from several threads, inside one function, and in futures.
//!
//! A function need not know its stream: `with_stream` makes a stream current for a thread, and
//! `StreamFuture` for a future, on any thread that polls it. Work that a scope launches on another
//! stream than its parent's is not part of the parent's GPU time, because it may run at the same
//! time. Without a GPU, the CPU does all the work.
//!
//! ```text
//! cargo run --release --example many_streams
//! ```

#[path = "many_streams/part.rs"]
mod part;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cudarc::driver::CudaStream;
use profiler_examples::device;
use profiler_runtime::cuda::{StreamFuture, with_stream};
use profiler_runtime::{flush, measure_execution_time, measure_execution_time_context, summary};

use crate::part::{Gpu, Outcome, Part};

const THREADS: u16 = 4;
const ROUNDS: u32 = 200;

// Without `stream = …`, GPU time is measured on the current stream of the thread or future.
#[measure_execution_time]
fn refine(part: &mut Part) -> Outcome {
    part.iterate(ROUNDS)
}

/// Runs several threads with a stream each. The table has one row for `refine`: its times are
/// summed over the streams, and the row names them.
fn on_threads(gpu: Option<&Gpu>) -> Outcome<Vec<Part>> {
    let work = |number: u16| -> Outcome<Part> {
        let stream = gpu.map(Gpu::stream).transpose()?;
        let mut part = Part::new(gpu, stream.as_ref(), number)?;
        on(stream.as_ref(), || {
            for _ in 0..5 {
                refine(&mut part)?;
            }
            part.download()
        })?;
        Ok(part)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| scope.spawn(move || work(number)))
            .collect();
        let joined = threads.into_iter().map(|thread| match thread.join() {
            Ok(part) => part,
            Err(_) => Err("a thread panicked".into()),
        });
        joined.collect()
    })
}

/// Runs `f` with the stream as the thread's current one, if there is a stream.
fn on<T>(stream: Option<&Arc<CudaStream>>, f: impl FnOnce() -> T) -> T {
    match stream {
        Some(stream) => with_stream(stream, f),
        None => f(),
    }
}

// Two parts alternate: while one is computed on one stream, the other is copied back on another
// stream. Only the computation is GPU time of this function; the copies are reported separately.
#[measure_execution_time]
fn overlap(parts: &mut [Part; 2], copies: Option<&Arc<CudaStream>>) -> Outcome {
    for round in 0..6 {
        let part = &mut parts[round % 2];
        refine(part)?;
        on(copies, || {
            measure_execution_time_context!("copy back", { part.copy_back(copies) })
        })?;
    }
    Ok(())
}

fn on_two_streams(gpu: Option<&Gpu>) -> Outcome<Vec<Part>> {
    let compute = gpu.map(Gpu::stream).transpose()?;
    let copies = gpu.map(Gpu::stream).transpose()?;
    let mut parts = [
        Part::new(gpu, compute.as_ref(), 10)?,
        Part::new(gpu, compute.as_ref(), 11)?,
    ];
    on(compute.as_ref(), || overlap(&mut parts, copies.as_ref()))?;
    for part in &mut parts {
        part.download()?;
    }
    Ok(parts.into())
}

// A future's GPU time lasts from its first poll to its end, on its own stream. Other futures that
// are polled on the same thread do not affect it.
#[measure_execution_time]
async fn refine_and_wait(mut part: Part) -> Outcome<Part> {
    for _ in 0..5 {
        refine(&mut part)?;
        part.finished().await?;
    }
    part.download()?;
    Ok(part)
}

async fn in_futures(gpu: Option<&Gpu>) -> Outcome<Vec<Part>> {
    let future = |number| -> Outcome<_> {
        let stream = gpu.map(Gpu::stream).transpose()?;
        let part = Part::new(gpu, stream.as_ref(), number)?;
        Ok(async move {
            match stream {
                Some(stream) => refine_and_wait(part).with_stream(&stream).await,
                None => refine_and_wait(part).await,
            }
        })
    };
    let (one, two) = tokio::join!(future(20)?, future(21)?);
    Ok(vec![one?, two?])
}

fn show_streams() {
    let summary = summary();
    print!("\n{summary}");
    for row in &summary.rows {
        let Some(cuda) = row.cuda else { continue };
        println!(
            "{}: {:.3} ms on {} stream(s), {:.3} ms in scopes on others",
            row.name,
            cuda.total_ns / 1e6,
            row.streams.len(),
            row.other_streams_ns.unwrap_or_default() / 1e6
        );
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome {
    let _profiler = profiler_runtime::init()?;
    let device = device::open();
    let gpu = device.as_ref().ok().map(Gpu::new).transpose()?;
    let mut parts = on_threads(gpu.as_ref())?;
    parts.extend(on_two_streams(gpu.as_ref())?);
    parts.extend(in_futures(gpu.as_ref()).await?);

    let count = parts.len();
    match &device {
        Ok(context) if device::is_simulated(context) => {
            let name = device::name(context);
            println!("{count} parts on {name}, which computes nothing: not verified");
        }
        Ok(context) => {
            part::verify(&parts)?;
            let name = device::name(context);
            println!("{count} parts on {name}, each equal to the result of the CPU");
        }
        Err(reason) => {
            part::verify(&parts)?;
            println!("{count} parts on the CPU, each verified. No GPU: {reason}");
        }
    }
    flush(Duration::from_secs(5));
    show_streams();
    Ok(())
}
