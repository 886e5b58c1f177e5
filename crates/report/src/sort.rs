//! Sort keys, named as in torch.

use std::cmp::Ordering;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use profiler_host::diagnostics::{self, did_you_mean, similar};

use super::row::Row;
use super::times::Times;
use crate::in_order::InOrder as _;

/// A value that rows can be sorted by. Keys that `torch.profiler` has are named as there. Methods that take a key accept
/// its name too, and so does [`str::parse`].
///
/// # Examples
///
/// ```
/// use profiler_report::SortKey;
///
/// assert_eq!("self_cuda_time_total".parse(), Ok(SortKey::SelfCudaTimeTotal));
/// assert!("self_time".parse::<SortKey>().unwrap_err().to_string().contains("self_cpu_time_total"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum SortKey {
    /// `cpu_time_total`: CPU time including children.
    CpuTimeTotal,
    /// `self_cpu_time_total`: CPU time without children.
    SelfCpuTimeTotal,
    /// `cpu_time`: mean CPU time.
    CpuTime,
    /// `cpu_time_std`: standard deviation of the CPU time.
    CpuTimeStd,
    /// `cpu_time_min`: the shortest call.
    CpuTimeMin,
    /// `cpu_time_max`: the longest call.
    CpuTimeMax,
    /// `cpu_time_p50`: the median.
    CpuTimeP50,
    /// `cpu_time_p95`: the 95th percentile.
    CpuTimeP95,
    /// `cpu_time_p99`: the 99th percentile.
    CpuTimeP99,
    /// `thread_time_total`: the time on a processor, including children.
    ThreadTimeTotal,
    /// `self_thread_time_total`: the time on a processor, without children.
    SelfThreadTimeTotal,
    /// `cuda_time_total`: GPU time including children.
    CudaTimeTotal,
    /// `self_cuda_time_total`: GPU time without children.
    SelfCudaTimeTotal,
    /// `cuda_time`: mean GPU time.
    CudaTime,
    /// `cuda_time_std`: standard deviation of the GPU time.
    CudaTimeStd,
    /// `cuda_time_min`: the shortest call.
    CudaTimeMin,
    /// `cuda_time_max`: the longest call.
    CudaTimeMax,
    /// `cuda_time_p50`: the median.
    CudaTimeP50,
    /// `cuda_time_p95`: the 95th percentile.
    CudaTimeP95,
    /// `cuda_time_p99`: the 99th percentile.
    CudaTimeP99,
    /// `gpu_busy`: how long the GPUs were busy with the work of the calls.
    GpuBusy,
    /// `idle_caused`: how long the calls kept GPUs waiting.
    IdleCaused,
    /// `cpu_memory_usage`: host bytes allocated less those freed, including children.
    CpuMemoryUsage,
    /// `self_cpu_memory_usage`: host bytes allocated less those freed, without children.
    SelfCpuMemoryUsage,
    /// `cuda_memory_usage`: device bytes allocated less those freed, including children.
    CudaMemoryUsage,
    /// `self_cuda_memory_usage`: device bytes allocated less those freed, without children.
    SelfCudaMemoryUsage,
    /// `energy`: the joules of the calls.
    Energy,
    /// `count`: the number of calls.
    Count,
    /// `name`: from A to Z.
    Name,
}

impl SortKey {
    /// All keys.
    pub const ALL: [Self; 29] = [
        Self::CpuTimeTotal,
        Self::SelfCpuTimeTotal,
        Self::CpuTime,
        Self::CudaTimeTotal,
        Self::SelfCudaTimeTotal,
        Self::CudaTime,
        Self::GpuBusy,
        Self::IdleCaused,
        Self::CpuMemoryUsage,
        Self::SelfCpuMemoryUsage,
        Self::CudaMemoryUsage,
        Self::SelfCudaMemoryUsage,
        Self::Energy,
        Self::Count,
        Self::ThreadTimeTotal,
        Self::SelfThreadTimeTotal,
        Self::CpuTimeStd,
        Self::CpuTimeMin,
        Self::CpuTimeMax,
        Self::CpuTimeP50,
        Self::CpuTimeP95,
        Self::CpuTimeP99,
        Self::CudaTimeStd,
        Self::CudaTimeMin,
        Self::CudaTimeMax,
        Self::CudaTimeP50,
        Self::CudaTimeP95,
        Self::CudaTimeP99,
        Self::Name,
    ];

