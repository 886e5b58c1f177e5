//! The records that a release writes, to be compared with NVIDIA's headers: the fields are where their values are found.

use header_check::{Headers, Item, Release, Shape};

use super::ids::kind;
use super::record::{Body, Record};
use super::state;
use crate::driver::kernel::LaunchDims;

const START: u64 = 0xA1B2_C1B0_A1B2_C1B1;
const END: u64 = 0xA1B2_C1B2_A1B2_C1B3;
const NODE: u64 = 0xA1B2_C1D0_A1B2_C1D1;
const BYTES: u64 = 0xA1B2_C150_A1B2_C151;
const DEVICE: u32 = 0xA1B2_C1C0;
const CONTEXT: u32 = 0xA1B2_C1C1;
const STREAM: u32 = 0xA1B2_C1C2;
const CORRELATION: u32 = 0xA1B2_C1C3;
const GRAPH: u32 = 0xA1B2_C1C4;
const ORDER: u64 = 0xA1B2_C140_A1B2_C141;
const NAME: &std::ffi::CStr = c"kernel";
const SHAPE: LaunchDims = LaunchDims {
    grid: [0xA1B2_C110, 0xA1B2_C111, 0xA1B2_C112],
    block: [0xA1B2_C120, 0xA1B2_C121, 0xA1B2_C122],
    shared_bytes: 0xA1B2_C130,
};

/// A record that was written, and the fields in it.
struct Written<'a> {
    structure: String,
    bytes: &'a [u8],
    items: Vec<Item>,
}

impl Written<'_> {
    /// Adds fields of a type, which have these values.
    fn add<T: Shape, const N: usize>(&mut self, fields: &[(&str, [u8; N])]) {
        for (name, value) in fields {
            let mut all = self.bytes.windows(N);
            let place = all
                .position(|found| found == value)
                .expect("it was written");
            self.items
                .push(Item::field::<T>(&self.structure, name, place));
        }
    }

    fn words(&mut self, fields: &[(&str, u32)]) {
        for (name, value) in fields {
            self.add::<u32, 4>(&[(name, value.to_ne_bytes())]);
        }
    }

    fn longs(&mut self, fields: &[(&str, u64)]) {
        for (name, value) in fields {
            self.add::<u64, 8>(&[(name, value.to_ne_bytes())]);
        }
    }
}

/// Returns the newest structure that the headers have for a kind of record.
fn newest(headers: &Headers, kind: u32) -> String {
    let (record, first) = match kind {
        kind::CONCURRENT_KERNEL => ("CUpti_ActivityKernel", 8),
        kind::MEMCPY => ("CUpti_ActivityMemcpy", 5),
        kind::MEMCPY2 => ("CUpti_ActivityMemcpyPtoP", 4),
        kind::MEMSET => ("CUpti_ActivityMemset", 4),
        kind::SYNCHRONIZATION => ("CUpti_ActivitySynchronization", 1),
        _ => ("CUpti_ActivityOverhead", 1),
    };
    let all = headers.numbered(record, first);
    let newest = all
        .into_iter()
        .max_by_key(|name| (name.len(), name.clone()));
    newest.expect("the first, at least")
}

/// Returns one record of each kind.
fn bodies() -> [Body; 6] {
    let copy = |peers| Body::Copy {
        kind: 0xE1,
        from: 0xE2,
        to: 0xE3,
        is_async: true,
        bytes: BYTES,
        peers,
    };
    [
        Body::Kernel {
            name: NAME,
            shape: SHAPE,
            order: ORDER,
        },
        copy(None),
        copy(Some([
            (0xA1B2_C160, 0xA1B2_C161),
            (0xA1B2_C162, 0xA1B2_C163),
        ])),
        Body::Fill {
            value: 0xA1B2_C170,
            bytes: BYTES,
            memory: 0xE4E5,
            is_async: true,
        },
        Body::Synchronization {
            kind: 0xA1B2_C190,
            event: 0xA1B2_C191,
            code: 0xA1B2_C192,
        },
        Body::Overhead { kind: 0xA1B2_C1A0 },
    ]
}

