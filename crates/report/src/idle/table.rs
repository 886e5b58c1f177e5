//! The account as text and JSON.

use std::fmt::{self, Write};

use profiler_host::diagnostics::printable;

use super::{DeviceIdle, Drained, GpuIdle, IdleCharge, LongestWork, WaitsOfNamed};
use crate::options::TableOptions;
use crate::sentence::{Sentence, percent};
use crate::text::Field;
use crate::text::json::{lines, object};
use crate::text::table::{Column, Table};
use crate::text::units::time;

/// The name of the time in which no measured scope was open.
pub(crate) const OUTSIDE: &str = "(outside of measured functions)";

impl GpuIdle {
    /// Returns the account as text: for each device what limits it, what it did, and the functions that kept it waiting.
    #[must_use]
    pub fn table(&self, options: &TableOptions) -> String {
        if self.devices.is_empty() {
            return "no work of a device was recorded in the window\n".to_owned();
        }
        let devices = self.devices.iter().map(|device| device.text(options));
        let ranks = self.ranks().map(|sentence| format!("{sentence}\n"));
        ranks
            .into_iter()
            .chain(devices)
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Returns all numbers as a JSON object, without the single segments: times in nanoseconds, shares from 0 to 1.
    #[must_use]
    pub fn to_json(&self) -> String {
        let devices = self.devices.iter().map(DeviceIdle::json);
        let ranks = self.ranks().map(|sentence| sentence.to_string());
        object([
            Field::optional_text("ranks", ranks.as_deref()),
            Field::raw("devices", lines(devices)),
        ]) + "\n"
    }
}

impl fmt::Display for GpuIdle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table(&TableOptions::for_display(f)))
    }
}

impl DeviceIdle {
    /// Returns what limits the device, and how much faster the work would be done at most without what kept it waiting.
    #[must_use]
    pub fn verdict(&self) -> String {
        Sentence::join(&self.sentences())
    }

    /// Returns the device as people name it: `GPU 0 (NVIDIA H100)`.
    pub(crate) fn title(&self) -> String {
        device_title(self.device, self.rank, &self.device_name)
    }

    fn text(&self, options: &TableOptions) -> String {
        let mut text = format!("{}: {}\n\n", self.title(), self.verdict());
        text += &self.strip_text(options);
        let window = self.window_ns();
        let states = [
            ("busy", self.busy_ns),
            ("idle: the host did something else", self.host_ns),
            (
                "idle: in the call that launched the next work",
                self.in_call_ns,
            ),
            ("idle: launched, and not begun", self.launched_ns),
            ("idle: before the first work", self.before_first_ns),
            ("idle: after the last work", self.after_last_ns),
            ("not recorded", self.not_recorded_ns),
        ];
        let states: Vec<_> = states.into_iter().filter(|(_, ns)| *ns > 0).collect();
        let share = |ns: i64| percent(ns as f64 / window as f64);
        let table = Table {
            title: "The window",
            labels: states
                .iter()
                .map(|(label, _)| (*label).to_owned())
                .collect(),
            columns: vec![
                Column::of(&states, "Time", |(_, ns)| Some(time(*ns as f64))),
                Column::of(&states, "Share", |(_, ns)| Some(share(*ns))),
            ],
            hottest: None,
        };
        text.push('\n');
        text += &options.draw(table);
        if !self.charges.is_empty() {
            text.push('\n');
            text += &self.charges_text(options);
        }
        text
    }

    fn charges_text(&self, options: &TableOptions) -> String {
        let mut charges: Vec<&IdleCharge> = self.charges.iter().collect();
        let hidden = options.limit(&mut charges);
        let all = self.charged_ns().max(1) as f64;
        let working = self.working_ns().max(1) as f64;
        let rows = || charges.iter().copied();
        let bound = |charge: &IdleCharge| {
            let bound = self.bound_without(charge);
            bound.is_finite().then(|| format!("{bound:.2} ×"))
        };
        let mut columns = vec![
            Column::of(rows(), "Idle caused", |charge| {
                Some(time(charge.inclusive_ns as f64))
            }),
            Column::of(rows(), "Idle %", |charge| {
                Some(percent(charge.inclusive_ns as f64 / working))
            })
            .rank(2),
            Column::of(rows(), "Self idle caused", |charge| {
                Some(time(charge.idle_ns as f64))
            }),
            Column::of(rows(), "Share", |charge| {
                Some(percent(charge.idle_ns as f64 / all))
            }),
            Column::of(rows(), "In launch calls", |charge| {
                (charge.in_call_ns > 0).then(|| time(charge.in_call_ns as f64))
            })
            .rank(1),
            Column::of(rows(), "Without it, at most", bound),
        ];
        if charges.iter().any(|charge| !charge.location.is_empty()) {
            let locations = charges.iter().map(|charge| printable(&charge.location));
            columns.push(Column::text("Location", locations.collect()).rank(3));
        }
        let table = Table {
            title: "Kept it waiting",
            labels: charges.iter().map(|charge| charge.label()).collect(),
            columns,
            hottest: Some(0),
        };
        let mut text = options.draw(table);
        if hidden > 0 {
            let _ = writeln!(text, "… and {hidden} more");
        }
        text
    }

