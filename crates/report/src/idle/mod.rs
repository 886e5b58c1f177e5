//! Why a device had nothing to do.
//!
//! - `gaps` are the times in which nothing was recorded.
//! - `segments` cuts the window of a device into times in one state each. All sums are sums of these.
//! - `threads` knows the innermost scope of each thread at each time.
//! - `account` adds the segments up by state, and `charged` by function; `verdict` says what limits a device, `sentences` and `table`
//!   write that.
//! - `processor` knows whether threads were on a processor.
//! - `why` and `works` tell what was so while a device waited or worked.
//! - `shown` chooses the functions that are shown apart, `strip` cuts the window into equal columns, and `strip_text`
//!   draws these in a terminal.
//! - `reasons` are the idle times as slices of a trace.
//! - `steps` adds up what a device did in a part of the window.
//! - `rows` notes at each row of a table what the devices did for it.
//! - `pairs` is what event pairs say where there are no kernels, and `pairs_text` writes that.

mod account;
mod charged;
mod gaps;
mod pairs;
mod pairs_text;
mod processor;
#[cfg(any(feature = "export", feature = "trace"))]
mod reasons;
mod rows;
mod segments;
mod sentences;
mod shown;
mod steps;
mod strip;
mod strip_text;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_pairs;
#[cfg(test)]
mod tests_seeded;
#[cfg(test)]
mod tests_strip;
#[cfg(test)]
mod tests_verdict;
#[cfg(test)]
mod tests_why;
mod threads;
mod verdict;
mod why;
mod works;

use crate::timeline::Timeline;

pub use pairs::{DevicePairs, GpuPairs};
pub use steps::DeviceTimes;
pub use strip::{IdleStrip, StripColumn, StripPart};
pub use why::{Drained, Meanwhile, WaitsOfNamed};
pub use works::LongestWork;

pub(crate) use account::{Devices, device_key, devices};
pub(crate) use gaps::Gaps;
#[cfg(feature = "export")]
pub(crate) use pairs_text::States;
#[cfg(any(feature = "export", feature = "trace"))]
pub(crate) use reasons::{CATEGORY, Label};
pub(crate) use segments::union;
pub(crate) use table::{OUTSIDE, device_title};

/// What the devices of a window did, and which functions kept them waiting: [`Timeline::gpu_idle`].
///
/// # Rules
///
/// A device is *busy* while a kernel, a copy or a fill runs on any of its streams. An *idle piece* lies between two such
/// times. It ends with the work that begins first; if several begin at once, with that of the earliest call. The thread that
/// made this call kept the device waiting, whatever others did:
///
/// - until the call began, it was on the *host*: each moment counts for the innermost scope that was open on the thread, or for
///   no scope. Inside of an entered handle, that is the handle's scope, up to the last launch there. A future between two polls is open on the thread that polls it next, if nothing else is;
/// - until the call returned, it was in the *launch call*;
/// - after that, the work was *launched*, and had not begun.
///
/// Where the call is not known, or kernels were not recorded, the piece is *not recorded*. The times before the first work and
/// after the last stand apart.
///
/// So for each device, busy, idle and not recorded are the window, and the charges of all functions are its idle time on the
/// host and in launch calls, to the nanosecond.
///
/// # Examples
///
/// ```
/// # let timeline = profiler_report::Timeline::default();
/// for device in &timeline.gpu_idle().devices {
///     println!("GPU {}: busy for {} of {} ns", device.device.unwrap_or(0), device.busy_ns, device.window_ns());
///     for charge in &device.charges {
///         let name = charge.name.as_deref().unwrap_or("(outside of measured functions)");
///         println!("{name} kept it waiting for {} ns", charge.idle_ns);
///     }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct GpuIdle {
    /// The devices that worked in the window, by rank and ordinal.
    pub devices: Vec<DeviceIdle>,
}

/// What one device did in a window. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DeviceIdle {
    /// The rank of the process that used it.
    pub rank: Option<u64>,
    /// Its ordinal in that process.
    pub device: Option<u32>,
    /// Its name; empty if it is not known.
    pub device_name: String,
    /// How long anything ran.
    pub busy_ns: i64,
    /// The part of `busy_ns` in which copies and fills ran, and no kernel.
    pub copy_ns: i64,
    /// Idle, between the first work and the last: until the call that launched the next work began.
    pub host_ns: i64,
    /// Idle, between the first work and the last: until that call returned.
    pub in_call_ns: i64,
    /// Idle, between the first work and the last: until the work began, which was launched.
    pub launched_ns: i64,
    /// The part of `launched_ns` before work that had been launched for 10 µs and more, which the launch alone does not
    /// explain.
    pub unexplained_ns: i64,
    /// Idle before the first work of the window.
    pub before_first_ns: i64,
    /// Idle after the last work of the window.
    pub after_last_ns: i64,
    /// How long nothing ran of which anything was recorded, or the call that ended an idle piece is not known.
    pub not_recorded_ns: i64,
    /// The functions that kept it waiting between the first work and the last, the longest inclusive time first.
    pub charges: Vec<IdleCharge>,
    /// Those that kept it waiting before the first work.
    pub before_first: Vec<IdleCharge>,
    /// The functions whose work it was busy with, the longest inclusive time first.
    pub busy: Vec<BusyTime>,
    /// The functions that a picture shows apart, at most eight, those with the longest idle time first. Each has at least a
    /// twentieth of the busy time and the charged idle time, and they are the most specific ones; if that would be too many,
    /// an eighth.
    pub functions: Vec<DeviceFunction>,
    /// The part of `busy_ns` in which work of another stream had been launched for 10 µs and more, and waited although nothing was
    /// before it on its own stream.
    pub blocked_ns: i64,
    /// How long kernels of NCCL or RCCL ran, in which processes wait for each other. Those that ran at once are added up.
    pub collectives_ns: i64,
    /// The kernel, copy or fill that took longest in one function.
    pub longest_work: Option<LongestWork>,
    /// The calls in which threads waited as the device ran out of work, the longest idle time after them first. They say how an
    /// idle time began, and change no charge.
    pub drained: Vec<Drained>,
    /// What is known of the times in which the function that [`verdict`](Self::verdict) names kept the device waiting.
    pub named: Option<WaitsOfNamed>,
    /// All of the window in the order of time: what the sums are of.
    pub segments: Vec<DeviceSegment>,
}

