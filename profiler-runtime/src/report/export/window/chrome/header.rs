//! The header of a trace: everything before its events.

use std::io::{self, Write};

use crate::cuda::DeviceProperties;
use crate::report::export::chrome::event_writer::write_list;
use crate::report::rank::Rank;
use crate::report::text::json::string;
use crate::session::Trace;

/// Keys that the tools interpret. Metadata of the program with one of these keys is renamed.
const KEYS: [&str; 9] = [
    "schemaVersion",
    "deviceProperties",
    "distributedInfo",
    "displayTimeUnit",
    "baseTimeNanoseconds",
    "traceName",
    "profiler",
    "traceEvents",
    // TensorBoard's trace plugin reads some events differently if this key says PyTorch Lightning.
    "Framework",
];

const ABOUT_WORK: &str = "kernels, copies and their launches are as CUPTI recorded them; annotations of streams are what \
                          scopes took on the GPU";

const ABOUT: &str = "scopes are measured, not kernels: events of the category kernel with \"scope\": true stand \
                     for what the scope of their name took on the GPU itself, and their launches for where it began";

/// Returns the known properties of a device under PyTorch's names, as further members of a JSON object.
fn properties_json(device: &DeviceProperties) -> String {
    let (major, minor) = device.compute;
    let known = |count: u32| (count > 0).then_some(u64::from(count));
    let members = [
        (
            "totalGlobalMem",
            Some(device.total_bytes).filter(|bytes| *bytes > 0),
        ),
        ("computeMajor", known(major)),
        // Zero is a minor version too.
        ("computeMinor", known(major).map(|_| minor.into())),
        ("maxThreadsPerBlock", known(device.threads_of_block)),
        (
            "maxThreadsPerMultiprocessor",
            known(device.threads_of_multiprocessor),
        ),
        ("regsPerBlock", known(device.registers_of_block)),
        (
            "regsPerMultiprocessor",
            known(device.registers_of_multiprocessor),
        ),
        ("warpSize", known(device.warp_size)),
        ("sharedMemPerBlock", known(device.shared_bytes_of_block)),
        (
            "sharedMemPerBlockOptin",
            known(device.most_shared_bytes_of_block),
        ),
        (
            "sharedMemPerMultiprocessor",
            known(device.shared_bytes_of_multiprocessor),
        ),
        ("numSms", known(device.multiprocessors)),
    ];
    let members = members
        .into_iter()
        .filter_map(|(key, value)| Some(format!(",\"{key}\":{}", value?)));
    members.collect()
}

/// The header of a trace.
pub(super) struct Header<'t> {
    pub(super) trace: &'t Trace,
    pub(super) name: &'t str,
    pub(super) base_ns: i64,
    /// The number of GPU times whose start is not known.
    pub(super) unplaced: usize,
    /// The names of the devices, by ordinal.
    pub(super) devices: &'t [String],
    /// Their properties, by ordinal, as far as they are known.
    pub(super) properties: &'t [DeviceProperties],
    pub(super) rank: Option<Rank>,
}

impl Header<'_> {
    /// Writes everything up to the events. The events come last, because TensorBoard's trace plugin inserts its
    /// counters before the last bracket of the file.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut line = Vec::new();
        line.extend(b"{\"schemaVersion\":1,\n\"deviceProperties\":");
        write_list(
            &mut line,
            self.devices.iter().enumerate(),
            |out, (id, name)| {
                let properties = self.properties.get(id);
                let properties = properties.map_or_else(String::new, properties_json);
                let device = format!(r#"{{"id":{id},"name":{}{properties}}}"#, string(name));
                out.extend(device.into_bytes());
            },
        );
        if let Some(Rank { rank, world_size }) = self.rank {
            // HTA's search for the rank needs the space.
            write!(
                line,
                ",\n\"distributedInfo\":{{\"backend\":\"unknown\",\"rank\": {rank}"
            )?;
            if let Some(world_size) = world_size {
                write!(line, ",\"world_size\": {world_size}")?;
            }
            line.push(b'}');
        }
        write!(
            line,
            ",\n\"displayTimeUnit\":\"ms\",\n\"baseTimeNanoseconds\":{},\n\"traceName\":{}",
            self.base_ns,
            string(self.name),
        )?;
        self.write_profiler(&mut line)?;
        self.write_metadata(&mut line)?;
        line.extend(b",\n\"traceEvents\":[\n");
        out.write_all(&line)
    }

    fn write_profiler(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let meta = &self.trace.meta;
        let truncation = &meta.truncation;
        let lost = self.trace.lost_work();
        write!(
            out,
            ",\n\"profiler\":{{\"name\":\"profiler-runtime\",\"version\":\"{}\",\"about\":{}",
            env!("CARGO_PKG_VERSION"),
            string(if self.trace.work.is_recorded {
                ABOUT_WORK
            } else {
                ABOUT
            }),
        )?;
        write!(
            out,
            ",\"step_num\":{},\"cycle\":{},\"complete\":{},\"over_capacity\":{},\"ring_full\":{},\"unread\":{},\
             \"unplaced\":{},\"cut_short\":{},\"handler_behind\":{},\"late\":{},\"no_memory\":{}",
            meta.step_num,
            meta.cycle,
            truncation.is_complete() && lost.is_complete(),
            truncation.over_capacity,
            truncation.ring_full,
            truncation.unread,
            self.unplaced,
            truncation.cut_short,
            truncation.handler_behind,
            truncation.late,
            truncation.no_memory,
        )?;
        if self.trace.work.is_recorded {
            write!(
                out,
                ",\"lost_work\":{{\"dropped\":{},\"no_buffer\":{},\"launch_queue_full\":{},\"queue_full\":{},\
                 \"incomplete\":{},\"without_time\":{},\"over_capacity\":{},\"without_name\":{},\"no_memory\":{}}}",
                lost.dropped,
                lost.no_buffer,
                lost.launch_queue_full,
                lost.queue_full,
                lost.incomplete,
                lost.without_time,
                lost.over_capacity,
                lost.without_name,
                lost.no_memory,
            )?;
        }
        if let Some(reason) = self.trace.no_cuda_reason() {
            write!(out, ",\"no_cuda_reason\":{}", string(reason))?;
        }
        if let Some(reason) = self.trace.no_kernels_reason() {
            write!(out, ",\"no_kernels_reason\":{}", string(reason))?;
        }
        out.push(b'}');
        Ok(())
    }

    /// Keeps the last value of each key.
    fn write_metadata(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let pairs = &self.trace.meta.metadata;
        for (index, (key, value)) in pairs.iter().enumerate() {
            if pairs[index + 1..].iter().any(|(later, _)| later == key) {
                continue;
            }
            let is_taken = KEYS.contains(&key.as_str());
            let key = if is_taken {
                string(&format!("metadata.{key}"))
            } else {
                string(key)
            };
            write!(out, ",\n{key}:{}", string(value))?;
        }
        Ok(())
    }
}
