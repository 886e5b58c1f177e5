//! A network of candle on the GPU, measured with one line of set-up for all threads.
//!
//! No function names a stream. Spans of candle's own layers, and of this program, have GPU times as well.

use std::error::Error;

use candle_core::{D, DType, Device, Module, Tensor};
use candle_nn::{VarBuilder, ops::softmax_last_dim};
use candle_transformers::models::with_tracing::{Linear, linear};
use profiler_runtime::{Activity, Profile, ProfilerLayer, cuda, measured};
use tracing::info_span;
use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};

type Result<T> = candle_core::Result<T>;

struct Network {
    first: Linear,
    second: Linear,
}

impl Network {
    /// Prepares the weights. A real program reads them: `VarBuilder::from_mmaped_safetensors`.
    #[measured]
    fn load(device: &Device) -> Result<Self> {
        let weights = VarBuilder::zeros(DType::F32, device);
        Ok(Self {
            first: linear(64, 128, weights.pp("first"))?,
            second: linear(128, 10, weights.pp("second"))?,
        })
    }

    #[measured]
    fn hidden(&self, images: &Tensor) -> Result<Tensor> {
        self.first.forward(images)?.relu()
    }

    #[measured]
    fn probabilities(&self, hidden: &Tensor) -> Result<Tensor> {
        softmax_last_dim(&self.second.forward(hidden)?)
    }

    #[measured]
    fn forward(&self, images: &Tensor) -> Result<Tensor> {
        self.probabilities(&self.hidden(images)?)
    }
}

#[measured]
fn images(device: &Device) -> Result<Tensor> {
    Tensor::new(vec![0.5_f32; 32 * 64], device)?.reshape((32, 64))
}

/// Returns how sure the network is of its answers.
#[measured]
fn confidence(probabilities: &Tensor) -> Result<f32> {
    probabilities.max(D::Minus1)?.sum_all()?.to_scalar()
}

/// Answers requests on a thread of its own.
#[measured]
fn serve(network: &Network, requests: &Tensor) -> Result<Vec<u32>> {
    let scaled = info_span!("scale").in_scope(|| requests.affine(2.0, -1.0))?;
    network.forward(&scaled)?.argmax(D::Minus1)?.to_vec1()
}

fn work(device: &Device) -> Result<()> {
    let network = Network::load(device)?;
    let images = images(device)?;
    for _ in 0..10 {
        confidence(&network.forward(&images)?)?;
    }
    std::thread::scope(|scope| {
        let server = scope.spawn(|| (0..10).try_for_each(|_| serve(&network, &images).map(drop)));
        server.join().expect("the server does not panic")
    })
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let _profiler = profiler_runtime::init()?;
    tracing_subscriber::registry()
        .with(ProfilerLayer::new())
        .init();

    let device = Device::new_cuda(0)?;
    // For all threads: candle launches on the default stream of each.
    cuda::set_default_stream(device.as_cuda_device()?.cuda_stream());

    let (worked, trace) = Profile::builder()
        .activities([Activity::Cpu, Activity::Cuda])
        .kernels(true)
        .run(|_| work(&device));
    worked?;
    let averages = trace?.key_averages();
    println!("{averages}\n{}", averages.kernels());
    Ok(())
}
