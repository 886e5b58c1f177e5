//! Bindings to NVRTC, NVIDIA's runtime compiler, for one kernel.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::null;

use libloading::Library;

use crate::libraries;
use crate::trouble::Trouble;

const NAMES: [&str; 4] = [
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so.11.2",
    "libnvrtc.so",
];

type Create = unsafe extern "C" fn(
    *mut usize,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(usize, c_int, *const *const c_char) -> c_int;

/// The compiler.
pub(crate) struct Nvrtc {
    library: &'static Library,
    pub(crate) path: String,
}

impl Nvrtc {
    pub(crate) fn open() -> Result<Self, Trouble> {
        let (library, path) = libraries::open(&NAMES, "cuda_nvrtc").map_err(Trouble::Skip)?;
        Ok(Self { library, path })
    }

    pub(crate) fn version(&self) -> Result<(i32, i32), Trouble> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: NVRTC exports the function with this type (nvrtc.h). The pointers are to this
        // stack.
        let code = unsafe {
            self.library
                .get::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>(b"nvrtcVersion")?(
                &raw mut major,
                &raw mut minor,
            )
        };
        check("nvrtcVersion", code)?;
        Ok((major, minor))
    }

    /// Compiles a program to PTX for the oldest devices that the suite supports.
    pub(crate) fn compile(&self, source: &CStr) -> Result<String, Trouble> {
        // SAFETY: NVRTC exports the functions with these types (nvrtc.h).
        let (create, compile, destroy) = unsafe {
            (
                self.library.get::<Create>(b"nvrtcCreateProgram")?,
                self.library.get::<Compile>(b"nvrtcCompileProgram")?,
                self.library
                    .get::<unsafe extern "C" fn(*mut usize) -> c_int>(b"nvrtcDestroyProgram")?,
            )
        };
        let mut program = 0;
        // SAFETY: the source is a C string, and there are no headers.
        let code = unsafe { create(&raw mut program, source.as_ptr(), null(), 0, null(), null()) };
        check("nvrtcCreateProgram", code)?;
        let options = [c"--gpu-architecture=compute_75".as_ptr()];
        // SAFETY: the program exists, and the option is a C string.
        let compiled = unsafe { compile(program, 1, options.as_ptr()) };
        let ptx = check("nvrtcCompileProgram", compiled).and_then(|()| self.ptx(program));
        // SAFETY: the program exists, and is not used again.
        check("nvrtcDestroyProgram", unsafe { destroy(&raw mut program) })?;
        ptx
    }

    fn ptx(&self, program: usize) -> Result<String, Trouble> {
        // SAFETY: NVRTC exports the functions with these types (nvrtc.h).
        let (size_of, text_of) = unsafe {
            (
                self.library
                    .get::<unsafe extern "C" fn(usize, *mut usize) -> c_int>(b"nvrtcGetPTXSize")?,
                self.library
                    .get::<unsafe extern "C" fn(usize, *mut u8) -> c_int>(b"nvrtcGetPTX")?,
            )
        };
        let mut size = 0;
        // SAFETY: the program was compiled, and the pointer is to this stack.
        check("nvrtcGetPTXSize", unsafe {
            size_of(program, &raw mut size)
        })?;
        let mut text = vec![0_u8; size];
        // SAFETY: the buffer has the size that NVRTC returned.
        check("nvrtcGetPTX", unsafe {
            text_of(program, text.as_mut_ptr())
        })?;
        let text = CString::from_vec_with_nul(text)
            .map_err(|error| Trouble::Missing(format!("NVRTC gave no text: {error}")))?;
        Ok(text.to_string_lossy().into_owned())
    }
}

fn check(call: &'static str, code: c_int) -> Result<(), Trouble> {
    let library = "NVRTC";
    if code == 0 {
        Ok(())
    } else {
        Err(Trouble::Library {
            library,
            call,
            code,
        })
    }
}