/// Adds the fields of a record that are of its kind.
fn add_fields(written: &mut Written<'_>, body: &Body, release: Release) {
    let on_stream = [("contextId", CONTEXT), ("streamId", STREAM)];
    written.longs(&[("start", START), ("end", END)]);
    // Older releases do not say it of an overhead.
    if !matches!(body, Body::Overhead { .. }) || release >= Release(12, 4) {
        written.words(&[("correlationId", CORRELATION)]);
    }
    if let Body::Kernel { .. } | Body::Copy { .. } | Body::Fill { .. } = body {
        written.words(&on_stream);
        written.words(&[("deviceId", DEVICE), ("graphId", GRAPH)]);
        written.longs(&[("graphNodeId", NODE)]);
    }
    match body {
        Body::Kernel { .. } => {
            for (name, value) in [
                ("gridX", SHAPE.grid[0]),
                ("gridY", SHAPE.grid[1]),
                ("gridZ", SHAPE.grid[2]),
                ("blockX", SHAPE.block[0]),
                ("blockY", SHAPE.block[1]),
                ("blockZ", SHAPE.block[2]),
                ("dynamicSharedMemory", SHAPE.shared_bytes),
            ] {
                written.add::<i32, 4>(&[(name, value.to_ne_bytes())]);
            }
            written.add::<i64, 8>(&[("gridId", ORDER.to_ne_bytes())]);
            let address = NAME.as_ptr().addr();
            written.add::<usize, 8>(&[("name", (address as u64).to_ne_bytes())]);
        }
        Body::Copy { peers, .. } => {
            written.longs(&[("bytes", BYTES)]);
            written.add::<u8, 1>(&[
                ("copyKind", [0xE1]),
                ("srcKind", [0xE2]),
                ("dstKind", [0xE3]),
            ]);
            if let Some([from, to]) = peers {
                written.words(&[
                    ("srcDeviceId", from.0),
                    ("srcContextId", from.1),
                    ("dstDeviceId", to.0),
                    ("dstContextId", to.1),
                ]);
            }
        }
        Body::Fill { value, memory, .. } => {
            written.longs(&[("bytes", BYTES)]);
            written.words(&[("value", *value)]);
            written.add::<u16, 2>(&[("memoryKind", memory.to_ne_bytes())]);
        }
        Body::Synchronization { kind, event, code } => {
            written.words(&on_stream);
            written.words(&[("type", *kind), ("cudaEventId", *event)]);
            if release >= Release(12, 8) {
                written.words(&[("returnValue", *code)]);
            }
        }
        Body::Overhead { kind } => written.words(&[("overheadKind", *kind)]),
        Body::Unknown => {}
    }
}

/// Returns the sizes and the fields of the records.
pub(crate) fn records(headers: &Headers) -> Vec<Item> {
    let release = headers.release();
    let mut cupti = state::lock();
    cupti.version = super::version_of(&release.to_string()).expect("a release that is simulated");
    cupti.is_11_8 = release == Release(11, 8);
    let mut items = Vec::new();
    for body in bodies() {
        let record = Record {
            thread: 0,
            offset: 0,
            start: START,
            end: END,
            device: DEVICE,
            context: CONTEXT,
            stream: STREAM,
            correlation: CORRELATION,
            graph: GRAPH,
            node: NODE,
            body,
        };
        let fields = record.encode(&cupti, true, true).expect("a known kind");
        let structure = newest(headers, record.kind());
        items.push(Item::size(&structure, fields.bytes().len()));
        let mut written = Written {
            structure,
            bytes: fields.bytes(),
            items: Vec::new(),
        };
        add_fields(&mut written, &body, release);
        items.append(&mut written.items);
    }
    items
}
