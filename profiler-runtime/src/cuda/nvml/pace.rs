//! How often samples are taken where calls of NVML are slow.
//!
//! A call that is slow holds a lock of the driver that long, and launches of the program wait for it. So samples become
//! rarer, until the calls take a hundredth of the time. The first sample
//! without slow calls brings the interval back.

use std::time::Duration;

use profiler_sensors::SlowCalls;

/// The part of the time that slow calls may take.
const SHARE: u32 = 100;
/// The longest time between samples that follows from slow calls.
const LONGEST: Duration = Duration::from_secs(60);
/// The longest time for which a window waits for its sample more than without slow calls.
const LONGEST_FOR_WINDOWS: Duration = Duration::from_secs(1);

/// The least time between samples.
#[derive(Debug, Default)]
pub(super) struct Pace {
    least: Duration,
    is_said: bool,
}

impl Pace {
    /// Notes the slow calls of a sample. Returns what to say of them, once.
    pub(super) fn sampled(&mut self, slow: SlowCalls, wanted: Option<Duration>) -> Option<String> {
        self.least = slow.took.saturating_mul(SHARE).min(LONGEST);
        let (call, took) = slow.slowest?;
        let wanted = wanted.filter(|wanted| *wanted < self.least && !self.is_said)?;
        self.is_said = true;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        Some(format!(
            "{} takes {:.1} ms, and launches may wait for it: the GPUs are sampled every {:.0} ms instead of every {:.0} ms, or \
             as slow calls allow",
            call.names().0,
            ms(took),
            ms(self.least),
            ms(wanted)
        ))
    }

    /// Returns the time between samples where this one is wanted.
    pub(super) fn interval(&self, wanted: Duration) -> Duration {
        wanted.max(self.least)
    }

    /// Returns the time between samples that windows ask for.
    pub(super) fn for_windows(&self, wanted: Duration) -> Duration {
        wanted.max(self.least.min(LONGEST_FOR_WINDOWS))
    }
}

#[cfg(test)]
mod tests {
    use profiler_sensors::Call;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn slow(calls: &[u32]) -> SlowCalls {
        let mut slow = SlowCalls::default();
        for took in calls {
            slow.add(Call::Memory, MS * *took);
        }
        slow
    }

    #[test]
    fn slow_calls_make_samples_rarer_as_long_as_they_are_slow() {
        let wanted = MS * 100;
        let mut pace = Pace::default();
        assert_eq!(pace.interval(wanted), wanted);
        let said = pace.sampled(slow(&[2, 5, 3]), Some(wanted));
        let said = said.expect("it is rarer");
        assert!(said.contains("takes 5.0 ms"), "{said}");
        assert!(
            said.contains("every 1000 ms instead of every 100 ms"),
            "{said}"
        );
        assert_eq!(pace.interval(wanted), MS * 1_000);
        assert_eq!(pace.interval(MS * 5_000), MS * 5_000);
        assert_eq!(pace.sampled(slow(&[4]), Some(wanted)), None, "it was said");
        assert_eq!(pace.interval(wanted), MS * 400);
        assert_eq!(pace.sampled(slow(&[]), Some(wanted)), None);
        assert_eq!(pace.interval(wanted), wanted);
    }

    #[test]
    fn what_is_rare_enough_is_not_said() {
        let mut pace = Pace::default();
        assert_eq!(pace.sampled(slow(&[2]), Some(MS * 1_000)), None);
        assert_eq!(pace.sampled(slow(&[2]), None), None);
        assert!(pace.sampled(slow(&[2]), Some(MS * 100)).is_some());
    }

    #[test]
    fn windows_wait_a_second_longer_at_most() {
        let mut pace = Pace::default();
        let _ = pace.sampled(slow(&[900]), None);
        assert_eq!(pace.interval(MS), LONGEST);
        assert_eq!(pace.for_windows(MS * 100), MS * 1_000);
        let mut devices = slow(&[2, 3]);
        devices.add_all(slow(&[7, 1]));
        assert_eq!(
            (devices.took, devices.slowest),
            (MS * 13, Some((Call::Memory, MS * 7)))
        );
    }
}
