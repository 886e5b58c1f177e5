//! Why the devices were idle, by the running statistics.

use profiler_host::diagnostics::printable;

#[cfg(feature = "export")]
use crate::idle::States;
use crate::idle::device_title;
#[cfg(feature = "export")]
use crate::sentence::Sentence;
use crate::sentence::percent;
use crate::text::Field;
use crate::text::json::{array, object};
use crate::text::units::time;

/// What a device did since the first GPU time was read, and which functions kept it waiting, as the running statistics know it: without
/// a session and without kernels.
///
/// # States
///
/// By the GPU times of functions, a device is in one of three states. It is *busy* during a GPU time with no other one inside it,
/// if the device took longer than the host. It is *host-paced* during any other GPU time: the host took at least as long as the
/// device, which waited between the launches, or other GPU times were inside, on any stream, and what the device did between
/// those is not known. Else it is *idle*, unless that is [not known](Self::unknown_ns). The three add up to
/// [`wall_ns`](Self::wall_ns). They are from the first GPU time to the last, and as exact as the places of GPU times on the time line
/// ([`CudaHealth::uncertainty_ns`](crate::CudaHealth::uncertainty_ns)). With kernels,
/// [`Timeline::gpu_idle`](crate::Timeline::gpu_idle) knows more.
///
/// # Functions
///
/// An idle time ends with the GPU time that begins first. The thread that called this function kept the device waiting, and
/// each moment counts for the innermost function on it, or for the one whose handle the
/// thread is directly inside of. This is sampled, once in [`interval_ns`](Self::interval_ns): the idle time of a function is its
/// self time, which is exact, times the part of its samples that were in idle time. (The self time here has the time that
/// scopes on other threads covered, in which the function waited.) Samples alone say it of calls that have not ended, of those
/// that were open when the account began, and of handles. Functions with fewer than ten samples are only counted together. [`charges`](Self::charges), [`outside_ns`](Self::outside_ns),
/// [`not_sampled_ns`](Self::not_sampled_ns) and [`launched_ns`](Self::launched_ns) add up to [`idle_ns`](Self::idle_ns).
///
/// What a function called is not in its time, and `a` that is called through `b` from `a` counts as `b`. The times of functions with
/// all that they call ([`IdleCharge::inclusive_ns`](crate::IdleCharge::inclusive_ns)), and how much faster the work would be done
/// without one ([`DeviceIdle::bound_without`](crate::DeviceIdle::bound_without)), are known of windows with kernels only.
///
/// All times are in nanoseconds.
///
/// # Examples
///
/// ```
/// # let summary = profiler_report::Summary::default();
/// for device in &summary.gpu_idle {
///     println!("GPU {}: idle for {} of {} ns", device.device.unwrap_or(0), device.idle_ns, device.wall_ns());
///     for charge in &device.charges {
///         println!("{} kept it waiting for {} ± {} ns", charge.name, charge.idle_ns, charge.error_ns);
///     }
/// }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct SampledIdle {
    /// Its number in CUDA, if that is known.
    pub device: Option<u32>,
    /// How long it was busy.
    pub busy_ns: f64,
    /// How long it was host-paced, and idle for a part of that which is not known.
    pub host_paced_ns: f64,
    /// How long it was idle.
    pub idle_ns: f64,
    /// For how long it is not known what it did, between the other times: measuring was off, or a call before the next GPU time
    /// has none, which was lost. It is in none of them. Idle time may contain work that was launched while measuring was off and ran
    /// later, and work whose GPU times had no room in the ring of their thread.
    pub unknown_ns: f64,
    /// The part of `idle_ns` in which the next function had been called, and the device had not begun its work.
    pub launched_ns: f64,
    /// The part in which the thread was in no measured function.
    pub outside_ns: f64,
    /// The standard error of `outside_ns`.
    pub outside_error_ns: f64,
    /// The part that is not sampled: of functions with fewer than ten samples, of times without samples, and what neither self
    /// times nor samples explain.
    pub not_sampled_ns: f64,
    /// How many functions have fewer than ten samples.
    pub not_sampled_names: u64,
    /// The self time of these functions: none of them kept the device waiting for longer than its own.
    pub not_sampled_self_ns: f64,
    /// The functions that kept it waiting, the longest time first.
    pub charges: Vec<SampledCharge>,
    /// The samples in idle time.
    pub samples: u64,
    /// The mean time between two samples of a thread. It grows with the number of functions times that of threads.
    pub interval_ns: f64,
    /// GPU times without a place: those of replayed graphs, and those that were lost. The device may have been busy
    /// while it counts as idle.
    pub unplaced: u64,
    /// The part of long GPU times that was known too late: it counts as it would without them.
    pub late_ns: f64,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
}

