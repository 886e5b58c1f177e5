//! The columns of a table, in the order in which they stand, and the order in which they are left out.

use super::energy::Energy;
use super::group_by::GroupBy;
use super::row::{MemoryStats, Row};
use super::sort::SortKey;
use super::text::table::{Column, calls};
use super::text::units::{bytes, number, percent, time};
use super::times::Times;

/// The ranks of columns: in a table that would be too wide, those with the highest rank are left out first. The guide
/// documents this order.
mod rank {
    pub(super) const STD: u8 = 90;
    pub(super) const P50: u8 = 83;
    pub(super) const P99: u8 = 82;
    pub(super) const P95: u8 = 81;
    pub(super) const MEMORY_EXTRA: u8 = 75;
    pub(super) const MIN: u8 = 71;
    pub(super) const MAX: u8 = 70;
    pub(super) const LAUNCH: u8 = 62;
    pub(super) const VERDICT: u8 = 61;
    pub(super) const CUDA_TOTAL_PERCENT: u8 = 55;
    pub(super) const CPU_TOTAL_PERCENT: u8 = 54;
    pub(super) const CPU_SELF_PERCENT: u8 = 42;
    pub(super) const CPU_MEAN: u8 = 45;
    pub(super) const CUDA_MEAN: u8 = 44;
    pub(super) const CUDA_SELF_PERCENT: u8 = 40;
    pub(super) const POLLED: u8 = 56;
    pub(super) const GPU_RANGES: u8 = 53;
    pub(super) const THREAD_TIME: u8 = 38;
    pub(super) const POWER: u8 = 37;
    pub(super) const ENERGY: u8 = 36;
    pub(super) const IDLE_PERCENT: u8 = 35;
    pub(super) const GPU_BUSY: u8 = 34;
    pub(super) const MEMORY: u8 = 30;
    pub(super) const CALLS: u8 = 20;
    pub(super) const CPU_SELF: u8 = 10;
    pub(super) const CUDA_SELF: u8 = 9;
    pub(super) const CUDA_TOTAL: u8 = 8;
    pub(super) const IDLE_CAUSED: u8 = 7;
    pub(super) const CPU_TOTAL: u8 = 0;
}

type OfTimes = fn(&Times) -> f64;

/// A column of times: its title in a summary, its rank, and the keys that sort by it, for CPU and GPU.
struct TimeColumn {
    title: &'static str,
    value: OfTimes,
    rank: [u8; 2],
    key: [SortKey; 2],
}

const fn column(
    title: &'static str,
    value: OfTimes,
    rank: [u8; 2],
    key: [SortKey; 2],
) -> TimeColumn {
    TimeColumn {
        title,
        value,
        rank,
        key,
    }
}

use SortKey as Key;

const TOTAL: TimeColumn = column(
    "Total",
    |times| times.total_ns,
    [rank::CPU_TOTAL, rank::CUDA_TOTAL],
    [Key::CpuTimeTotal, Key::CudaTimeTotal],
);
const SELF: TimeColumn = column(
    "Self",
    |times| times.self_ns,
    [rank::CPU_SELF, rank::CUDA_SELF],
    [Key::SelfCpuTimeTotal, Key::SelfCudaTimeTotal],
);
const MEAN: TimeColumn = column(
    "Mean",
    |times| times.mean_ns,
    [rank::CPU_MEAN, rank::CUDA_MEAN],
    [Key::CpuTime, Key::CudaTime],
);
const STD: TimeColumn = column(
    "std",
    |times| times.std_ns,
    [rank::STD; 2],
    [Key::CpuTimeStd, Key::CudaTimeStd],
);
/// The distribution of single calls.
const SINGLE: [TimeColumn; 5] = [
    column(
        "Min",
        |times| times.min_ns,
        [rank::MIN; 2],
        [Key::CpuTimeMin, Key::CudaTimeMin],
    ),
    column(
        "Max",
        |times| times.max_ns,
        [rank::MAX; 2],
        [Key::CpuTimeMax, Key::CudaTimeMax],
    ),
    column(
        "p50",
        |times| times.p50_ns,
        [rank::P50; 2],
        [Key::CpuTimeP50, Key::CudaTimeP50],
    ),
    column(
        "p95",
        |times| times.p95_ns,
        [rank::P95; 2],
        [Key::CpuTimeP95, Key::CudaTimeP95],
    ),
    column(
        "p99",
        |times| times.p99_ns,
        [rank::P99; 2],
        [Key::CpuTimeP99, Key::CudaTimeP99],
    ),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Device {
    Cpu,
    Cuda,
}

impl Device {
    const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Cuda => "CUDA",
        }
    }

    fn times(self, row: &Row) -> Option<&Times> {
        match self {
            Self::Cpu => row.cpu.as_ref(),
            Self::Cuda => row.cuda.as_ref(),
        }
    }
}