    /// Returns the name of the key.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CpuTimeTotal => "cpu_time_total",
            Self::SelfCpuTimeTotal => "self_cpu_time_total",
            Self::CpuTime => "cpu_time",
            Self::CpuTimeStd => "cpu_time_std",
            Self::CpuTimeMin => "cpu_time_min",
            Self::CpuTimeMax => "cpu_time_max",
            Self::CpuTimeP50 => "cpu_time_p50",
            Self::CpuTimeP95 => "cpu_time_p95",
            Self::CpuTimeP99 => "cpu_time_p99",
            Self::ThreadTimeTotal => "thread_time_total",
            Self::SelfThreadTimeTotal => "self_thread_time_total",
            Self::CudaTimeTotal => "cuda_time_total",
            Self::SelfCudaTimeTotal => "self_cuda_time_total",
            Self::CudaTime => "cuda_time",
            Self::CudaTimeStd => "cuda_time_std",
            Self::CudaTimeMin => "cuda_time_min",
            Self::CudaTimeMax => "cuda_time_max",
            Self::CudaTimeP50 => "cuda_time_p50",
            Self::CudaTimeP95 => "cuda_time_p95",
            Self::CudaTimeP99 => "cuda_time_p99",
            Self::GpuBusy => "gpu_busy",
            Self::IdleCaused => "idle_caused",
            Self::CpuMemoryUsage => "cpu_memory_usage",
            Self::SelfCpuMemoryUsage => "self_cpu_memory_usage",
            Self::CudaMemoryUsage => "cuda_memory_usage",
            Self::SelfCudaMemoryUsage => "self_cuda_memory_usage",
            Self::Energy => "energy",
            Self::Count => "count",
            Self::Name => "name",
        }
    }

    fn value(self, row: &Row) -> Option<f64> {
        let cpu = |time: fn(&Times) -> f64| row.cpu.as_ref().map(time);
        let cuda = |time: fn(&Times) -> f64| row.cuda.as_ref().map(time);
        let memory = row.memory.as_ref();
        match self {
            Self::CpuTimeTotal => cpu(|times| times.total_ns),
            Self::SelfCpuTimeTotal => cpu(|times| times.self_ns),
            Self::CpuTime => cpu(|times| times.mean_ns),
            Self::CpuTimeStd => cpu(|times| times.std_ns),
            Self::CpuTimeMin => cpu(|times| times.min_ns),
            Self::CpuTimeMax => cpu(|times| times.max_ns),
            Self::CpuTimeP50 => cpu(|times| times.p50_ns),
            Self::CpuTimeP95 => cpu(|times| times.p95_ns),
            Self::CpuTimeP99 => cpu(|times| times.p99_ns),
            Self::ThreadTimeTotal => row.thread_time_total_ns,
            Self::SelfThreadTimeTotal => row.self_thread_time_total_ns,
            Self::CudaTimeTotal => cuda(|times| times.total_ns),
            Self::SelfCudaTimeTotal => cuda(|times| times.self_ns),
            Self::CudaTime => cuda(|times| times.mean_ns),
            Self::CudaTimeStd => cuda(|times| times.std_ns),
            Self::CudaTimeMin => cuda(|times| times.min_ns),
            Self::CudaTimeMax => cuda(|times| times.max_ns),
            Self::CudaTimeP50 => cuda(|times| times.p50_ns),
            Self::CudaTimeP95 => cuda(|times| times.p95_ns),
            Self::CudaTimeP99 => cuda(|times| times.p99_ns),
            Self::GpuBusy => row.gpu.map(|gpu| gpu.busy_ns),
            Self::IdleCaused => row.gpu.map(|gpu| gpu.idle_caused_ns),
            Self::CpuMemoryUsage => memory.map(|memory| memory.cpu_net as f64),
            Self::SelfCpuMemoryUsage => memory.map(|memory| memory.self_cpu_net as f64),
            Self::CudaMemoryUsage => memory.and_then(|memory| Some(memory.cuda_net? as f64)),
            Self::SelfCudaMemoryUsage => {
                memory.and_then(|memory| Some(memory.self_cuda_net? as f64))
            }
            Self::Energy => row.energy.and_then(|energy| energy.joules),
            Self::Count => Some(row.calls as f64),
            Self::Name => None,
        }
    }
}