/// How long a function kept a device waiting, by samples. Times are in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct SampledCharge {
    /// The name of the function.
    pub name: String,
    /// How long the device was idle while it was the innermost function of the thread that launched the next work.
    pub idle_ns: f64,
    /// The standard error of `idle_ns`.
    pub error_ns: f64,
    /// Its samples, at all times and on all threads.
    pub samples: u64,
    /// The part of its samples that was in idle time of the device.
    pub idle_samples: u64,
    /// The part of `idle_samples` of which it is known whether the thread was off the processor: of 16 threads that launch, at most,
    /// the system is asked at one time. Zero where it does not say, which Linux does.
    pub asked_samples: u64,
    /// The part of `asked_samples` in which the thread was off the processor: it slept, or waited, as for a lock or for I/O.
    pub off_processor_samples: u64,
    #[doc(hidden)]
    #[cfg_attr(feature = "serde", serde(skip))]
    pub non_exhaustive: (),
}

/// An account of less time than this many samples take is not shown below a table.
const LEAST_SHOWN: f64 = 10.0;

impl SampledIdle {
    /// Returns how long the device was observed: from its first GPU time to the last, without what is not known.
    #[must_use]
    pub fn wall_ns(&self) -> f64 {
        self.busy_ns + self.host_paced_ns + self.idle_ns
    }

    /// Returns what the device did and which function kept it waiting longest, as a line; `None` if the device was observed for
    /// fewer than ten [intervals](Self::interval_ns).
    ///
    /// # Examples
    ///
    /// ```
    /// let mut idle = profiler_report::SampledIdle::default();
    /// (idle.busy_ns, idle.idle_ns, idle.interval_ns) = (6e9, 4e9, 4e7);
    /// assert_eq!(idle.line().as_deref(), Some("GPU for 10.0 s: busy 60 %, host-paced 0 %, idle 40 %"));
    /// ```
    #[must_use]
    pub fn line(&self) -> Option<String> {
        let wall = self.wall_ns();
        if wall < LEAST_SHOWN * self.interval_ns.max(1.0) {
            return None;
        }
        let share = |ns: f64| percent(ns / wall);
        let device = self.title();
        let mut parts = vec![format!(
            "{device} for {}: busy {}, host-paced {}, idle {}",
            time(wall),
            share(self.busy_ns),
            share(self.host_paced_ns),
            share(self.idle_ns)
        )];
        parts.extend(self.largest().map(|(name, share)| {
            let name = name.map_or_else(|| "outside of measured functions".to_owned(), printable);
            let interval = time(self.interval_ns);
            format!(
                ", of which {name} {share}{} ({} samples, one in {interval})",
                self.off_processor(),
                self.samples
            )
        }));
        if self.unknown_ns > 0.0 {
            parts.push(format!(
                "; for {} more it is not known: measuring was off, or GPU times were lost",
                time(self.unknown_ns)
            ));
        }
        if self.unplaced > 0 {
            parts.push(format!(
                "; {} GPU times have no place in this",
                self.unplaced
            ));
        }
        if self.late_ns > 0.0 {
            parts.push(format!(
                "; {} were known too late for this",
                time(self.late_ns)
            ));
        }
        Some(parts.concat())
    }

    pub(crate) fn title(&self) -> String {
        device_title(self.device, None, "")
    }

    /// Returns sentences: what limits the device, and what kept it waiting longest.
    #[cfg(feature = "export")]
    pub(crate) fn sentences(&self) -> Vec<Sentence> {
        let wall = self.wall_ns();
        let states = States {
            busy: self.busy_ns / wall,
            host_paced: self.host_paced_ns / wall,
            idle: self.idle_ns / wall,
        };
        let of = format!("{} from its first GPU time to its last", time(wall));
        let mut sentences = vec![states.sentence(&of).text(".")];
        sentences.extend(self.largest().map(|(name, share)| {
            let sentence = Sentence::new();
            let sentence = match name {
                Some(name) => sentence.name(name),
                None => sentence.text("Code outside of measured functions"),
            };
            sentence.text(&format!(" kept it waiting for {share} of its idle time."))
        }));
        if self.unknown_ns > 0.0 {
            let unknown = format!(
                "For {} more, what it did is not known: measuring was off, or GPU times were lost.",
                time(self.unknown_ns)
            );
            sentences.push(Sentence::new().text(&unknown));
        }
        if self.unplaced > 0 {
            let unplaced = format!(
                "This is uncertain: {} GPU times have no place in it.",
                self.unplaced
            );
            sentences.push(Sentence::new().text(&unplaced));
        }
        sentences
    }

    /// Says for which part of the idle time of the function that is named its thread was off the processor, if for most of it. That
    /// is the part of the samples of which it is known.
    fn off_processor(&self) -> String {
        let named = self.largest().and_then(|(name, _)| name);
        let charge = self
            .charges
            .first()
            .filter(|charge| named == Some(&*charge.name));
        let most = charge.filter(|charge| {
            let asked = charge.asked_samples;
            asked > 0 && 2 * charge.off_processor_samples > asked
        });
        most.map_or_else(String::new, |charge| {
            let share = charge.off_processor_samples as f64 / charge.asked_samples as f64;
            format!(", off the processor for {} of that", percent(share))
        })
    }

