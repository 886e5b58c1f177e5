//! The account as columns of a table.

use std::collections::HashMap;

use super::GpuIdle;
use crate::gpu_use::GpuUse;
use crate::row::Row;

impl GpuIdle {
    /// Notes at each row what the devices did for it, and waited for: at all that ran on the CPU or launched work.
    pub(crate) fn fill(&self, rows: &mut [Row]) {
        if self.devices.is_empty() {
            return;
        }
        let working = self.devices.iter().map(super::DeviceIdle::working_ns);
        let working = working.fold(0, i64::saturating_add);
        let percent = |ns: f64| 100.0 * ns / (working as f64).max(1.0);
        let mut by_name: HashMap<&str, GpuUse> = HashMap::new();
        for device in &self.devices {
            for busy in &device.busy {
                let Some(name) = &busy.name else { continue };
                let of_name = by_name.entry(name).or_default();
                of_name.busy_ns += busy.inclusive_ns as f64;
                of_name.self_busy_ns += busy.busy_ns as f64;
            }
            for charge in &device.charges {
                let Some(name) = &charge.name else { continue };
                let of_name = by_name.entry(name).or_default();
                of_name.idle_caused_ns += charge.inclusive_ns as f64;
                of_name.self_idle_caused_ns += charge.idle_ns as f64;
            }
        }
        for row in rows {
            let known = by_name.get(&*row.name).copied();
            let known = known.or_else(|| row.cpu.map(|_| GpuUse::default()));
            row.gpu = known.map(|known| GpuUse {
                busy_percent: percent(known.busy_ns),
                idle_caused_percent: percent(known.idle_caused_ns),
                ..known
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::idle::tests::Drawn;
    use crate::{GpuUse, GroupBy, SortKey};

    /// A thread that loads, then launches two kernels, the second one after a pause.
    fn drawn() -> Drawn {
        let mut drawn = Drawn::new(100);
        let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
        let step = drawn.scope(main, "step", (0, 100), None);
        let forward = drawn.scope(main, "forward", (5, 15), Some(step));
        drawn.scope(main, "load", (30, 60), Some(step));
        let first = drawn.launch(main, (10, 11));
        let second = drawn.launch(main, (60, 61));
        drawn.work_of(stream, (20, 40), Some(first), forward);
        drawn.work_of(stream, (70, 90), Some(second), step);
        drawn
    }

    #[test]
    fn rows_say_how_busy_their_work_kept_the_gpu_and_how_long_it_waited_for_them() {
        let averages = drawn().0.key_averages();
        let gpu = |name: &str| averages.row(name).and_then(|row| row.gpu).expect(name);
        // 70 µs from the first work to the last.
        let percent = |part: f64| 100.0 * part / 70.0;
        let expected = GpuUse {
            busy_ns: 40_000.0,
            self_busy_ns: 20_000.0,
            busy_percent: percent(40.0),
            idle_caused_ns: 21_000.0,
            self_idle_caused_ns: 1_000.0,
            idle_caused_percent: percent(21.0),
        };
        assert_eq!(gpu("step"), expected);
        let load = gpu("load");
        assert_eq!((load.busy_ns, load.idle_caused_ns), (0.0, 20_000.0));
        let forward = gpu("forward");
        assert_eq!((forward.busy_ns, forward.idle_caused_ns), (20_000.0, 0.0));
        let by_idle = averages.sort_by(SortKey::IdleCaused).rows;
        let names: Vec<&str> = by_idle.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names[..2], ["step", "load"]);
    }

    #[test]
    fn a_window_without_kernels_has_no_such_columns() {
        let mut without = drawn();
        without.0.slices.retain(|slice| slice.work.is_none());
        let table = |drawn: &Drawn| drawn.0.key_averages().to_string();
        assert!(table(&drawn()).contains("Idle caused"));
        assert!(!table(&without).contains("Idle caused"));
        let by_stack = drawn().0.key_averages_by(GroupBy::new().group_by_stack(3));
        assert!(by_stack.rows.iter().all(|row| row.gpu.is_none()));
    }
}
