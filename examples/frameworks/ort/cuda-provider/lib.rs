//! ONNX Runtime for the CPU, with a stand-in for its CUDA provider, which needs no GPU.
//!
//! It is loaded as ONNX Runtime, and all its functions are those of the library that `ONNXRUNTIME` names, but the eight that
//! take the provider's options and run a session. A session of the provider computes on the CPU. On the provider's stream it
//! launches a kernel with the name of the model's file and then waits for it, as ONNX Runtime does at the end of `Run`. The
//! stream is that of the option `user_compute_stream`, or else the provider's own.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr::{self, null, null_mut};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::{CUfunction, CUstream};
use cudarc::driver::{CudaContext, result};
use libloading::Library;
use ort_sys::{
    OrtApi, OrtApiBase, OrtCUDAProviderOptionsV2, OrtEnv, OrtRunOptions, OrtSession,
    OrtSessionOptions, OrtStatusPtr, OrtValue,
};

/// The provider of one session.
#[derive(Clone, Copy)]
struct Provider {
    stream: CUstream,
    /// The kernel of the session's model.
    kernel: CUfunction,
}

// SAFETY: the driver takes its handles from any thread.
unsafe impl Send for Provider {}

/// The streams of providers' options and of sessions' options, and the providers of sessions, by address.
#[derive(Default)]
struct State {
    streams: HashMap<usize, usize>,
    providers: HashMap<usize, Provider>,
}

fn state() -> MutexGuard<'static, State> {
    static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The real library.
static BASE: LazyLock<&'static OrtApiBase> = LazyLock::new(|| {
    let path = std::env::var_os("ONNXRUNTIME").expect("ONNXRUNTIME names the real library");
    // SAFETY: ONNX Runtime may be loaded at any time.
    let library = unsafe { Library::new(path) }.expect("ONNX Runtime is loaded");
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: this is the function's type.
    let get =
        unsafe { library.get::<unsafe extern "C" fn() -> *const OrtApiBase>(b"OrtGetApiBase") };
    // SAFETY: the library is never unloaded, and its base is a static.
    unsafe { &*get.expect("it is ONNX Runtime")() }
});

/// The functions of the real library.
static REAL: LazyLock<&'static OrtApi> = LazyLock::new(|| {
    // SAFETY: a table of this version has all functions that `OrtApi` has; it is a static.
    unsafe { (BASE.GetApi)(ort_sys::ORT_API_VERSION).as_ref() }
        .expect("ONNX Runtime has this version of its interface")
});

/// The entry point of ONNX Runtime.
#[unsafe(no_mangle)]
pub extern "C" fn OrtGetApiBase() -> *const OrtApiBase {
    static OWN: LazyLock<OrtApiBase> = LazyLock::new(|| OrtApiBase {
        GetApi: api,
        GetVersionString: BASE.GetVersionString,
    });
    &raw const *OWN
}

unsafe extern "system" fn api(version: u32) -> *const OrtApi {
    static OWN: LazyLock<OrtApi> = LazyLock::new(|| OrtApi {
        CreateCUDAProviderOptions: create_options,
        UpdateCUDAProviderOptions: update_options,
        ReleaseCUDAProviderOptions: release_options,
        SessionOptionsAppendExecutionProvider_CUDA_V2: append,
        CreateSession: create_session,
        ReleaseSession: release_session,
        ReleaseSessionOptions: release_session_options,
        Run: run,
        ..REAL.clone()
    });
    if version == ort_sys::ORT_API_VERSION {
        &raw const *OWN
    } else {
        null()
    }
}

const SUCCESS: OrtStatusPtr = OrtStatusPtr(null_mut());

unsafe extern "system" fn create_options(out: *mut *mut OrtCUDAProviderOptionsV2) -> OrtStatusPtr {
    let address: *mut u8 = Box::into_raw(Box::new(0));
    // SAFETY: the caller passes where to write.
    unsafe { out.write(address.cast()) };
    SUCCESS
}

unsafe extern "system" fn update_options(
    options: *mut OrtCUDAProviderOptionsV2,
    keys: *const *const c_char,
    values: *const *const c_char,
    count: usize,
) -> OrtStatusPtr {
    for at in 0..count {
        // SAFETY: both arrays have `count` texts.
        let (key, value) = unsafe {
            (
                CStr::from_ptr(*keys.add(at)),
                CStr::from_ptr(*values.add(at)),
            )
        };
        if key == c"user_compute_stream" {
            let stream = value.to_str().ok().and_then(|text| text.parse().ok());
            state()
                .streams
                .insert(options.addr(), stream.expect("a stream is a number"));
        }
    }
    SUCCESS
}