impl DeviceIdle {
    /// Returns how long the window is.
    #[must_use]
    pub fn window_ns(&self) -> i64 {
        self.busy_ns + self.idle_ns() + self.not_recorded_ns
    }

    /// Returns how long it was idle.
    #[must_use]
    pub fn idle_ns(&self) -> i64 {
        self.charged_ns() + self.launched_ns + self.before_first_ns + self.after_last_ns
    }

    /// Returns the idle time between the first work and the last that is charged to functions, or to no function.
    #[must_use]
    pub fn charged_ns(&self) -> i64 {
        self.host_ns + self.in_call_ns
    }

    /// Returns the time from the first work to the last, as far as it was recorded. Shares and bounds are of this time.
    #[must_use]
    pub fn working_ns(&self) -> i64 {
        self.busy_ns + self.charged_ns() + self.launched_ns
    }

    /// Returns the share of the time from the first work to the last in which the device was busy, from 0 to 1; `None` if
    /// nothing was recorded.
    #[must_use]
    pub fn busy_share(&self) -> Option<f64> {
        let working = self.working_ns();
        (working > 0).then(|| self.busy_ns as f64 / working as f64)
    }

    /// Returns how much faster the work would be done at most if a function, with all that it calls, kept the device
    /// waiting no more: 1.19 for 16 %.
    /// It is infinite where nothing but this was to do.
    #[must_use]
    pub fn bound_without(&self, charge: &IdleCharge) -> f64 {
        self.bound_without_ns(charge.inclusive_ns)
    }

    /// Returns how much faster the work would be done at most without this much of its idle time.
    fn bound_without_ns(&self, ns: i64) -> f64 {
        let working = self.working_ns() as f64;
        working / (working - ns as f64).max(0.0)
    }
}

/// How long a function kept a device waiting. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct IdleCharge {
    /// The name of the function; `None` for the time in which the thread was in no measured scope.
    pub name: Option<String>,
    /// The source location as `file:line`; empty if it is not known, or if functions at several places have the name.
    pub location: String,
    /// The time in which it was the innermost scope of the thread that launched the next work. Those of all functions are the
    /// idle time that is charged.
    pub idle_ns: i64,
    /// The part of `idle_ns` in which the thread was in the call that launched the work.
    pub in_call_ns: i64,
    /// The time in which it or a function that it called was the innermost scope.
    pub inclusive_ns: i64,
    /// The part of `inclusive_ns` in which the thread was in the call that launched the work.
    pub inclusive_in_call_ns: i64,
}

/// How long a device was busy with the work of a function. Times are in nanoseconds; where works of several functions ran at
/// once, that which began first counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BusyTime {
    /// The name of the function; `None` for work that no measured scope launched.
    pub name: Option<String>,
    /// The work that it launched itself. Those of all functions are the busy time of the device.
    pub busy_ns: i64,
    /// The work that it or a function that it called launched.
    pub inclusive_ns: i64,
}

/// A function that a picture of the window shows apart. Its times are those of functions that it called too, as far as these are
/// not shown apart. They are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceFunction {
    /// The name of the function.
    pub name: String,
    /// The source location as `file:line`; empty if it is not known.
    pub location: String,
    /// How long the device was busy with its work.
    pub busy_ns: i64,
    /// How long it kept the device waiting.
    pub idle_ns: i64,
}

/// A time in which a device was in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceSegment {
    /// When it began.
    pub start_ns: i64,
    /// When it ended.
    pub end_ns: i64,
    /// What the device did, or waited for.
    pub state: DeviceState,
    /// The index in [`Timeline::slices`] of the call that kept the device waiting: of [`DeviceState::Host`] and
    /// [`DeviceState::LaunchCall`]. Of [`DeviceState::Busy`], the call whose work ran; if several did, the one whose work began
    /// first.
    pub call: Option<u32>,
    /// The index in [`DeviceIdle::functions`] of the function that is shown for it, if there is one.
    pub function: Option<u32>,
    /// `true` before the first work of the window.
    pub is_before_first: bool,
}

/// What a device did, or waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DeviceState {
    /// A kernel, a copy or a fill ran.
    Busy,
    /// The thread that launched the next work did something else.
    Host,
    /// It was in the call that launched the next work.
    LaunchCall,
    /// The next work was launched, and had not begun.
    Launched,
    /// It is not known what the device did, or what it waited for.
    NotRecorded,
    /// There was no more work.
    AfterLast,
}

impl Timeline {
    /// Returns what each device did, as far as event pairs tell. See [`GpuPairs`] for the states.
    #[must_use]
    pub fn gpu_pairs(&self) -> GpuPairs {
        pairs::of_timeline(self)
    }

    /// Returns what each device did, and which functions kept it waiting. See [`GpuIdle`] for the rules.
    ///
    /// Only what was recorded counts: without kernels (`Timeline::has_kernels`), no device is known to be idle, and there are no
    /// devices.
    #[must_use]
    pub fn gpu_idle(&self) -> GpuIdle {
        account::of_timeline(self)
    }
}
