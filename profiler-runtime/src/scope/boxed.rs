//! Measuring boxed futures without changing their type.

use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;

use crate::scope::future::{FutureScopeWithArgs, measure};

/// A boxed future of any type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no boxed future that can be measured",
    note = "what is measured is a `Pin<Box<dyn Future>>` or a `Box<dyn Future + Unpin>`; measure another \
            future with `.measure_execution_time(\"name\")`"
)]
pub trait BoxedFuture: Sized {
    /// Measures the future. The result has the same type.
    #[must_use]
    fn measured(self, scope: FutureScopeWithArgs) -> Self;
}

/// Measures a boxed future.
pub fn measure_boxed<F: BoxedFuture>(scope: FutureScopeWithArgs, future: F) -> F {
    future.measured(scope)
}

/// Calls a closure. The bound tells the compiler that the closure is called once, so that the result may borrow what the
/// closure captures.
pub fn call_once<R>(function: impl FnOnce() -> R) -> R {
    function()
}

/// Implements [`BoxedFuture`] for a boxed `dyn Future` with these auto traits. Each combination of them is another type.
macro_rules! boxed {
    ($pinned:ident: $($auto:ident)*) => {
        impl<'a, T> BoxedFuture for boxed!(@$pinned dyn Future<Output = T> $(+ $auto)* + 'a) {
            fn measured(self, scope: FutureScopeWithArgs) -> Self {
                // `T` need not outlive `'a`, so `measured` cannot have the type `Self` yet.
                type Short<'b, T> = boxed!(@$pinned dyn Future<Output = T> $(+ $auto)* + 'b);
                let measured: Short<'_, T> = boxed!(new $pinned measure(scope, self));
                // SAFETY: the types differ in the lifetime bound of the trait object only, which changes neither its
                // layout nor its vtable. The box owns `self`, whose type guarantees that it lives for `'a`, and a
                // `FutureScopeWithArgs`, which borrows nothing. The compiler cannot conclude this, because `T`, a
                // parameter of the boxed type, would have to outlive `'a`. It need not: the caller had a `Self` too.
                unsafe { std::mem::transmute::<Short<'_, T>, Self>(measured) }
            }
        }
    };
    (@pin $($object:tt)*) => { Pin<Box<$($object)*>> };
    (@unpin $($object:tt)*) => { Box<$($object)*> };
    (new pin $future:expr) => { Box::pin($future) };
    (new unpin $future:expr) => { Box::new($future) };
}

/// Implements [`BoxedFuture`] with and without each of the auto traits.
macro_rules! each_boxed {
    ($pinned:ident: [] $($auto:ident)*) => {
        boxed!($pinned: $($auto)*);
    };
    ($pinned:ident: [$first:ident $($others:ident)*] $($auto:ident)*) => {
        each_boxed!($pinned: [$($others)*] $($auto)*);
        each_boxed!($pinned: [$($others)*] $($auto)* $first);
    };
}

each_boxed!(pin: [Send Sync Unpin UnwindSafe RefUnwindSafe]);
each_boxed!(unpin: [Send Sync UnwindSafe RefUnwindSafe] Unpin);
