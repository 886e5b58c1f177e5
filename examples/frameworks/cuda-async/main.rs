//! NVIDIA's cuda-async under tokio: a policy on each worker binds the stream that an operation gets to the function that asked for
//! it.
//!
//! ```text
//! cargo run --release -p cuda-async-streams
//! ```

use std::sync::Arc;

use cuda_async::device_context::{
    load_module_from_ptx, new_device_context, with_device, with_global_device_context_mut,
};
use cuda_async::launch::AsyncKernelLaunchBuilder;
use cuda_async::prelude::*;
use cuda_async::scheduling_policies::{SchedulingPolicy, StreamPoolRoundRobin};
use cuda_core::{Context, CudaFunction, LaunchConfig, Stream};
use profiler_runtime::{cuda, measured};

/// Chooses streams as cuda-async does by itself, and tells the profiler.
struct Measured(StreamPoolRoundRobin);

impl SchedulingPolicy for Measured {
    fn next_stream(&self) -> Result<Arc<Stream>, DeviceError> {
        let stream = self.0.next_stream()?;
        let (raw, context) = (stream.cu_stream().cast(), stream.context().cu_ctx().cast());
        // SAFETY: the pool is this thread's, and what is measured ends before the thread.
        cuda::bind_stream(unsafe { cuda::Stream::from_raw(raw, context) });
        Ok(stream)
    }
}

/// Gives this thread the policy. Each thread has one of its own, so each worker calls this as it starts.
fn measure_streams() {
    let install = || {
        let streams = with_device(0, |device| StreamPoolRoundRobin::new(device, 4))??;
        let context = new_device_context(0, Arc::new(Measured(streams)))?;
        with_global_device_context_mut(0, |current| *current = context)
    };
    install().expect("there is a device");
}

const PTX: &str = "
.version 7.0
.target sm_75
.address_size 64
.visible .entry attention() { ret; }
.visible .entry feed_forward() { ret; }
.visible .entry sample() { ret; }
";

/// A kernel that waits for its stream.
fn launch(
    kernel: &Arc<CudaFunction>,
) -> impl DeviceOp<Output = ()> + IntoFuture<Output = Result<(), DeviceError>, IntoFuture: Send> {
    let one = LaunchConfig {
        grid_dim: (1, 1, 1),
        block_dim: (1, 1, 1),
        shared_mem_bytes: 0,
    };
    // SAFETY: the kernels take no arguments.
    unsafe { AsyncKernelLaunchBuilder::new(Arc::clone(kernel)).finalize_unchecked(one) }
}

struct Model {
    attention: Arc<CudaFunction>,
    feed_forward: Arc<CudaFunction>,
    sample: Arc<CudaFunction>,
}

impl Model {
    fn load() -> Result<Self, DeviceError> {
        let module = load_module_from_ptx(PTX, 0)?;
        let kernel = |name| module.load_function(name).map(Arc::new);
        Ok(Self {
            attention: kernel("attention")?,
            feed_forward: kernel("feed_forward")?,
            sample: kernel("sample")?,
        })
    }

    /// Several operations, each on the next stream.
    #[measured(name = "layer")]
    async fn layer(&self) -> Result<(), DeviceError> {
        for _ in 0..3 {
            launch(&self.attention).await?;
        }
        launch(&self.feed_forward).await
    }

    #[measured(name = "forward")]
    async fn forward(&self) -> Result<(), DeviceError> {
        for _ in 0..2 {
            self.layer().await?;
        }
        Ok(())
    }

    /// Waits for its operation without a future.
    #[measured(name = "sample")]
    fn sample(&self) -> Result<(), DeviceError> {
        launch(&self.sample).sync()
    }

    /// Names a stream itself, which no policy chooses.
    #[measured(name = "sample_on")]
    fn sample_on(&self, stream: &Arc<Stream>) -> Result<(), DeviceError> {
        launch(&self.sample).sync_on(stream)
    }
}

async fn requests(model: Arc<Model>) -> Result<(), DeviceError> {
    let request = || {
        let model = Arc::clone(&model);
        tokio::spawn(async move {
            model.forward().await?;
            model.sample()
        })
    };
    for request in [request(), request(), request()] {
        request.await.expect("it does not panic")?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    measure_streams();
    let model = Arc::new(Model::load()?);
    // The profiler finds the driver here, and not in the first functions.
    println!("{}", cuda::status());
    let _profiler = profiler_runtime::init()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .on_thread_start(measure_streams)
        .build()?;
    runtime.block_on(requests(Arc::clone(&model)))?;
    model.sample()?;
    if std::env::args().any(|argument| argument == "--explicit") {
        let stream = with_device(0, Context::new_stream)??;
        model.sample_on(&stream)?;
    }
    with_device(0, |device| device.synchronize())??;
    profiler_runtime::flush(std::time::Duration::from_secs(10));
    println!("{}", profiler_runtime::summary());
    Ok(())
}