unsafe extern "system" fn release_options(options: *mut OrtCUDAProviderOptionsV2) {
    state().streams.remove(&options.addr());
    // SAFETY: `create_options` has made it of a box of this type.
    drop(unsafe { Box::from_raw(options.cast::<u8>()) });
}

unsafe extern "system" fn append(
    session: *mut OrtSessionOptions,
    options: *const OrtCUDAProviderOptionsV2,
) -> OrtStatusPtr {
    let mut state = state();
    let stream = state.streams.get(&options.addr()).copied();
    let stream = stream.unwrap_or_else(|| {
        let context = CudaContext::new(0).expect("there is a device");
        context.bind_to_thread().expect("the context is valid");
        let flags = result::stream::StreamKind::NonBlocking;
        result::stream::create(flags).expect("a stream").addr()
    });
    state.streams.insert(session.addr(), stream);
    SUCCESS
}

unsafe extern "system" fn release_session_options(options: *mut OrtSessionOptions) {
    state().streams.remove(&options.addr());
    // SAFETY: the caller's argument.
    unsafe { (REAL.ReleaseSessionOptions)(options) }
}

unsafe extern "system" fn create_session(
    environment: *const OrtEnv,
    model: *const ort_sys::os_char,
    options: *const OrtSessionOptions,
    out: *mut *mut OrtSession,
) -> OrtStatusPtr {
    // SAFETY: the caller's arguments.
    let status = unsafe { (REAL.CreateSession)(environment, model, options, out) };
    let mut state = state();
    if let (true, Some(&stream)) = (status.0.is_null(), state.streams.get(&options.addr())) {
        // SAFETY: the model's path is a text.
        let path = unsafe { CStr::from_ptr(model) }.to_string_lossy();
        let name = Path::new(&*path)
            .file_stem()
            .expect("a file")
            .to_string_lossy();
        let provider = Provider {
            stream: ptr::with_exposed_provenance_mut(stream),
            kernel: kernel(&name),
        };
        // SAFETY: the session was made.
        state.providers.insert(unsafe { *out }.addr(), provider);
    }
    status
}

/// Loads an empty kernel.
fn kernel(name: &str) -> CUfunction {
    let context = CudaContext::new(0).expect("there is a device");
    context.bind_to_thread().expect("the context is valid");
    // It is loaded for as long as the process runs, and so is its context.
    std::mem::forget(context);
    let ptx = format!(
        ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry {name}()\n{{\n ret;\n}}\n"
    );
    let (ptx, name) = [ptx, name.to_owned()]
        .map(|text| CString::new(text).expect("a name"))
        .into();
    // SAFETY: the text ends with a zero, and the module is never unloaded.
    unsafe {
        let module = result::module::load_data(ptx.as_ptr().cast()).expect("PTX");
        result::module::get_function(module, name).expect("the kernel")
    }
}

unsafe extern "system" fn release_session(session: *mut OrtSession) {
    state().providers.remove(&session.addr());
    // SAFETY: the caller's argument.
    unsafe { (REAL.ReleaseSession)(session) }
}

#[allow(clippy::too_many_arguments, reason = "the function's type")]
unsafe extern "system" fn run(
    session: *mut OrtSession,
    options: *const OrtRunOptions,
    input_names: *const *const c_char,
    inputs: *const *const OrtValue,
    input_count: usize,
    output_names: *const *const c_char,
    output_count: usize,
    outputs: *mut *mut OrtValue,
) -> OrtStatusPtr {
    let provider = state().providers.get(&session.addr()).copied();
    if let Some(Provider { stream, kernel }) = provider {
        let no_parameters: &mut [*mut c_void] = &mut [];
        // SAFETY: the kernel has no parameters, and the stream outlives the session.
        let launched = unsafe {
            result::launch_kernel(kernel, (1, 1, 1), (1, 1, 1), 0, stream, no_parameters)
                .and_then(|()| result::stream::synchronize(stream))
        };
        launched.expect("the kernel ran");
    }
    // SAFETY: the caller's arguments.
    unsafe {
        (REAL.Run)(
            session,
            options,
            input_names,
            inputs,
            input_count,
            output_names,
            output_count,
            outputs,
        )
    }
}
