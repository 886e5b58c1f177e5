//! What a device did in a part of the window, such as a step.

use super::{DeviceIdle, DeviceState};

/// What a device did in a part of the window: [`DeviceIdle::within`]. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceTimes {
    /// How long anything ran.
    pub busy_ns: i64,
    /// How long it was idle, also before the first work of the window and after the last.
    pub idle_ns: i64,
    /// How long it is not known what it did.
    pub not_recorded_ns: i64,
}

impl DeviceTimes {
    /// Returns the share of the recorded time in which the device was busy, from 0 to 1; `None` if nothing was recorded.
    #[must_use]
    pub fn busy_share(&self) -> Option<f64> {
        let recorded = self.busy_ns.saturating_add(self.idle_ns);
        (recorded > 0).then(|| self.busy_ns as f64 / recorded as f64)
    }
}

impl DeviceIdle {
    /// Returns what the device did from one time to another. Over all of the window, these are its busy, idle and not recorded
    /// times.
    ///
    /// # Examples
    ///
    /// ```
    /// # let timeline = profiler_report::Timeline::default();
    /// for device in &timeline.gpu_idle().devices {
    ///     for step in &timeline.steps {
    ///         let busy = device.within(step.start_ns, step.end_ns).busy_share();
    ///         println!("step {}: busy for {:.0} %", step.number, 100.0 * busy.unwrap_or(0.0));
    ///     }
    /// }
    /// ```
    #[must_use]
    pub fn within(&self, start_ns: i64, end_ns: i64) -> DeviceTimes {
        let mut times = DeviceTimes::default();
        let first = self
            .segments
            .partition_point(|segment| segment.end_ns <= start_ns);
        let segments = self.segments.iter().skip(first);
        for segment in segments.take_while(|segment| segment.start_ns < end_ns) {
            let sum = match segment.state {
                DeviceState::Busy => &mut times.busy_ns,
                DeviceState::NotRecorded => &mut times.not_recorded_ns,
                DeviceState::Host
                | DeviceState::LaunchCall
                | DeviceState::Launched
                | DeviceState::AfterLast => &mut times.idle_ns,
            };
            let (from, to) = (segment.start_ns.max(start_ns), segment.end_ns.min(end_ns));
            *sum = sum.saturating_add(to.saturating_sub(from));
        }
        times
    }
}

#[cfg(test)]
mod tests {
    use crate::idle::tests::Drawn;
    use crate::timeline::KernelGap;

    #[test]
    fn the_parts_of_a_window_are_the_window() {
        let mut drawn = Drawn::new(100);
        let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
        for (called, work) in [(5, (10, 30)), (40, (45, 60))] {
            let launch = drawn.launch(main, (called, called + 1));
            drawn.work(stream, work, Some(launch));
        }
        drawn.0.kernel_gaps.push(KernelGap {
            start_ns: 70_000,
            duration_ns: 10_000,
            ..KernelGap::default()
        });
        let idle = drawn.0.gpu_idle();
        let device = &idle.devices[0];
        let within = |from: i64, to: i64| {
            let times = device.within(from * 1000, to * 1000);
            [times.busy_ns, times.idle_ns, times.not_recorded_ns].map(|ns| ns / 1000)
        };
        for ((from, to), expected) in [
            ((0, 100), [35, 55, 10]),
            ((0, 10), [0, 10, 0]),
            ((20, 50), [15, 15, 0]),
            ((12, 13), [1, 0, 0]),
            ((60, 75), [0, 10, 5]),
            ((72, 78), [0, 0, 6]),
            ((50, 50), [0, 0, 0]),
            ((-10, 0), [0, 0, 0]),
            ((90, 200), [0, 10, 0]),
        ] {
            assert_eq!(within(from, to), expected, "{from} {to}");
        }
        let all = device.within(0, 100_000);
        assert_eq!(
            (all.busy_ns, all.idle_ns, all.not_recorded_ns),
            (device.busy_ns, device.idle_ns(), device.not_recorded_ns)
        );
        assert_eq!(device.within(12_000, 13_000).busy_share(), Some(1.0));
        assert_eq!(device.within(72_000, 78_000).busy_share(), None);
    }
}
