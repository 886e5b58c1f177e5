//! What learns: the network on the CPU, or the same network on a GPU.

use std::error::Error;
use std::sync::Arc;

use cudarc::driver::CudaStream;

use crate::device::{self, OnGpu};
use crate::digits::Digits;
use crate::network::{Activations, Gradients, Network};

/// What a step gives, or why it could not be taken.
pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A network that learns step by step, and keeps in between what the steps hand on.
///
/// On a GPU a step returns when its work is launched.
pub trait Model {
    /// Takes a batch to learn from, or to be tested with.
    ///
    /// # Errors
    ///
    /// If the device refuses; so with all other steps.
    fn load(&mut self, batch: Digits) -> Outcome;

    /// What the network makes of the batch.
    ///
    /// # Errors
    ///
    /// See [`load`](Self::load).
    fn forward(&mut self) -> Outcome;

    /// How the mean loss of the batch changes with each weight.
    ///
    /// # Errors
    ///
    /// See [`load`](Self::load).
    fn backward(&mut self) -> Outcome;

    /// One step down the gradient, `rate` long.
    ///
    /// # Errors
    ///
    /// See [`load`](Self::load).
    fn update(&mut self, rate: f32) -> Outcome;

    /// The sum of the mean losses of all batches that went backward since it was last asked. Waits for the
    /// device.
    ///
    /// # Errors
    ///
    /// See [`load`](Self::load).
    fn take_loss(&mut self) -> Outcome<f64>;

    /// How many images of the batch were taken for what they are. Waits for the device.
    ///
    /// # Errors
    ///
    /// See [`load`](Self::load).
    fn correct(&self) -> Outcome<usize>;

    /// The stream it works on; none on the CPU.
    fn stream(&self) -> Option<Arc<CudaStream>> {
        None
    }

    /// Where it works, in words.
    fn place(&self) -> String {
        "the CPU".to_owned()
    }
}

/// The network on a GPU where there is one, else on the CPU. `rows` is the size of the largest batch.
///
/// # Errors
///
/// If there is a GPU that refuses, or computes something else than the CPU does.
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
/// let mut model = model::of(network, 32)?;
/// model.load(Digits::all().select(&[0, 1, 2]))?;
/// model.forward()?;
/// model.backward()?;
/// model.update(0.05)?;
/// println!("a loss of {} on {}", model.take_loss()?, model.place());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn of(network: Network, rows: usize) -> Outcome<Box<dyn Model>> {
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
    /// The network before its first batch.
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
        self.activations.as_ref().ok_or("go forward first")
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
        let gradients = self.gradients.as_ref().ok_or("go backward first")?;
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
    fn step_by_step_it_learns_what_the_network_learns_at_once() -> Outcome {
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
    fn steps_out_of_order_are_refused() {
        let mut model = OnCpu::new(Network::new(8, &mut Random::seeded(3)));
        assert!(model.backward().is_err());
        assert!(model.update(0.1).is_err());
        assert!(model.correct().is_err());
    }
}
