//! The device: a context, a stream, and the driver's functions, called by their addresses as the
//! profiler does.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread;

use bench_harness::Outcome;
use cudarc::driver::{CudaContext, CudaStream};
use profiler_simulated_driver::Simulator;

use crate::processors;

/// The calls per batch. With its warm-up, a batch fills less than half of a thread's default ring.
pub(crate) const BATCH: u64 = 900;

/// One pair of events per call of a batch: the profiler, too, uses another pair for each call.
const PAIRS: usize = 1024;

pub(crate) struct Gpu {
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) simulator: Simulator,
    context: usize,
    kernel: usize,
    pairs: Vec<[usize; 2]>,
    functions: Functions,
    /// The processor that reads the times of batches, plus one; zero for any.
    reader: AtomicUsize,
}

macro_rules! functions {
    ($($field:ident: $name:literal, $type:ty;)*) => {
        #[derive(Clone, Copy)]
        struct Functions {
            $($field: $type,)*
        }

        impl Functions {
            fn of(simulator: Simulator) -> Outcome<Self> {
                Ok(Self {
                    // SAFETY: the driver exports the function with the type of the field. Handles are
                    // integers, which the driver does not dereference.
                    $($field: *unsafe { simulator.library().get($name) }?,)*
                })
            }
        }
    };
}

functions! {
    record: b"cuEventRecord", extern "C" fn(usize, usize) -> u32;
    capturing: b"cuStreamIsCapturing", extern "C" fn(usize, *mut u32) -> u32;
    current: b"cuCtxGetCurrent", extern "C" fn(*mut usize) -> u32;
    number: b"cuCtxGetId", extern "C" fn(usize, *mut u64) -> u32;
    set_current: b"cuCtxSetCurrent", extern "C" fn(usize) -> u32;
    create: b"cuEventCreate", extern "C" fn(*mut usize, u32) -> u32;
    elapsed: b"cuEventElapsedTime", extern "C" fn(*mut f32, usize, usize) -> u32;
    load: b"cuModuleLoadData", extern "C" fn(*mut usize, *const c_char) -> u32;
    function: b"cuModuleGetFunction", extern "C" fn(*mut usize, usize, *const c_char) -> u32;
    launch: b"cuLaunchKernel", Launch;
}

type Pointers = *mut *mut c_void;
type Launch =
    extern "C" fn(usize, u32, u32, u32, u32, u32, u32, u32, usize, Pointers, Pointers) -> u32;

/// A kernel that takes no time.
const PTX: &CStr = c"
.version 7.0
.target sm_75
.visible .entry empty_0ns() { ret; }
";

static GPU: OnceLock<Gpu> = OnceLock::new();

fn accepted(code: u32, call: &str) -> Outcome<()> {
    match code {
        0 => Ok(()),
        _ => Err(format!("{call} returned {code}").into()),
    }
}

impl Gpu {
    /// Creates the device.
    pub(crate) fn set_up() -> Outcome<()> {
        let folders = std::env::var_os("LD_LIBRARY_PATH").ok_or("no folder of the driver")?;
        let folder = std::env::split_paths(&folders).next().ok_or("no folder")?;
        let simulator = Simulator::open(&folder.join("libcuda.so"))?;
        let functions = Functions::of(simulator)?;
        let context = CudaContext::new(0)?;
        let (mut module, mut kernel) = (0, 0);
        let code = (functions.load)(&raw mut module, PTX.as_ptr());
        accepted(code, "cuModuleLoadData")?;
        let code = (functions.function)(&raw mut kernel, module, c"empty_0ns".as_ptr());
        accepted(code, "cuModuleGetFunction")?;
        let mut pairs = vec![[0; 2]; PAIRS];
        for event in pairs.as_flattened_mut() {
            accepted((functions.create)(event, 0), "cuEventCreate")?;
        }
        let _ = GPU.set(Self {
            stream: context.new_stream()?,
            simulator,
            context: context.cu_ctx().addr(),
            kernel,
            pairs,
            functions,
            reader: AtomicUsize::new(0),
        });
        Ok(())
    }

    /// Returns the device.
    pub(crate) fn here() -> &'static Self {
        GPU.get().expect("it is set up before anything is measured")
    }

    /// Records two events, as each scope does.
    #[inline]
    pub(crate) fn two_records(&self, call: u64) -> u64 {
        #[allow(clippy::cast_possible_truncation, reason = "of 64 bits, and an index")]
        let [begin, end] = self.pairs[call as usize % PAIRS];
        let stream = self.handle();
        u64::from((self.functions.record)(begin, stream) | (self.functions.record)(end, stream))
    }

    /// Sets the processor on which [`read_elsewhere`](Self::read_elsewhere) reads, or `None` for
    /// any.
    pub(crate) fn read_on(&self, processor: Option<usize>) {
        let reader = processor.map_or(0, |number| number + 1);
        self.reader.store(reader, Relaxed);
    }

    /// Reads the times of a batch on another thread, as the resolver reads those of scopes.
    /// Recording an event takes the driver longer if another processor used the event last.
    pub(crate) fn read_elsewhere(&self) {
        let reader = self.reader.load(Relaxed).checked_sub(1);
        let read = || {
            reader
                .map_or(Ok(()), processors::stay_on)
                .expect("it may run there");
            #[allow(clippy::cast_possible_truncation, reason = "less than the pairs")]
            let used = &self.pairs[..BATCH as usize];
            for &[begin, end] in used {
                let mut milliseconds = 0.0;
                let code = (self.functions.elapsed)(&raw mut milliseconds, begin, end);
                assert_eq!(code, 0);
            }
        };
        thread::scope(|scope| scope.spawn(read).join()).expect("a batch is read");
    }

    /// Launches a kernel that takes no time.
    pub(crate) fn launch(&self) {
        let (function, null) = (self.kernel, std::ptr::null_mut());
        let code =
            (self.functions.launch)(function, 1, 1, 1, 1, 1, 1, 0, self.handle(), null, null);
        assert_eq!(code, 0);
    }

    /// Queries if the stream captures.
    #[inline]
    pub(crate) fn is_capturing(&self) -> u64 {
        let mut status = 0;
        u64::from((self.functions.capturing)(self.handle(), &raw mut status) | status)
    }

    /// Queries the current context.
    #[inline]
    pub(crate) fn current(&self) -> u64 {
        let mut context = 0;
        let code = (self.functions.current)(&raw mut context);
        u64::from(code) | u64::from(context == 0)
    }

    /// Queries the number of the context.
    #[inline]
    pub(crate) fn number(&self) -> u64 {
        let mut number = 0;
        let code = (self.functions.number)(self.context, &raw mut number);
        u64::from(code) | number
    }

    pub(crate) fn leave_context(&self) {
        assert_eq!((self.functions.set_current)(0), 0);
    }

    pub(crate) fn enter_context(&self) {
        assert_eq!((self.functions.set_current)(self.context), 0);
    }

    fn handle(&self) -> usize {
        self.stream.cu_stream().addr()
    }
}