/// The columns of a table while it is built.
pub(super) struct Columns<'r> {
    rows: &'r [Row],
    /// The value that the rows were sorted by: its column always stays.
    sorted_by: Option<SortKey>,
    has_groups: bool,
    list: Vec<Column>,
}

impl<'r> Columns<'r> {
    /// Returns the columns of a summary.
    pub(super) fn of_summary(
        rows: &'r [Row],
        sorted_by: Option<SortKey>,
        statistics: bool,
    ) -> Vec<Column> {
        let mut columns = Self::new(rows, sorted_by);
        columns.push_calls("Calls");
        for device in [Device::Cpu, Device::Cuda] {
            // A summary has CPU columns even if no call has finished.
            if device == Device::Cuda && !columns.has_times(device) {
                continue;
            }
            let mut times = |of: &TimeColumn| columns.push_time(of.title, of, device);
            times(&TOTAL);
            times(&SELF);
            columns.push_self_percent("Self %", device);
            if device == Device::Cpu {
                columns.push_thread_times();
                columns.push_polled();
            }
            let std = statistics.then_some(&STD);
            for of in [&MEAN].into_iter().chain(std).chain(&SINGLE) {
                columns.push_time(of.title, of, device);
            }
            if device == Device::Cuda {
                columns.push_verdict("Launch %", "Verdict");
                columns.push_energy();
            }
        }
        columns.list
    }

    /// Returns the columns of key averages, under torch's names, except stacks.
    pub(super) fn of_averages(
        rows: &'r [Row],
        sorted_by: Option<SortKey>,
        statistics: bool,
        by: GroupBy,
    ) -> Vec<Column> {
        let mut columns = Self::new(rows, sorted_by);
        if columns.has_times(Device::Cpu) {
            columns.push_self_percent("Self CPU %", Device::Cpu);
            columns.push_time("Self CPU", &SELF, Device::Cpu);
            columns.push_total_percent("CPU total %", Device::Cpu);
            columns.push_time("CPU total", &TOTAL, Device::Cpu);
            columns.push_time("CPU time avg", &MEAN, Device::Cpu);
            columns.push_thread_times();
            columns.push_statistics(Device::Cpu, statistics);
            columns.push_polled();
        }
        if columns.has_times(Device::Cuda) {
            columns.push_time("Self CUDA", &SELF, Device::Cuda);
            columns.push_self_percent("Self CUDA %", Device::Cuda);
            if statistics {
                columns.push_total_percent("CUDA total %", Device::Cuda);
            }
            columns.push_time("CUDA total", &TOTAL, Device::Cuda);
            columns.push_time("CUDA time avg", &MEAN, Device::Cuda);
            columns.push_statistics(Device::Cuda, statistics);
            if statistics {
                columns.push_verdict("Launch %", "Verdict");
            }
            columns.push_energy();
        }
        columns.push_gpu_use();
        columns.push_gpu_ranges();
        columns.push_memory(statistics);
        columns.push_calls("# of Calls");
        let mut columns = columns.list;
        if by.has_shapes() {
            let shapes = |row: &Row| row.shapes_text();
            columns.push(Column::text(
                "Input Shapes",
                rows.iter().map(shapes).collect(),
            ));
        }
        columns
    }

    fn new(rows: &'r [Row], sorted_by: Option<SortKey>) -> Self {
        Self {
            rows,
            sorted_by,
            has_groups: rows.iter().any(|row| {
                row.cuda.is_some()
                    || row.gpu.is_some()
                    || row.gpu_ranges.is_some()
                    || row.memory.is_some()
            }),
            list: Vec::new(),
        }
    }

    fn has_times(&self, device: Device) -> bool {
        self.rows.iter().any(|row| device.times(row).is_some())
    }

    fn push(
        &mut self,
        column: Column,
        rank: u8,
        key: Option<SortKey>,
        group: Option<&'static str>,
    ) {
        let rank = match self.sorted_by {
            Some(_) if key == self.sorted_by => 0,
            Some(_) => rank.max(1),
            None => rank,
        };
        self.list
            .push(column.rank(rank).group(group.filter(|_| self.has_groups)));
    }

