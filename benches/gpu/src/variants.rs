//! The variants, their baselines and the measured functions.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bench_harness::subjects::{bare, body};
use bench_harness::{Outcome, Variant, batch, calls, counted_calls};
use cudarc::driver::CudaStream;
use profiler_runtime::cuda::with_stream;
use profiler_runtime::{flush, measure_execution_time, scope, set_enabled};

use crate::device::{BATCH, Gpu};
use crate::measured::{measured, scope_literal};

/// A variant, whose base are the two records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    pub(crate) variant: Variant,
    /// The variant that makes all of the driver calls: records and queries.
    pub(crate) driver: &'static str,
}

const BARE: &str = "bare";
const RECORDS: &str = "records";
const QUERIES: &str = "records-queries";
const QUERIES_TWICE: &str = "records-queries-twice";
const CURRENT_TWICE: &str = "current-context-twice";

#[inline(never)]
pub(crate) fn on_stream(stream: &Arc<CudaStream>, x: u64) -> u64 {
    let _scope = scope!("on a stream", stream = stream);
    body(x)
}

#[inline(never)]
fn on_lent_stream(stream: &CudaStream, x: u64) -> u64 {
    let _scope = scope!("on a stream that is borrowed", stream = stream);
    body(x)
}

#[inline(never)]
fn nested(x: u64) -> u64 {
    let _scope = scope!("around another");
    scope_literal(x)
}

struct Model {
    stream: Arc<CudaStream>,
}

impl Model {
    #[inline(never)]
    #[measure_execution_time(stream = &self.stream)]
    fn forward(&self, x: u64) -> u64 {
        body(x)
    }
}

static MODEL: LazyLock<Model> = LazyLock::new(|| Model {
    stream: Gpu::here().stream.clone(),
});

/// Makes calls of a scope that names a stream.
fn named(calls: u64) {
    let stream = &Gpu::here().stream;
    batch(calls, |x| on_stream(stream, x));
}

/// Makes calls of a function with the stream as the thread's current one.
fn with_current(calls: u64, run: fn(u64)) {
    with_stream(&Gpu::here().stream, || run(calls));
}

/// Waits until all GPU times have been read.
pub(crate) fn arrive() {
    flush(Duration::from_secs(5));
}

/// A baseline.
fn raw(name: &'static str, run: fn(u64)) -> Subject {
    Subject {
        variant: Variant::base(name, run).in_batches_of(BATCH),
        driver: name,
    }
}

/// A baseline that records events, which are read between its batches as those of scopes are.
fn recording(name: &'static str, run: fn(u64)) -> Subject {
    let mut subject = raw(name, run);
    subject.variant.after = || Gpu::here().read_elsewhere();
    subject
}

/// A variant that measures GPU times, which are read between its batches.
fn profiled(name: &'static str, driver: &'static str, run: fn(u64)) -> Subject {
    let variant = Variant::beyond(RECORDS, name, run).in_batches_of(BATCH);
    Subject {
        variant: variant.between(arrive, arrive),
        driver,
    }
}

impl Subject {
    /// Of a variant that records no events.
    fn without_records(mut self, before: fn(), after: fn()) -> Self {
        self.variant.base = BARE;
        self.variant = self.variant.between(before, after);
        self
    }
}

/// Makes the queries of a scope on a named stream, at both ends.
#[inline]
fn questions(gpu: &Gpu) -> u64 {
    gpu.is_capturing() | gpu.number() | gpu.is_capturing() | gpu.number()
}

/// Makes calls on the device.
macro_rules! on_device {
    (|$gpu:ident, $x:pat_param| $call:expr) => {
        |calls| {
            let $gpu = Gpu::here();
            batch(calls, |$x| $call);
        }
    };
}

/// Returns all variants. Without a device, nothing is recorded, and the bare function is their base.
pub(crate) fn all(on_gpu: bool) -> Vec<Subject> {
    let mut subjects = vec![
        raw(BARE, calls!(bare)),
        recording(RECORDS, on_device!(|gpu, x| gpu.two_records(x))),
        recording(
            QUERIES,
            on_device!(|gpu, x| questions(gpu) | gpu.two_records(x)),
        ),
        recording(
            QUERIES_TWICE,
            on_device!(|gpu, x| questions(gpu)
                | gpu.current()
                | gpu.current()
                | gpu.two_records(x)),
        ),
        raw("capturing", on_device!(|gpu, _| gpu.is_capturing())),
        raw("current-context", on_device!(|gpu, _| gpu.current())),
        raw(
            CURRENT_TWICE,
            on_device!(|gpu, _| gpu.current() | gpu.current()),
        ),
        profiled("stream", QUERIES, named),
        profiled("borrowed", QUERIES, |n| {
            let stream: &CudaStream = &Gpu::here().stream;
            batch(n, |x| on_lent_stream(stream, x));
        }),
        profiled("current", QUERIES, |n| {
            with_current(n, calls!(scope_literal));
        }),
        profiled("default", QUERIES_TWICE, calls!(scope_literal)),
        profiled("attribute", QUERIES, |n| {
            let model = &*MODEL;
            batch(n, |x| model.forward(x));
        }),
        profiled("attribute-current", QUERIES, |n| {
            with_current(n, calls!(measured));
        }),
        // A call contains two measured calls, so a batch has half as many.
        profiled("nested", QUERIES, |n| with_current(n / 2, calls!(nested))),
        profiled("no-context", CURRENT_TWICE, calls!(scope_literal)).without_records(
            || Gpu::here().leave_context(),
            || Gpu::here().enter_context(),
        ),
        profiled("off", BARE, named).without_records(|| set_enabled(false), || set_enabled(true)),
    ];
    if !on_gpu {
        for Subject { variant, driver } in &mut subjects {
            if variant.measured > 0 {
                (variant.base, *driver) = (BARE, BARE);
            }
        }
    }
    subjects
}

/// Calls each variant until pools and buffers have reached their sizes, and the profiler has found the driver, which takes a
/// second or two if no scope names a stream.
pub(crate) fn settle(subjects: &[Subject]) {
    bench_harness::settle(|| {
        for Subject { variant, .. } in subjects {
            (variant.before)();
            (variant.run)(BATCH);
            (variant.after)();
        }
    });
}

/// Makes `calls` calls of one variant for callgrind; see `gpu-instructions.sh`.
pub(crate) fn count(name: &str, calls: u64) -> Outcome<()> {
    const WARMING: u64 = 3;
    let subjects = all(true);
    let subject = subjects.iter().find(|subject| subject.variant.name == name);
    let Some(Subject { variant, .. }) = subject else {
        let known: Vec<_> = subjects
            .iter()
            .map(|subject| subject.variant.name)
            .collect();
        return Err(format!(
            "unknown variant `{name}`; the variants are {}",
            known.join(", ")
        )
        .into());
    };
    settle(&subjects);
    (variant.before)();
    // The first batches warm up for those that are counted. Between batches all GPU times are read, so that each call
    // finds free events.
    for number in 0..WARMING + calls / BATCH {
        match number {
            ..WARMING => (variant.run)(BATCH),
            _ => counted_calls(variant.run, BATCH),
        }
        // It may take long on a busy machine and under callgrind.
        match flush(Duration::from_secs(60)).unread {
            0 => {}
            unread => return Err(format!("{unread} GPU times were not read in a minute").into()),
        }
    }
    (variant.after)();
    Ok(())
}
