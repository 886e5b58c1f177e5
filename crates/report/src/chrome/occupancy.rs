//! How much of a device a kernel fills, as PyTorch's profiler writes it.
//!
//! All three values follow from the launch and from the properties of the device; nothing is measured. The occupancy is that
//! of a kernel that has the device to itself. The limits are those of NVIDIA's occupancy calculator (`cuda_occupancy.h`)
//! for devices of compute capability 5.0 and later.

use crate::gpu_work::KernelLaunch;
use profiler_cuda_sys::driver::DeviceProperties;

/// Registers are allocated to a warp in units of this many.
const REGISTERS: u64 = 256;
/// The most registers that a thread may have.
const REGISTERS_OF_THREAD: u32 = 255;

/// How much of a device a kernel fills.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fill {
    /// The blocks of the launch for each multiprocessor, whether or not they run at once.
    pub(super) blocks_per_sm: f64,
    pub(super) warps_per_sm: f64,
    /// The threads that run at once on a multiprocessor, in percent of the most that it can hold; `None` if the driver does
    /// not know the limits.
    pub(super) occupancy: Option<u64>,
}

impl Fill {
    /// Returns `None` if the driver does not know the device.
    pub(super) fn of(device: &DeviceProperties, launch: KernelLaunch) -> Option<Self> {
        let product = |extents: [u32; 3]| extents.into_iter().map(f64::from).product::<f64>();
        let (blocks, threads) = (product(launch.grid), product(launch.block));
        if device.multiprocessors == 0 || device.warp_size == 0 {
            return None;
        }
        let blocks_per_sm = blocks / f64::from(device.multiprocessors);
        let most = f64::from(device.threads_of_multiprocessor);
        let occupancy = blocks_at_once(device, launch).map(|at_once| {
            let running = blocks_per_sm.min(at_once as f64);
            percent(running * threads / most)
        });
        Some(Self {
            blocks_per_sm,
            warps_per_sm: blocks_per_sm * threads / f64::from(device.warp_size),
            occupancy,
        })
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most a hundred"
)]
fn percent(part: f64) -> u64 {
    (part * 100.0).clamp(0.0, 100.0).round() as u64
}

/// Returns how many blocks of a launch fit on a multiprocessor; `None` if the limits are not known.
fn blocks_at_once(device: &DeviceProperties, launch: KernelLaunch) -> Option<u64> {
    let known = [
        device.threads_of_block,
        device.threads_of_multiprocessor,
        device.blocks_of_multiprocessor,
        device.registers_of_block,
        device.registers_of_multiprocessor,
        device.shared_bytes_of_block,
        device.shared_bytes_of_multiprocessor,
    ];
    if device.compute.0 < 5 || known.contains(&0) {
        return None;
    }
    let threads = launch.block.into_iter().map(u64::from);
    let threads = threads.fold(1, u64::saturating_mul);
    if threads == 0 || threads > device.threads_of_block.into() {
        return Some(0);
    }
    let warps = threads.div_ceil(device.warp_size.into());
    let by_warps = u64::from(device.threads_of_multiprocessor / device.warp_size) / warps;
    let limits = [
        by_warps,
        device.blocks_of_multiprocessor.into(),
        by_registers(device, launch.registers, warps),
        by_shared_memory(device, launch),
    ];
    limits.into_iter().min()
}

/// Returns how many blocks of `warps` warps the registers of a multiprocessor suffice for. Each of its parts has registers
/// of its own.
fn by_registers(device: &DeviceProperties, registers: u32, warps: u64) -> u64 {
    if registers == 0 {
        return u64::MAX;
    }
    // A file may say anything: what follows fits into 64 bits for possible numbers of registers.
    if registers > REGISTERS_OF_THREAD {
        return 0;
    }
    let parts = if device.compute == (6, 0) { 2 } else { 4 };
    let of_warp = (u64::from(registers) * u64::from(device.warp_size)).next_multiple_of(REGISTERS);
    let of_block = of_warp * warps.next_multiple_of(parts);
    if of_block > device.registers_of_block.into() {
        return 0;
    }
    let of_part = u64::from(device.registers_of_multiprocessor) / parts;
    of_part / of_warp * parts / warps
}

