//! Prefetches memory for reading.

/// The bytes that the processor fetches at once.
const LINE: usize = 64;

/// Has the processor fetch all of `place`, without waiting for it.
#[inline(always)]
pub(crate) fn prefetch<T>(place: &T) {
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
