//! Why a device was idle, as slices of a trace.

use super::segments::LATE_NS;
use super::table::device_title;
use super::{DeviceIdle, DeviceSegment, DeviceState, StripPart};
use crate::timeline::Timeline;

/// The category of these slices.
pub(crate) const CATEGORY: &str = "gpu_idle";

/// A time in which a device was idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) start_ns: i64,
    pub(crate) end_ns: i64,
    pub(crate) label: Label,
    /// Of a launch call, the number of the name of its function.
    pub(crate) function: Option<u32>,
}

/// What such a slice is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// As a function: the number of its name.
    Name(u32),
    Text(&'static str),
}

impl DeviceIdle {
    /// Returns why the device was idle, in the order of time and as a strip shows it. Times after the last work are left out,
    /// and short ones in which work was launched and had not begun.
    pub(crate) fn reasons(&self, timeline: &Timeline) -> Vec<Reason> {
        let number = |text: &str| {
            let mut names = (0..).zip(&timeline.names);
            names
                .find(|(_, name)| &*name.text == text)
                .map(|(number, _)| number)
        };
        let names: Vec<Option<u32>> = self
            .functions
            .iter()
            .map(|function| number(&function.name))
            .collect();
        let mut reasons: Vec<Reason> = Vec::new();
        for segment in &self.segments {
            let Some((label, function)) = label(timeline, &names, segment) else {
                continue;
            };
            let same = reasons.last_mut().filter(|last| {
                last.end_ns == segment.start_ns && (last.label, last.function) == (label, function)
            });
            match same {
                Some(last) => last.end_ns = segment.end_ns,
                None => reasons.push(Reason {
                    start_ns: segment.start_ns,
                    end_ns: segment.end_ns,
                    label,
                    function,
                }),
            }
        }
        reasons
    }

    /// Returns the name of the track of these slices.
    pub(crate) fn reasons_title(&self) -> String {
        format!("idle because, {}", device_title(self.device, self.rank, ""))
    }
}

/// Returns what a segment is called, and the function of a launch call. `names` are those of the functions that are shown.
fn label(
    timeline: &Timeline,
    names: &[Option<u32>],
    segment: &DeviceSegment,
) -> Option<(Label, Option<u32>)> {
    let is_late = segment.end_ns.saturating_sub(segment.start_ns) >= LATE_NS;
    let part = segment.part();
    let text = Label::Text(part.label());
    match part {
        StripPart::Busy | StripPart::AfterLast => None,
        StripPart::Launched if !is_late => None,
        StripPart::BeforeFirst | StripPart::Launched | StripPart::NotRecorded => Some((text, None)),
        _ if is_late && segment.state == DeviceState::LaunchCall => {
            let call = segment
                .call
                .and_then(|call| timeline.slices.get(call as usize));
            Some((Label::Text("launch call"), call.map(|call| call.name)))
        }
        StripPart::Function(index) => {
            let name = names.get(index as usize).copied().flatten();
            Some((name.map_or(text, Label::Name), None))
        }
        StripPart::OtherFunctions | StripPart::Outside => Some((text, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::idle::tests::Drawn;

    #[test]
    fn times_are_called_as_in_the_strip_and_long_launches_by_what_they_are() {
        let mut drawn = Drawn::new(400);
        let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
        let step = drawn.scope(main, "step", (0, 390), None);
        let load = drawn.scope(main, "load", (30, 90), Some(step));
        drawn.scope(main, "read", (40, 41), Some(load));
        let spans = [(5, 8), (92, 95), (130, 160), (165, 168)];
        let launches = spans.map(|span| drawn.launch(main, span));
        let works = [(10, 20), (96, 120), (161, 170), (190, 300)];
        for (work, launch) in works.into_iter().zip(launches) {
            drawn.work_of(stream, work, Some(launch), step);
        }
        let timeline = &drawn.0;
        let idle = timeline.gpu_idle();
        let reasons = idle.devices[0].reasons(timeline);
        let text = |name: u32| &*timeline.names[name as usize].text;
        let shown: Vec<_> = reasons
            .iter()
            .map(|reason| {
                let label = match reason.label {
                    Label::Name(name) => text(name),
                    Label::Text(text) => text,
                };
                let span = (reason.start_ns / 1000, reason.end_ns / 1000);
                (span, label, reason.function.map(text))
            })
            .collect();
        assert_eq!(
            shown,
            [
                ((0, 10), "before the first work", None),
                ((20, 30), "step", None),
                ((30, 90), "load", None),
                ((90, 95), "step", None),
                ((120, 130), "step", None),
                ((130, 160), "launch call", Some("step")),
                ((170, 190), "launched, and not begun", None),
            ]
        );
    }

    #[test]
    fn a_launch_call_in_which_a_device_was_idle_has_the_whole_name_of_its_function() {
        let mut drawn = Drawn::new(100);
        let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
        let step = drawn.scope(main, "app::step", (0, 90), None);
        for (launch, work) in [((1, 2), (2, 10)), ((20, 50), (50, 60))] {
            let launch = drawn.launch(main, launch);
            drawn.work_of(stream, work, Some(launch), step);
        }
        let name = drawn.0.slices[step as usize].name;
        drawn.0.names[name as usize].short = "step".into();
        let text = crate::chrome::timeline::write(&drawn.0, Vec::new(), "cuda_runtime")
            .expect("it is written");
        let file: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
        let events = file["traceEvents"].as_array().expect("a list").iter();
        let mut calls = events.filter(|event| event["name"] == "launch call");
        let call = calls.next().expect("a launch call");
        assert_eq!(call["args"]["function"], "app::step");
    }
}