    fn push_calls(&mut self, title: &str) {
        let column = Column::of(self.rows, title, |row| {
            Some(calls(row.calls, row.primitive_calls))
        });
        self.push(column, rank::CALLS, Some(Key::Count), None);
    }

    fn push_time(&mut self, title: &str, of: &TimeColumn, device: Device) {
        // Where no call has a time, only the sums are known.
        let is_sum = [TOTAL.title, SELF.title].contains(&of.title);
        let ns = |row: &Row| {
            let times = device.times(row)?;
            let ns = (of.value)(times);
            if is_sum {
                Some(ns)
            } else {
                times.of_single(ns)
            }
        };
        let value = |row: &Row| ns(row).map(time);
        let column = Column::of(self.rows, title, value);
        let index = usize::from(device == Device::Cuda);
        self.push(
            column,
            of.rank[index],
            Some(of.key[index]),
            Some(device.name()),
        );
    }

    fn push_statistics(&mut self, device: Device, statistics: bool) {
        for of in [&STD].into_iter().chain(&SINGLE).filter(|_| statistics) {
            let title = format!("{} {}", device.name(), of.title.to_lowercase());
            self.push_time(&title, of, device);
        }
    }

    fn push_self_percent(&mut self, title: &str, device: Device) {
        let rank = match device {
            Device::Cpu => rank::CPU_SELF_PERCENT,
            Device::Cuda => rank::CUDA_SELF_PERCENT,
        };
        self.push_percent(title, device, rank, |times| times.self_percent);
    }

    fn push_total_percent(&mut self, title: &str, device: Device) {
        let rank = match device {
            Device::Cpu => rank::CPU_TOTAL_PERCENT,
            Device::Cuda => rank::CUDA_TOTAL_PERCENT,
        };
        self.push_percent(title, device, rank, |times| times.total_percent);
    }

    fn push_percent(&mut self, title: &str, device: Device, rank: u8, value: OfTimes) {
        let value = |row: &Row| device.times(row).map(|times| percent(value(times)));
        let column = Column::of(self.rows, title, value);
        self.push(column, rank, None, Some(device.name()));
    }

    fn push_polled(&mut self) {
        if self.rows.iter().any(|row| row.futures > 0) {
            let polled = |row: &Row| (row.futures > 0).then(|| time(row.polled_ns));
            let column = Column::of(self.rows, "Polled", polled);
            self.push(column, rank::POLLED, None, Some(Device::Cpu.name()));
        }
    }

    /// Adds the times on a processor, if they were measured.
    fn push_thread_times(&mut self) {
        if self
            .rows
            .iter()
            .all(|row| row.thread_time_total_ns.is_none())
        {
            return;
        }
        let group = Some(Device::Cpu.name());
        let total = |row: &Row| row.thread_time_total_ns.map(time);
        let own = |row: &Row| row.self_thread_time_total_ns.map(time);
        let total = Column::of(self.rows, "Thread", total);
        let own = Column::of(self.rows, "Self thread", own);
        self.push(total, rank::THREAD_TIME, Some(Key::ThreadTimeTotal), group);
        self.push(
            own,
            rank::THREAD_TIME,
            Some(Key::SelfThreadTimeTotal),
            group,
        );
    }

    /// Adds what the GPUs did for the rows, and waited for, if kernels were recorded.
    fn push_gpu_use(&mut self) {
        if self.rows.iter().all(|row| row.gpu.is_none()) {
            return;
        }
        let group = Some(Device::Cuda.name());
        let busy = |row: &Row| row.gpu.map(|gpu| time(gpu.busy_ns));
        let idle = |row: &Row| row.gpu.map(|gpu| time(gpu.idle_caused_ns));
        let share = |row: &Row| row.gpu.map(|gpu| percent(gpu.idle_caused_percent));
        let busy = Column::of(self.rows, "GPU busy", busy);
        let idle = Column::of(self.rows, "Idle caused", idle);
        let share = Column::of(self.rows, "Idle %", share);
        self.push(busy, rank::GPU_BUSY, Some(Key::GpuBusy), group);
        self.push(idle, rank::IDLE_CAUSED, Some(Key::IdleCaused), group);
        self.push(share, rank::IDLE_PERCENT, None, group);
    }

