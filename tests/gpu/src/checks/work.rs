//! Copies, fills, graphs and the work of NVIDIA's libraries, in windows of child processes: each is under the scope that
//! asked for it.

use profiler_runtime::report::GpuWorkKind;
use profiler_runtime::scope;
use profiler_runtime::session::GpuEvent;

use crate::child::{self, Part};
use crate::cublas::Cublas;
use crate::cudart::Runtime;
use crate::device::{Gpu, raw};
use crate::findings::{Check, Findings, Theme};
use crate::graph::{Graph, THREAD_LOCAL};
use crate::memory::{BATCHES, Buffers};
use crate::trouble::Trouble;
use crate::window::{self, Window, Work};

pub(crate) const THEME: Theme = Theme {
    name: "work of windows",
    checks: &[
        Check {
            name: "copies, fills and graphs are under the scopes that asked for them",
            bound: "each scope has the kernels, copies and fills that were asked for inside of it, with their kinds and \
                    their bytes, which differ for each; and none is outside of all scopes",
            run: |gpu, findings| {
                window::expect_cupti(gpu)?;
                child::judged(CALLS_OF_DRIVER, &[], findings)
            },
        },
        Check {
            name: "a window in which only graphs are launched has all their kernels",
            bound: "exactly the kernels of each launch, under its scope: a graph may be empty, so no record of another \
                    launch shows that some are still to come",
            run: |gpu, findings| {
                window::expect_cupti(gpu)?;
                child::judged(GRAPHS_ALONE, &[], findings)
            },
        },
        Check {
            name: "copies of a batch are under the scope that asked for them",
            bound: "the scope has copies of all bytes of the batch, for each form of the call that the driver exports",
            run: |gpu, findings| {
                window::expect_cupti(gpu)?;
                child::judged(BATCHES_OF_COPIES, &[], findings)
            },
        },
        Check {
            name: "a product by cuBLAS is under the scope that asked for it",
            bound: "each of 10 products has at least one kernel and runs the same kernels, and none is outside of all scopes",
            run: |gpu, findings| {
                needs_a_device(gpu)?;
                child::judged(PRODUCTS, &[], findings)
            },
        },
        Check {
            name: "work of the CUDA runtime is under the scope that asked for it",
            bound: "a copy, a fill and a graph by the functions of the runtime are under their scopes, each once although the \
                    runtime calls the driver",
            run: |gpu, findings| {
                needs_a_device(gpu)?;
                child::judged(CALLS_OF_RUNTIME, &[], findings)
            },
        },
    ],
};

const CALLS_OF_DRIVER: &str = "calls of the driver";
const GRAPHS_ALONE: &str = "graphs alone";
const BATCHES_OF_COPIES: &str = "batches of copies";
const PRODUCTS: &str = "products in windows";
const CALLS_OF_RUNTIME: &str = "calls of the runtime";

pub(crate) const PARTS: &[Part] = &[
    Part {
        name: CALLS_OF_DRIVER,
        play: || child::judge(calls_of_driver),
    },
    Part {
        name: GRAPHS_ALONE,
        play: || child::judge(graphs_alone),
    },
    Part {
        name: BATCHES_OF_COPIES,
        play: || child::judge(batches),
    },
    Part {
        name: PRODUCTS,
        play: || child::judge(products),
    },
    Part {
        name: CALLS_OF_RUNTIME,
        play: || child::judge(calls_of_runtime),
    },
];

fn needs_a_device(gpu: &Gpu) -> Result<(), Trouble> {
    if gpu.simulated {
        let reason = "a simulated device computes nothing";
        return Err(Trouble::Skip(reason.to_owned()));
    }
    Ok(())
}

/// Work that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asked {
    Kernel,
    Copy(u64),
    Fill(u64),
}

impl Asked {
    fn of(work: &Work<'_>) -> Option<Self> {
        match work.details.kind {
            GpuWorkKind::Kernel(_) => Some(Self::Kernel),
            GpuWorkKind::Memcpy(copy) => Some(Self::Copy(copy.bytes)),
            GpuWorkKind::Memset(fill) => Some(Self::Fill(fill.bytes)),
            _ => None,
        }
    }
}

/// Formats sorted work as `5 × Fill(1024), 15 × Kernel`.
fn counted(work: &[Asked]) -> String {
    let alike = work.chunk_by(|left, right| left == right);
    let counts: Vec<String> = alike
        .map(|alike| format!("{} × {:?}", alike.len(), alike[0]))
        .collect();
    if counts.is_empty() {
        "nothing".to_owned()
    } else {
        counts.join(", ")
    }
}

/// How often each scope is opened.
const ROUNDS: usize = 5;
/// The unit of sizes: a different multiple for each copy and fill.
const UNIT: usize = 1_024;

