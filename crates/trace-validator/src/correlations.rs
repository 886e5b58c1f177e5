//! Checks that each event on the device belongs to one launch and to its operator.

use std::collections::HashMap;

use super::event::TraceEvent;
use super::rule::Rule;
use super::violations::Violations;

/// HTA stores event indices in 16 bits if all correlations fit there.
const NARROW: u16 = 32_767;

#[derive(Default)]
pub(super) struct Correlations {
    /// The first operator with each `External id`.
    operators: HashMap<i64, usize>,
    /// The launches with each correlation.
    launches: HashMap<i64, Vec<Launch>>,
    on_device: Vec<OnDevice>,
}

struct Launch {
    external_id: Option<i64>,
    start: Option<f64>,
}

/// An event on the device that has a correlation.
struct OnDevice {
    event: usize,
    name: String,
    correlation: i64,
    external_id: Option<i64>,
    start: Option<f64>,
}

impl Correlations {
    /// Checks an operator on the host, and remembers it.
    pub(super) fn operator(
        &mut self,
        index: usize,
        event: &TraceEvent<'_>,
    ) -> Option<(Rule, String)> {
        let Some(id) = event.external_id().filter(|id| *id > 0) else {
            let what = "it has no `External id` above 0: give it one of its own";
            return Some((Rule::ExternalId, what.to_owned()));
        };
        let first = *self.operators.entry(id).or_insert(index);
        let what = format!("event {first} has the `External id` {id} too: give each its own");
        (first != index).then_some((Rule::ExternalId, what))
    }

    /// Checks a launch on the host, and remembers it.
    pub(super) fn launch(&mut self, event: &TraceEvent<'_>) -> Option<(Rule, String)> {
        let external_id = event.external_id();
        if let Some(correlation) = event.whole("correlation") {
            self.launches.entry(correlation).or_default().push(Launch {
                external_id,
                start: event.number("ts"),
            });
        }
        if external_id.is_some() {
            return None;
        }
        let what = "it has no `External id`: give it that of its operator, or 0";
        Some((Rule::Launch, what.to_owned()))
    }

    /// Remembers an event on the device. Returns `false` if it has no correlation above 0.
    pub(super) fn on_device(&mut self, index: usize, name: &str, event: &TraceEvent<'_>) -> bool {
        let correlation = event.whole("correlation");
        let Some(correlation) = correlation.filter(|correlation| *correlation > 0) else {
            return false;
        };
        self.on_device.push(OnDevice {
            event: index,
            name: name.to_owned(),
            correlation,
            external_id: event.external_id(),
            start: event.number("ts"),
        });
        true
    }

    /// Checks all launches after the last of `events` events.
    pub(super) fn finish(self, events: usize, violations: &mut Violations) {
        let highest = self.on_device.iter().map(|event| event.correlation).max();
        if highest.is_some_and(|highest| highest <= NARROW.into()) && events > NARROW.into() {
            let what = "no `correlation` is above 32767, but there are more events: begin with a higher one";
            violations.add(Rule::Correlation, None, None, what.to_owned());
        }
        for event in self.on_device {
            let correlation = event.correlation;
            let launches = self.launches.get(&correlation);
            let (rule, what) = match launches.map_or(&[][..], Vec::as_slice) {
                [launch] if launch.external_id == event.external_id => {
                    if event
                        .start
                        .zip(launch.start)
                        .is_none_or(|(start, launch)| start >= launch)
                    {
                        continue;
                    }
                    (
                        Rule::BeforeLaunch,
                        "it begins before its launch: align the clock of the device with the clock of the host"
                            .to_owned(),
                    )
                }
                [] => (
                    Rule::Launched,
                    format!("no launch has its `correlation` {correlation}: record its launch too"),
                ),
                [_] => (
                    Rule::Correlation,
                    "its launch has another `External id`: give both that of the operator"
                        .to_owned(),
                ),
                launches => (
                    Rule::Correlation,
                    format!(
                        "{} launches have its `correlation` {correlation}: let it be one",
                        launches.len()
                    ),
                ),
            };
            violations.add(rule, Some(event.event), Some(&event.name), what);
        }
    }
}
