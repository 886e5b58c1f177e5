//! A program with several scopes on a device, which knows what its own calls return and what it was measured as.

use std::ffi::c_void;

use profiler_runtime::cuda::Stream;
use profiler_runtime::{Summary, scope, summary};

use crate::raw::{Driver, NON_BLOCKING, made};
use profiler_tests::gpu::{settle, simulator, told};

/// A stream by its handles.
pub(crate) fn on(stream: usize, context: usize) -> Stream {
    // SAFETY: both exist to the end of the process.
    unsafe { Stream::from_raw(stream as *mut c_void, context as *mut c_void) }
}

/// The user's program on one device. It calls nothing that a fault is set for.
pub(crate) struct Program {
    pub(crate) driver: Driver,
    pub(crate) context: usize,
    pub(crate) own_context: usize,
    pub(crate) stream: usize,
    pub(crate) own_stream: usize,
    pub(crate) spin: usize,
    pub(crate) own_spin: usize,
    /// The names of its scopes.
    pub(crate) label: String,
    /// The code that the device has failed with.
    pub(crate) failed: u32,
}

/// Scopes of the program, and how long each takes on the device.
pub(crate) const SCOPES: [(&str, f64); 7] = [
    ("burst", 500.0),
    ("outer", 3_000.0),
    ("inner", 2_000.0),
    ("default", 1_500.0),
    ("waiting", 2_500.0),
    ("raw", 3_500.0),
    ("own context", 4_000.0),
];

impl Drop for Program {
    /// With all that was made in it: the profiler asks nothing of a context that it does not hold.
    fn drop(&mut self) {
        let _ = self.driver.cuCtxDestroy_v2(self.own_context);
    }
}

impl Program {
    pub(crate) fn new(device: i32, label: &str) -> Self {
        let driver = Driver::of(simulator());
        assert_eq!(driver.cuInit(0), 0);
        let context = driver.primary(device);
        let own_context = made(|context| driver.cuCtxCreate_v2(context, 0, device));
        let (own_stream, own_spin) = (driver.stream(NON_BLOCKING), driver.kernel("spin_ns"));
        assert_eq!(driver.cuCtxPopCurrent_v2(&mut 0), 0);
        assert_eq!(driver.cuCtxSetCurrent(context), 0);
        Self {
            driver,
            context,
            own_context,
            stream: driver.stream(NON_BLOCKING),
            own_stream,
            spin: driver.kernel("spin_ns"),
            own_spin,
            label: label.to_owned(),
            failed: 0,
        }
    }

    pub(crate) fn name(&self, scope: &str) -> String {
        format!("{}: {scope}", self.label)
    }

    /// Checks the code of the program's own call: it must be the one without the profiler.
    pub(crate) fn check(&mut self, code: u32) {
        if self.failed == 0 && code == 700 && told().contains("sticky 700") {
            self.failed = code;
        }
        assert_eq!(code, self.failed, "{}", self.label);
    }

    pub(crate) fn launch(&mut self, stream: usize, ns: u64) {
        let code = self.driver.spin(self.spin, ns, stream);
        self.check(code);
    }

    pub(crate) fn finish(&mut self) {
        for stream in [self.stream, 0] {
            let code = self.driver.cuStreamSynchronize(stream);
            self.check(code);
        }
    }

    /// Many scopes before the device comes to the first.
    pub(crate) fn burst(&mut self, scopes: u32) {
        let stream = on(self.stream, self.context);
        for _ in 0..scopes {
            // A logger receives the place on the time line, which takes further driver calls.
            let name = self.name("burst");
            let _scope = scope!(name, stream = &stream, log = |_, _, _| {});
            self.launch(self.stream, 500);
        }
        self.finish();
        settle();
    }

    pub(crate) fn step(&mut self) {
        let stream = on(self.stream, self.context);
        {
            let _outer = scope!(self.name("outer"), stream = &stream);
            self.launch(self.stream, 1_000);
            let _inner = scope!(self.name("inner"), stream = &stream);
            self.launch(self.stream, 2_000);
        }
        {
            let _default = scope!(self.name("default"));
            self.launch(0, 1_500);
        }
        {
            let _waiting = scope!(self.name("waiting"), stream = &stream, sync);
            self.launch(self.stream, 2_500);
        }
        {
            let unknown = on(self.stream, 0);
            let _raw = scope!(self.name("raw"), stream = &unknown);
            self.launch(self.stream, 3_500);
        }
        {
            let own = on(self.own_stream, self.own_context);
            let name = self.name("own context");
            let _own = scope!(name, stream = &own, log = |_, _, _| {});
            let code = self.driver.spin(self.own_spin, 4_000, self.own_stream);
            assert!(
                code == 0 || code == 700 && told().contains("sticky 700"),
                "{code}"
            );
        }
        let _ = self.driver.cuStreamSynchronize(self.own_stream);
        self.finish();
        settle();
    }

    /// A scope in a graph, which is launched.
    pub(crate) fn capture(&mut self) {
        const RELAXED: u32 = 2;

        let driver = self.driver;
        let stream = on(self.stream, self.context);
        let code = driver.cuStreamBeginCapture_v2(self.stream, RELAXED);
        self.check(code);
        {
            let _captured = scope!(self.name("captured"), stream = &stream, cuda_graph);
            self.launch(self.stream, 5_000);
        }
        let (mut graph, mut exec) = (0, 0);
        let mut code = driver.cuStreamEndCapture(self.stream, &raw mut graph);
        if code == 0 {
            code = driver.cuGraphInstantiateWithFlags(&raw mut exec, graph, 0);
        }
        if code == 0 {
            code = driver.cuGraphLaunch(exec, self.stream);
        }
        if code != 0 {
            return self.check(code);
        }
        self.finish();
        settle();
        let _ = (
            driver.cuGraphExecDestroy(exec),
            driver.cuGraphDestroy(graph),
        );
    }

    /// Each scope is counted, and each time that was read is right. How many have none.
    #[allow(dead_code, reason = "windows are held against the summary instead")]
    pub(crate) fn account(&self, steps: u64, burst: u64, wrong: &mut Vec<String>) -> u64 {
        self.account_in(&summary(), steps, burst, wrong)
    }

    #[allow(dead_code, reason = "windows are held against the summary instead")]
    pub(crate) fn account_in(
        &self,
        summary: &Summary,
        steps: u64,
        burst: u64,
        wrong: &mut Vec<String>,
    ) -> u64 {
        let mut without = 0;
        for (scope, ns) in SCOPES {
            let name = self.name(scope);
            let row = summary.row(&name).cloned().unwrap_or_default();
            let cuda = row.cuda.unwrap_or_default();
            let calls = if scope == "burst" { burst } else { steps };
            if row.calls != calls || cuda.calls + row.without_cuda != calls {
                let (timed, without) = (cuda.calls, row.without_cuda);
                wrong.push(format!(
                    "{name}: {calls} calls, {timed} timed, {without} without"
                ));
            }
            if cuda.calls > 0 && (cuda.min_ns - ns).abs().max((cuda.max_ns - ns).abs()) >= 0.5 {
                wrong.push(format!("{name}: {} to {} ns", cuda.min_ns, cuda.max_ns));
            }
            without += row.without_cuda;
        }
        without
    }
}
