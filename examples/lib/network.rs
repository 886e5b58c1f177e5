//! A network with one hidden layer and its training, in plain loops over `f32`.

use crate::digits::{CLASSES, Digits, PIXELS};
use crate::random::Random;

/// Classifies digits: pixels, a hidden layer of rectified linear units, a probability for each
/// digit.
///
/// # Examples
///
/// ```
/// use profiler_examples::digits::Digits;
/// use profiler_examples::network::Network;
/// use profiler_examples::random::Random;
///
/// let digits = Digits::all();
/// let mut network = Network::new(16, &mut Random::seeded(1));
/// let before = network.forward(&digits).loss(&digits);
/// for _ in 0..5 {
///     network.learn(&digits, 0.01);
/// }
/// assert!(network.forward(&digits).loss(&digits) < before);
/// ```
#[derive(Clone, Debug)]
pub struct Network {
    hidden: Layer,
    output: Layer,
}

/// The outputs of each layer for a batch, one row per image.
#[derive(Clone, Debug)]
pub struct Activations {
    hidden: Vec<f32>,
    probabilities: Vec<f32>,
}

/// The gradient of the loss with respect to each weight.
#[derive(Clone, Debug)]
pub struct Gradients {
    hidden: Layer,
    output: Layer,
}

impl Network {
    /// Creates an untrained network.
    #[must_use]
    pub fn new(hidden: usize, random: &mut Random) -> Self {
        Self {
            hidden: Layer::random(PIXELS, hidden, random),
            output: Layer::random(hidden, CLASSES, random),
        }
    }

    /// Computes the outputs for a batch.
    #[must_use]
    pub fn forward(&self, batch: &Digits) -> Activations {
        let mut hidden = self.hidden.apply(batch.images());
        for unit in &mut hidden {
            *unit = unit.max(0.0);
        }
        let mut probabilities = self.output.apply(&hidden);
        probabilities.chunks_exact_mut(CLASSES).for_each(softmax);
        Activations {
            hidden,
            probabilities,
        }
    }

    /// Computes the gradient of the mean loss of a batch.
    #[must_use]
    pub fn backward(&self, batch: &Digits, activations: &Activations) -> Gradients {
        // The gradient of softmax and cross-entropy combined: the probabilities minus the one-hot
        // labels.
        let mut errors = activations.probabilities.clone();
        for (row, &label) in errors.chunks_exact_mut(CLASSES).zip(batch.labels()) {
            row[label] -= 1.0;
        }
        let share = 1.0 / batch.len().max(1) as f32;
        for error in &mut errors {
            *error *= share;
        }

        let output = self.output.gradient(&activations.hidden, &errors);
        let mut errors = self.output.input_errors(&errors);
        for (error, &unit) in errors.iter_mut().zip(&activations.hidden) {
            if unit <= 0.0 {
                *error = 0.0;
            }
        }
        Gradients {
            hidden: self.hidden.gradient(batch.images(), &errors),
            output,
        }
    }

    /// Runs forward, backward and update with one batch.
    pub fn learn(&mut self, batch: &Digits, rate: f32) {
        let activations = self.forward(batch);
        let gradients = self.backward(batch, &activations);
        self.update(&gradients, rate);
    }

    /// Returns the weights of both layers, one row per input, with their biases as the last row.
    pub(crate) fn weights_and_biases(&self) -> [Vec<f32>; 2] {
        [&self.hidden, &self.output].map(|layer| [&*layer.weights, &*layer.biases].concat())
    }

    /// Returns the weights of both layers, one row per input, and their biases.
    #[must_use]
    pub fn layers(&self) -> [(&[f32], &[f32]); 2] {
        [&self.hidden, &self.output].map(|layer| (&*layer.weights, &*layer.biases))
    }

    /// Returns the number of units in the hidden layer.
    pub(crate) const fn hidden_units(&self) -> usize {
        self.hidden.outputs()
    }

    /// Takes one step of gradient descent with the learning rate `rate`.
    pub fn update(&mut self, gradients: &Gradients, rate: f32) {
        self.hidden.descend(&gradients.hidden, rate);
        self.output.descend(&gradients.output, rate);
    }
}

impl Activations {
    /// Returns the mean cross-entropy of a batch.
    #[must_use]
    pub fn loss(&self, batch: &Digits) -> f32 {
        let rows = self.probabilities.chunks_exact(CLASSES);
        let sum: f32 = rows
            .zip(batch.labels())
            .map(|(row, &label)| -row[label].max(1e-12).ln())
            .sum();
        sum / batch.len().max(1) as f32
    }

