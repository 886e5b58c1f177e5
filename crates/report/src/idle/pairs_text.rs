//! The three states of a device as text and JSON.

use std::fmt::Write;

use super::sentences::{after_last, start_up};
use super::table::{charge_json, device_fields, device_title};
use super::verdict::{BUSY, MOSTLY_BUSY, exceeds_half};
use super::{DevicePairs, GpuPairs};
use crate::options::TableOptions;
use crate::sentence::{Sentence, percent};
use crate::text::Field;
use crate::text::json::{lines, object};
use crate::text::table::{Column, Table};
use crate::text::units::time;

/// Shares of a time in which a device was busy, host-paced or idle, from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct States {
    pub(crate) busy: f64,
    pub(crate) host_paced: f64,
    pub(crate) idle: f64,
}

impl States {
    /// Says what limits the device, by the shares of the time that `of` names.
    pub(crate) fn sentence(self, of: &str) -> Sentence {
        let limit = if self.busy >= BUSY {
            "The GPU limits the program"
        } else if self.busy >= MOSTLY_BUSY {
            "Mostly the GPU limits the program"
        } else if self.host_paced > self.idle {
            "The host paces the GPU"
        } else {
            "The GPU waits for the host"
        };
        Sentence::new().strong(limit).text(&format!(
            ": the GPU was busy for {} of the {of}, host-paced for {}, and idle for {}",
            percent(self.busy),
            percent(self.host_paced),
            percent(self.idle)
        ))
    }
}

impl GpuPairs {
    /// Returns the account as text: for each device what limits it, and how long it was in each state.
    #[must_use]
    pub fn table(&self, options: &TableOptions) -> String {
        let devices = self.devices.iter().map(|device| device.text(options));
        devices.collect::<Vec<_>>().join("\n")
    }

    /// Returns all numbers as a JSON object: times in nanoseconds.
    #[must_use]
    pub fn to_json(&self) -> String {
        let devices = self.devices.iter().map(DevicePairs::json);
        object([Field::raw("devices", lines(devices))]) + "\n"
    }
}

impl DevicePairs {
    /// Returns what limits the device, as far as event pairs tell.
    #[must_use]
    pub fn verdict(&self) -> String {
        Sentence::join(&self.sentences())
    }

    pub(crate) fn title(&self) -> String {
        device_title(self.device, self.rank, &self.device_name)
    }

    pub(crate) fn sentences(&self) -> Vec<Sentence> {
        let (window_ns, working_ns) = (self.window_ns(), self.working_ns());
        let share = |ns: i64| ns as f64 / working_ns.max(1) as f64;
        let mut sentences = Vec::new();
        if working_ns <= 0 {
            let unknown = Sentence::new().strong("What limits the GPU is not known");
            sentences.push(unknown.text(": when its work began was not recorded."));
        } else {
            if exceeds_half(self.before_first_ns, window_ns) {
                sentences.push(start_up(self.before_first_ns, window_ns));
            } else if exceeds_half(self.after_last_ns, window_ns) {
                sentences.push(after_last(self.after_last_ns, window_ns));
            }
            let states = States {
                busy: share(self.busy_ns),
                host_paced: share(self.host_paced_ns),
                idle: share(working_ns - self.busy_ns - self.host_paced_ns),
            };
            let between = "time between its first work and its last";
            sentences.push(states.sentence(between).text("."));
        }
        if let Some(charge) = self.account.named() {
            let share = self.account.share_of_waiting(charge.inclusive_ns);
            sentences.push(charge.push_name(Sentence::new()).text(&format!(
                " kept it waiting for {} of the idle time between its first work and its last.",
                percent(share)
            )));
        }
        if let Some(name) = &self.longest_paced {
            let sentence = Sentence::new().text("It was host-paced longest in ");
            sentences.push(sentence.name(name).text("."));
        }
        sentences.push(Sentence::new().text(
            "Kernels were not recorded: without them it is not known how much of its host-paced time it was idle.",
        ));
        sentences
    }

    fn text(&self, options: &TableOptions) -> String {
        let mut text = format!("{}: {}\n\n", self.title(), self.verdict());
        let window = self.window_ns().max(1) as f64;
        let states = [
            ("busy", self.busy_ns),
            ("host-paced", self.host_paced_ns),
            ("idle", self.idle_ns),
        ];
        text += &options.draw(Table {
            title: "The window",
            labels: states
                .iter()
                .map(|(label, _)| (*label).to_owned())
                .collect(),
            columns: vec![
                Column::of(&states, "Time", |(_, ns)| Some(time(*ns as f64))),
                Column::of(&states, "Share", |(_, ns)| {
                    Some(percent(*ns as f64 / window))
                }),
            ],
            hottest: None,
        });
        if self.unplaced > 0 {
            let _ = writeln!(
                text,
                "{} GPU times are left out: when they began is not known, or they are sums of several",
                self.unplaced
            );
        }
        text
    }

    fn json(&self) -> String {
        let device = device_fields(self.rank, self.device, &self.device_name);
        let account = [
            Field::raw("window_ns", self.window_ns()),
            Field::raw("busy_ns", self.busy_ns),
            Field::raw("host_paced_ns", self.host_paced_ns),
            Field::raw("idle_ns", self.idle_ns),
            Field::raw("unplaced", self.unplaced),
            Field::raw("verdict", Sentence::json(&self.sentences())),
            Field::raw("charges", lines(self.charges().iter().map(charge_json))),
        ];
        object(device.into_iter().chain(account))
    }
}
