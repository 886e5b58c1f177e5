//! Prefetches memory for writing.

/// Has the processor fetch the cache line of `place` for writing, without waiting for it. If another core wrote the
/// line last, waiting for it would be a large part of a measured call's cost.
///
/// The compiler's prefetch intrinsic becomes a prefetch for reading on plain x86-64.
#[inline(always)]
pub(super) fn for_writing<T>(place: &T) {
    let place = std::ptr::from_ref(place);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a hint. It changes no memory, flags or stack, and raises no exception, whatever the address. Every
    // processor that CUDA has drivers for knows it: 64-bit Windows requires it since 8.1.
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
