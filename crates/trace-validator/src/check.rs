//! Checks the events of a trace one by one, and then the whole trace.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::arrows::Arrows;
use super::correlations::Correlations;
use super::devices::Devices;
use super::event::{Category, TraceEvent};
use super::nesting::{self, Slice};
use super::rule::{Rule, Violation};
use super::violations::Violations;

/// From here on, 53 bits do not hold three decimals.
const LATEST_US: f64 = 8_796_093_022_208.0;

#[derive(Default)]
pub(super) struct Checker {
    violations: Violations,
    /// How many events there were.
    count: usize,
    rank: Option<i64>,
    devices: Devices,
    slices: Vec<Slice>,
    /// The numbers of names in `slices`.
    names: HashMap<String, u32>,
    correlations: Correlations,
    arrows: Arrows,
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
            self.violations.add(Rule::EventsLast, None, None, what);
        }
        match (key, value) {
            ("distributedInfo", Some(value)) => {
                self.rank = value.get("rank").and_then(Value::as_i64);
            }
            ("deviceProperties", Some(Value::Array(devices))) => self.devices.set_list(devices),
            _ => {}
        }
    }

    pub(super) fn event(&mut self, event: &Map<String, Value>) {
        let event = TraceEvent(event);
        let index = self.count;
        self.count += 1;
        let Some(name) = event.text("name") else {
            let what = "it has no name: give it a string".into();
            self.violations.add(Rule::Name, Some(index), None, what);
            return;
        };
        let found = match event.text("ph") {
            Some("X") => self.slice(index, name, &event),
            Some("i" | "I") if name == "[memory]" => {
                self.devices.memory(index, &event).into_iter().collect()
            }
            Some("s" | "f") if event.text("cat") == Some("ac2g") => {
                self.arrows.event(index, &event).into_iter().collect()
            }
            _ if name == "[memory]" => {
                vec![(Rule::Memory, "it is no instant: make `ph` \"i\"".into())]
            }
            _ => Vec::new(),
        };
        for (rule, what) in found {
            self.violations.add(rule, Some(index), Some(name), what);
        }
    }

    fn slice(&mut self, index: usize, name: &str, event: &TraceEvent<'_>) -> Vec<(Rule, String)> {
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
        let ids = ["pid", "tid"].map(|key| event.id(key));
        if let [Some(pid), Some(tid)] = ids {
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
        }
        let is_text = |key| event.text(key).is_some();
        let has_ids = ids.iter().all(Option::is_some) || category.is_on_device();
        if !has_ids {
            let what = "`pid` or `tid` is no whole number: give it one";
            found.push((Rule::Track, what.to_owned()));
        } else if is_text("pid") || is_text("tid") {
            let what = "`pid` or `tid` is text: write a number without quotes";
            found.push((Rule::TrackText, what.to_owned()));
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
        event: &TraceEvent<'_>,
    ) -> Option<(Rule, String)> {
        match category {
            Category::Operator => self.correlations.operator(index, event),
            Category::Launch => self.correlations.launch(event),
            Category::GpuAnnotation if event.arg("stream").is_some() => Some((
                Rule::Annotation,
                "it has `args.stream`: leave that to what ran".to_owned(),
            )),
            Category::Wait if event.arg("stream").is_some() => Some((
                Rule::Wait,
                "it has `args.stream`: leave that to what ran".to_owned(),
            )),
            _ if category.is_on_device() => {
                let has_correlation = self.correlations.on_device(index, name, event);
                let (rule, what) = on_device(name, category, event, has_correlation)?;
                Some((rule, what.to_owned()))
            }
            _ => None,
        }
    }

    /// Checks the whole trace after the last event; `rank` is the rank that HTA finds.
    pub(super) fn finish(mut self, rank: Option<i64>) -> Vec<Violation> {
        self.check_rank(rank);
        self.devices.finish(&mut self.violations);
        self.correlations.finish(self.count, &mut self.violations);
        self.arrows.finish(&mut self.violations);
        let names: HashMap<u32, String> = self
            .names
            .into_iter()
            .map(|(name, id)| (id, name))
            .collect();
        for (rule, slice, what) in nesting::check(&mut self.slices) {
            let name = names.get(&slice.name).map(String::as_str);
            self.violations.add(rule, Some(slice.event), name, what);
        }
        self.violations.finish()
    }

    fn check_rank(&mut self, read: Option<i64>) {
        let Some(rank) = self.rank else { return };
        if read != Some(rank) {
            let what = format!(
                "`distributedInfo` is not read as rank {rank}: write `\"rank\": {rank}`, with a space"
            );
            self.violations.add(Rule::Rank, None, None, what);
        }
    }
}

/// Checks an event on the device.
fn on_device(
    name: &str,
    category: Category,
    event: &TraceEvent<'_>,
    has_correlation: bool,
) -> Option<(Rule, &'static str)> {
    let device = event.get("pid").and_then(Value::as_i64);
    if device.is_none() || event.whole("device") != device {
        Some((
            Rule::Device,
            "`pid` and `args.device` are not the device's number, both: write it",
        ))
    } else if event.whole("stream").is_none_or(|stream| stream <= 0) {
        Some((
            Rule::Stream,
            "it has no `args.stream` above 0: write its number, 7 for the default stream",
        ))
    } else if !has_correlation {
        Some((
            Rule::Correlation,
            "it has no `correlation` above 0: give it that of its launch",
        ))
    } else if category == Category::Copy && !name.starts_with("Memcpy") {
        Some((Rule::Copy, "it is a copy: let its name begin with `Memcpy`"))
    } else if category == Category::Set && !name.starts_with("Memset") {
        Some((
            Rule::Copy,
            "it sets memory: let its name begin with `Memset`",
        ))
    } else {
        None
    }
}

fn is_step(name: &str, category: Category) -> bool {
    let number = name
        .strip_prefix("ProfilerStep#")
        .filter(|number| number.parse::<u64>().is_ok());
    number.is_some() && matches!(category, Category::Annotation | Category::Operator)
}