impl fmt::Display for SortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A name that no [`SortKey`] has.
///
/// `Debug` shows the message of `Display` too, since a `main` that returns the error prints it with `Debug`.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a sort key{hint}", hint = hint(.0))]
#[non_exhaustive]
pub struct SortKeyError(String);

impl fmt::Debug for SortKeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SortKeyError")
            .field(&self.to_string())
            .finish()
    }
}

/// Returns what to write for a name that is not valid: the key that it stands for, or else all keys.
fn hint(wrong: &str) -> String {
    let keys = SortKey::ALL.map(SortKey::as_str);
    let meant =
        known_elsewhere(wrong).map_or_else(|| similar(wrong, keys), |key| vec![key.as_str()]);
    if meant.is_empty() {
        format!(": use one of {}", keys.join(", "))
    } else {
        did_you_mean(&meant)
    }
}

/// Returns the key for which pstats has this name.
fn of_pstats(name: &str) -> Option<SortKey> {
    Some(match name {
        "tottime" | "time" => SortKey::SelfCpuTimeTotal,
        "cumtime" | "cumulative" => SortKey::CpuTimeTotal,
        "ncalls" | "calls" => SortKey::Count,
        _ => return None,
    })
}

/// Returns the key that a column of the tables shows under this name, or something near it.
fn known_elsewhere(name: &str) -> Option<SortKey> {
    let name = name.trim().to_lowercase().replace([' ', '-'], "_");
    if let Some(key) = of_pstats(&name) {
        return Some(key);
    }
    Some(match name.as_str() {
        "total" | "cpu" | "cpu_total" => SortKey::CpuTimeTotal,
        "self" | "self_time" | "self_cpu" => SortKey::SelfCpuTimeTotal,
        "percall" | "mean" | "cpu_mean" | "cpu_time_avg" => SortKey::CpuTime,
        "#_of_calls" => SortKey::Count,
        "min" => SortKey::CpuTimeMin,
        "max" => SortKey::CpuTimeMax,
        "p50" => SortKey::CpuTimeP50,
        "p95" => SortKey::CpuTimeP95,
        "p99" => SortKey::CpuTimeP99,
        "thread" | "thread_time" => SortKey::ThreadTimeTotal,
        "self_thread" | "self_thread_time" => SortKey::SelfThreadTimeTotal,
        "cuda" | "cuda_total" => SortKey::CudaTimeTotal,
        "self_cuda" => SortKey::SelfCudaTimeTotal,
        "cuda_mean" | "cuda_time_avg" => SortKey::CudaTime,
        "idle" | "idle_%" => SortKey::IdleCaused,
        "busy" => SortKey::GpuBusy,
        "energy_(j)" | "joules" => SortKey::Energy,
        _ => return None,
    })
}

impl FromStr for SortKey {
    type Err = SortKeyError;

    /// Accepts the names in the documentation of the variants. `device` means `cuda`, as in newer versions of torch. The keys
    /// of Python's pstats that have the same meaning are accepted too: `tottime` and `time`, `cumtime` and `cumulative`,
    /// `ncalls` and `calls`.
    fn from_str(name: &str) -> Result<Self, SortKeyError> {
        let known = name.replace("device", "cuda");
        let key = Self::ALL.into_iter().find(|key| key.as_str() == known);
        key.or_else(|| of_pstats(name))
            .ok_or_else(|| SortKeyError(name.to_owned()))
    }
}

impl TryFrom<&str> for SortKey {
    type Error = SortKeyError;

    fn try_from(name: &str) -> Result<Self, SortKeyError> {
        name.parse()
    }
}

impl TryFrom<String> for SortKey {
    type Error = SortKeyError;

    fn try_from(name: String) -> Result<Self, SortKeyError> {
        name.parse()
    }
}

