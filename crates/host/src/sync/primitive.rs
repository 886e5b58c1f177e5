//! The atomics, locks and cells of the hand-made protocols.
//!
//! Under `cfg(loom)` they are [loom]'s, which tries every order of the threads and every value that a weak memory
//! ordering may return. The package `tests/loom` includes the files of the protocols with that `cfg`; a protocol that
//! is tested there takes everything that threads share from this module.
//!
//! [loom]: https://docs.rs/loom

#![allow(
    unused_imports,
    reason = "each protocol uses some of them, and some only under loom"
)]

#[cfg(loom)]
pub use loom::sync::atomic::{self, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize};
#[cfg(loom)]
pub use loom::{
    cell::UnsafeCell,
    hint::spin_loop,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
};
#[cfg(not(loom))]
pub use std::{
    hint::spin_loop,
    sync::atomic::{self, AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
};

/// [`std::cell::UnsafeCell`] with the interface of loom's, which notes each access.
#[cfg(not(loom))]
#[repr(transparent)]
pub struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// Creates a cell with a value.
    pub const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Calls `f` with a pointer to read the value through.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer to change the value through.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Declares functions that are `const`, except under loom, whose atomics are created at run time.
#[macro_export]
macro_rules! const_unless_loom {
    ($(
        $(#[$attribute:meta])*
        $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) -> $return:ty $body:block
    )*) => {$(
        #[cfg(not(loom))]
        $(#[$attribute])*
        $visibility const fn $name($($argument: $type),*) -> $return $body

        #[cfg(loom)]
        $(#[$attribute])*
        $visibility fn $name($($argument: $type),*) -> $return $body
    )*};
}
pub use crate::const_unless_loom;
