//! The functions of NVML: each call is counted and checked against faults.

use crate::driver::entry::{self, EntryPoint};
use crate::driver::script;
use crate::driver::state::LockedState;

/// The result of a function of NVML. The codes are those of `nvmlReturn_t`.
pub(super) type NvmlResult<T = ()> = Result<T, u32>;

pub(super) const INVALID_ARGUMENT: u32 = 2;
pub(super) const NOT_SUPPORTED: u32 = 3;
pub(super) const NOT_FOUND: u32 = 6;
pub(super) const INSUFFICIENT_SIZE: u32 = 7;

/// Runs one call of `entry`.
pub(super) fn enter(
    entry: &'static EntryPoint,
    body: impl FnOnce(&mut LockedState) -> NvmlResult,
) -> u32 {
    script::run_environment();
    let call = entry.count();
    let run = || body(&mut LockedState::new()).err().unwrap_or(0);
    let Some(plan) = entry.plan(call) else {
        return run();
    };
    if plan.hang {
        LockedState::new().wait_for_release(plan.releases);
    }
    if plan.delay_ns > 0 {
        entry::delay(plan.delay_ns);
    }
    match plan.code {
        Some(code) if !plan.after => code,
        code => {
            let done = run();
            code.unwrap_or(done)
        }
    }
}

/// Declares exported functions of NVML and a `TABLE` of them.
macro_rules! nvml_functions {
    ($($name:ident($($argument:ident: $type:ty),* $(,)?) => $body:expr;)*) => {
        $(
            // SAFETY: the names are those of NVML. This library is not found under the name of that one, and the
            // linker separates its names from those of any other.
            #[unsafe(no_mangle)]
            extern "C" fn $name($($argument: $type),*) -> u32 {
                $crate::driver::nvml::entry::enter(&entries::$name, $body)
            }
        )*

        #[allow(non_upper_case_globals)]
        mod entries {
            use $crate::driver::entry::EntryPoint;
            $(pub(super) static $name: EntryPoint =
                EntryPoint::new(stringify!($name), 0, 0, super::$name as *const ());)*
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
pub(super) use nvml_functions;