    /// Counts the images of a batch whose most probable digit is the right one.
    #[must_use]
    pub fn correct(&self, batch: &Digits) -> usize {
        let rows = self.probabilities.chunks_exact(CLASSES);
        rows.zip(batch.labels())
            .filter(|(row, label)| {
                let likeliest = (0..CLASSES).max_by(|&a, &b| row[a].total_cmp(&row[b]));
                likeliest == Some(**label)
            })
            .count()
    }
}

/// Weights, one row of outputs per input, and biases.
#[derive(Clone, Debug)]
struct Layer {
    weights: Vec<f32>,
    biases: Vec<f32>,
}

impl Layer {
    fn random(inputs: usize, outputs: usize, random: &mut Random) -> Self {
        let scale = (6.0 / (inputs + outputs) as f32).sqrt();
        let weights = (0..inputs * outputs)
            .map(|_| scale * random.uniform())
            .collect();
        Self {
            weights,
            biases: vec![0.0; outputs],
        }
    }

    const fn outputs(&self) -> usize {
        self.biases.len()
    }

    const fn inputs(&self) -> usize {
        self.weights.len() / self.outputs()
    }

    fn apply(&self, inputs: &[f32]) -> Vec<f32> {
        let rows = inputs.len() / self.inputs();
        let mut outputs = self.biases.repeat(rows);
        let images = inputs.chunks_exact(self.inputs());
        for (outputs, inputs) in outputs.chunks_exact_mut(self.outputs()).zip(images) {
            for (weights, &input) in self.weights.chunks_exact(self.outputs()).zip(inputs) {
                add_scaled(outputs, weights, input);
            }
        }
        outputs
    }

    fn gradient(&self, inputs: &[f32], errors: &[f32]) -> Self {
        let mut weights = vec![0.0; self.weights.len()];
        let mut biases = vec![0.0; self.outputs()];
        let images = inputs.chunks_exact(self.inputs());
        for (inputs, errors) in images.zip(errors.chunks_exact(self.outputs())) {
            for (weights, &input) in weights.chunks_exact_mut(self.outputs()).zip(inputs) {
                add_scaled(weights, errors, input);
            }
            add_scaled(&mut biases, errors, 1.0);
        }
        Self { weights, biases }
    }

    /// Computes the errors of the inputs from those of the outputs.
    fn input_errors(&self, errors: &[f32]) -> Vec<f32> {
        let of_input = |weights: &[f32], errors: &[f32]| -> f32 {
            weights
                .iter()
                .zip(errors)
                .map(|(weight, error)| weight * error)
                .sum()
        };
        errors
            .chunks_exact(self.outputs())
            .flat_map(|errors| {
                self.weights
                    .chunks_exact(self.outputs())
                    .map(move |weights| of_input(weights, errors))
            })
            .collect()
    }

    fn descend(&mut self, gradient: &Self, rate: f32) {
        add_scaled(&mut self.weights, &gradient.weights, -rate);
        add_scaled(&mut self.biases, &gradient.biases, -rate);
    }
}

fn add_scaled(to: &mut [f32], from: &[f32], scale: f32) {
    for (to, from) in to.iter_mut().zip(from) {
        *to += scale * from;
    }
}

fn softmax(row: &mut [f32]) {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    for value in row.iter_mut() {
        *value = (*value - largest).exp();
    }
    let sum: f32 = row.iter().sum();
    for value in row {
        *value /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gradients_match_finite_differences() {
        let mut batch = Digits::all().select(&[0, 1, 2, 3, 4]);
        for pixel in batch.images_mut() {
            *pixel = *pixel / 8.0 - 1.0;
        }
        let network = Network::new(12, &mut Random::seeded(5));
        let gradients = network.backward(&batch, &network.forward(&batch));
        compare(&network, &batch, &gradients.output.weights, |it| {
            &mut it.output.weights
        });
        compare(&network, &batch, &gradients.output.biases, |it| {
            &mut it.output.biases
        });
        compare(&network, &batch, &gradients.hidden.weights, |it| {
            &mut it.hidden.weights
        });
        compare(&network, &batch, &gradients.hidden.biases, |it| {
            &mut it.hidden.biases
        });
    }

    fn compare(
        network: &Network,
        batch: &Digits,
        gradients: &[f32],
        parameters: fn(&mut Network) -> &mut Vec<f32>,
    ) {
        let step = 1e-2;
        let mut compared = 0;
        for (index, gradient) in gradients.iter().enumerate() {
            let loss_at = |change: f32| {
                let mut moved = network.clone();
                parameters(&mut moved)[index] += change;
                moved.forward(batch).loss(batch)
            };
            let slope = (loss_at(step) - loss_at(-step)) / (2.0 * step);
            assert!(
                (slope - gradient).abs() <= 0.005 + 0.05 * gradient.abs(),
                "{slope} {gradient}"
            );
            compared += usize::from(gradient.abs() > 0.05);
        }
        assert!(
            compared > 0,
            "some gradients must be large enough to compare"
        );
    }
}