    fn json(&self) -> String {
        let charges = |charges: &[IdleCharge]| lines(charges.iter().map(charge_json));
        let device = device_fields(self.rank, self.device, &self.device_name);
        let account = [
            Field::raw("window_ns", self.window_ns()),
            Field::raw("busy_ns", self.busy_ns),
            Field::raw("copy_ns", self.copy_ns),
            Field::raw("idle_ns", self.idle_ns()),
            Field::raw("not_recorded_ns", self.not_recorded_ns),
            Field::raw("host_ns", self.host_ns),
            Field::raw("in_call_ns", self.in_call_ns),
            Field::raw("launched_ns", self.launched_ns),
            Field::raw("unexplained_ns", self.unexplained_ns),
            Field::raw("before_first_ns", self.before_first_ns),
            Field::raw("after_last_ns", self.after_last_ns),
            Field::raw("blocked_ns", self.blocked_ns),
            Field::raw("collectives_ns", self.collectives_ns),
            Field::optional("busy_share", self.busy_share()),
            Field::raw("verdict", Sentence::json(&self.sentences())),
            Field::optional("longest_work", self.longest_work.as_ref().map(work_json)),
            Field::raw("drained", lines(self.drained.iter().map(drained_json))),
            Field::optional("named", self.named.as_ref().map(named_json)),
            Field::raw("charges", charges(&self.charges)),
            Field::raw("before_first", charges(&self.before_first)),
        ];
        object(device.into_iter().chain(account))
    }
}

impl IdleCharge {
    fn label(&self) -> String {
        let name = self.name.as_deref();
        name.map_or_else(|| OUTSIDE.to_owned(), printable)
    }
}

/// Returns a device as people name it: `GPU 0 (NVIDIA H100)`.
pub(crate) fn device_title(ordinal: Option<u32>, rank: Option<u64>, name: &str) -> String {
    let mut title = match ordinal {
        Some(ordinal) => format!("GPU {ordinal}"),
        None => "GPU".to_owned(),
    };
    if let Some(rank) = rank {
        let _ = write!(title, " of rank {rank}");
    }
    if !name.is_empty() {
        let _ = write!(title, " ({})", printable(name));
    }
    title
}

/// Returns the fields that say which device it is.
pub(super) fn device_fields(rank: Option<u64>, device: Option<u32>, name: &str) -> [Field; 3] {
    [
        Field::optional("rank", rank),
        Field::optional("device", device),
        Field::text("device_name", name),
    ]
}

pub(super) fn charge_json(charge: &IdleCharge) -> String {
    object([
        Field::optional_text("name", charge.name.as_deref()),
        Field::text("location", &charge.location),
        Field::raw("idle_ns", charge.idle_ns),
        Field::raw("in_call_ns", charge.in_call_ns),
        Field::raw("inclusive_ns", charge.inclusive_ns),
        Field::raw("inclusive_in_call_ns", charge.inclusive_in_call_ns),
    ])
}

fn work_json(work: &LongestWork) -> String {
    object([
        Field::text("name", &work.name),
        Field::optional_text("function", work.function.as_deref()),
        Field::text("location", &work.location),
        Field::raw("ns", work.ns),
    ])
}

fn drained_json(drained: &Drained) -> String {
    object([
        Field::text("call", &drained.call),
        Field::optional_text("scope", drained.scope.as_deref()),
        Field::text("location", &drained.location),
        Field::raw("idle_ns", drained.idle_ns),
        Field::raw("times", drained.times),
    ])
}

fn named_json(named: &WaitsOfNamed) -> String {
    let meanwhile = named.meanwhile.iter().map(|meanwhile| {
        object([
            Field::text("name", &meanwhile.name),
            Field::text("location", &meanwhile.location),
            Field::raw("ns", meanwhile.ns),
        ])
    });
    object([
        Field::raw("half_in", named.half_in),
        Field::raw("of", named.of),
        Field::raw("longest_call_ns", named.longest_call_ns),
        Field::raw("running_ns", named.running_ns),
        Field::raw("ready_ns", named.ready_ns),
        Field::raw("off_processor_ns", named.off_processor_ns),
        Field::raw("meanwhile", lines(meanwhile)),
    ])
}
