//! Checks of single events, and checks of the whole trace.

use std::collections::HashMap;
use std::fmt;

use serde_json::{Map, Value};

use super::event::{Category, Event};
use super::nesting::{self, Slice};
use super::rule::{Rule, Violation};

/// The number of violations that are listed for each rule.
const MOST: usize = 100;
/// HTA stores event indices in 16 bits if all correlations fit there.
const NARROW: u16 = 32_767;
/// From here on, 53 bits do not hold three decimals.
const LATEST_US: f64 = 8_796_093_022_208.0;

#[derive(Default)]
pub(super) struct Checker {
    violations: Vec<Violation>,
    counts: HashMap<Rule, usize>,
    count: usize,
    rank: Option<i64>,
    devices: Option<Vec<Value>>,
    last_memory: Option<(usize, i64)>,
    slices: Vec<Slice>,
    names: HashMap<String, u32>,
    operators: HashMap<i64, usize>,
    launches: HashMap<i64, Vec<Launch>>,
    on_device: Vec<OnDevice>,
    arrows: HashMap<ArrowId, Arrow>,
}

struct Launch {
    external_id: Option<i64>,
}

struct OnDevice {
    event: usize,
    name: String,
    correlation: i64,
    external_id: Option<i64>,
}

/// The id of an arrow. Most are whole numbers, possibly millions of them: these need no heap memory.
#[derive(PartialEq, Eq, Hash)]
enum ArrowId {
    Number(u64),
    /// The id as JSON.
    Other(Box<str>),
}

impl ArrowId {
    fn of(id: &Value) -> Self {
        let other = || Self::Other(id.to_string().into());
        id.as_u64().map_or_else(other, Self::Number)
    }
}

impl fmt::Display for ArrowId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Other(text) => text.fmt(f),
        }
    }
}

#[derive(Default)]
struct Arrow {
    event: usize,
    starts: u32,
    ends: u32,
    start: f64,
    end: f64,
}

impl Checker {
    /// Returns `true` if the value of this top-level key is checked.
    pub(super) fn wants(key: &str) -> bool {
        matches!(key, "distributedInfo" | "deviceProperties")
    }

    /// Checks a top-level key, with its value if it is [checked](Self::wants).
    pub(super) fn top_level(&mut self, key: &str, value: Option<Value>, closes_late: bool) {
        if closes_late {
            let what = format!("`{key}` has a bracket and follows `traceEvents`: write it before");
            self.add(Rule::EventsLast, None, None, what);
        }
        match (key, value) {
            ("distributedInfo", Some(value)) => {
                self.rank = value.get("rank").and_then(Value::as_i64);
            }
            ("deviceProperties", Some(Value::Array(devices))) => self.devices = Some(devices),
            _ => {}
        }
    }

    pub(super) fn event(&mut self, event: &Map<String, Value>) {
        let event = Event(event);
        let index = self.count;
        self.count += 1;
        let Some(name) = event.text("name") else {
            self.add(
                Rule::Name,
                Some(index),
                None,
                "it has no name: give it a string".into(),
            );
            return;
        };
        let found = match event.text("ph") {
            Some("X") => self.slice(index, name, &event),
            Some("i" | "I") if name == "[memory]" => self.memory(index, &event),
            Some("s" | "f") if event.text("cat") == Some("ac2g") => self.arrow(index, &event),
            _ if name == "[memory]" => {
                vec![(Rule::Memory, "it is no instant: make `ph` \"i\"".into())]
            }
            _ => Vec::new(),
        };
        for (rule, what) in found {
            self.add(rule, Some(index), Some(name), what);
        }
    }

    fn slice(&mut self, index: usize, name: &str, event: &Event<'_>) -> Vec<(Rule, String)> {
        let mut found = Vec::new();
        let category = event.text("cat").map(Category::of);
        let extent = event
            .number("ts")
            .zip(event.number("dur").filter(|dur| *dur >= 0.0));
        let (Some(category), Some((ts, dur))) = (category, extent) else {
            let what = "it needs `cat`, `ts`, and a `dur` that is not negative".into();
            return vec![(Rule::Slice, what)];
        };
        if ts >= LATEST_US && ts.fract() != 0.0 {
            found.push((
                Rule::Time,
                "`ts` is 2^43 µs or more: count from a later `baseTimeNanoseconds`".into(),
            ));
        }
        if category == Category::Whole {
            return found;
        }
        let numbers = ["pid", "tid"].map(|key| event.get(key).and_then(Value::as_i64));
        if let [Some(pid), Some(tid)] = numbers {
            let next = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
            let name = *self.names.entry(name.to_owned()).or_insert(next);
            self.slices.push(Slice {
                pid,
                tid,
                ts,
                dur,
                name,
                event: index,
                category,
            });
        } else {
            found.push((
                Rule::Track,
                "`pid` or `tid` is no whole number: give it one".into(),
            ));
        }
        if name.contains("ProfilerStep") && !is_step(name, category) {
            let what = "the tools take it for a step: only steps of the run on the host may have `ProfilerStep` in \
                        their names, as `ProfilerStep#5`";
            found.push((Rule::Step, what.into()));
        }
        found.extend(self.by_category(index, name, category, event));
        found
    }

