//! The time-stamp counter of x86-64 processors.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__cpuid, _rdtsc};

/// Reads the counter.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn read() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, which touches no memory. (A system can forbid it to a program,
    // which it then kills; none does so unless the program asks for it.)
    unsafe { _rdtsc() }
}

/// Returns `true` if the counter is invariant: it runs at one rate whatever the processor's frequency or sleep state,
/// and is the same on all cores. See the Intel SDM, volume 3, "Invariant TSC".
#[cfg(target_arch = "x86_64")]
pub(super) fn is_invariant() -> bool {
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

/// Never called: other processors have no counter that is read in place.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn read() -> u64 {
    0
}
