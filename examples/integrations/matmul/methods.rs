//! The methods to multiply two matrices on a GPU.

use std::error::Error;
use std::sync::Arc;

use cudarc::cublas::sys::cublasOperation_t::CUBLAS_OP_N;
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::{CompileOptions, Ptx, compile_ptx_with_opts};
use profiler_examples::device;

use crate::SIDE;

/// One thread per element of the product, which reads a row and a column from global memory.
const PLAIN: &str = include_str!("plain.ptx");
/// One thread per element, but a block of threads loads each tile of 16 x 16 elements once for all
/// of them.
const TILED: &str = include_str!("tiled.cu");

/// Two matrices and a buffer for their product, row by row.
pub(crate) struct Matrices {
    left: CudaSlice<f32>,
    right: CudaSlice<f32>,
    product: CudaSlice<f32>,
}

impl Matrices {
    pub(crate) fn new(
        stream: &Arc<CudaStream>,
        left: &[f32],
        right: &[f32],
    ) -> Result<Self, DriverError> {
        Ok(Self {
            left: stream.clone_htod(left)?,
            right: stream.clone_htod(right)?,
            product: stream.alloc_zeros(SIDE * SIDE)?,
        })
    }

    pub(crate) fn product(&self, stream: &Arc<CudaStream>) -> Result<Vec<f32>, DriverError> {
        stream.clone_dtoh(&self.product)
    }
}

/// A method to multiply.
pub(crate) enum Method {
    Cublas(CudaBlas),
    Kernel(&'static str, CudaFunction),
}

impl Method {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Cublas(_) => "cuBLAS",
            Self::Kernel(name, _) => name,
        }
    }

    /// Launches a product.
    pub(crate) fn multiply(
        &self,
        stream: &CudaStream,
        matrices: &mut Matrices,
    ) -> Result<(), Box<dyn Error>> {
        let Matrices {
            left,
            right,
            product,
        } = matrices;
        match self {
            Self::Cublas(blas) => {
                let config = config()?;
                // cuBLAS stores matrices column by column, so each matrix here is its transpose
                // there. The product in our order is that of the second matrix with the first in
                // its order.
                // SAFETY: all matrices have as many rows and columns as `config` says.
                unsafe { blas.gemm(config, right, left, product) }?;
            }
            Self::Kernel(_, function) => {
                let side = u32::try_from(SIDE)?;
                let mut launch = stream.launch_builder(function);
                launch.arg(&side).arg(&*left).arg(&*right).arg(product);
                // SAFETY: both kernels have these parameters, and the matrices that many rows and
                // columns.
                unsafe { launch.launch(tiles(side)) }?;
            }
        }
        Ok(())
    }
}

fn config() -> Result<GemmConfig<f32>, Box<dyn Error>> {
    let side = i32::try_from(SIDE)?;
    Ok(GemmConfig {
        transa: CUBLAS_OP_N,
        transb: CUBLAS_OP_N,
        m: side,
        n: side,
        k: side,
        alpha: 1.0,
        lda: side,
        ldb: side,
        beta: 0.0,
        ldc: side,
    })
}

/// One thread per element, in blocks of 16 x 16.
fn tiles(side: u32) -> LaunchConfig {
    LaunchConfig {
        grid_dim: (side / 16, side / 16, 1),
        block_dim: (16, 16, 1),
        shared_mem_bytes: 0,
    }
}

/// Returns the available methods, and the reasons why the others are missing.
pub(crate) fn all(
    context: &Arc<CudaContext>,
    stream: &Arc<CudaStream>,
) -> Result<(Vec<Method>, Vec<String>), DriverError> {
    let plain = load(context, Ptx::from_src(PLAIN), "matmul_plain")?;
    let mut methods = vec![Method::Kernel("plain kernel", plain)];
    let mut missing = Vec::new();
    match tiled(context) {
        Ok(function) => methods.push(Method::Kernel("tiled kernel", function)),
        Err(reason) => missing.push(format!("the kernel compiled by NVRTC, because {reason}")),
    }
    match cublas(context, stream) {
        Ok(blas) => methods.push(Method::Cublas(blas)),
        Err(reason) => missing.push(format!("cuBLAS, because {reason}")),
    }
    Ok((methods, missing))
}

fn load(context: &Arc<CudaContext>, ptx: Ptx, name: &str) -> Result<CudaFunction, DriverError> {
    context.load_module(ptx)?.load_function(name)
}

fn tiled(context: &Arc<CudaContext>) -> Result<CudaFunction, String> {
    // cudarc panics if a library is missing.
    // SAFETY: this loads the library and unloads it again, which any program may do.
    if !unsafe { cudarc::nvrtc::sys::is_culib_present() } {
        return Err("libnvrtc cannot be loaded (a CUDA toolkit has it)".to_owned());
    }
    let options = CompileOptions {
        arch: Some("compute_75"),
        ..CompileOptions::default()
    };
    let ptx = compile_ptx_with_opts(TILED, options)
        .map_err(|error| format!("NVRTC cannot compile it: {error}"))?;
    // An NVRTC that is newer than the driver generates PTX that the driver cannot read.
    load(context, ptx, "matmul_tiled")
        .map_err(|error| format!("the driver rejects the code that NVRTC generated: {error}"))
}

fn cublas(context: &CudaContext, stream: &Arc<CudaStream>) -> Result<CudaBlas, String> {
    if device::is_simulated(context) {
        return Err("it needs a real device".to_owned());
    }
    // SAFETY: as above.
    if !unsafe { cudarc::cublas::sys::is_culib_present() } {
        return Err("libcublas cannot be loaded (a CUDA toolkit has it)".to_owned());
    }
    CudaBlas::new(Arc::clone(stream)).map_err(|error| format!("it does not start: {error}"))
}
