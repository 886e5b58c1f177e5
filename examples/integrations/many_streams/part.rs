//! A part of the work: numbers that each follow the logistic map `x = rate * x * (1 - x)`.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, LaunchConfig, PinnedHostSlice, PushKernelArg,
};
use cudarc::nvrtc::Ptx;

/// A result whose error can be sent to another thread.
pub(crate) type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const PTX: &str = include_str!("logistic.ptx");
const COUNT: u16 = 1 << 15;
/// The map is chaotic at this rate: an error in a single bit grows until all numbers are wrong.
const RATE: f32 = 3.9;

/// The device and the kernel.
pub(crate) struct Gpu {
    context: Arc<CudaContext>,
    kernel: CudaFunction,
}

impl Gpu {
    pub(crate) fn new(context: &Arc<CudaContext>) -> Outcome<Self> {
        let module = context.load_module(Ptx::from_src(PTX))?;
        Ok(Self {
            context: Arc::clone(context),
            kernel: module.load_function("logistic")?,
        })
    }

    pub(crate) fn stream(&self) -> Outcome<Arc<CudaStream>> {
        Ok(self.context.new_stream()?)
    }
}

/// The memory that holds the numbers.
struct OnGpu {
    stream: Arc<CudaStream>,
    kernel: CudaFunction,
    values: CudaSlice<f32>,
    /// Pinned: only copies to pinned memory run asynchronously.
    copy: PinnedHostSlice<f32>,
}

pub(crate) struct Part {
    start: Vec<f32>,
    values: Vec<f32>,
    rounds: u32,
    gpu: Option<OnGpu>,
}

impl Part {
    /// Creates part `number`, on a GPU if one is given with a stream.
    pub(crate) fn new(
        gpu: Option<&Gpu>,
        stream: Option<&Arc<CudaStream>>,
        number: u16,
    ) -> Outcome<Self> {
        let step = 0.5 / f32::from(COUNT);
        let first = 0.1 + f32::from(number) / 1000.0;
        let start: Vec<f32> = (0..COUNT)
            .map(|item| first + step * f32::from(item))
            .collect();
        let on_gpu = |(gpu, stream): (&Gpu, &Arc<CudaStream>)| -> Outcome<OnGpu> {
            Ok(OnGpu {
                stream: Arc::clone(stream),
                kernel: gpu.kernel.clone(),
                values: stream.clone_htod(&start)?,
                // SAFETY: any bits are valid numbers, and they are written before they are read.
                copy: unsafe { gpu.context.alloc_pinned(COUNT.into()) }?,
            })
        };
        Ok(Self {
            gpu: gpu.zip(stream).map(on_gpu).transpose()?,
            values: start.clone(),
            start,
            rounds: 0,
        })
    }

    /// Computes some rounds. On a GPU, launches them.
    pub(crate) fn iterate(&mut self, rounds: u32) -> Outcome {
        self.rounds += rounds;
        let Some(gpu) = &mut self.gpu else {
            iterate(&mut self.values, rounds);
            return Ok(());
        };
        let count = u32::from(COUNT);
        let mut launch = gpu.stream.launch_builder(&gpu.kernel);
        launch
            .arg(&count)
            .arg(&rounds)
            .arg(&RATE)
            .arg(&mut gpu.values);
        // SAFETY: these are the kernel's parameters, and there are `COUNT` values.
        unsafe { launch.launch(LaunchConfig::for_num_elems(count)) }?;
        Ok(())
    }

    /// Copies the numbers to host memory on another stream, without waiting.
    pub(crate) fn copy_back(&mut self, stream: Option<&Arc<CudaStream>>) -> Outcome {
        if let Some((gpu, stream)) = self.gpu.as_mut().zip(stream) {
            // cudarc makes the copy wait for the kernel, and the next kernel for the copy.
            stream.memcpy_dtoh(&gpu.values, &mut gpu.copy)?;
        }
        Ok(())
    }

    /// Waits for all work, and copies the numbers back.
    pub(crate) fn download(&mut self) -> Outcome {
        if let Some(gpu) = &self.gpu {
            self.values = gpu.stream.clone_dtoh(&gpu.values)?;
            gpu.stream.synchronize()?;
        }
        Ok(())
    }

    /// Waits until the device has finished the launched work, and lets other futures run until
    /// then.
    pub(crate) async fn finished(&self) -> Outcome {
        if let Some(gpu) = &self.gpu {
            let event = gpu.stream.record_event(None)?;
            while !event.try_is_complete()? {
                tokio::time::sleep(Duration::from_micros(100)).await;
            }
        } else {
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

fn iterate(values: &mut [f32], rounds: u32) {
    for _ in 0..rounds {
        for value in &mut *values {
            *value = RATE * *value * (1.0 - *value);
        }
    }
}

/// Recomputes all parts on the CPU. The kernel rounds as the CPU does, so all bits must be equal.
pub(crate) fn verify(parts: &[Part]) -> Result<(), String> {
    for (index, part) in parts.iter().enumerate() {
        let mut expected = part.start.clone();
        iterate(&mut expected, part.rounds);
        let pairs = expected.iter().zip(&part.values);
        let wrong = pairs.filter(|(expected, value)| expected.to_bits() != value.to_bits());
        let wrong = wrong.count();
        if wrong > 0 {
            return Err(format!("{wrong} numbers of part {index} are wrong"));
        }
    }
    Ok(())
}
