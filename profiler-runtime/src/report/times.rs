//! The times that summaries and averages have in common.

use super::averages::AverageTimes;
use super::summary::{CudaTimes, Row};
use super::text::Field;

/// The times of many calls on one device, in nanoseconds. The public types have fields of these names.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_field_names,
    reason = "the public types have these names"
)]
pub(super) struct TimeStats {
    pub(super) total_ns: f64,
    pub(super) self_ns: f64,
    pub(super) mean_ns: f64,
    pub(super) std_ns: f64,
    pub(super) min_ns: f64,
    pub(super) max_ns: f64,
    pub(super) p50_ns: f64,
    pub(super) p95_ns: f64,
    pub(super) p99_ns: f64,
}

/// Calls a macro with the names of the fields of [`TimeStats`].
macro_rules! with_times {
    ($macro:ident!($($arguments:tt)*)) => {
        $macro! {
            ($($arguments)*)
            total_ns self_ns mean_ns std_ns min_ns max_ns p50_ns p95_ns p99_ns
        }
    };
}

macro_rules! from_fields_of {
    (($type:ty) $($time:ident)*) => {
        impl From<&$type> for TimeStats {
            fn from(of: &$type) -> Self {
                Self { $($time: of.$time),* }
            }
        }
    };
}

macro_rules! to_fields_of {
    (($type:ty) $($time:ident)*) => {
        impl From<TimeStats> for $type {
            fn from(times: TimeStats) -> Self {
                Self { $($time: times.$time,)* ..Self::default() }
            }
        }
    };
}

macro_rules! list {
    (($times:ident) $($time:ident)*) => {
        vec![$(Field::nanoseconds(stringify!($time), $times.$time)),*]
    };
}

with_times!(from_fields_of!(Row));
with_times!(from_fields_of!(CudaTimes));
with_times!(from_fields_of!(AverageTimes));
with_times!(to_fields_of!(AverageTimes));

impl TimeStats {
    /// Returns the times with their keys.
    pub(super) fn fields(self) -> Vec<Field> {
        with_times!(list!(self))
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::json::object;
    use super::*;

    #[test]
    fn each_time_keeps_its_name() {
        let times = TimeStats {
            total_ns: 1.0,
            self_ns: 2.0,
            mean_ns: 3.0,
            std_ns: 4.0,
            min_ns: 5.0,
            max_ns: 6.0,
            p50_ns: 7.0,
            p95_ns: 8.0,
            p99_ns: 9.0,
        };
        let again = TimeStats::from(&AverageTimes::from(times));
        let text = "{\"total_ns\":1.0,\"self_ns\":2.0,\"mean_ns\":3.0,\"std_ns\":4.0,\"min_ns\":5.0,\"max_ns\":6.0,\
                    \"p50_ns\":7.0,\"p95_ns\":8.0,\"p99_ns\":9.0}";
        assert_eq!(object(again.fields()), text);
    }
}