    fn by_category(
        &mut self,
        index: usize,
        name: &str,
        category: Category,
        event: &Event<'_>,
    ) -> Option<(Rule, String)> {
        let broken = |rule, what: &str| Some((rule, what.to_owned()));
        match category {
            Category::Operator => match event.external_id() {
                Some(id) if id > 0 => {
                    let first = *self.operators.entry(id).or_insert(index);
                    let what =
                        format!("event {first} has the `External id` {id} too: give each its own");
                    (first != index).then_some((Rule::ExternalId, what))
                }
                _ => broken(
                    Rule::ExternalId,
                    "it has no `External id` above 0: give it one of its own",
                ),
            },
            Category::Launch => {
                let external_id = event.external_id();
                if let Some(correlation) = event.whole("correlation") {
                    self.launches
                        .entry(correlation)
                        .or_default()
                        .push(Launch { external_id });
                }
                if external_id.is_some() {
                    return None;
                }
                broken(
                    Rule::Launch,
                    "it has no `External id`: give it that of its operator, or 0",
                )
            }
            Category::GpuAnnotation if event.arg("stream").is_some() => broken(
                Rule::Annotation,
                "it has `args.stream`: leave that to what ran",
            ),
            _ if category.is_on_device() => self.on_device(index, name, category, event),
            _ => None,
        }
    }

    fn on_device(
        &mut self,
        index: usize,
        name: &str,
        category: Category,
        event: &Event<'_>,
    ) -> Option<(Rule, String)> {
        let broken = |rule, what: &str| Some((rule, what.to_owned()));
        let correlation = event
            .whole("correlation")
            .filter(|correlation| *correlation > 0);
        if let Some(correlation) = correlation {
            self.on_device.push(OnDevice {
                event: index,
                name: name.to_owned(),
                correlation,
                external_id: event.external_id(),
            });
        }
        let device = event.get("pid").and_then(Value::as_i64);
        if device.is_none() || event.whole("device") != device {
            broken(
                Rule::Device,
                "`pid` and `args.device` are not the device's number, both: write it",
            )
        } else if event.whole("stream").is_none_or(|stream| stream <= 0) {
            broken(
                Rule::Stream,
                "it has no `args.stream` above 0: write its number, 7 for the default stream",
            )
        } else if correlation.is_none() {
            broken(
                Rule::Correlation,
                "it has no `correlation` above 0: give it that of its launch",
            )
        } else if category == Category::Copy && !name.starts_with("Memcpy") {
            broken(Rule::Copy, "it is a copy: let its name begin with `Memcpy`")
        } else if category == Category::Set && !name.starts_with("Memset") {
            broken(
                Rule::Copy,
                "it sets memory: let its name begin with `Memset`",
            )
        } else {
            None
        }
    }

    fn memory(&mut self, index: usize, event: &Event<'_>) -> Vec<(Rule, String)> {
        let keys = [
            "Device Type",
            "Device Id",
            "Addr",
            "Bytes",
            "Total Allocated",
        ];
        if let Some(missing) = keys.into_iter().find(|key| event.whole(key).is_none()) {
            return vec![(
                Rule::Memory,
                format!("`{missing}` is no whole number: write one"),
            )];
        }
        if event.get("tid").and_then(Value::as_i64).is_none() {
            return vec![(Rule::Track, "`tid` is no whole number: give it one".into())];
        }
        match event.whole("Device Type") {
            Some(0) => Vec::new(),
            Some(1) => {
                let device = event.whole("Device Id").unwrap_or_default();
                if self.last_memory.is_none_or(|(_, last)| device > last) {
                    self.last_memory = Some((index, device));
                }
                Vec::new()
            }
            _ => vec![(
                Rule::Memory,
                "`Device Type` is neither 0 (host) nor 1 (CUDA)".into(),
            )],
        }
    }