    /// Returns the largest part of the idle time: the function, or `None` outside of all; and its share with the error of that.
    fn largest(&self) -> Option<(Option<&str>, String)> {
        if self.idle_ns <= 0.0 {
            return None;
        }
        let of_idle = |ns: f64| percent(ns / self.idle_ns);
        let functions = self.charges.iter();
        let functions = functions
            .map(|charge| (Some(charge.name.as_str()), charge.idle_ns, charge.error_ns))
            .take(1);
        let largest = functions
            .chain([(None, self.outside_ns, self.outside_error_ns)])
            .reduce(|one, other| if other.1 > one.1 { other } else { one });
        let (name, ns, error) = largest.filter(|(_, ns, _)| *ns > 0.0)?;
        Some((name, format!("{} ± {}", of_idle(ns), of_idle(error))))
    }

    /// Returns all numbers as a JSON object.
    pub(crate) fn to_json(&self) -> String {
        object([
            Field::optional("device", self.device),
            Field::nanoseconds("busy_ns", self.busy_ns),
            Field::nanoseconds("host_paced_ns", self.host_paced_ns),
            Field::nanoseconds("idle_ns", self.idle_ns),
            Field::nanoseconds("unknown_ns", self.unknown_ns),
            Field::nanoseconds("launched_ns", self.launched_ns),
            Field::nanoseconds("outside_ns", self.outside_ns),
            Field::nanoseconds("outside_error_ns", self.outside_error_ns),
            Field::nanoseconds("not_sampled_ns", self.not_sampled_ns),
            Field::raw("not_sampled_names", self.not_sampled_names),
            Field::nanoseconds("not_sampled_self_ns", self.not_sampled_self_ns),
            Field::raw(
                "charges",
                array(self.charges.iter().map(SampledCharge::to_json)),
            ),
            Field::raw("samples", self.samples),
            Field::nanoseconds("interval_ns", self.interval_ns),
            Field::raw("unplaced", self.unplaced),
            Field::nanoseconds("late_ns", self.late_ns),
        ])
    }
}

impl SampledCharge {
    fn to_json(&self) -> String {
        object([
            Field::text("name", &self.name),
            Field::nanoseconds("idle_ns", self.idle_ns),
            Field::nanoseconds("error_ns", self.error_ns),
            Field::raw("samples", self.samples),
            Field::raw("idle_samples", self.idle_samples),
            Field::raw("asked_samples", self.asked_samples),
            Field::raw("off_processor_samples", self.off_processor_samples),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle() -> SampledIdle {
        SampledIdle {
            device: Some(0),
            busy_ns: 6e9,
            host_paced_ns: 1e9,
            idle_ns: 3e9,
            outside_ns: 0.5e9,
            outside_error_ns: 0.1e9,
            charges: vec![SampledCharge {
                name: "load_batch".to_owned(),
                idle_ns: 2.4e9,
                error_ns: 0.03e9,
                samples: 300,
                idle_samples: 240,
                ..SampledCharge::default()
            }],
            samples: 300,
            interval_ns: 4e7,
            ..SampledIdle::default()
        }
    }

    #[test]
    fn a_line_has_the_states_and_the_function_that_kept_the_device_waiting_longest() {
        let expected = "GPU 0 for 10.0 s: busy 60 %, host-paced 10 %, idle 30 %, of which load_batch 80 % ± 1 % \
                        (300 samples, one in 40.0 ms)";
        assert_eq!(idle().line().as_deref(), Some(expected));
    }

    #[test]
    fn a_line_says_whether_the_function_was_off_the_processor() {
        let mut idle = idle();
        // Not all threads were asked each time.
        idle.charges[0].asked_samples = 80;
        idle.charges[0].off_processor_samples = 40;
        let line = idle.line().expect("it is long enough");
        assert!(!line.contains("off the processor"), "{line}");
        idle.charges[0].off_processor_samples = 72;
        let line = idle.line().expect("it is long enough");
        let end = "load_batch 80 % ± 1 %, off the processor for 90 % of that (300 samples, one in 40.0 ms)";
        assert!(line.ends_with(end), "{line}");
    }

    #[test]
    fn a_line_says_what_it_lacks() {
        let idle = SampledIdle {
            charges: Vec::new(),
            unplaced: 7,
            late_ns: 2e9,
            ..idle()
        };
        let line = idle.line().expect("it is long enough");
        let end = "of which outside of measured functions 17 % ± 3 % (300 samples, one in 40.0 ms); 7 GPU times have no place \
                   in this; 2.00 s were known too late for this";
        assert!(line.ends_with(end), "{line}");
    }

    #[test]
    fn a_device_that_was_observed_for_fewer_than_ten_samples_has_no_line() {
        let idle = SampledIdle {
            busy_ns: 3e8,
            host_paced_ns: 0.0,
            idle_ns: 9e7,
            ..idle()
        };
        assert_eq!(idle.line(), None);
    }

    #[test]
    fn a_device_that_is_never_idle_has_no_function_to_name() {
        let idle = SampledIdle {
            idle_ns: 0.0,
            ..idle()
        };
        let expected = "GPU 0 for 7.00 s: busy 86 %, host-paced 14 %, idle 0 %";
        assert_eq!(idle.line().as_deref(), Some(expected));
    }
}
