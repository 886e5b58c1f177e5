//! Prefetches memory, without waiting for it.

/// The bytes that the processor fetches at once.
const LINE: usize = 64;

/// Has the processor fetch all of `place` for reading.
#[inline(always)]
pub fn for_reading<T>(place: &T) {
    let start = std::ptr::from_ref(place).cast::<u8>();
    for offset in (0..size_of::<T>()).step_by(LINE) {
        let line = start.wrapping_add(offset);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        // SAFETY: a hint. It changes no memory, flags or stack, and raises no exception, whatever the address. It is part of
        // SSE, which all x86-64 processors have.
        unsafe {
            std::arch::asm!("prefetcht0 [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
        #[cfg(all(target_arch = "aarch64", not(miri)))]
        // SAFETY: as above; `prfm` is a hint of the base instruction set (Arm Architecture Reference Manual, C6.2).
        unsafe {
            std::arch::asm!("prfm pldl1keep, [{}]", in(reg) line, options(nostack, preserves_flags, readonly));
        }
        #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
        let _ = line;
    }
}

/// Has the processor fetch the cache line of `place` for writing. If another core wrote the line last, waiting for it would
/// be a large part of a measured call's cost.
///
/// The compiler's prefetch intrinsic becomes a prefetch for reading on plain x86-64.
#[inline(always)]
pub fn for_writing<T>(place: &T) {
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