/// Expects exactly this work under each scope, `ROUNDS` times, and none outside.
fn expect_work(findings: &mut Findings, window: &Window, expected: &[(&str, &[Asked])]) {
    let work = window.work();
    for (scope, asked) in expected {
        let mut asked: Vec<Asked> = asked.repeat(ROUNDS);
        asked.sort_unstable();
        let of_scope = work.iter().filter(|work| work.scope == Some(*scope));
        let mut found: Vec<Asked> = of_scope.filter_map(Asked::of).collect();
        found.sort_unstable();
        findings.expect(found == asked, || {
            format!("`{scope}` has {}, not {}", counted(&found), counted(&asked))
        });
    }
    let scopes = |scope: &str| expected.iter().any(|(name, _)| *name == scope);
    let outside = work.iter().filter(|work| !work.scope.is_some_and(scopes));
    let outside: Vec<&str> = outside.map(|work| work.name).collect();
    findings.expect(outside.is_empty(), || {
        format!("outside of the scopes: {outside:?}")
    });
    let of_calls = expected.iter().map(|(_, asked)| asked.len()).sum::<usize>();
    findings.figure("kernels, copies and fills", (of_calls * ROUNDS) as f64, "");
}

fn calls_of_driver(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const FIRST: &str = "fill, bytes";
    const EXPECTED: [(&str, &[Asked]); 10] = [
        (FIRST, &[Asked::Fill(1 << 10)]),
        ("fill, words", &[Asked::Fill(2 << 10)]),
        ("copy to the device", &[Asked::Copy(3 << 10)]),
        ("copy to the host", &[Asked::Copy(4 << 10)]),
        ("copy on the device", &[Asked::Copy(5 << 10)]),
        (
            "copies that wait",
            &[Asked::Copy(6 << 10), Asked::Copy(7 << 10)],
        ),
        (
            "kernel between copies",
            &[Asked::Copy(8 << 10), Asked::Kernel, Asked::Copy(9 << 10)],
        ),
        ("graph of kernels", &[Asked::Kernel; 3]),
        (
            "graph of all kinds",
            &[Asked::Kernel, Asked::Copy(11 << 10), Asked::Fill(10 << 10)],
        ),
        ("no work", &[]),
    ];
    let (driver, stream) = (gpu.driver, gpu.stream()?);
    let (handle, buffers) = (raw(&stream), Buffers::new(driver, 16 * UNIT)?);
    let of_kernels = graph_of_kernels(gpu, handle)?;
    let of_all = Graph::capture(driver, handle, THREAD_LOCAL, || {
        buffers.fill_bytes(10 * UNIT, handle)?;
        gpu.kernels.spin(handle, 10_000, 0)?;
        buffers.copy_on_device(11 * UNIT, handle)
    })?;
    let window = Window::record(gpu, findings, || {
        for _ in 0..ROUNDS {
            for (scope, _) in EXPECTED {
                let _scope = scope!(scope, stream = &stream);
                match scope {
                    FIRST => buffers.fill_bytes(UNIT, handle)?,
                    "fill, words" => buffers.fill_words(2 * UNIT, handle)?,
                    "copy to the device" => buffers.copy_to_device(3 * UNIT, handle)?,
                    "copy to the host" => buffers.copy_to_host(4 * UNIT, handle)?,
                    "copy on the device" => buffers.copy_on_device(5 * UNIT, handle)?,
                    "copies that wait" => {
                        buffers.copy_to_device_and_wait(6 * UNIT)?;
                        buffers.copy_to_host_and_wait(7 * UNIT)?;
                    }
                    "kernel between copies" => {
                        buffers.copy_to_device(8 * UNIT, handle)?;
                        gpu.kernels.spin(handle, 10_000, 0)?;
                        buffers.copy_to_host(9 * UNIT, handle)?;
                    }
                    "graph of kernels" => of_kernels.launch(handle)?,
                    "graph of all kinds" => of_all.launch(handle)?,
                    _ => {}
                }
            }
        }
        Ok(())
    })?;
    expect_work(findings, &window, &EXPECTED);
    Ok(())
}

/// Captures three kernels.
fn graph_of_kernels(gpu: &Gpu, stream: usize) -> Result<Graph, Trouble> {
    Graph::capture(gpu.driver, stream, THREAD_LOCAL, || {
        (0..3).try_for_each(|_| gpu.kernels.spin(stream, 10_000, 0))
    })
}

fn graphs_alone(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let stream = gpu.stream()?;
    let graph = graph_of_kernels(gpu, raw(&stream))?;
    let window = Window::record(gpu, findings, || {
        for _ in 0..ROUNDS {
            let _scope = scope!("graph alone", stream = &stream);
            graph.launch(raw(&stream))?;
        }
        Ok(())
    })?;
    expect_work(findings, &window, &[("graph alone", &[Asked::Kernel; 3])]);
    Ok(())
}

