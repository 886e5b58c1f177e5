//! Profiles for pprof, which Pyroscope and Parca read too.

use std::collections::HashMap;
use std::path::Path;

use super::frames::{Frame, Frames};
use crate::protobuf::Message;
use crate::written::PPROF_COMMENT;
use crate::{CallLabels, CallNode, CallTree};
use crate::{ExportError, file};

/// The numbers of the fields in `profile.proto`.
mod field {
    pub(super) mod profile {
        pub(in super::super) const SAMPLE_TYPE: u32 = 1;
        pub(in super::super) const SAMPLE: u32 = 2;
        pub(in super::super) const LOCATION: u32 = 4;
        pub(in super::super) const FUNCTION: u32 = 5;
        pub(in super::super) const STRING_TABLE: u32 = 6;
        pub(in super::super) const TIME_NANOS: u32 = 9;
        pub(in super::super) const DURATION_NANOS: u32 = 10;
        pub(in super::super) const COMMENT: u32 = 13;
        pub(in super::super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
    }
    pub(super) mod value_type {
        pub(in super::super) const TYPE: u32 = 1;
        pub(in super::super) const UNIT: u32 = 2;
    }
    pub(super) mod sample {
        pub(in super::super) const LOCATION_ID: u32 = 1;
        pub(in super::super) const VALUE: u32 = 2;
        pub(in super::super) const LABEL: u32 = 3;
    }
    pub(super) mod label {
        pub(in super::super) const KEY: u32 = 1;
        pub(in super::super) const STR: u32 = 2;
        pub(in super::super) const NUM: u32 = 3;
    }
    pub(super) mod location {
        pub(in super::super) const ID: u32 = 1;
        pub(in super::super) const LINE: u32 = 4;
    }
    pub(super) mod line {
        pub(in super::super) const FUNCTION_ID: u32 = 1;
        pub(in super::super) const LINE: u32 = 2;
    }
    pub(super) mod function {
        pub(in super::super) const ID: u32 = 1;
        pub(in super::super) const NAME: u32 = 2;
        pub(in super::super) const SYSTEM_NAME: u32 = 3;
        pub(in super::super) const FILENAME: u32 = 4;
        pub(in super::super) const START_LINE: u32 = 5;
    }
}

/// A value of each sample: its name, its unit, and how it is read from a node, if it was recorded there.
type SampleType = (&'static str, &'static str, fn(&CallNode) -> Option<i64>);

/// All values that a profile can have. Viewers add those of callees, so they are values without children.
const SAMPLE_TYPES: [SampleType; 5] = [
    ("calls", "count", |node| Some(count(node.calls))),
    ("cpu", "nanoseconds", |node| Some(whole(node.cpu?.self_ns))),
    ("cuda", "nanoseconds", |node| {
        Some(whole(node.cuda?.self_ns))
    }),
    ("alloc", "bytes", |node| Some(count(node.allocated_bytes?))),
    ("gpu_alloc", "bytes", |node| node.device_bytes),
];

impl CallTree {
    /// Writes a profile for pprof, Pyroscope and Parca; compressed if the name ends with `.gz`, as they expect.
    ///
    /// | sample type | value |
    /// |---|---|
    /// | `calls` | calls |
    /// | `cpu` | nanoseconds on the CPU without children |
    /// | `cuda` | nanoseconds on the GPU without children; the one shown first, if there are GPU times |
    /// | `alloc` | host bytes allocated without children |
    /// | `gpu_alloc` | device bytes allocated less those freed, without children |
    ///
    /// Values that were not recorded are left out. The labels `thread`, `stream` and `step` divide the samples of a
    /// window.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be created or written.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn summary() -> profiler_report::Summary { profiler_report::Summary::default() }
    /// let path = std::env::temp_dir().join(format!("calltree-{}.pb.gz", std::process::id()));
    /// summary().call_tree().export_pprof(&path)?;
    /// // Then: go tool pprof -http=: run.pb.gz
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export_pprof(&self, path: impl AsRef<Path>) -> Result<(), ExportError> {
        file::write(path.as_ref(), profile(self).bytes())
    }
}

pub(super) fn profile(tree: &CallTree) -> Message {
    let is_recorded =
        |(_, _, value): &SampleType| tree.nodes.iter().any(|node| value(node).is_some());
    let types: Vec<SampleType> = SAMPLE_TYPES.into_iter().filter(is_recorded).collect();
    let mut strings = Strings::new();
    let mut profile = Message::default();
    for (name, unit, _) in &types {
        let mut message = Message::default();
        message.unsigned(field::value_type::TYPE, strings.index(name));
        message.unsigned(field::value_type::UNIT, strings.index(unit));
        profile.message(field::profile::SAMPLE_TYPE, &message);
    }
    // The first strings come early, so that the beginning of the file says who wrote it.
    for string in &strings.all[..EARLY] {
        profile.text(field::profile::STRING_TABLE, string);
    }
    let mut frames = Frames::default();
    let ids: Vec<u64> = tree
        .nodes
        .iter()
        .map(|node| frames.number(&node.name, &node.location) as u64 + 1)
        .collect();
    for (index, node) in (0..).zip(&tree.nodes) {
        let values: Vec<i64> = types
            .iter()
            .map(|(_, _, value)| value(node).unwrap_or_default())
            .collect();
        if values.iter().any(|value| *value != 0) {
            let path = tree.path(index);
            // The innermost function first.
            let locations = path.iter().rev().filter_map(|at| ids.get(*at as usize));
            let mut sample = Message::default();
            sample.packed(field::sample::LOCATION_ID, locations.copied());
            sample.packed(
                field::sample::VALUE,
                values.into_iter().map(i64::cast_unsigned),
            );
            write_labels(&mut sample, &node.labels, &mut strings);
            profile.message(field::profile::SAMPLE, &sample);
        }
    }
    for (frame, id) in frames.all().iter().zip(1..) {
        write_function(&mut profile, *frame, id, &mut strings);
    }
    profile.signed(field::profile::TIME_NANOS, tree.start_unix_ns);
    profile.signed(field::profile::DURATION_NANOS, tree.duration_ns);
    let mut comments = vec![strings.index(PPROF_COMMENT)];
    if tree.is_flat {
        comments.push(strings.index("callers were not counted: each function is its own path"));
    }
    profile.packed(field::profile::COMMENT, comments);
    // pprof shows the last type by default, which would be memory.
    let mut names = types.iter().map(|(name, ..)| *name);
    let shown = names.rfind(|name| ["cpu", "cuda"].contains(name));
    if let Some(shown) = shown {
        profile.unsigned(field::profile::DEFAULT_SAMPLE_TYPE, strings.index(shown));
    }
    for string in &strings.all[EARLY..] {
        profile.text(field::profile::STRING_TABLE, string);
    }
    profile
}

/// Writes a function and the only location in it, with the same id.
fn write_function<'t>(profile: &mut Message, frame: Frame<'t>, id: u64, strings: &mut Strings<'t>) {
    let (file, line) = frame.file_and_line().unwrap_or_default();
    let name = strings.index(frame.name);
    let mut function = Message::default();
    function.unsigned(field::function::ID, id);
    function.unsigned(field::function::NAME, name);
    function.unsigned(field::function::SYSTEM_NAME, name);
    function.unsigned(field::function::FILENAME, strings.index(file));
    function.unsigned(field::function::START_LINE, line.into());
    profile.message(field::profile::FUNCTION, &function);
    let mut in_function = Message::default();
    in_function.unsigned(field::line::FUNCTION_ID, id);
    in_function.unsigned(field::line::LINE, line.into());
    let mut location = Message::default();
    location.unsigned(field::location::ID, id);
    location.message(field::location::LINE, &in_function);
    profile.message(field::profile::LOCATION, &location);
}

