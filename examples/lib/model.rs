//! A trainable model: the network on the CPU or on a GPU.

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::CudaStream;

use crate::device::{self, OnGpu};
use crate::digits::Digits;
use crate::network::{Activations, Gradients, Network};

/// The result of a step of the model.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A network that is trained step by step, and keeps the intermediate results between the steps.
///
/// On a GPU, a step returns once its work is launched.
pub trait Model {
    /// Loads a batch for training or testing.
    ///
    /// # Errors
    ///
    /// Returns an error if the device fails, as do all other steps.
    fn load(&mut self, batch: Digits) -> Outcome;

    /// Computes the outputs for the batch.
    ///
    /// # Errors
    ///
    /// See [`load`](Self::load).
    fn forward(&mut self) -> Outcome;

    /// Computes the gradient of the mean loss of the batch.
    ///
    /// # Errors
    ///
    /// See [`load`](Self::load).
    fn backward(&mut self) -> Outcome;

    /// Takes one step of gradient descent with the learning rate `rate`.
    ///
    /// # Errors
    ///
    /// See [`load`](Self::load).
    fn update(&mut self, rate: f32) -> Outcome;

    /// Returns the sum of the mean losses of all batches since the last call that went backward,
    /// and resets it. Waits for the device.
    ///
    /// # Errors
    ///
    /// See [`load`](Self::load).
    fn take_loss(&mut self) -> Outcome<f64>;

    /// Counts the images of the batch that were classified correctly. Waits for the device.
    ///
    /// # Errors
    ///
    /// See [`load`](Self::load).
    fn correct(&self) -> Outcome<usize>;

    /// Returns the stream that the model uses, or `None` on the CPU.
    fn stream(&self) -> Option<Arc<CudaStream>> {
        None
    }

    /// Names the device that the model uses.
    fn device_name(&self) -> String {
        "the CPU".to_owned()
    }
}

/// Creates a model on a GPU if there is one, else on the CPU. `rows` is the size of the largest
/// batch.
///
/// # Errors
///
/// Returns an error if there is a GPU that fails, or whose results differ from those of the CPU.
///
/// # Examples
///
/// ```
/// use profiler_examples::digits::Digits;
/// use profiler_examples::model;
/// use profiler_examples::network::Network;
/// use profiler_examples::random::Random;
///
/// let network = Network::new(16, &mut Random::seeded(1));
/// let mut model = model::create(network, 32)?;
/// model.load(Digits::all().select(&[0, 1, 2]))?;
/// model.forward()?;
/// model.backward()?;
/// model.update(0.05)?;
/// println!("a loss of {} on {}", model.take_loss()?, model.device_name());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn create(network: Network, rows: usize) -> Outcome<Box<dyn Model>> {
    match device::open() {
        Ok(context) => Ok(Box::new(OnGpu::new(&context, &network, rows)?)),
        Err(_) => Ok(Box::new(OnCpu::new(network))),
    }
}

/// The network on the CPU.
#[derive(Debug)]
pub struct OnCpu {
    network: Network,
    batch: Digits,
    activations: Option<Activations>,
    gradients: Option<Gradients>,
    loss: f64,
}

impl OnCpu {
    /// Creates a model that has no batch yet.
    #[must_use]
    pub fn new(network: Network) -> Self {
        Self {
            network,
            batch: Digits::default(),
            activations: None,
            gradients: None,
            loss: 0.0,
        }
    }

    fn activations(&self) -> Result<&Activations, &'static str> {
        self.activations.as_ref().ok_or("call `forward` first")
    }
}

impl Model for OnCpu {
    fn load(&mut self, batch: Digits) -> Outcome {
        self.batch = batch;
        Ok(())
    }

    fn forward(&mut self) -> Outcome {
        self.activations = Some(self.network.forward(&self.batch));
        Ok(())
    }

    fn backward(&mut self) -> Outcome {
        let activations = self.activations()?;
        let gradients = self.network.backward(&self.batch, activations);
        self.loss += f64::from(activations.loss(&self.batch));
        self.gradients = Some(gradients);
        Ok(())
    }

    fn update(&mut self, rate: f32) -> Outcome {
        let gradients = self.gradients.as_ref().ok_or("call `backward` first")?;
        self.network.update(gradients, rate);
        Ok(())
    }

    fn take_loss(&mut self) -> Outcome<f64> {
        Ok(std::mem::take(&mut self.loss))
    }

    fn correct(&self) -> Outcome<usize> {
        Ok(self.activations()?.correct(&self.batch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_model_trains_as_its_network_does() -> Outcome {
        let batch = Digits::all().select(&[0, 1, 2, 3, 4, 5]);
        let mut network = Network::new(8, &mut Random::seeded(3));
        let mut model = OnCpu::new(network.clone());
        model.load(batch.clone())?;
        for _ in 0..20 {
            model.forward()?;
            model.backward()?;
            model.update(0.01)?;
            network.learn(&batch, 0.01);
        }
        assert_eq!(
            model.network.weights_and_biases(),
            network.weights_and_biases()
        );
        Ok(())
    }

    #[test]
    fn steps_out_of_order_are_errors() {
        let mut model = OnCpu::new(Network::new(8, &mut Random::seeded(3)));
        assert!(model.backward().is_err());
        assert!(model.update(0.1).is_err());
        assert!(model.correct().is_err());
    }
}
