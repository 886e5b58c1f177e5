//! Measuring boxed futures without changing their type.

use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;

use crate::scope::future::{FutureScopeWithArgs, measure};

/// A boxed future of any type.
pub trait BoxedFuture: Sized {
    /// Measures the future. The result has the same type.
    #[must_use]
    fn measured(self, scope: FutureScopeWithArgs) -> Self;
}

/// What a function returns whose return type has the name of a boxed future.
///
/// The program may have a type of its own by that name. The compiler prefers the inherent items to those of
/// [`NotBoxed`], unless the bound excludes them.
#[derive(Debug)]
pub struct Returned<F>(pub F);

impl<F: BoxedFuture> Returned<F> {
    /// `true`: the future is measured.
    pub const IS_BOXED: bool = true;

    /// Measures the future.
    pub fn measured(self, scope: FutureScopeWithArgs) -> F {
        self.0.measured(scope)
    }
}

/// A value that is no boxed future.
pub trait NotBoxed: Sized {
    /// The type of the value.
    type Value;

    /// `false`: the value is returned as it is, and the call that made it is measured.
    const IS_BOXED: bool = false;

    /// Returns the value.
    fn measured(self, scope: FutureScopeWithArgs) -> Self::Value;
}

impl<F> NotBoxed for Returned<F> {
    type Value = F;

    fn measured(self, _: FutureScopeWithArgs) -> F {
        self.0
    }
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
                let measured: Short<'_, T> = boxed!(new $pinned scope self);
                // SAFETY: the types differ in the lifetime bound of the trait object only, which changes neither its
                // layout nor its vtable. The box owns `self`, whose type guarantees that it lives for `'a`, and a
                // `FutureScopeWithArgs`, which borrows nothing. The compiler cannot conclude this, because `T`, a
                // parameter of the boxed type, would have to outlive `'a`. It need not: the caller had a `Self` too.
                unsafe { std::mem::transmute::<Short<'_, T>, Self>(measured) }
            }
        }
    };
    (@pin $($object:tt)*) => { Pin<Box<$($object)*>> };
    (@$unpinned:ident $($object:tt)*) => { Box<$($object)*> };
    (new pin $scope:ident $future:ident) => { Box::pin(measure($scope, $future)) };
    (new unpin $scope:ident $future:ident) => { Box::new(measure($scope, $future)) };
    // The caller pins the outer box.
    (new later $scope:ident $future:ident) => { Box::new(measure($scope, Box::into_pin($future))) };
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
each_boxed!(later: [Send Sync UnwindSafe RefUnwindSafe]);
