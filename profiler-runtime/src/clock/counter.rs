//! The processor's counter, read in place: the time-stamp counter of x86-64, the virtual counter of aarch64.
//!
//! Neither is read with a fence. The processor may execute a reading earlier than the instructions before it, or later than
//! those behind it, by at most the instructions that it has in flight: a few hundred, some tens of nanoseconds. A fence
//! (`lfence`, `isb`) would wait for all of them in the middle of the program, and cost as much as what it orders. If two
//! readings close to each other change places, the difference is negative, which [`elapsed`](super::elapsed) returns as
//! such.

/// Reads the counter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn read() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, which touches no memory. (A system can forbid it to a program,
    // which it then kills; none does so unless the program asks for it.)
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Returns `true` if the counter is invariant: it runs at one rate whatever the processor's frequency or sleep state,
/// and is the same on all cores. See the Intel SDM, volume 3, "Invariant TSC".
#[cfg(target_arch = "x86_64")]
pub(super) fn is_invariant() -> bool {
    use std::arch::x86_64::__cpuid;

    const EXTENDED_FEATURES: u32 = 0x8000_0001;
    const ADVANCED_POWER: u32 = 0x8000_0007;
    if cfg!(miri) {
        return false;
    }
    #[allow(
        unused_unsafe,
        reason = "the function is safe in newer versions of Rust"
    )]
    // SAFETY: every x86-64 processor has the instruction. Leaf 0x8000_0000, which is always valid, returns the highest
    // valid leaf, and the others are read only if they are not above it.
    let leaf = |leaf: u32| unsafe { __cpuid(leaf) };
    let has_rdtscp = || leaf(EXTENDED_FEATURES).edx & 1 << 27 != 0;
    leaf(0x8000_0000).eax >= ADVANCED_POWER
        && leaf(ADVANCED_POWER).edx & 1 << 8 != 0
        && has_rdtscp()
}

/// Reads the counter.
///
/// `cntvctss_el0` (`FEAT_ECV`) would be ordered without an `isb`, but not every processor has it, and it waits as well.
#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline(always)]
pub(super) fn read() -> u64 {
    let ticks;
    // SAFETY: every Armv8-A processor has the register, and reading it changes nothing. The systems that this crate
    // supports allow programs to read it: their own clocks do so outside of the kernel (the vDSO of Linux,
    // `mach_absolute_time`, `QueryPerformanceCounter`). Linux traps the instruction on processors whose counter has an
    // erratum, and returns the corrected value (`cntvct_read_handler`); it can also forbid it to a program that asks for
    // that (`PR_SET_TSC`). Without `nomem`, so that the compiler moves no access to memory across, as with `_rdtsc`.
    unsafe {
        std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags));
    }
    ticks
}

/// Returns `true`: the architecture requires that the counter runs at one rate and is the same on all cores (Arm
/// Architecture Reference Manual, "The Generic Timer in AArch64 state", "The system counter").
#[cfg(target_arch = "aarch64")]
pub(super) fn is_invariant() -> bool {
    !cfg!(miri)
}

/// Never called: there is no counter that is read in place.
#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", not(miri)))))]
pub(super) fn read() -> u64 {
    0
}

#[cfg(all(test, target_arch = "aarch64", not(miri)))]
mod tests {
    use crate::clock::clock;

    #[test]
    fn the_calibrated_rate_is_the_one_that_the_processor_states() {
        let hertz: u64;
        // SAFETY: as for the counter. The firmware sets the register, and some leave it zero.
        unsafe {
            std::arch::asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags));
        }
        if hertz == 0 || !crate::clock::has_counter() {
            return;
        }
        let stated = 1e9 / hertz as f64;
        let rate = clock().nanoseconds(1.0);
        // A thread that is preempted during the calibration widens the closest pairs of readings by little.
        assert!(
            (0.95..1.05).contains(&(rate / stated)),
            "{rate} ns per tick instead of {stated}"
        );
    }
}
