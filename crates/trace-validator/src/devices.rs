//! Checks the list of devices, and that it has each device whose memory is shown.

use serde_json::Value;

use super::event::TraceEvent;
use super::rule::Rule;
use super::violations::Violations;

#[derive(Default)]
pub(super) struct Devices {
    /// `deviceProperties`.
    list: Option<Vec<Value>>,
    /// The event with the highest number of a device, and that number.
    highest: Option<(usize, i64)>,
}

impl Devices {
    pub(super) fn set_list(&mut self, devices: Vec<Value>) {
        self.list = Some(devices);
    }

    /// Checks an event of memory, and remembers its device.
    pub(super) fn memory(
        &mut self,
        index: usize,
        event: &TraceEvent<'_>,
    ) -> Option<(Rule, String)> {
        let keys = [
            "Device Type",
            "Device Id",
            "Addr",
            "Bytes",
            "Total Allocated",
        ];
        if let Some(missing) = keys.into_iter().find(|key| event.whole(key).is_none()) {
            let what = format!("`{missing}` is no whole number: write one");
            return Some((Rule::Memory, what));
        }
        if event.id("tid").is_none() {
            return Some((Rule::Track, "`tid` is no whole number: give it one".into()));
        }
        match event.whole("Device Type") {
            Some(0) => None,
            Some(1) => {
                let device = event.whole("Device Id").unwrap_or_default();
                if self.highest.is_none_or(|(_, highest)| device > highest) {
                    self.highest = Some((index, device));
                }
                None
            }
            _ => Some((
                Rule::Memory,
                "`Device Type` is neither 0 (host) nor 1 (CUDA)".into(),
            )),
        }
    }

    /// Checks the list after the last event.
    pub(super) fn finish(self, violations: &mut Violations) {
        let Some(devices) = self.list.filter(|devices| !devices.is_empty()) else {
            return;
        };
        let id_of = |device: &Value| device.get("id").and_then(Value::as_i64);
        let ids = devices.iter().map(id_of).enumerate();
        let misplaced = ids
            .map(|(index, id)| (index, id == i64::try_from(index).ok()))
            .find(|(_, is_right)| !is_right);
        if let Some((index, _)) = misplaced {
            let what = format!(
                "`deviceProperties` does not have the device {index} at its place: list all by ordinal"
            );
            violations.add(Rule::Devices, None, None, what);
        }
        let known = i64::try_from(devices.len()).unwrap_or(i64::MAX);
        if let Some((event, device)) = self.highest.filter(|(_, device)| *device >= known) {
            let what =
                format!("`deviceProperties` has no device {device}: list all by ordinal, or none");
            violations.add(Rule::Devices, Some(event), Some("[memory]"), what);
        }
    }
}
