//! The rows of the screen: what a name did lately, and altogether.

use std::cmp::Ordering;
use std::collections::HashMap;

use clap::ValueEnum;
use profiler_report::internal::InOrder as _;
use profiler_report::{HistoryPoint, Row, Summary, Times, Verdict};

/// A value that rows are sorted by, the largest first. Those that tables have too are named as there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Order {
    /// What limits the program: the GPU if it was busy for most of the last span, else who kept it waiting, if that is
    /// known, else the CPU.
    Limit,
    /// The time for which a device was idle because of the name, since the beginning.
    Idle,
    /// The share of the last span that the CPU spent in the name itself.
    Cpu,
    /// The share of the last span that the GPU spent in the name itself.
    Cuda,
    /// Calls per second.
    Rate,
    /// The self time on the CPU since the beginning.
    #[value(name = "self_cpu_time_total", alias = "cpu-total")]
    CpuTotal,
    /// The self time on the GPU since the beginning.
    #[value(name = "self_cuda_time_total", alias = "cuda-total")]
    CudaTotal,
    /// Calls since the beginning.
    #[value(name = "count", alias = "calls")]
    Calls,
    /// Names, from A to Z.
    Name,
}

impl Order {
    pub(super) const ALL: [Self; 9] = [
        Self::Limit,
        Self::Idle,
        Self::Cpu,
        Self::Cuda,
        Self::Rate,
        Self::CpuTotal,
        Self::CudaTotal,
        Self::Calls,
        Self::Name,
    ];

    /// Returns the order that is `steps` after this one, around the end.
    pub(super) fn stepped(self, steps: usize) -> Self {
        let place = Self::ALL.iter().position(|order| *order == self);
        Self::ALL[(place.unwrap_or(0) + steps) % Self::ALL.len()]
    }

    /// Returns the value that rows are sorted by if `limit` is the one that limits.
    pub(super) const fn by(self, limit: Self) -> Self {
        match self {
            Self::Limit => limit,
            by => by,
        }
    }

    /// Returns `true` if rows are sorted by GPU times.
    pub(super) const fn is_of_cuda(self) -> bool {
        matches!(self, Self::Cuda | Self::CudaTotal)
    }
}

/// The calls and times of a name in the last span and since the beginning.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line {
    pub(super) name: String,
    /// The self times of the calls that ended in the span, as a part of it: more than 1 on several threads, and also if calls had
    /// begun before the span.
    pub(super) cpu: f64,
    pub(super) cuda: Option<f64>,
    /// Calls per second.
    pub(super) rate: f64,
    /// How long a device was idle because of it since the beginning, by the account of the device for which that is
    /// longest; and that as a part of the time of the account.
    pub(super) idle: Option<(f64, f64)>,
    pub(super) cpu_total_ns: f64,
    pub(super) cuda_total_ns: Option<f64>,
    pub(super) calls: u64,
    pub(super) open: u64,
    /// The mean and the 95th percentile of the calls on the CPU.
    pub(super) cpu_mean_ns: Option<f64>,
    pub(super) cpu_p95_ns: Option<f64>,
    pub(super) cuda_mean_ns: Option<f64>,
    pub(super) verdict: Option<Verdict>,
    /// The part of its GPU times in which the device surely worked.
    pub(super) busy_part: f64,
    pub(super) history: Vec<HistoryPoint>,
}

/// The sums of a row, from which those of an earlier summary are subtracted.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    calls: u64,
    cpu_ns: f64,
    cuda_ns: f64,
}

impl Sums {
    fn of(row: &Row) -> Self {
        Self {
            calls: row.calls,
            cpu_ns: row.cpu.map_or(0.0, |cpu| cpu.self_ns),
            cuda_ns: row.cuda.map_or(0.0, |cuda| cuda.self_ns),
        }
    }
}

