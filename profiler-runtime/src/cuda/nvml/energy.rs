//! The energy of all sampled devices, shared out to the names whose scopes ran on them.
//!
//! The sampler adds the energy of each interval, and the resolver the GPU times that it has read: see [`intervals`].

use std::num::NonZero;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use profiler_host::sync::Lock;
use profiler_report::GpuDevice;
use profiler_report::internal::DeviceEnergy;

use super::intervals::{GpuSpan, Intervals, Measured};
use crate::clock::{WallAnchor, clock, now};
use crate::cuda::context::measurement::{CpuSpan, GpuMeasurement};

/// The length of a bin, and how well times are known after the last sample. A scope that is shorter on the host is not
/// placed any better.
const BIN: Duration = Duration::from_millis(10);

static DEVICES: Lock<Vec<Device>> = Lock::with(Vec::new(), Vec::new);
/// `true` once an energy was read: GPU times are counted from then on.
static IS_SHARED: AtomicBool = AtomicBool::new(false);

/// A sampled device.
#[derive(Debug)]
struct Device {
    uuid: String,
    /// Its number in CUDA.
    ordinal: Option<u32>,
    intervals: Intervals,
}

/// Returns `true` if GPU times are to be [added](add).
pub(crate) fn is_shared() -> bool {
    IS_SHARED.load(Relaxed)
}

/// The times, in ticks, between which the GPU time of a scope lies. The device passes no event before it is recorded, or
/// after it was seen to have passed it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    began: u64,
    ended: u64,
    read: u64,
}

impl Bounds {
    /// Returns those of a scope that is read now.
    pub(crate) fn of(span: CpuSpan) -> Self {
        let elapsed = u64::try_from(span.elapsed).unwrap_or(0);
        Self {
            began: span.end.saturating_sub(elapsed),
            ended: span.end,
            read: now().max(span.end),
        }
    }

    /// Returns `true` if the scope is so long that its GPU time must be placed.
    pub(crate) fn are_wide(self) -> bool {
        self.read - self.began > clock().in_ticks(BIN)
    }

    /// Returns begin and end of a GPU time of `ns` nanoseconds, of which the begin may be known.
    fn place(self, begin: Option<SystemTime>, ns: f64) -> (u64, u64) {
        if !self.are_wide() {
            return (self.began, self.read);
        }
        let length = clock().in_ticks(nanoseconds(ns));
        let (begin, end) = match begin {
            Some(begin) => {
                let begin = WallAnchor::now().ticks_at(begin);
                (begin, begin.saturating_add(length))
            }
            None => (self.read.saturating_sub(length), self.read),
        };
        // The clocks of host and device differ by some microseconds.
        let end = end.clamp(self.ended, self.read);
        (
            begin.clamp(self.began, end.max(self.began)),
            end.max(self.began),
        )
    }
}

/// Adds a GPU time that the resolver has read. `begin` is needed if its bounds [are wide](Bounds::are_wide).
pub(crate) fn add(
    measurement: &GpuMeasurement,
    device: Option<u32>,
    (ns, own): (f64, f64),
    bounds: Bounds,
    begin: Option<SystemTime>,
) {
    let (begin, end) = bounds.place(begin, ns);
    add_span(
        device,
        &GpuSpan {
            name: measurement.scope.name,
            key: Some(measurement.scope.key),
            parent: measurement.parent.map(NonZero::get),
            begin,
            end,
            ns,
            own,
        },
    );
}

/// Adds the GPU time of a replay of a graph that was noticed now.
pub(crate) fn add_replay(name: u32, device: Option<u32>, (ns, own): (f64, f64)) {
    let end = now();
    let length = clock().in_ticks(nanoseconds(ns));
    add_span(
        device,
        &GpuSpan {
            name,
            key: None,
            parent: None,
            begin: end.saturating_sub(length),
            end,
            ns,
            own,
        },
    );
}

fn add_span(ordinal: Option<u32>, span: &GpuSpan) {
    let bin = clock().in_ticks(BIN);
    with_device(ordinal, |intervals| intervals.add(span, bin));
}

/// Notes that a scope has no GPU time. Those inside it count as parts of the scope around it.
pub(crate) fn lose(measurement: &GpuMeasurement) {
    let device = measurement.pair.and_then(|pair| pair.context.device());
    let parent = measurement.parent.map(NonZero::get);
    with_device(device, |known| known.lose(measurement.scope.key, parent));
}

/// Runs `f` with a device of CUDA. If a single device is sampled, it is that one.
fn with_device(ordinal: Option<u32>, f: impl FnOnce(&mut Intervals)) {
    let mut devices = DEVICES.lock();
    let known = match &mut devices[..] {
        [only] if only.ordinal.is_none() || ordinal.is_none() => Some(only),
        several => several
            .iter_mut()
            .find(|known| known.ordinal.is_some() && known.ordinal == ordinal),
    };
    if let Some(known) = known {
        f(&mut known.intervals);
    }
}

/// An energy that was read at a time in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reading {
    /// There is nothing to compare it with: an interval begins.
    First,
    Measured(Measured),
}

/// Ends an interval of a device.
pub(super) fn read(device: &GpuDevice, at: u64, reading: Reading) {
    let mut devices = DEVICES.lock();
    let place = devices.iter().position(|known| known.uuid == device.uuid);
    let place = place.unwrap_or_else(|| {
        devices.push(Device {
            uuid: device.uuid.clone(),
            ordinal: None,
            intervals: Intervals::default(),
        });
        devices.len() - 1
    });
    if let Some(known) = devices.get_mut(place) {
        known.ordinal = device.ordinal;
        match reading {
            Reading::First => known.intervals.begin(at),
            Reading::Measured(measured) => known.intervals.measure(at, measured),
        }
    }
    IS_SHARED.store(true, Relaxed);
}

/// Cuts the open intervals in two: a window opens or closes.
pub(super) fn cut(at: u64) {
    if is_shared() {
        let bin = clock().in_ticks(BIN);
        for known in DEVICES.lock().iter_mut() {
            known.intervals.cut(at, bin);
        }
    }
}

/// Ends the intervals without an energy: the sampler rests for a while.
pub(super) fn pause() {
    for known in DEVICES.lock().iter_mut() {
        known.intervals.pause();
    }
}

/// Leaves out all devices but those with these UUIDs.
pub(super) fn keep_devices(uuids: &[&str]) {
    DEVICES.lock().retain(|known| uuids.contains(&&*known.uuid));
}

/// Returns the energy of a device, of the whole run or between two times in ticks.
pub(super) fn of_device(uuid: &str, between: Option<(u64, u64)>) -> DeviceEnergy {
    let devices = DEVICES.lock();
    let known = devices.iter().find(|known| known.uuid == uuid);
    known.map_or_else(DeviceEnergy::default, |known| {
        known.intervals.energy(between)
    })
}

/// Returns when a reading was taken, in ticks: the driver may say that it is older than the call, which was at `now`.
pub(super) fn reading_at(now: u64, unix_now: i64, said: Option<i64>) -> u64 {
    /// The time of the driver is implausible if it is older.
    const OLDEST: Duration = Duration::from_secs(1);
    let age = said.and_then(|said| u64::try_from(unix_now.saturating_sub(said)).ok());
    let age = age.map(Duration::from_nanos).filter(|age| *age <= OLDEST);
    now.saturating_sub(clock().in_ticks(age.unwrap_or_default()))
}

fn nanoseconds(ns: f64) -> Duration {
    Duration::try_from_secs_f64(ns / 1e9).unwrap_or_default()
}