    fn arrow(&mut self, index: usize, event: &Event<'_>) -> Vec<(Rule, String)> {
        let (Some(id), Some(ts)) = (event.get("id"), event.number("ts")) else {
            return vec![(Rule::Arrow, "it needs `id` and `ts`".into())];
        };
        let arrow = self.arrows.entry(ArrowId::of(id)).or_default();
        arrow.event = index;
        if event.text("ph") == Some("s") {
            (arrow.starts, arrow.start) = (arrow.starts + 1, ts);
        } else {
            (arrow.ends, arrow.end) = (arrow.ends + 1, ts);
        }
        Vec::new()
    }

    /// Checks the whole trace after the last event; `rank` is the rank that HTA finds.
    pub(super) fn finish(mut self, rank: Option<i64>) -> Vec<Violation> {
        self.check_rank(rank);
        self.check_devices();
        self.check_launches();
        self.check_arrows();
        let names: HashMap<u32, String> = std::mem::take(&mut self.names)
            .into_iter()
            .map(|(name, id)| (id, name))
            .collect();
        for (rule, slice, what) in nesting::check(&mut self.slices) {
            let name = names.get(&slice.name).map(String::as_str);
            self.add(rule, Some(slice.event), name, what);
        }
        self.violations
            .sort_by_key(|violation| (violation.rule, violation.event));
        self.violations
    }

    fn check_rank(&mut self, read: Option<i64>) {
        let Some(rank) = self.rank else { return };
        if read != Some(rank) {
            let what = format!(
                "`distributedInfo` is not read as rank {rank}: write `\"rank\": {rank}`, with a space"
            );
            self.add(Rule::Rank, None, None, what);
        }
    }

    fn check_devices(&mut self) {
        let Some(devices) = self.devices.take().filter(|devices| !devices.is_empty()) else {
            return;
        };
        let place_of =
            |(place, device): (usize, &Value)| (place, device.get("id").and_then(Value::as_i64));
        let wrong = devices
            .iter()
            .enumerate()
            .map(place_of)
            .find(|(place, id)| *id != i64::try_from(*place).ok());
        if let Some((place, _)) = wrong {
            let what = format!(
                "`deviceProperties` does not have the device {place} at its place: list all by ordinal"
            );
            self.add(Rule::Devices, None, None, what);
        }
        let known = i64::try_from(devices.len()).unwrap_or(i64::MAX);
        if let Some((event, device)) = self.last_memory.filter(|(_, device)| *device >= known) {
            let what =
                format!("`deviceProperties` has no device {device}: list all by ordinal, or none");
            self.add(Rule::Devices, Some(event), Some("[memory]"), what);
        }
    }

    fn check_launches(&mut self) {
        let last = self.on_device.iter().map(|event| event.correlation).max();
        if last.is_some_and(|last| last <= NARROW.into()) && self.count > NARROW.into() {
            let what = "no `correlation` is above 32767, but there are more events: begin with a higher one";
            self.add(Rule::Correlation, None, None, what.to_owned());
        }
        for OnDevice {
            event,
            name,
            correlation,
            external_id,
        } in std::mem::take(&mut self.on_device)
        {
            let launches = self
                .launches
                .get(&correlation)
                .map_or(&[][..], Vec::as_slice);
            let what = match launches {
                [launch] if launch.external_id == external_id => continue,
                [_] => "its launch has another `External id`: give both that of the operator"
                    .to_owned(),
                _ => format!(
                    "{} launches have its `correlation` {correlation}: let it be one",
                    launches.len()
                ),
            };
            self.add(Rule::Correlation, Some(event), Some(&name), what);
        }
    }

    fn check_arrows(&mut self) {
        for (id, arrow) in std::mem::take(&mut self.arrows) {
            let what = if (arrow.starts, arrow.ends) != (1, 1) {
                format!(
                    "arrow {id} has {} starts and {} ends: write one of each",
                    arrow.starts, arrow.ends
                )
            } else if arrow.end < arrow.start {
                format!("arrow {id} ends before it starts: leave it out, or move what it leads to")
            } else {
                continue;
            };
            self.add(Rule::Arrow, Some(arrow.event), Some("ac2g"), what);
        }
    }

    fn add(&mut self, rule: Rule, event: Option<usize>, name: Option<&str>, what: String) {
        let count = self.counts.entry(rule).or_default();
        *count += 1;
        if *count <= MOST {
            let name = name.map(str::to_owned);
            self.violations.push(Violation {
                rule,
                event,
                name,
                what,
            });
        }
    }
}

fn is_step(name: &str, category: Category) -> bool {
    let number = name
        .strip_prefix("ProfilerStep#")
        .filter(|number| number.parse::<u64>().is_ok());
    number.is_some() && matches!(category, Category::Annotation | Category::Operator)
}
