//! Structures and numbers of NVIDIA's headers, each declared beside its name there.
//!
//! The macros also list what they declare, for the test that compares it with the headers (`headers.rs`).

/// Declares a structure of C.
///
/// # Expansion
///
/// ```text
/// c_struct! {
///     /// `libMemory_t`: bytes.
///     pub struct Memory = libMemory_t {
///         /// All memory.
///         pub total = total: u64,
///     }
/// }
/// ```
///
/// becomes the structure of Rust with `#[repr(C)]` and, in tests, `Memory::declared`, which lists its size and its fields.
macro_rules! c_struct {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident = $record:ident {
            $($(#[$doc:meta])* $field_visibility:vis $field:ident = $($theirs:ident).+: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[repr(C)]
        $visibility struct $name {
            $($(#[$doc])* $field_visibility $field: $type,)*
        }

        #[cfg(test)]
        impl $name {
            /// Returns the structure as it is declared here.
            pub(crate) fn declared() -> Vec<header_check::Item> {
                let record = stringify!($record);
                vec![
                    header_check::Item::size(record, size_of::<Self>()),
                    $(header_check::Item::field::<$type>(
                        record,
                        stringify!($($theirs).+),
                        std::mem::offset_of!(Self, $field),
                    ),)*
                ]
            }
        }

        #[cfg(test)]
        impl header_check::Shape for $name {
            fn shape() -> String {
                format!("s{}", size_of::<Self>())
            }
        }
    };
}

pub(crate) use c_struct;

/// Declares constants with their values, in a module or in the `impl` of a type that holds one integer.
///
/// # Expansion
///
/// ```text
/// constants! {
///     /// Copies.
///     pub const MEMCPY: u32 = LIB_KIND_MEMCPY(1);
///     pub const SUCCESS: Self = LIB_SUCCESS(0);
/// }
/// ```
///
/// becomes the constants `1_u32` and `Self(0)`, documented with their names in the header first, and, in tests, the function
/// `constants`, which lists them.
macro_rules! constants {
    ($($(#[$meta:meta])* $visibility:vis const $name:ident: $type:tt = $theirs:ident($value:literal);)*) => {
        $(
            #[doc = concat!("`", stringify!($theirs), "`.")]
            $(#[$meta])*
            $visibility const $name: $type = $crate::declare::constants!(@value $type $value);
        )*

        /// Returns the constants as they are declared here.
        #[cfg(test)]
        pub(crate) fn constants() -> Vec<header_check::Item> {
            vec![$(header_check::Item::constant(stringify!($theirs), &$value)),*]
        }
    };
    (@value Self $value:literal) => { Self($value) };
    (@value $type:tt $value:literal) => { $value };
}

pub(crate) use constants;

/// Gives types that hold one value the shape of that value, for the comparison with the headers.
#[cfg(test)]
macro_rules! transparent {
    ($($name:ty: $shape:literal;)*) => {
        $(impl header_check::Shape for $name {
            fn shape() -> String {
                $shape.to_owned()
            }
        })*
    };
}

#[cfg(test)]
pub(crate) use transparent;
