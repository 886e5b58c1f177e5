//! The first program of torch.profiler's tutorial, line by line: one window around one inference.
//!
//! ```python
//! with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as prof:
//!     with record_function("model_inference"):
//!         model(inputs)
//!
//! print(prof.key_averages().table(sort_by="cpu_time_total", row_limit=10))
//! print(prof.key_averages(group_by_input_shape=True).table(sort_by="cpu_time_total", row_limit=10))
//! prof.export_chrome_trace("trace.json")
//! ```
//!
//! The model recognizes drawn digits. It is trained before the window begins. Where torch
//! measures operators, this program measures functions, with one attribute each.
//!
//! ```text
//! cargo run --release --example record_function [-- FILE.json]
//! ```

use std::env;
use std::path::PathBuf;

use profiler_examples::digits::{CLASSES, Digits, PIXELS};
use profiler_examples::model::Outcome;
use profiler_examples::network::Network;
use profiler_examples::random::Random;
use profiler_runtime::report::{GroupBy, SortKey, TableOptions};
use profiler_runtime::session::ToShape;
use profiler_runtime::{Activity, Profile, measure_execution_time, record_function};

/// A matrix, stored row by row.
struct Tensor {
    columns: usize,
    values: Vec<f32>,
}

// `shapes = […]` records the value that this returns.
impl ToShape for Tensor {
    fn to_shape(&self) -> Box<[usize]> {
        Box::new([self.values.len() / self.columns, self.columns])
    }
}

struct Linear {
    weights: Tensor,
    biases: Vec<f32>,
}

struct Model {
    hidden: Linear,
    output: Linear,
}

// The shapes are only evaluated in a window that records shapes.
#[measure_execution_time(name = "linear", shapes = [x, layer.weights, layer.biases.len()])]
fn linear(x: &Tensor, layer: &Linear) -> Tensor {
    let columns = layer.biases.len();
    let mut values = Vec::with_capacity(x.values.len() / x.columns * columns);
    for row in x.values.chunks_exact(x.columns) {
        let product = matrix_product(row, &layer.weights);
        values.extend(
            product
                .iter()
                .zip(&layer.biases)
                .map(|(value, bias)| value + bias),
        );
    }
    Tensor { columns, values }
}

fn matrix_product(row: &[f32], weights: &Tensor) -> Vec<f32> {
    let mut sums = vec![0.0; weights.columns];
    for (weights, input) in weights.values.chunks_exact(weights.columns).zip(row) {
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum += weight * input;
        }
    }
    sums
}

#[measure_execution_time(name = "relu", shapes = [x])]
fn relu(mut x: Tensor) -> Tensor {
    for value in &mut x.values {
        *value = value.max(0.0);
    }
    x
}

#[measure_execution_time(name = "softmax", shapes = [x])]
fn softmax(mut x: Tensor) -> Tensor {
    for row in x.values.chunks_exact_mut(x.columns) {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for value in &mut *row {
            *value = (*value - largest).exp();
        }
        let sum: f32 = row.iter().sum();
        for value in row {
            *value /= sum;
        }
    }
    x
}

impl Model {
    /// Returns a trained model.
    fn trained(digits: &Digits) -> Self {
        let mut network = Network::new(128, &mut Random::seeded(17));
        for _ in 0..40 {
            network.learn(digits, 0.5);
        }
        let mut layers = network
            .layers()
            .into_iter()
            .map(|(weights, biases)| Linear {
                weights: Tensor {
                    columns: biases.len(),
                    values: weights.to_vec(),
                },
                biases: biases.to_vec(),
            });
        let mut layer = || {
            layers
                .next()
                .unwrap_or_else(|| unreachable!("there are two layers"))
        };
        Self {
            hidden: layer(),
            output: layer(),
        }
    }

    fn forward(&self, inputs: &Tensor) -> Tensor {
        softmax(linear(&relu(linear(inputs, &self.hidden)), &self.output))
    }
}

/// Counts the rows whose largest value is at the position of the label.
fn correct(outputs: &Tensor, labels: &[usize]) -> usize {
    let likeliest = |row: &[f32]| (0..CLASSES).max_by(|&a, &b| row[a].total_cmp(&row[b]));
    let rows = outputs.values.chunks_exact(CLASSES);
    rows.zip(labels)
        .filter(|(row, label)| likeliest(row) == Some(**label))
        .count()
}

fn main() -> Outcome {
    let _profiler = profiler_runtime::init()?;
    let path = env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("trace.json"), PathBuf::from);
    let digits = Digits::all().standardised();
    let model = Model::trained(&digits);
    let inputs = Tensor {
        columns: PIXELS,
        values: digits.images().to_vec(),
    };

    let (outputs, trace) = Profile::builder()
        .activities([Activity::Cpu, Activity::Cuda])
        .record_shapes(true)
        .run(|_profile| record_function!("model_inference", { model.forward(&inputs) }));
    let trace = trace?;

    let ten = TableOptions::new()
        .sort_by(SortKey::CpuTimeTotal)
        .row_limit(10);
    println!("{}", trace.key_averages().table(&ten));
    let by_shape = GroupBy::new().group_by_input_shape(true);
    println!("{}", trace.key_averages_by(by_shape).table(&ten));
    trace.export_chrome_trace(&path)?;

    let correct = correct(&outputs, digits.labels());
    println!("{correct} of {} digits were recognized", digits.len());
    println!(
        "the trace is in {}: open it in https://ui.perfetto.dev",
        path.display()
    );
    Ok(())
}
