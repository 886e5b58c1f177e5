//! The kernels of the network, and functions that launch them with the right parameters.

use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;

use crate::model::Outcome;

const PTX: &str = include_str!("network.ptx");

/// A layer: its weights with the biases as their last row, and their gradient.
pub(super) struct Layer {
    pub(super) inputs: u32,
    pub(super) outputs: u32,
    pub(super) weights: CudaSlice<f32>,
    pub(super) gradient: CudaSlice<f32>,
}

impl Layer {
    pub(super) fn new(stream: &Arc<CudaStream>, weights: &[f32], outputs: usize) -> Outcome<Self> {
        Ok(Self {
            inputs: u32::try_from(weights.len() / outputs - 1)?,
            outputs: u32::try_from(outputs)?,
            weights: stream.clone_htod(weights)?,
            gradient: stream.alloc_zeros(weights.len())?,
        })
    }

    const fn count(&self) -> u32 {
        (self.inputs + 1) * self.outputs
    }
}

/// The kernels and the stream on which they are launched.
pub(super) struct Kernels {
    pub(super) stream: Arc<CudaStream>,
    affine: CudaFunction,
    softmax: CudaFunction,
    errors: CudaFunction,
    gradient: CudaFunction,
    pass_back: CudaFunction,
    descend: CudaFunction,
}

impl Kernels {
    pub(super) fn load(context: &Arc<CudaContext>) -> Result<Self, DriverError> {
        let module = context.load_module(Ptx::from_src(PTX))?;
        Ok(Self {
            stream: context.new_stream()?,
            affine: module.load_function("affine")?,
            softmax: module.load_function("softmax")?,
            errors: module.load_function("errors")?,
            gradient: module.load_function("gradient")?,
            pass_back: module.load_function("pass_back")?,
            descend: module.load_function("descend")?,
        })
    }

    /// Computes the outputs of a layer for rows of inputs, but at least `floor`.
    pub(super) fn affine(
        &self,
        layer: &Layer,
        rows: u32,
        floor: f32,
        inputs: &CudaSlice<f32>,
        outputs: &mut CudaSlice<f32>,
    ) -> Result<(), DriverError> {
        let count = rows * layer.outputs;
        let mut launch = self.stream.launch_builder(&self.affine);
        launch.arg(&count).arg(&layer.inputs).arg(&layer.outputs);
        launch.arg(&floor);
        launch.arg(inputs).arg(&layer.weights).arg(outputs);
        // SAFETY: these are the kernel's parameters, and the buffers hold that many rows.
        unsafe { launch.launch(threads(count)) }?;
        Ok(())
    }

    /// Applies softmax to rows of values, in place.
    pub(super) fn softmax(
        &self,
        rows: u32,
        classes: u32,
        values: &mut CudaSlice<f32>,
    ) -> Result<(), DriverError> {
        let mut launch = self.stream.launch_builder(&self.softmax);
        launch.arg(&rows).arg(&classes).arg(values);
        // SAFETY: these are the kernel's parameters, and the buffers hold that many rows.
        unsafe { launch.launch(threads(rows)) }?;
        Ok(())
    }

    /// Computes the gradient of the mean loss with respect to the inputs of softmax. Adds the
    /// cross-entropy of each row to its loss.
    pub(super) fn errors(
        &self,
        [rows, classes]: [u32; 2],
        labels: &CudaSlice<u32>,
        probabilities: &CudaSlice<f32>,
        errors: &mut CudaSlice<f32>,
        losses: &mut CudaSlice<f32>,
    ) -> Result<(), DriverError> {
        let share = 1.0 / rows.max(1) as f32;
        let mut launch = self.stream.launch_builder(&self.errors);
        launch.arg(&rows).arg(&classes).arg(&share);
        launch
            .arg(labels)
            .arg(probabilities)
            .arg(errors)
            .arg(losses);
        // SAFETY: these are the kernel's parameters, and the buffers hold that many rows.
        unsafe { launch.launch(threads(rows)) }?;
        Ok(())
    }

    /// Computes the gradient of the loss with respect to the weights of a layer.
    pub(super) fn gradient(
        &self,
        layer: &mut Layer,
        rows: u32,
        inputs: &CudaSlice<f32>,
        errors: &CudaSlice<f32>,
    ) -> Result<(), DriverError> {
        let count = layer.count();
        let mut launch = self.stream.launch_builder(&self.gradient);
        launch.arg(&count).arg(&rows);
        launch.arg(&layer.inputs).arg(&layer.outputs);
        launch.arg(inputs).arg(errors).arg(&mut layer.gradient);
        // SAFETY: these are the kernel's parameters, and the buffers hold that many rows and
        // weights.
        unsafe { launch.launch(threads(count)) }?;
        Ok(())
    }

    /// Computes the errors of a layer's inputs, which were rectified, from those of its outputs.
    pub(super) fn pass_back(
        &self,
        layer: &Layer,
        rows: u32,
        errors: &CudaSlice<f32>,
        inputs: &CudaSlice<f32>,
        passed: &mut CudaSlice<f32>,
    ) -> Result<(), DriverError> {
        let count = rows * layer.inputs;
        let mut launch = self.stream.launch_builder(&self.pass_back);
        launch.arg(&count).arg(&layer.inputs).arg(&layer.outputs);
        launch
            .arg(&layer.weights)
            .arg(errors)
            .arg(inputs)
            .arg(passed);
        // SAFETY: these are the kernel's parameters, and the buffers hold that many rows.
        unsafe { launch.launch(threads(count)) }?;
        Ok(())
    }

    /// Takes one step of gradient descent for a layer.
    pub(super) fn descend(&self, layer: &mut Layer, rate: f32) -> Result<(), DriverError> {
        let count = layer.count();
        let mut launch = self.stream.launch_builder(&self.descend);
        launch.arg(&count).arg(&rate);
        launch.arg(&layer.gradient).arg(&mut layer.weights);
        // SAFETY: these are the kernel's parameters, and the buffers hold that many weights.
        unsafe { launch.launch(threads(count)) }?;
        Ok(())
    }
}

/// Returns a launch configuration with a thread for each of `count` numbers, and at least one: an
/// empty launch is an error.
fn threads(count: u32) -> LaunchConfig {
    const BLOCK: u32 = 128;
    LaunchConfig {
        grid_dim: (count.div_ceil(BLOCK).max(1), 1, 1),
        block_dim: (BLOCK, 1, 1),
        shared_mem_bytes: 0,
    }
}