/// Returns the rows of `now`, with rates since `before` (an earlier summary of the run) or since the beginning, and the
/// length of that span in nanoseconds.
pub(super) fn lines(now: &Summary, before: Option<&Summary>) -> (Vec<Line>, f64) {
    let span_ns = now.wall_ns - before.map_or(0.0, |before| before.wall_ns);
    let earlier: HashMap<&str, Sums> = before
        .iter()
        .flat_map(|before| &before.rows)
        .map(|row| (row.name.as_str(), Sums::of(row)))
        .collect();
    let lines = now.rows.iter().map(|row| {
        let sums = Sums::of(row);
        let earlier = earlier.get(row.name.as_str()).copied().unwrap_or_default();
        // Times of single calls are not known without any.
        let has_calls = |times: &Times| times.calls > 0;
        let share = |ns: f64| (ns.max(0.0) / span_ns.max(1.0)).min(1e6);
        Line {
            name: super::text::printable(&row.name),
            cpu: share(sums.cpu_ns - earlier.cpu_ns),
            cuda: row.cuda.map(|_| share(sums.cuda_ns - earlier.cuda_ns)),
            rate: sums.calls.saturating_sub(earlier.calls) as f64 / (span_ns.max(1.0) / 1e9),
            idle: idle(now, &row.name),
            cpu_total_ns: sums.cpu_ns,
            cuda_total_ns: row.cuda.map(|_| sums.cuda_ns),
            calls: row.calls,
            open: row.open,
            cpu_mean_ns: row.cpu.filter(has_calls).map(|cpu| cpu.mean_ns),
            cpu_p95_ns: row.cpu.filter(has_calls).map(|cpu| cpu.p95_ns),
            cuda_mean_ns: row.cuda.filter(has_calls).map(|cuda| cuda.mean_ns),
            verdict: row.verdict(),
            busy_part: row.busy_part(),
            history: row.history.clone(),
        }
    });
    (lines.collect(), span_ns)
}

fn idle(now: &Summary, name: &str) -> Option<(f64, f64)> {
    let of_device = now.gpu_idle.iter().filter_map(|account| {
        let charge = account.charges.iter().find(|charge| charge.name == name)?;
        let share = charge.idle_ns / account.wall_ns().max(1.0);
        Some((charge.idle_ns, share))
    });
    of_device.max_by(|one, other| one.0.total_cmp(&other.0))
}

/// Returns `true` if both summaries are of one run, in this order.
pub(super) fn is_earlier(before: &Summary, now: &Summary) -> bool {
    let run = |summary: &Summary| {
        let environment = &summary.environment;
        (environment.process, environment.start_unix_ns)
    };
    run(before) == run(now) && before.wall_ns < now.wall_ns
}

/// Sorts rows; rows with equal values by their names. What limits is known to [`Order::by`].
pub(super) fn sort(lines: &mut [&Line], order: Order) {
    let falling = |one: f64, other: f64| other.total_cmp(&one);
    let or_none = |value: Option<f64>| value.unwrap_or(-1.0);
    lines.order_by(|one, other| {
        let by_value = match order {
            Order::Cpu | Order::Limit => falling(one.cpu, other.cpu),
            Order::Cuda => falling(or_none(one.cuda), or_none(other.cuda)),
            Order::Idle => {
                let ns = |line: &Line| or_none(line.idle.map(|(ns, _)| ns));
                falling(ns(one), ns(other))
            }
            Order::Rate => falling(one.rate, other.rate),
            Order::CpuTotal => falling(one.cpu_total_ns, other.cpu_total_ns),
            Order::CudaTotal => falling(or_none(one.cuda_total_ns), or_none(other.cuda_total_ns)),
            Order::Calls => other.calls.cmp(&one.calls),
            Order::Name => Ordering::Equal,
        };
        by_value.then_with(|| one.name.cmp(&other.name))
    });
}

#[cfg(test)]
mod tests {
    use profiler_report::Times;

    use super::*;

    fn summary(wall_ns: f64, rows: &[(&str, u64, f64)]) -> Summary {
        Summary {
            wall_ns,
            rows: rows
                .iter()
                .map(|(name, calls, self_ns)| {
                    let cpu = Times {
                        self_ns: *self_ns,
                        ..Times::default()
                    };
                    Row {
                        name: (*name).to_owned(),
                        calls: *calls,
                        cpu: Some(cpu),
                        ..Row::default()
                    }
                })
                .collect(),
            ..Summary::default()
        }
    }