impl From<Infallible> for SortKeyError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// How rows were sorted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Sorted {
    /// The key, which may be another one than was asked for; `None` if the order is as before.
    pub(super) by: Option<SortKey>,
    /// Says so if it is not the key that was asked for.
    pub(super) note: Option<String>,
}

/// The parts of notes on how rows were sorted.
const NOT_SORTED: &str = "not sorted: ";
const SORTED_BY: &str = "sorted by ";
const NO_ROW_HAS: &str = ": no row has ";

/// Returns `true` for a note on how rows were sorted, which holds until they are sorted again.
pub(super) fn is_of_sorting(note: &str) -> bool {
    note.starts_with(NOT_SORTED) || note.starts_with(SORTED_BY) && note.contains(NO_ROW_HAS)
}

/// Sorts rows, and replaces what `notes` say of that.
pub(super) fn sort_again(
    rows: &mut [Row],
    notes: &mut Vec<String>,
    by: Result<SortKey, SortKeyError>,
) {
    notes.retain(|note| !is_of_sorting(note));
    notes.extend(sort_or_note(rows, by).note);
}

/// Sorts rows by a key that the program gave. Warns once if it is not valid.
///
/// Rows without a value of the key would come in the order of their names, and a limit on their number would hide those that
/// take longest. If no row has a value, they are sorted by their own time on the CPU, or else on the GPU.
pub(super) fn sort_or_note(rows: &mut [Row], by: Result<SortKey, SortKeyError>) -> Sorted {
    let asked = match by {
        Ok(key) => key,
        Err(error) => {
            let note = format!("{NOT_SORTED}{error}");
            diagnostics::warn_of_report(&note);
            let (by, note) = (None, Some(note));
            return Sorted { by, note };
        }
    };
    let has = |key: SortKey| rows.iter().any(|row| key.value(row).is_some());
    let instead = [SortKey::SelfCpuTimeTotal, SortKey::SelfCudaTimeTotal];
    let is_known = asked == SortKey::Name || rows.is_empty() || has(asked);
    let key = if is_known {
        asked
    } else {
        instead
            .into_iter()
            .find(|key| has(*key))
            .unwrap_or(SortKey::Count)
    };
    sort(rows, key);
    Sorted {
        by: Some(key),
        note: (key != asked).then(|| format!("{SORTED_BY}{key}{NO_ROW_HAS}{asked}")),
    }
}

/// Sorts rows, largest first.
pub fn sort(rows: &mut [Row], by: SortKey) {
    rows.order_by(|left, right| {
        let values = (by.value(left), by.value(right));
        let largest_first = match values {
            (Some(left), Some(right)) => right.total_cmp(&left),
            (left, right) => right.is_some().cmp(&left.is_some()),
        };
        largest_first.then_with(|| by_identity(left, right))
    });
}

