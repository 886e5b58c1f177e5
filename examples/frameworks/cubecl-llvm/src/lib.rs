//! Stands in for `cubecl-llvm`, whose build script downloads LLVM. With its feature `cpp`, `cubecl-cuda` compiles kernels with
//! NVRTC, and uses only the types here.
#![allow(
    missing_docs,
    reason = "the items are those of the crate that this one replaces"
)]

use std::ffi::c_char;
use std::fmt;

use cubecl_core::ir::nvidia::SmArch;
use cubecl_core::prelude::KernelDefinition;
use cubecl_server::compiler::{CompilationError, Compiler};
use cubecl_server::kernel::BufferIOAttr;

pub mod nvptx {
    pub mod ptx_version {
        use std::fmt;

        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PtxVersion {}

        impl PtxVersion {
            #[must_use]
            pub fn for_driver(_: i32) -> Option<Self> {
                None
            }
        }

        impl fmt::Display for PtxVersion {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {}
            }
        }
    }
}

pub mod shared {
    pub mod lowered_features {
        use cubecl_core::ir::DeviceProperties;
        use cubecl_core::ir::nvidia::SmArch;

        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum GpuTarget {
            Nvptx { arch: SmArch },
        }

        pub fn restrict_features(_: &mut DeviceProperties, _: GpuTarget) {}
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LlvmTarget {
    #[default]
    Cpu,
    Nvptx,
}

#[derive(Clone, Debug, Default)]
pub struct PlironCompiler {
    pub target: LlvmTarget,
}

#[derive(Clone, Debug, Default)]
pub struct PlironOptions {
    pub cpu_buffer_alignment: Option<u32>,
    pub arch: Option<()>,
    pub sm_arch: Option<SmArch>,
    pub ptx_version: Option<nvptx::ptx_version::PtxVersion>,
    pub grid_constants: bool,
    pub keep_object: bool,
}

#[derive(Clone, Debug)]
pub struct NvptxModule {
    pub ptx: Vec<c_char>,
    pub entrypoint: String,
    pub ir: String,
    pub shared_memory_size: usize,
    pub io: Vec<BufferIOAttr>,
}

#[derive(Clone, Debug)]
pub enum PlironArtifact {
    Jit,
    NvptxCode(NvptxModule),
}

impl fmt::Display for PlironArtifact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing")
    }
}

impl Compiler for PlironCompiler {
    type Representation = PlironArtifact;
    type CompilationOptions = PlironOptions;

    fn compile(
        &mut self,
        _: KernelDefinition,
        _: &PlironOptions,
    ) -> Result<PlironArtifact, CompilationError> {
        panic!("this stand-in compiles nothing: cubecl-cuda needs its feature `cpp`")
    }

    fn extension(&self) -> &'static str {
        "ll"
    }

    fn lang_tag(&self) -> &'static str {
        "llvm"
    }
}
