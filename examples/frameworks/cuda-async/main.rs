//! NVIDIA's cuda-async under tokio: each operation runs on the stream that a policy chooses, and its kernel stands at the function
//! that asked for it.
//!
//! ```text
//! cargo run --release -p cuda-async-streams
//! ```

use std::sync::Arc;

use cuda_async::device_context::{load_module_from_ptx, with_device};
use cuda_async::launch::AsyncKernelLaunchBuilder;
use cuda_async::prelude::*;
use cuda_core::{Context, CudaFunction, LaunchConfig, Stream};
use profiler_runtime::{cuda, measured};

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
    let model = Arc::new(Model::load()?);
    // The profiler finds the driver here, and not in the first functions.
    println!("{}", cuda::status());
    let _profiler = profiler_runtime::init()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    runtime.block_on(requests(Arc::clone(&model)))?;
    model.sample()?;
    let stream = with_device(0, Context::new_stream)??;
    model.sample_on(&stream)?;
    with_device(0, |device| device.synchronize())??;
    profiler_runtime::flush(std::time::Duration::from_secs(10));
    println!("{}", profiler_runtime::summary());
    Ok(())
}