fn by_identity(left: &Row, right: &Row) -> Ordering {
    let names = left.name.cmp(&right.name);
    let shapes = || left.input_shapes.cmp(&right.input_shapes);
    names
        .then_with(shapes)
        .then_with(|| left.stack.cmp(&right.stack))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_found_by_its_name() {
        for key in SortKey::ALL {
            assert_eq!(key.as_str().parse(), Ok(key));
        }
    }

    #[test]
    fn all_names_of_torch_are_known() {
        for name in [
            "cpu_time",
            "cuda_time",
            "device_time",
            "cpu_time_total",
            "cuda_time_total",
            "device_time_total",
            "self_cpu_time_total",
            "self_cuda_time_total",
            "self_device_time_total",
            "cpu_memory_usage",
            "cuda_memory_usage",
            "device_memory_usage",
            "self_cpu_memory_usage",
            "self_cuda_memory_usage",
            "self_device_memory_usage",
            "count",
        ] {
            assert!(name.parse::<SortKey>().is_ok(), "{name}");
        }
    }

    #[test]
    fn keys_and_their_names_are_accepted_alike() {
        fn key(
            of: impl TryInto<SortKey, Error: Into<SortKeyError>>,
        ) -> Result<SortKey, SortKeyError> {
            of.try_into().map_err(Into::into)
        }
        assert_eq!(key("count"), Ok(SortKey::Count));
        assert_eq!(key("count".to_owned()), Ok(SortKey::Count));
        assert_eq!(key(SortKey::Count), Ok(SortKey::Count));
        assert_eq!(key("size"), Err(SortKeyError("size".to_owned())));
    }

    #[test]
    fn equal_values_are_sorted_by_name_and_missing_ones_come_last() {
        let row = |name: &str, total_ns: Option<f64>| Row {
            name: name.to_owned(),
            cpu: total_ns.map(|total_ns| Times {
                total_ns,
                ..Times::default()
            }),
            ..Row::default()
        };
        let rows = [
            row("b", Some(1.0)),
            row("0", None),
            row("c", Some(2.0)),
            row("a", Some(1.0)),
        ];
        let names = |by: SortKey| -> String {
            let mut rows = rows.to_vec();
            sort(&mut rows, by);
            rows.iter().map(|row| &*row.name).collect()
        };
        assert_eq!(names(SortKey::CpuTimeTotal), "cab0");
        assert_eq!(names(SortKey::Name), "0abc");
        assert_eq!(names(SortKey::Count), "0abc");
    }

    #[test]
    fn an_unknown_name_is_answered_with_all_keys() {
        let error = "colour".parse::<SortKey>().expect_err("no such key");
        let text = error.to_string();
        assert!(text.starts_with("`colour` is not a sort key: use one of cpu_time_total,"));
        for key in SortKey::ALL {
            assert!(text.contains(key.as_str()), "{text}");
        }
    }

    #[test]
    fn keys_of_pstats_are_accepted() {
        for (name, key) in [
            ("tottime", SortKey::SelfCpuTimeTotal),
            ("time", SortKey::SelfCpuTimeTotal),
            ("cumtime", SortKey::CpuTimeTotal),
            ("cumulative", SortKey::CpuTimeTotal),
            ("ncalls", SortKey::Count),
            ("calls", SortKey::Count),
        ] {
            assert_eq!(name.parse(), Ok(key), "{name}");
        }
    }

    #[test]
    fn rows_without_a_value_of_the_key_are_sorted_by_their_own_time() {
        let row = |name: &str, self_ns: f64| Row {
            name: name.to_owned(),
            cpu: Some(Times {
                self_ns,
                ..Times::default()
            }),
            ..Row::default()
        };
        let mut rows = [
            row("aten::add", 1.0),
            row("aten::log_softmax", 69.0),
            row("z", 30.0),
        ];
        let sorted = sort_or_note(&mut rows, Ok(SortKey::SelfCudaTimeTotal));
        assert_eq!(rows[0].name, "aten::log_softmax");
        assert_eq!(sorted.by, Some(SortKey::SelfCpuTimeTotal));
        assert_eq!(
            sorted.note.as_deref(),
            Some("sorted by self_cpu_time_total: no row has self_cuda_time_total")
        );
        // One row with a value is enough: the others come after it.
        rows[1].cuda = rows[1].cpu;
        let sorted = sort_or_note(&mut rows, Ok(SortKey::SelfCudaTimeTotal));
        assert_eq!((&*rows[0].name, sorted.note), ("z", None));
        let sorted = sort_or_note(&mut rows, Ok(SortKey::Name));
        assert_eq!((&*rows[0].name, sorted.note), ("aten::add", None));
        let none = sort_or_note(&mut [], Ok(SortKey::Energy));
        assert_eq!(none.note, None);
    }

    #[test]
    fn a_name_of_a_column_is_answered_with_its_key() {
        for (wrong, key) in [
            ("Self", "self_cpu_time_total"),
            ("self_cuda", "self_cuda_time_total"),
        ] {
            let error = wrong.parse::<SortKey>().expect_err("no such key");
            let expected = format!("`{wrong}` is not a sort key; did you mean `{key}`?");
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn a_misspelled_key_is_answered_with_the_right_one() {
        let error = "cpu_time_totl".parse::<SortKey>().expect_err("no such key");
        let text = error.to_string();
        assert!(text.contains("; did you mean `cpu_time_total`"), "{text}");
    }
}
