//! Memory that will be written soon, fetched while something else is done.

/// Has the processor fetch the memory around `place` to be written, and does not wait for it. Where another processor
/// had it last, to wait is a good part of a measured call.
///
/// The compiler's own prefetch becomes one for reading where it may assume no more than plain x86-64.
#[inline(always)]
pub(crate) fn for_writing<T>(place: &T) {
    let place = std::ptr::from_ref(place);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint. It reads and writes nothing that the program can see, touches no flags and no stack, and raises
    // no exception, whatever the address. The processors that CUDA has drivers for know it: 64-bit Windows demands
    // it of all since 8.1.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: as above; `prfm` is a hint of the base instruction set (Arm Architecture Reference Manual, C6.2).
    unsafe {
        std::arch::asm!("prfm pstl1keep, [{}]", in(reg) place, options(nostack, preserves_flags, readonly));
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = place;
}