    /// Adds the length of ranges on streams, if there are any.
    fn push_gpu_ranges(&mut self) {
        if self.rows.iter().any(|row| row.gpu_ranges.is_some()) {
            let total = |row: &Row| row.gpu_ranges.map(|ranges| time(ranges.total_ns));
            let column = Column::of(self.rows, "GPU ranges", total);
            self.push(column, rank::GPU_RANGES, None, Some(Device::Cuda.name()));
        }
    }

    fn push_verdict(&mut self, launch: &str, verdict: &str) {
        let group = Some(Device::Cuda.name());
        let share = |row: &Row| {
            row.launch_bound
                .map(|share| format!("{:.1}%", share * 100.0))
        };
        self.push(
            Column::of(self.rows, launch, share),
            rank::LAUNCH,
            None,
            group,
        );
        let word = |row: &Row| row.verdict().map(|verdict| verdict.to_string());
        self.push(
            Column::of(self.rows, verdict, word),
            rank::VERDICT,
            None,
            group,
        );
    }

    /// Adds the energy and the power, if devices were sampled. Shares that are too small to be told are marked.
    fn push_energy(&mut self) {
        if self.rows.iter().all(|row| row.energy.is_none()) {
            return;
        }
        let mut push = |title, rank, key, value: fn(&Energy) -> Option<f64>| {
            let cell = |energy: Energy| value(&energy).map_or_else(|| "~".to_owned(), number);
            let column = Column::of(self.rows, title, |row| row.energy.map(cell));
            self.push(column, rank, key, Some(Device::Cuda.name()));
        };
        push("Energy (J)", rank::ENERGY, Some(Key::Energy), |energy| {
            energy.joules
        });
        push("W", rank::POWER, None, Energy::watts);
    }

    fn push_memory(&mut self, statistics: bool) {
        let any = |test: fn(&MemoryStats) -> bool| {
            let mut memory = self.rows.iter().filter_map(|row| row.memory.as_ref());
            memory.any(test)
        };
        // A process always uses host memory: if none was counted, the program's allocator does not count it.
        let has_host = any(|memory| memory.cpu_in_use > 0 || memory.cpu_allocated > 0);
        let has_device = any(|memory| memory.cuda_net.is_some());
        if has_host {
            self.push_host_memory(statistics);
        }
        if has_device {
            self.push_device_memory(statistics);
        }
    }

    fn push_host_memory(&mut self, statistics: bool) {
        self.push_bytes(
            "CPU Mem",
            rank::MEMORY,
            Some(Key::CpuMemoryUsage),
            |memory| Some(memory.cpu_net),
        );
        self.push_bytes(
            "Self CPU Mem",
            rank::MEMORY,
            Some(Key::SelfCpuMemoryUsage),
            |memory| Some(memory.self_cpu_net),
        );
        let mut extra = |title, value| {
            if statistics {
                self.push_bytes(title, rank::MEMORY_EXTRA, None, value);
            }
        };
        extra("CPU Mem alloc", |memory| Some(signed(memory.cpu_allocated)));
        extra("Self CPU Mem alloc", |memory| {
            Some(signed(memory.self_cpu_allocated))
        });
        extra("CPU Mem peak", |memory| Some(signed(memory.cpu_peak)));
        extra("CPU Mem in use", |memory| Some(signed(memory.cpu_in_use)));
    }

    fn push_device_memory(&mut self, statistics: bool) {
        self.push_bytes(
            "CUDA Mem",
            rank::MEMORY,
            Some(Key::CudaMemoryUsage),
            |memory| memory.cuda_net,
        );
        let key = Some(Key::SelfCudaMemoryUsage);
        self.push_bytes("Self CUDA Mem", rank::MEMORY, key, |memory| {
            memory.self_cuda_net
        });
        if statistics {
            self.push_bytes("CUDA Mem in use", rank::MEMORY_EXTRA, None, |memory| {
                memory.cuda_in_use.map(signed)
            });
            self.push_bytes("CUDA Mem reserved", rank::MEMORY_EXTRA, None, |memory| {
                memory.cuda_reserved.map(signed)
            });
        }
    }

    fn push_bytes(
        &mut self,
        title: &str,
        rank: u8,
        key: Option<SortKey>,
        value: fn(&MemoryStats) -> Option<i64>,
    ) {
        let cell = |row: &Row| row.memory.as_ref().and_then(value).map(bytes);
        self.push(
            Column::of(self.rows, title, cell),
            rank,
            key,
            Some("Memory"),
        );
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
