//! The device: a context, a stream, and the driver's functions, called by their addresses as the
//! profiler does.

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use cudarc::driver::{CudaContext, CudaStream};
use profiler_simulated_driver::Simulator;

use crate::process::Outcome;
use crate::processors;
use crate::subjects;
use crate::variants::Subject;

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

#[derive(Clone, Copy)]
struct Functions {
    record: extern "C" fn(usize, usize) -> u32,
    capturing: extern "C" fn(usize, *mut u32) -> u32,
    current: extern "C" fn(*mut usize) -> u32,
    number: extern "C" fn(usize, *mut u64) -> u32,
    set_current: extern "C" fn(usize) -> u32,
    create: extern "C" fn(*mut usize, u32) -> u32,
    elapsed: extern "C" fn(*mut f32, usize, usize) -> u32,
    load: extern "C" fn(*mut usize, *const c_char) -> u32,
    function: extern "C" fn(*mut usize, usize, *const c_char) -> u32,
    launch: Launch,
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

impl Functions {
    fn of(simulator: Simulator) -> Outcome<Self> {
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the driver exports the function with the type of the field. Handles are
                // integers, which the driver does not dereference.
                *unsafe { simulator.library().get($name) }?
            };
        }
        Ok(Self {
            record: function!(b"cuEventRecord"),
            capturing: function!(b"cuStreamIsCapturing"),
            current: function!(b"cuCtxGetCurrent"),
            number: function!(b"cuCtxGetId"),
            set_current: function!(b"cuCtxSetCurrent"),
            create: function!(b"cuEventCreate"),
            elapsed: function!(b"cuEventElapsedTime"),
            load: function!(b"cuModuleLoadData"),
            function: function!(b"cuModuleGetFunction"),
            launch: function!(b"cuLaunchKernel"),
        })
    }
}

static GPU: OnceLock<Gpu> = OnceLock::new();

impl Gpu {
    /// Returns the device, which the first call creates.
    pub(crate) fn get() -> Outcome<&'static Self> {
        if GPU.get().is_none() {
            let _ = GPU.set(Self::new()?);
        }
        GPU.get().ok_or_else(|| "no device".into())
    }

    /// Returns the device, inside a batch.
    pub(crate) fn here() -> &'static Self {
        GPU.get().expect("it is set up before anything is measured")
    }

    fn new() -> Outcome<Self> {
        let folders = std::env::var_os("LD_LIBRARY_PATH").ok_or("no folder of the driver")?;
        let folder = std::env::split_paths(&folders).next().ok_or("no folder")?;
        let simulator = Simulator::open(&folder.join("libcuda.so"))?;
        let functions = Functions::of(simulator)?;
        let context = CudaContext::new(0)?;
        let mut gpu = Self {
            stream: context.new_stream()?,
            simulator,
            context: context.cu_ctx().addr(),
            kernel: 0,
            pairs: Vec::new(),
            functions,
            reader: AtomicUsize::new(0),
        };
        let (mut module, mut kernel) = (0, 0);
        let code = match (functions.load)(&raw mut module, PTX.as_ptr()) {
            0 => (functions.function)(&raw mut kernel, module, c"empty_0ns".as_ptr()),
            code => code,
        };
        if code != 0 {
            return Err(format!("the kernel is refused: {code}").into());
        }
        gpu.kernel = kernel;
        for _ in 0..PAIRS {
            let mut pair = [0; 2];
            for event in &mut pair {
                let code = (functions.create)(event, 0);
                if code != 0 {
                    return Err(format!("cuEventCreate returned {code}").into());
                }
            }
            gpu.pairs.push(pair);
        }
        Ok(gpu)
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
    pub(crate) fn read_where(&self, processor: Option<usize>) {
        self.reader
            .store(processor.map_or(0, |number| number + 1), Relaxed);
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
            let used = &self.pairs[..subjects::BATCH as usize];
            for &[begin, end] in used {
                let mut milliseconds = 0.0;
                assert_eq!(
                    (self.functions.elapsed)(&raw mut milliseconds, begin, end),
                    0
                );
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

/// Calls each variant until the profiler has stopped searching the process for a driver, which
/// takes a second or two if no scope names a stream, and until pools and buffers have reached their
/// sizes.
pub(crate) fn settle_in(subjects: &[Subject]) {
    const LONG_ENOUGH: Duration = Duration::from_secs(3);
    let began = Instant::now();
    while began.elapsed() < LONG_ENOUGH {
        for Subject { variant, .. } in subjects {
            (variant.before)();
            (variant.run)(subjects::BATCH);
            (variant.after)();
        }
        sleep(Duration::from_millis(5));
    }
}
