//! The head of a trace: everything before its events.

use std::collections::HashMap;
use std::io::{self, Write};

use super::NAME_TABLE;
use super::event_writer::write_list;
use super::places::Places;
use super::written_name::{WrittenName, write_table};
use crate::Timeline;
use crate::in_order::InOrder as _;
use crate::text::json::{array, string};
use profiler_cuda_sys::driver::DeviceProperties;

/// Keys that the tools or the command line interpret. Metadata of the program with one of these keys is renamed.
const KEYS: [&str; 11] = [
    "schemaVersion",
    "deviceProperties",
    "distributedInfo",
    "displayTimeUnit",
    "baseTimeNanoseconds",
    "traceName",
    "profiler",
    "traceEvents",
    NAME_TABLE,
    // TensorBoard's trace plugin reads some events differently if this key says PyTorch Lightning.
    "Framework",
    // A file with this key is a summary.
    "rows",
];

/// Stands for a backend that is not known: the tools want one.
const UNKNOWN_BACKEND: &str = "unknown";

/// What keys of metadata begin with if they are renamed.
const RENAMED: &str = "metadata.";

const ABOUT_STAND_INS: &str = "scopes are measured, not kernels: events of the category kernel with \"scope\": true stand \
                               for what the scope of their name took on the GPU itself, and their launches for where it \
                               began";
const ABOUT_WORK: &str = "kernels, copies and their launches are as CUPTI recorded them; annotations of streams are what \
                          scopes took on the GPU";

/// What the head of a file says.
pub(super) struct Head<'h> {
    pub(super) timeline: &'h Timeline,
    pub(super) places: &'h Places,
    pub(super) names: &'h [WrittenName],
    /// The time that the times of events are relative to, in nanoseconds since the Unix epoch.
    pub(super) base: i64,
    /// `true` if GPU times of scopes stand for kernels.
    pub(super) has_stand_ins: bool,
}

/// Writes everything up to the events. These come last, because TensorBoard's trace plugin inserts its counters before
/// the last bracket of the file.
pub(super) fn write(
    &Head {
        timeline,
        places,
        names,
        base,
        has_stand_ins,
    }: &Head<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut head = b"{\"schemaVersion\":1,\n\"deviceProperties\":".to_vec();
    let devices = places.devices_of(timeline);
    let devices = devices.iter().enumerate();
    write_list(&mut head, devices, |out, (id, (name, properties))| {
        let properties = properties.map_or_else(String::new, properties_json);
        let device = format!(r#"{{"id":{id},"name":{}{properties}}}"#, string(name));
        out.extend(device.into_bytes());
    });
    let mut ranks: Vec<Option<u64>> = timeline.tracks.iter().map(|track| track.rank).collect();
    ranks.order();
    ranks.dedup();
    if let [Some(rank)] = ranks[..] {
        // HTA's search for the rank needs the space.
        let backend = string(timeline.backend.as_deref().unwrap_or(UNKNOWN_BACKEND));
        write!(
            head,
            ",\n\"distributedInfo\":{{\"backend\":{backend},\"rank\": {rank}"
        )?;
        if let Some(world_size) = timeline.world_size {
            write!(head, ",\"world_size\": {world_size}")?;
        }
        if !timeline.groups.is_empty() {
            head.extend(b",\"pg_config\":");
            write_list(&mut head, &timeline.groups, |out, group| {
                let ranks = array(group.ranks.iter().map(u64::to_string));
                let name = string(&group.name);
                out.extend(format!("{{\"pg_name\":{name},\"ranks\":{ranks}}}").into_bytes());
            });
        }
        head.push(b'}');
    }
    write!(
        head,
        ",\n\"displayTimeUnit\":\"ms\",\n\"baseTimeNanoseconds\":{base},\n\"traceName\":{},\n\"profiler\":{{\"name\":\
         \"profiler-runtime\",\"version\":\"{}\"",
        string(&timeline.title),
        env!("CARGO_PKG_VERSION"),
    )?;
    let has_work = timeline.has_kernels || !timeline.work.is_empty();
    let about = match (has_stand_ins, has_work) {
        (true, _) => Some(ABOUT_STAND_INS),
        (_, true) => Some(ABOUT_WORK),
        _ => None,
    };
    if let Some(about) = about {
        write!(head, ",\"about\":{}", string(about))?;
    }
    if timeline.has_kernels {
        head.extend(b",\"kernels\":true");
    }
    for (key, number) in [("step_num", timeline.step_num), ("cycle", timeline.cycle)] {
        if let Some(number) = number {
            write!(head, ",\"{key}\":{number}")?;
        }
    }
    write!(
        head,
        ",\"complete\":{},\"missing\":",
        timeline.missing.is_empty()
    )?;
    write_list(&mut head, &timeline.missing, |out, (reason, count)| {
        out.extend(format!("[{},{count}]", string(reason)).into_bytes());
    });
    head.push(b'}');
    write!(head, ",\n\"{NAME_TABLE}\":")?;
    write_table(names, &mut head);
    write_metadata(&timeline.metadata, &mut head)?;
    head.extend(b",\n\"traceEvents\":[\n");
    out.write_all(&head)
}

/// Keeps the last value of each key. A renamed key is no other key of the program, as all that begin so are renamed.
fn write_metadata(pairs: &[(String, String)], out: &mut Vec<u8>) -> io::Result<()> {
    let last: HashMap<&str, usize> = (0..)
        .zip(pairs)
        .map(|(index, (key, _))| (key.as_str(), index))
        .collect();
    for (index, (key, value)) in pairs.iter().enumerate() {
        if last.get(key.as_str()) != Some(&index) {
            continue;
        }
        let is_renamed = KEYS.contains(&key.as_str()) || key.starts_with(RENAMED);
        let before = if is_renamed { RENAMED } else { "" };
        let key = string(&format!("{before}{key}"));
        write!(out, ",\n{key}:{}", string(value))?;
    }
    Ok(())
}

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
        // PyTorch does not write these; without them the occupancy cannot be computed again.
        (
            "maxBlocksPerMultiprocessor",
            known(device.blocks_of_multiprocessor),
        ),
        (
            "reservedSharedMemPerBlock",
            known(device.reserved_shared_bytes_of_block),
        ),
    ];
    let members = members
        .into_iter()
        .filter_map(|(key, value)| Some(format!(",\"{key}\":{}", value?)));
    members.collect()
}
