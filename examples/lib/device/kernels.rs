//! The kernels of the network, each launched by a function that says what it takes.

use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;

use crate::model::Outcome;

const PTX: &str = include_str!("network.ptx");

/// A layer: its weights with the biases as their last row, and how the loss changes with them.
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

/// The kernels, and the stream they go to.
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

    /// What a layer makes of rows of inputs, but nothing below `floor`.
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
        // SAFETY: these are the kernel's parameters; the memory holds as many rows.
        unsafe { launch.launch(threads(count)) }?;
        Ok(())
    }

    /// Probabilities from rows of values, in place.
    pub(super) fn softmax(
        &self,
        rows: u32,
        classes: u32,
        values: &mut CudaSlice<f32>,
    ) -> Result<(), DriverError> {
        let mut launch = self.stream.launch_builder(&self.softmax);
        launch.arg(&rows).arg(&classes).arg(values);
        // SAFETY: these are the kernel's parameters; the memory holds as many rows.
        unsafe { launch.launch(threads(rows)) }?;
        Ok(())
    }

    /// How the mean loss changes with the values that the probabilities were made from; adds the losses up.
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
        // SAFETY: these are the kernel's parameters; the memory holds as many rows.
        unsafe { launch.launch(threads(rows)) }?;
        Ok(())
    }

    /// How the loss changes with the weights of a layer.
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
        // SAFETY: these are the kernel's parameters; the memory holds as many rows and weights.
        unsafe { launch.launch(threads(count)) }?;
        Ok(())
    }

    /// The errors of a layer's inputs, which were rectified, from those of its outputs.
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
        // SAFETY: these are the kernel's parameters; the memory holds as many rows.
        unsafe { launch.launch(threads(count)) }?;
        Ok(())
    }

    /// One step down the gradient of a layer.
    pub(super) fn descend(&self, layer: &mut Layer, rate: f32) -> Result<(), DriverError> {
        let count = layer.count();
        let mut launch = self.stream.launch_builder(&self.descend);
        launch.arg(&count).arg(&rate);
        launch.arg(&layer.gradient).arg(&mut layer.weights);
        // SAFETY: these are the kernel's parameters; the memory holds as many weights.
        unsafe { launch.launch(threads(count)) }?;
        Ok(())
    }
}

/// A thread for each of `count` numbers, and one at least: a launch of none is refused.
fn threads(count: u32) -> LaunchConfig {
    const BLOCK: u32 = 128;
    LaunchConfig {
        grid_dim: (count.div_ceil(BLOCK).max(1), 1, 1),
        block_dim: (BLOCK, 1, 1),
        shared_mem_bytes: 0,
    }
}
