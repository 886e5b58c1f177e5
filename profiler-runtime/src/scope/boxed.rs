//! Boxed futures, measured without a change of their type.

use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;

use crate::scope::future::{FutureScopeWithArgs, measure};

/// A box of a future whose own type is erased.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no boxed future that can be measured",
    note = "what is measured is a `Pin<Box<dyn Future>>` or a `Box<dyn Future + Unpin>`; measure another \
            future with `.measure_execution_time(\"name\")`"
)]
pub trait BoxedFuture: Sized {
    /// Returns the future measured, as the same type.
    #[must_use]
    fn measured(self, scope: FutureScopeWithArgs) -> Self;
}

/// Measures a boxed future.
pub fn measure_boxed<F: BoxedFuture>(scope: FutureScopeWithArgs, future: F) -> F {
    future.measured(scope)
}

/// Calls a closure. Where one is written as an argument of this, the compiler knows that it is called
/// once: what it captures may be borrowed by what it returns.
pub fn call_once<R>(function: impl FnOnce() -> R) -> R {
    function()
}

/// `dyn Future` and these auto traits, in a box. A trait object with other bounds is another type, so
/// each combination has an implementation of its own.
macro_rules! boxed {
    ($pinned:ident: $($auto:ident)*) => {
        impl<'a, T> BoxedFuture for boxed!(@$pinned dyn Future<Output = T> $(+ $auto)* + 'a) {
            fn measured(self, scope: FutureScopeWithArgs) -> Self {
                // Lives as long as this function; `T` may not live as long as `'a`.
                type Short<'b, T> = boxed!(@$pinned dyn Future<Output = T> $(+ $auto)* + 'b);
                let measured: Short<'_, T> = boxed!(new $pinned measure(scope, self));
                // SAFETY: only the bound of the trait object changes, which has no part in its
                // layout or its vtable. What the box owns is `self`, whose own type says that it
                // lives for `'a`, and a `FutureScopeWithArgs`, which borrows nothing. The compiler cannot
                // conclude that, since `T` would have to live for `'a` too (it is part of the type
                // that is boxed): but a `Self` was given, and what is returned owns no more.
                unsafe { std::mem::transmute::<Short<'_, T>, Self>(measured) }
            }
        }
    };
    (@pin $($object:tt)*) => { Pin<Box<$($object)*>> };
    (@unpin $($object:tt)*) => { Box<$($object)*> };
    (new pin $future:expr) => { Box::pin($future) };
    (new unpin $future:expr) => { Box::new($future) };
}

/// With and without each of the auto traits.
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