fn write_labels<'t>(sample: &mut Message, labels: &'t CallLabels, strings: &mut Strings<'t>) {
    for (key, text) in [("thread", &labels.thread), ("stream", &labels.stream)] {
        if let Some(text) = text {
            let mut label = Message::default();
            label.unsigned(field::label::KEY, strings.index(key));
            label.unsigned(field::label::STR, strings.index(text));
            sample.message(field::sample::LABEL, &label);
        }
    }
    if let Some(step) = labels.step {
        let mut label = Message::default();
        label.unsigned(field::label::KEY, strings.index("step"));
        label.signed(field::label::NUM, count(step));
        sample.message(field::sample::LABEL, &label);
    }
}

/// How many strings a profile begins with.
const EARLY: usize = 2;

/// The strings of a profile, which its messages refer to by index.
struct Strings<'t> {
    indices: HashMap<&'t str, u64>,
    all: Vec<&'t str>,
}

impl<'t> Strings<'t> {
    fn new() -> Self {
        let mut strings = Self {
            indices: HashMap::new(),
            all: Vec::new(),
        };
        // Index 0 must be the empty string.
        strings.index("");
        strings.index(PPROF_COMMENT);
        strings
    }

    fn index(&mut self, string: &'t str) -> u64 {
        *self.indices.entry(string).or_insert_with(|| {
            self.all.push(string);
            self.all.len() as u64 - 1
        })
    }
}

fn count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "no time is as long as centuries"
)]
fn whole(ns: f64) -> i64 {
    ns.round() as i64
}
