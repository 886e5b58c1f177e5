//! Tables of functions that are found by name in a library of NVIDIA's.

use std::ffi::CStr;

/// Declares a struct with one field for each function of a library, and `read`, which fills it.
///
/// A function of `required` is there in every supported release. A field of `optional` is `None` where the library lacks
/// the function. All functions return the same type, a result code.
///
/// # Expansion
///
/// ```text
/// function_table! {
///     /// The library's functions, with the types of its header.
///     pub struct Table: extern "C" fn -> Code;
///     required { version = libGetVersion: fn(*mut u32); }
///     optional { flush = libFlush: fn(u32); }
/// }
/// ```
///
/// becomes
///
/// ```text
/// /// The library's functions, with the types of its header.
/// pub struct Table {
///     /// `libGetVersion`.
///     pub version: unsafe extern "C" fn(*mut u32) -> Code,
///     /// `libFlush`.
///     pub flush: Option<unsafe extern "C" fn(u32) -> Code>,
/// }
///
/// impl Table {
///     pub unsafe fn read(
///         find: impl Fn(&CStr) -> Option<*mut c_void>,
///     ) -> Result<Self, &'static str> { … }
/// }
/// ```
///
/// and, in tests, `Table::declared`, which lists the functions.
macro_rules! function_table {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $table:ident: extern $abi:literal fn -> $code:ty;
        required { $($(#[$doc:meta])* $field:ident = $symbol:ident: fn($($arg:ty),*);)* }
        optional { $($(#[$odoc:meta])* $ofield:ident = $osymbol:ident: fn($($oarg:ty),*);)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $visibility struct $table {
            $(
                #[doc = concat!("`", stringify!($symbol), "`.")]
                $(#[$doc])*
                $visibility $field: unsafe extern $abi fn($($arg),*) -> $code,
            )*
            $(
                #[doc = concat!("`", stringify!($osymbol), "`.")]
                $(#[$odoc])*
                $visibility $ofield: Option<unsafe extern $abi fn($($oarg),*) -> $code>,
            )*
        }

        impl $table {
            /// Resolves each symbol with `find`.
            ///
            /// # Errors
            ///
            /// Returns the first required symbol that `find` does not know.
            ///
            /// # Safety
            ///
            /// Each address that `find` returns must be that of the library's function of that name, must stay valid until
            /// the process ends, and must have the type that the table gives it.
            $visibility unsafe fn read(
                find: impl Fn(&::std::ffi::CStr) -> Option<*mut ::std::ffi::c_void>,
            ) -> Result<Self, &'static str> {
                Ok(Self {
                    $($field: {
                        let symbol = find($crate::table::symbol_name!($symbol))
                            .ok_or(stringify!($symbol))?;
                        // SAFETY: the caller promises that the address is that of a function of this type. Pointers to
                        // functions have the size of other pointers on all systems with such a library.
                        unsafe {
                            ::std::mem::transmute::<
                                *mut ::std::ffi::c_void,
                                unsafe extern $abi fn($($arg),*) -> $code,
                            >(symbol)
                        }
                    },)*
                    $($ofield: find($crate::table::symbol_name!($osymbol)).map(|symbol| {
                        // SAFETY: as above.
                        unsafe {
                            ::std::mem::transmute::<
                                *mut ::std::ffi::c_void,
                                unsafe extern $abi fn($($oarg),*) -> $code,
                            >(symbol)
                        }
                    }),)*
                })
            }

            /// Returns the functions as they are declared here.
            #[cfg(test)]
            pub(crate) fn declared() -> Vec<header_check::Item> {
                vec![
                    $(header_check::Item::function::<unsafe extern $abi fn($($arg),*) -> $code>(
                        stringify!($symbol),
                    ),)*
                    $(header_check::Item::function::<unsafe extern $abi fn($($oarg),*) -> $code>(
                        stringify!($osymbol),
                    ),)*
                ]
            }
        }
    };
}

pub(crate) use function_table;

/// The name of a function as the system's loader takes it.
macro_rules! symbol_name {
    ($symbol:ident) => {
        const { $crate::table::terminated(concat!(stringify!($symbol), "\0")) }
    };
}

pub(crate) use symbol_name;

/// Returns a text that ends with a zero as one for C.
pub(crate) const fn terminated(text: &str) -> &CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    }
}
