//! The functions of CUPTI: each call is counted and checked against faults and misuses.

use std::sync::atomic::Ordering::Relaxed;

use super::call::is_inside_client;
use super::ids::{CuptiResult, INVALID_OPERATION, SUCCESS};
use crate::driver::entry::{self, EntryPoint};
use crate::driver::state::LockedState;
use crate::driver::{policy, script};

/// The client may call the function from its callbacks.
pub(super) const IN_CALLBACK: u8 = 1;

/// Records an invalid use of the library. The lock of CUPTI must not be held.
pub(super) fn misuse(call: &str, what: &str, handle: usize) {
    LockedState::new().log.misuse(call, what, handle);
}

/// Runs one call of `entry`.
pub(super) fn enter(entry: &'static EntryPoint, body: impl FnOnce() -> CuptiResult) -> u32 {
    script::run_environment();
    let call = entry.count();
    if is_inside_client() && !entry.is(IN_CALLBACK) {
        misuse(
            entry.name,
            "called from a callback, where the real library may hang",
            0,
        );
        return INVALID_OPERATION;
    }
    if policy::SHUT_DOWN.load(Relaxed) {
        misuse(entry.name, "called after the driver has shut down", 0);
    }
    let Some(plan) = entry.plan(call) else {
        return body().err().unwrap_or(SUCCESS);
    };
    if plan.hang {
        LockedState::new().wait_for_release(plan.releases);
    }
    if plan.delay_ns > 0 {
        entry::delay(plan.delay_ns);
    }
    if let (Some(code), false) = (plan.code, plan.after) {
        return code;
    }
    let done = body().err().unwrap_or(SUCCESS);
    plan.code.unwrap_or(done)
}

/// Declares exported functions of CUPTI and a `TABLE` of them.
macro_rules! cupti_functions {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) since $since:literal
        $(, $marked:ident)* => $body:expr;)*) => {
        $(
            // SAFETY: the names are those of CUPTI. This library is not found under the name of
            // that one, and the linker separates its names from those of any other.
            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $type),*) -> u32 {
                $crate::driver::cupti::entry::enter(&entries::$name, || $body)
            }
        )*

        #[allow(non_upper_case_globals)]
        mod entries {
            use $crate::driver::entry::EntryPoint;
            $(pub(super) static $name: EntryPoint = EntryPoint::new(
                stringify!($name),
                $since,
                0 $(| $crate::driver::cupti::entry::$marked)*,
                super::$name as *const (),
            );)*
        }

        /// The functions declared here.
        pub(crate) static TABLE: &[&$crate::driver::entry::EntryPoint] = &[$(&entries::$name),*];

        /// Returns the functions as they are declared here.
        #[cfg(test)]
        pub(crate) fn declared() -> Vec<header_check::Item> {
            vec![$(header_check::Item::function::<extern "C" fn($($type),*) -> u32>(
                stringify!($name),
            )),*]
        }
    };
}
pub(super) use cupti_functions;
