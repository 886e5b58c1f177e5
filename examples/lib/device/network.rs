//! The network of [`network`](crate::network) on a GPU: the same steps, as kernels.

use std::fmt;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream};

use super::kernels::{Kernels, Layer};
use super::{is_simulated, name};
use crate::digits::{CLASSES, Digits, PIXELS};
use crate::model::{Model, Outcome};
use crate::network::Network;

/// The network on a GPU, with buffers for a batch.
pub struct OnGpu {
    name: String,
    kernels: Kernels,
    hidden: Layer,
    output: Layer,
    /// The labels of the batch, and its largest size.
    expected: Vec<usize>,
    capacity: usize,
    images: CudaSlice<f32>,
    labels: CudaSlice<u32>,
    units: CudaSlice<f32>,
    unit_errors: CudaSlice<f32>,
    probabilities: CudaSlice<f32>,
    errors: CudaSlice<f32>,
    /// The losses per row, summed over all batches since the last read.
    losses: CudaSlice<f32>,
}

impl fmt::Debug for OnGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnGpu")
            .field("name", &self.name)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

impl OnGpu {
    /// Copies a network to a GPU, with buffers for batches of `rows` images, and verifies that it
    /// trains there as on the CPU.
    ///
    /// # Errors
    ///
    /// Returns an error if the device fails, or if its results differ from those of the CPU.
    pub fn new(context: &Arc<CudaContext>, network: &Network, rows: usize) -> Outcome<Self> {
        if is_simulated(context) {
            let name = name(context);
            println!("{name} computes nothing: loss and accuracy are meaningless");
        } else {
            Self::unchecked(context, network, rows)?.check(network.clone())?;
        }
        Self::unchecked(context, network, rows)
    }

    fn unchecked(context: &Arc<CudaContext>, network: &Network, capacity: usize) -> Outcome<Self> {
        let kernels = Kernels::load(context)?;
        let stream = &kernels.stream;
        let units = network.hidden_units();
        let [hidden, output] = network.weights_and_biases();
        Ok(Self {
            name: name(context),
            hidden: Layer::new(stream, &hidden, units)?,
            output: Layer::new(stream, &output, CLASSES)?,
            expected: Vec::new(),
            capacity,
            images: stream.alloc_zeros(capacity * PIXELS)?,
            labels: stream.alloc_zeros(capacity)?,
            units: stream.alloc_zeros(capacity * units)?,
            unit_errors: stream.alloc_zeros(capacity * units)?,
            probabilities: stream.alloc_zeros(capacity * CLASSES)?,
            errors: stream.alloc_zeros(capacity * CLASSES)?,
            losses: stream.alloc_zeros(capacity)?,
            kernels,
        })
    }

    /// Trains with one batch on both devices, and compares the weights.
    fn check(&mut self, mut network: Network) -> Outcome {
        const RATE: f32 = 0.1;
        let numbers: Vec<usize> = (0..self.capacity.min(20)).collect();
        let mut batch = Digits::all().select(&numbers);
        for pixel in batch.images_mut() {
            *pixel = *pixel / 8.0 - 1.0;
        }
        self.load(batch.clone())?;
        self.forward()?;
        self.backward()?;
        self.update(RATE)?;
        let activations = network.forward(&batch);
        let correct = activations.correct(&batch).abs_diff(self.correct()?);
        let loss = f64::from(activations.loss(&batch));
        let mut error = (self.take_loss()? - loss).abs();
        network.learn(&batch, RATE);
        let [hidden, output] = network.weights_and_biases();
        for (layer, expected) in [(&self.hidden, hidden), (&self.output, output)] {
            let weights = self.kernels.stream.clone_dtoh(&layer.weights)?;
            for (weight, expected) in weights.iter().zip(&expected) {
                // `f32::max` would ignore a NaN.
                let difference = f64::from((weight - expected).abs());
                error = if difference <= error {
                    error
                } else {
                    difference
                };
            }
        }
        // The sums are taken in another order, so they are rounded differently.
        if error < 1e-3 && correct <= 1 {
            return Ok(());
        }
        Err(format!("the results of the GPU differ from those of the CPU by {error}").into())
    }

    fn rows(&self) -> Outcome<u32> {
        Ok(u32::try_from(self.expected.len())?)
    }
}

impl Model for OnGpu {
    fn load(&mut self, batch: Digits) -> Outcome {
        if batch.len() > self.capacity {
            let (len, capacity) = (batch.len(), self.capacity);
            return Err(
                format!("a batch of {len} images exceeds the capacity of {capacity}").into(),
            );
        }
        let labels: Result<Vec<u32>, _> = batch
            .labels()
            .iter()
            .map(|&label| label.try_into())
            .collect();
        let stream = &self.kernels.stream;
        stream.memcpy_htod(batch.images(), &mut self.images)?;
        stream.memcpy_htod(&labels?, &mut self.labels)?;
        batch.labels().clone_into(&mut self.expected);
        Ok(())
    }

    fn forward(&mut self) -> Outcome {
        let rows = self.rows()?;
        let (kernels, hidden, output) = (&self.kernels, &self.hidden, &self.output);
        kernels.affine(hidden, rows, 0.0, &self.images, &mut self.units)?;
        let lowest = f32::NEG_INFINITY;
        kernels.affine(output, rows, lowest, &self.units, &mut self.probabilities)?;
        kernels.softmax(rows, output.outputs, &mut self.probabilities)?;
        Ok(())
    }

    fn backward(&mut self) -> Outcome {
        let rows = self.rows()?;
        let (kernels, hidden, output) = (&self.kernels, &mut self.hidden, &mut self.output);
        let (units, errors) = (&self.units, &mut self.errors);
        let (labels, losses) = (&self.labels, &mut self.losses);
        let shape = [rows, output.outputs];
        kernels.errors(shape, labels, &self.probabilities, errors, losses)?;
        kernels.gradient(output, rows, units, errors)?;
        kernels.pass_back(output, rows, errors, units, &mut self.unit_errors)?;
        kernels.gradient(hidden, rows, &self.images, &self.unit_errors)?;
        Ok(())
    }

    fn update(&mut self, rate: f32) -> Outcome {
        self.kernels.descend(&mut self.hidden, rate)?;
        self.kernels.descend(&mut self.output, rate)?;
        Ok(())
    }

    fn take_loss(&mut self) -> Outcome<f64> {
        let stream = &self.kernels.stream;
        let losses = stream.clone_dtoh(&self.losses)?;
        stream.memset_zeros(&mut self.losses)?;
        Ok(losses.into_iter().map(f64::from).sum())
    }

    fn correct(&self) -> Outcome<usize> {
        let probabilities = self.kernels.stream.clone_dtoh(&self.probabilities)?;
        let rows = probabilities.chunks_exact(CLASSES).zip(&self.expected);
        let correct = rows.filter(|(row, label)| {
            let likeliest = (0..CLASSES).max_by(|&a, &b| row[a].total_cmp(&row[b]));
            likeliest == Some(**label)
        });
        Ok(correct.count())
    }

    fn stream(&self) -> Option<Arc<CudaStream>> {
        Some(Arc::clone(&self.kernels.stream))
    }

    fn device_name(&self) -> String {
        self.name.clone()
    }
}