/// Returns how many blocks the shared memory of a multiprocessor suffices for.
fn by_shared_memory(device: &DeviceProperties, launch: KernelLaunch) -> u64 {
    let unit = if device.compute.0 >= 8 { 128 } else { 256 };
    let used = u64::from(launch.static_shared_bytes) + u64::from(launch.dynamic_shared_bytes);
    let most = device
        .shared_bytes_of_block
        .max(device.most_shared_bytes_of_block);
    if used > most.into() {
        return 0;
    }
    let of_block = used + u64::from(device.reserved_shared_bytes_of_block);
    match of_block.next_multiple_of(unit) {
        0 => u64::MAX,
        of_block => u64::from(device.shared_bytes_of_multiprocessor) / of_block,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An A100.
    const DEVICE: DeviceProperties = DeviceProperties {
        total_bytes: 40 << 30,
        compute: (8, 0),
        multiprocessors: 108,
        warp_size: 32,
        threads_of_block: 1024,
        threads_of_multiprocessor: 2048,
        blocks_of_multiprocessor: 32,
        registers_of_block: 65_536,
        registers_of_multiprocessor: 65_536,
        shared_bytes_of_block: 49_152,
        most_shared_bytes_of_block: 166_912,
        shared_bytes_of_multiprocessor: 167_936,
        reserved_shared_bytes_of_block: 1024,
    };

    fn launch(threads: u32, registers: u32, shared: u32) -> KernelLaunch {
        KernelLaunch {
            grid: [108, 100, 1],
            block: [threads, 1, 1],
            registers,
            dynamic_shared_bytes: shared,
            ..KernelLaunch::default()
        }
    }

    #[test]
    fn the_scarcest_resource_decides_how_many_blocks_run_at_once() {
        for (threads, registers, shared, percent, what) in [
            (256, 32, 0, 100, "nothing is scarce"),
            (
                256,
                40,
                0,
                75,
                "twelve warps of 1,280 registers in each quarter",
            ),
            (256, 64, 0, 50, "registers"),
            (256, 255, 0, 13, "one block"),
            (32, 16, 0, 50, "32 blocks"),
            (1024, 64, 0, 50, "one block of 1,024 threads"),
            (96, 16, 0, 98, "21 blocks of three warps"),
            (128, 16, 32_768, 25, "four blocks of 33 KiB"),
            (128, 16, 163_840, 6, "one block of 161 KiB"),
            (128, 16, 166_913, 0, "it does not fit"),
            (2048, 16, 0, 0, "too many threads"),
            (256, u32::MAX, 0, 0, "too many registers"),
        ] {
            let fill = Fill::of(&DEVICE, launch(threads, registers, shared));
            assert_eq!(
                fill.and_then(|fill| fill.occupancy),
                Some(percent),
                "{what}"
            );
        }
    }

    #[test]
    fn a_small_grid_fills_less_than_would_fit() {
        let small = KernelLaunch {
            grid: [54, 1, 1],
            ..launch(256, 32, 0)
        };
        let fill = Fill::of(&DEVICE, small).expect("it is known");
        assert!((fill.blocks_per_sm - 0.5).abs() < 1e-12);
        assert!((fill.warps_per_sm - 4.0).abs() < 1e-12);
        assert_eq!(fill.occupancy, Some(6), "128 of 2,048 threads");
    }

    #[test]
    fn what_the_driver_does_not_know_is_left_out() {
        assert_eq!(
            Fill::of(&DeviceProperties::default(), launch(1, 1, 0)),
            None
        );
        let older = DeviceProperties {
            blocks_of_multiprocessor: 0,
            ..DEVICE
        };
        let fill = Fill::of(&older, launch(256, 32, 0)).expect("the multiprocessors are known");
        assert_eq!(fill.occupancy, None);
        let extreme = KernelLaunch {
            grid: [u32::MAX; 3],
            block: [u32::MAX; 3],
            registers: u32::MAX,
            static_shared_bytes: u32::MAX,
            dynamic_shared_bytes: u32::MAX,
            non_exhaustive: (),
        };
        let wide = DeviceProperties {
            warp_size: u32::MAX,
            threads_of_multiprocessor: u32::MAX,
            ..DEVICE
        };
        let narrow = KernelLaunch {
            block: [1, 1, 1],
            ..extreme
        };
        for (device, launch) in [(&DEVICE, extreme), (&wide, extreme), (&wide, narrow)] {
            let fill = Fill::of(device, launch).expect("the device is known");
            assert_eq!(fill.occupancy, Some(0));
        }
    }
}