    #[test]
    fn rates_are_those_since_the_summary_before() {
        let before = summary(1e9, &[("a", 10, 1e8)]);
        let now = summary(3e9, &[("a", 30, 1.1e9), ("b", 4, 2e8)]);
        let (lines, span) = lines(&now, Some(&before));
        assert_eq!(span.to_bits(), 2e9_f64.to_bits());
        let shown: Vec<_> = lines.iter().map(|line| (line.cpu, line.rate)).collect();
        assert_eq!(shown, [(0.5, 10.0), (0.1, 2.0)]);
        assert_eq!(lines[0].calls, 30);
    }

    #[test]
    fn the_first_summary_has_rates_since_the_beginning() {
        let now = summary(2e9, &[("a", 30, 1e9)]);
        let (lines, span) = lines(&now, None);
        assert_eq!((lines[0].cpu, lines[0].rate, span), (0.5, 15.0, 2e9));
    }

    #[test]
    fn a_summary_of_another_run_or_a_later_one_is_no_earlier_one() {
        let (one, two) = (summary(1e9, &[]), summary(2e9, &[]));
        let mut other = summary(1e9, &[]);
        other.environment.process = 7;
        assert!(is_earlier(&one, &two));
        assert!(!is_earlier(&two, &one) && !is_earlier(&one, &one) && !is_earlier(&other, &two));
    }

    #[test]
    fn names_of_orders_are_those_of_sort_keys_where_there_is_one() {
        for (name, order) in [
            ("limit", Order::Limit),
            ("cpu", Order::Cpu),
            ("self_cpu_time_total", Order::CpuTotal),
            ("cpu-total", Order::CpuTotal),
            ("self_cuda_time_total", Order::CudaTotal),
            ("count", Order::Calls),
            ("name", Order::Name),
        ] {
            assert_eq!(Order::from_str(name, false), Ok(order));
            let is_key = name.parse::<profiler_report::SortKey>().is_ok();
            assert_eq!(
                is_key,
                name.contains("_total") || ["count", "name"].contains(&name)
            );
        }
    }

    #[test]
    fn a_function_has_the_idle_time_of_the_device_that_it_kept_waiting_longest() {
        let account = |names: &[(&str, f64)], busy_ns| {
            let charge = |(name, idle_ns): &(&str, f64)| profiler_report::SampledCharge {
                name: (*name).to_owned(),
                idle_ns: *idle_ns,
                ..profiler_report::SampledCharge::default()
            };
            profiler_report::SampledIdle {
                busy_ns,
                charges: names.iter().map(charge).collect(),
                ..profiler_report::SampledIdle::default()
            }
        };
        let mut now = summary(1e9, &[("a", 1, 5.0), ("b", 3, 1.0), ("c", 1, 9.0)]);
        now.gpu_idle = vec![
            account(&[("a", 10.0), ("b", 40.0)], 100.0),
            account(&[("a", 20.0)], 80.0),
        ];
        let (lines, _) = lines(&now, None);
        let idle: Vec<_> = lines.iter().map(|line| line.idle).collect();
        assert_eq!(idle, [Some((20.0, 0.25)), Some((40.0, 0.4)), None]);
        let mut sorted: Vec<&Line> = lines.iter().collect();
        sort(&mut sorted, Order::Idle);
        let sorted: String = sorted.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(sorted, "bac");
    }

    #[test]
    fn rows_are_sorted_by_each_value() {
        let now = summary(1e9, &[("a", 1, 5.0), ("b", 3, 1.0), ("c", 1, 9.0)]);
        let (lines, _) = lines(&now, None);
        for (order, names) in [
            (Order::Cpu, "cab"),
            (Order::Cuda, "abc"),
            (Order::Rate, "bac"),
            (Order::CpuTotal, "cab"),
            (Order::Calls, "bac"),
            (Order::Name, "abc"),
        ] {
            let mut sorted: Vec<&Line> = lines.iter().collect();
            sort(&mut sorted, order);
            let sorted: String = sorted.iter().map(|line| line.name.as_str()).collect();
            assert_eq!(sorted, names, "{order:?}");
        }
    }
}
