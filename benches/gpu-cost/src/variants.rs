//! The variants and their baselines.

use std::sync::LazyLock;

use bench_harness::{Variant, batch};
use cudarc::driver::CudaStream;
use profiler_runtime::cuda::with_stream;
use profiler_runtime::set_enabled;

use crate::gpu::Gpu;
use crate::process::Backend;
use crate::subjects::{self, BATCH, Model};

/// A variant and its baselines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    /// The name in scripts.
    pub(crate) key: &'static str,
    pub(crate) variant: Variant,
    /// The baseline of records and queries to the driver; `None` for a variant without the
    /// profiler.
    pub(crate) compared: Option<Compared>,
}

/// The part of a call that is not the profiler's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Compared {
    /// The records, or nothing.
    pub(crate) records: &'static str,
    /// All driver calls: records and queries.
    pub(crate) driver: &'static str,
}

pub(crate) const BARE: &str = "bare";
pub(crate) const RECORDS: &str = "two cuEventRecord";
pub(crate) const STREAM_QUERIES: &str = "… and cuStreamIsCapturing, cuCtxGetId twice";
pub(crate) const CONTEXT_QUERIES: &str = "… and cuCtxGetCurrent twice";
const CURRENT_TWICE: &str = "cuCtxGetCurrent twice";

const NAMED: Compared = Compared {
    records: RECORDS,
    driver: STREAM_QUERIES,
};
const IMPLICIT: Compared = Compared {
    records: RECORDS,
    driver: CONTEXT_QUERIES,
};
const NO_CONTEXT: Compared = Compared {
    records: BARE,
    driver: CURRENT_TWICE,
};
const CPU: Compared = Compared {
    records: BARE,
    driver: BARE,
};

static MODEL: LazyLock<Model> = LazyLock::new(|| Model {
    stream: Gpu::here().stream.clone(),
});

fn raw(key: &'static str, name: &'static str, run: fn(u64)) -> Subject {
    Subject {
        key,
        variant: Variant::new(name, run).paced(BATCH, || {}),
        compared: None,
    }
}

/// A variant that records events, which are read between its batches as those of scopes are.
fn recording(key: &'static str, name: &'static str, run: fn(u64)) -> Subject {
    let mut subject = raw(key, name, run);
    subject.variant.after = || Gpu::here().read_elsewhere();
    subject
}

fn profiled(key: &'static str, compared: Compared, variant: Variant) -> Subject {
    Subject {
        key,
        variant: Variant {
            batch: Some(BATCH),
            ..variant
        },
        compared: Some(compared),
    }
}

/// Returns all variants.
pub(crate) fn all(backend: Backend) -> Vec<Subject> {
    let mut subjects = raws();
    let on_gpu = backend == Backend::Auto;
    let with = |compared| if on_gpu { compared } else { CPU };
    subjects.extend([
        profiled(
            "stream",
            with(NAMED),
            Variant::new("scope!, stream = &Arc<CudaStream>", |n| {
                let stream = &Gpu::here().stream;
                batch(n, |x| subjects::on_stream(stream, x));
            })
            .between(subjects::arrive, subjects::arrive),
        ),
        profiled(
            "borrowed",
            with(NAMED),
            Variant::new("scope!, stream = &CudaStream", |n| {
                let stream: &CudaStream = &Gpu::here().stream;
                batch(n, |x| subjects::on_lent_stream(stream, x));
            })
            .between(subjects::arrive, subjects::arrive),
        ),
        profiled(
            "current",
            with(NAMED),
            Variant::new("scope!, the thread's current stream", |n| {
                with_stream(&Gpu::here().stream, || batch(n, subjects::section));
            })
            .between(subjects::arrive, subjects::arrive),
        ),
        profiled(
            "default",
            with(IMPLICIT),
            Variant::new("scope!, the legacy default stream", |n| {
                batch(n, subjects::section);
            })
            .between(subjects::arrive, subjects::arrive),
        ),
        profiled(
            "attribute",
            with(NAMED),
            Variant::new("attribute, stream = &self.stream", |n| {
                let model = &*MODEL;
                batch(n, |x| model.forward(x));
            })
            .between(subjects::arrive, subjects::arrive),
        ),
        profiled(
            "attribute-current",
            with(NAMED),
            Variant::new("attribute, the thread's current stream", |n| {
                with_stream(&Gpu::here().stream, || batch(n, subjects::annotated));
            })
            .between(subjects::arrive, subjects::arrive),
        ),
        profiled(
            "nested",
            with(NAMED),
            Variant::new("scope! in a scope!, current stream, each", |n| {
                // A call contains two measured calls, so a batch has half as many.
                with_stream(&Gpu::here().stream, || batch(n / 2, subjects::nested));
            })
            .between(subjects::arrive, subjects::arrive),
        ),
        profiled(
            "no-context",
            with(NO_CONTEXT),
            Variant::new("scope!, no context on the thread", |n| {
                batch(n, subjects::section);
            })
            .between(
                || Gpu::here().leave_context(),
                || Gpu::here().enter_context(),
            ),
        ),
        profiled(
            "off",
            CPU,
            Variant::new("off, stream = &Arc<CudaStream>", |n| {
                let stream = &Gpu::here().stream;
                batch(n, |x| subjects::on_stream(stream, x));
            })
            .between(|| set_enabled(false), || set_enabled(true)),
        ),
    ]);
    subjects
}

/// Makes the queries of a scope on a named stream, at both ends.
#[inline]
fn questions(gpu: &Gpu) -> u64 {
    gpu.is_capturing() | gpu.number() | gpu.is_capturing() | gpu.number()
}

/// The baselines.
fn raws() -> Vec<Subject> {
    vec![
        raw("bare", BARE, |n| batch(n, subjects::bare)),
        recording("records", RECORDS, |n| {
            let gpu = Gpu::here();
            batch(n, |x| gpu.two_records(x));
        }),
        recording("records-queries", STREAM_QUERIES, |n| {
            let gpu = Gpu::here();
            batch(n, |x| questions(gpu) | gpu.two_records(x));
        }),
        recording("records-queries-twice", CONTEXT_QUERIES, |n| {
            let gpu = Gpu::here();
            batch(n, |x| {
                questions(gpu) | gpu.current() | gpu.current() | gpu.two_records(x)
            });
        }),
        raw("capturing", "cuStreamIsCapturing once", |n| {
            let gpu = Gpu::here();
            batch(n, |_| gpu.is_capturing());
        }),
        raw("current-context", "cuCtxGetCurrent once", |n| {
            let gpu = Gpu::here();
            batch(n, |_| gpu.current());
        }),
        raw("current-context-twice", CURRENT_TWICE, |n| {
            let gpu = Gpu::here();
            batch(n, |_| gpu.current() | gpu.current());
        }),
    ]
}