fn batches(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    let (driver, stream) = (gpu.driver, gpu.stream()?);
    let (handle, buffers) = (raw(&stream), Buffers::new(driver, 16 * UNIT)?);
    let exported = BATCHES.iter().filter(|form| driver.exports(form));
    let mut tried = 0;
    for form in exported {
        let mut refused = None;
        let window = Window::record(gpu, findings, || {
            for _ in 0..ROUNDS {
                let _scope = scope!("batch", stream = &stream);
                match buffers.copy_batch(form, [UNIT, 2 * UNIT, 3 * UNIT], handle) {
                    // A driver that knows the function may not support it.
                    Err(Trouble::Driver { code: 801, .. }) => refused = Some(form),
                    done => done?,
                }
            }
            Ok(())
        })?;
        if let Some(form) = refused {
            findings.note(format!("{form} is not supported"));
            continue;
        }
        tried += 1;
        let bytes = |scope: Option<&str>| -> u64 {
            let work = window.work();
            let of_scope = work.iter().filter(|work| work.scope == scope);
            let copies = of_scope.filter_map(|work| match Asked::of(work) {
                Some(Asked::Copy(bytes)) => Some(bytes),
                _ => None,
            });
            copies.sum()
        };
        let expected = (6 * UNIT * ROUNDS) as u64;
        findings.expect_count(
            &format!("{form}: bytes in the scope"),
            bytes(Some("batch")),
            expected,
        );
        findings.expect_count(&format!("{form}: bytes outside"), bytes(None), 0);
        findings.note(format!("{form} was tried"));
    }
    if tried == 0 {
        let reason = "the driver has no batches of copies, which are of CUDA 12.8";
        return Err(Trouble::Skip(reason.to_owned()));
    }
    Ok(())
}

fn products(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const SIDE: i32 = 512;
    const PRODUCTS: usize = 10;
    let stream = gpu.stream()?;
    let cublas = Cublas::on(raw(&stream))?;
    findings.note(cublas.path.clone());
    let matrices = [(); 3].map(|()| Buffers::new(gpu.driver, 512 * 512 * size_of::<f32>()));
    let [left, right, to] = matrices;
    let (left, right, to) = (left?, right?, to?);
    let matrices = [left.device(), right.device(), to.device()];
    // The first product loads the kernels.
    cublas.multiply(SIDE, matrices)?;
    stream.synchronize()?;
    let window = Window::record(gpu, findings, || {
        for _ in 0..PRODUCTS {
            let _scope = scope!("product in a window", stream = &stream);
            cublas.multiply(SIDE, matrices)?;
        }
        Ok(())
    })?;
    let events = window.trace.events();
    let calls: Vec<Vec<&str>> = events
        .filter(|event| event.name() == "product in a window")
        .map(|event| event.gpu_work().map(GpuEvent::name).collect())
        .collect();
    findings.expect_count("products", calls.len() as u64, PRODUCTS as u64);
    let first = calls.first().cloned().unwrap_or_default();
    findings.expect(!first.is_empty(), || "a product has no kernel".to_owned());
    findings.expect(calls.iter().all(|call| *call == first), || {
        format!("the products have different kernels: {calls:?}")
    });
    findings.note(format!("a product is {}", first.join(", ")));
    let work = window.work();
    let outside: Vec<&str> = work
        .iter()
        .filter(|work| work.scope.is_none())
        .map(|work| work.name)
        .collect();
    findings.expect(outside.is_empty(), || {
        format!("outside of the scopes: {outside:?}")
    });
    Ok(())
}

fn calls_of_runtime(gpu: &Gpu, findings: &mut Findings) -> Result<(), Trouble> {
    const EXPECTED: [(&str, &[Asked]); 3] = [
        ("runtime: fill", &[Asked::Fill(1 << 10)]),
        ("runtime: copy", &[Asked::Copy(2 << 10)]),
        ("runtime: graph", &[Asked::Kernel; 3]),
    ];
    let (driver, stream) = (gpu.driver, gpu.stream()?);
    let (handle, buffers) = (raw(&stream), Buffers::new(driver, 16 * UNIT)?);
    let runtime = Runtime::open()?;
    findings.note(runtime.path.clone());
    let graph = graph_of_kernels(gpu, handle)?;
    // The first call initialises the runtime.
    runtime.fill(buffers.device(), UNIT, handle)?;
    stream.synchronize()?;
    let window = Window::record(gpu, findings, || {
        for _ in 0..ROUNDS {
            for (scope, _) in EXPECTED {
                let _scope = scope!(scope, stream = &stream);
                match scope {
                    "runtime: fill" => runtime.fill(buffers.device(), UNIT, handle)?,
                    "runtime: copy" => {
                        runtime.copy(buffers.device(), buffers.host(), 2 * UNIT, handle)?;
                    }
                    _ => runtime.launch(graph.handle(), handle)?,
                }
            }
        }
        Ok(())
    })?;
    expect_work(findings, &window, &EXPECTED);
    Ok(())
}
