//! The protocol between a program and an NVTX tool, version 3, as `nvtx3/nvtxDetail` of NVIDIA's headers has it.
//!
//! The tool's `InitializeInjectionNvtx2` gets one function, [`export_table`]. Through it, the tool asks for the table of
//! each module, and stores its own functions in the entries that it knows. An entry that the tool leaves alone stays null,
//! and its calls do nothing.
//!
//! A table is an array of pointers to the entries. The entry at index i is for the function with the callback id i. The
//! first pointer is null, and one more null follows the last. Tools read and write without atomics, while they are
//! initialized and possibly when they detach; the profiler reads each entry with one relaxed load. This suffices, since
//! an entry is complete in itself: it is null or a function that is never unloaded.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::declare::{c_struct, constants};

/// An entry of a module: null, or a function of the tool.
type Entry = AtomicPtr<c_void>;

/// Pointers to entries, of which the first and the last are null.
struct Table<const N: usize>([*const Entry; N]);

// SAFETY: the pointers never change, and the entries that they point to are atomic.
unsafe impl<const N: usize> Sync for Table<N> {}

impl<const N: usize> Table<N> {
    const fn new(entries: &'static [Entry]) -> Self {
        assert!(entries.len() + 1 == N, "null after the last entry");
        let mut pointers = [ptr::null(); N];
        let mut index = 1;
        while index < entries.len() {
            pointers[index] = &raw const entries[index];
            index += 1;
        }
        Self(pointers)
    }
}

macro_rules! modules {
    ($($entries:ident, $table:ident: $id:literal, $size:literal;)*) => {
        /// Returns the numbers and the sizes of the modules as they are declared here.
        #[cfg(test)]
        pub(crate) fn declared_modules() -> Vec<header_check::Item> {
            let constant = |name, value: u32| header_check::Item::constant(name, &value);
            vec![$(
                constant(concat!("NVTX_CB_MODULE_", stringify!($entries)), $id),
                constant(concat!("NVTX_CBID_", stringify!($entries), "_SIZE"), $size),
            )*]
        }

        $(
            static $entries: [Entry; $size] = [const { Entry::new(ptr::null_mut()) }; $size];
            static $table: Table<{ $size + 1 }> = Table::new(&$entries);
        )*

        /// Returns the table of a module and the number of its entries.
        fn module(id: u32) -> Option<(*const *const Entry, u32)> {
            match id {
                $($id => Some(($table.0.as_ptr(), $size)),)*
                _ => None,
            }
        }
    };
}

// All modules of the official client, with the sizes that it has: a tool may refuse a program without one of them.
modules! {
    CORE, CORE_TABLE: 1, 16;
    CUDA, CUDA_TABLE: 2, 9;
    OPENCL, OPENCL_TABLE: 3, 15;
    CUDART, CUDART_TABLE: 4, 7;
    CORE2, CORE2_TABLE: 5, 16;
    SYNC, SYNC_TABLE: 6, 7;
}

c_struct! {
    /// `NvtxExportTableCallbacks`.
    struct Callbacks = NvtxExportTableCallbacks {
        struct_size = struct_size: usize,
        module_table = GetModuleFunctionTable: unsafe extern "system" fn(u32, *mut *const *const Entry, *mut u32) -> c_int,
    }
}

c_struct! {
    /// `NvtxExportTableVersionInfo`.
    struct VersionInfo = NvtxExportTableVersionInfo {
        struct_size = struct_size: usize,
        version = version: u32,
        reserved = reserved0: u32,
        set_injection_version = SetInjectionNvtxVersion: unsafe extern "system" fn(u32),
    }
}

constants! {
    /// The version of the interface that the program was built with.
    const VERSION: u16 = NVTX_VERSION(3);
    /// What [`GetInitializer`] is asked for.
    pub const INITIALIZER: u32 = NVTX_INJECTION_INITIALIZER_CORE(1);
    const CALLBACKS_TABLE: u32 = NVTX_ETID_CALLBACKS(1);
    const VERSION_TABLE: u32 = NVTX_ETID_VERSIONINFO(3);
    const COLOUR_ARGB: i32 = NVTX_COLOR_ARGB(1);
    const PAYLOAD_U64: i32 = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64(1);
    const MESSAGE_TEXT: i32 = NVTX_MESSAGE_TYPE_ASCII(1);
    const MESSAGE_REGISTERED: i32 = NVTX_MESSAGE_TYPE_REGISTERED(3);
}

static CALLBACKS: Callbacks = Callbacks {
    struct_size: size_of::<Callbacks>(),
    module_table,
};

static VERSION_INFO: VersionInfo = VersionInfo {
    struct_size: size_of::<VersionInfo>(),
    version: VERSION as u32,
    reserved: 0,
    set_injection_version,
};

/// The tool's function `InitializeInjectionNvtx2`. Returns 0 if the tool refuses the program.
pub type Initialize =
    unsafe extern "system" fn(unsafe extern "system" fn(u32) -> *const c_void) -> c_int;

/// The driver's function that gives a tool's [`Initialize`], by its number: see [`INITIALIZER`]. Returns 0 if there is one.
pub type GetInitializer = unsafe extern "system" fn(u32, *mut Option<Initialize>) -> c_int;

/// The name of [`GetInitializer`] in the driver.
pub const GET_INITIALIZER: &CStr = c"cuNvtxGetInjectionInitializer";

/// Returns one of the structures that a tool asks for, or null: what [`Initialize`] gets.
///
/// # Safety
///
/// May be called at any time.
pub unsafe extern "system" fn export_table(id: u32) -> *const c_void {
    match id {
        CALLBACKS_TABLE => ptr::from_ref(&CALLBACKS).cast(),
        VERSION_TABLE => ptr::from_ref(&VERSION_INFO).cast(),
        _ => ptr::null(),
    }
}

/// Gives the tool the table of a module. Returns 0 for one that does not exist.
unsafe extern "system" fn module_table(
    id: u32,
    table: *mut *const *const Entry,
    size: *mut u32,
) -> c_int {
    let Some((entries, len)) = module(id) else {
        return 0;
    };
    // SAFETY: the tool passes null, or a pointer that is valid for writes.
    unsafe {
        if let Some(size) = size.as_mut() {
            *size = len;
        }
        if let Some(table) = table.as_mut() {
            *table = entries;
        }
    }
    1
}

/// Takes the version of the tool, which changes nothing for a client of version 3.
unsafe extern "system" fn set_injection_version(_version: u32) {}

/// A domain of the tool: null is the one that all programs share.
pub type Domain = *mut c_void;
/// A registered string of the tool.
pub type StringHandle = *mut c_void;

/// Declares functions that read an entry as a function of a type.
macro_rules! functions {
    ($entries:ident, $suffix:literal: $($(#[$meta:meta])* $name:ident = $theirs:ident($id:literal): fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// Returns the functions and their callback ids as they are declared here.
        #[cfg(test)]
        pub(crate) fn declared() -> Vec<header_check::Item> {
            vec![$(
                header_check::Item::function_type::<unsafe extern "system" fn($($argument),*) $(-> $result)?>(
                    concat!("nvtx", stringify!($theirs), $suffix),
                ),
                header_check::Item::callback(
                    concat!("NVTX_CBID_", stringify!($entries), "_", stringify!($theirs)),
                    $id,
                ),
            )*]
        }

        $(
            #[doc = concat!("Returns the tool's `nvtx", stringify!($theirs), "`, if it has one.")]
            $(#[$meta])*
            #[inline]
            pub fn $name() -> Option<unsafe extern "system" fn($($argument),*) $(-> $result)?> {
                let address = super::$entries.get($id)?.load(super::Relaxed);
                // SAFETY: null, which is `None`, or the tool's function for this callback id, which has this type.
                unsafe { std::mem::transmute(address) }
            }
        )*
    };
}

/// Functions without a domain.
pub mod core {
    use std::ffi::c_char;

    functions! { CORE, "_impl_fntype":
        name_os_thread = NameOsThreadA(14): fn(u32, *const c_char);
    }
}

/// Functions on objects of the driver.
pub mod cuda {
    use std::ffi::c_char;

    use crate::driver::RawStream;

    // The header has the type under this name, with a pointer for a stream, so that it needs no other header.
    functions! { CUDA, "_fakeimpl_fntype":
        name_stream = NameCuStreamA(5): fn(RawStream, *const c_char);
    }
}

/// Functions with a domain.
pub mod core2 {
    use std::ffi::{c_char, c_int};

    use super::{Attributes, Domain, StringHandle};

    functions! { CORE2, "_impl_fntype":
        range_start = DomainRangeStartEx(2): fn(Domain, *const Attributes) -> u64;
        range_end = DomainRangeEnd(3): fn(Domain, u64);
        range_push = DomainRangePushEx(4): fn(Domain, *const Attributes) -> c_int;
        range_pop = DomainRangePop(5): fn(Domain) -> c_int;
        name_category = DomainNameCategoryA(8): fn(Domain, u32, *const c_char);
        register_string = DomainRegisterStringA(10): fn(Domain, *const c_char) -> StringHandle;
        domain_create = DomainCreateA(12): fn(*const c_char) -> Domain;
    }
}

c_struct! {
    /// The attributes of a range: `nvtxEventAttributes_t`.
    #[derive(Debug)]
    pub struct Attributes = nvtxEventAttributes_t {
        version = version: u16,
        size = size: u16,
        category = category: u32,
        colour_type = colorType: i32,
        colour = color: u32,
        payload_type = payloadType: i32,
        reserved = reserved0: i32,
        payload = payload.ullValue: u64,
        message_type = messageType: i32,
        message = message.ascii: *const c_void,
    }
}

/// Returns the structures, functions and numbers as they are declared here.
#[cfg(test)]
pub(crate) fn declared() -> Vec<header_check::Item> {
    let initialize = "NvtxInitializeInjectionNvtxFunc_t";
    let mut items = vec![header_check::Item::function_type::<Initialize>(initialize)];
    items.extend(declared_modules());
    items.extend(core::declared());
    items.extend(cuda::declared());
    items.extend(core2::declared());
    items.extend(Callbacks::declared());
    items.extend(VersionInfo::declared());
    items.extend(Attributes::declared());
    items.extend(constants());
    items
}

impl Attributes {
    /// Returns the attributes of a range without a message and a payload. `colour` is opaque red, green and blue.
    #[allow(clippy::cast_possible_truncation, reason = "48 bytes")]
    #[inline]
    pub fn new(category: u32, colour: u32) -> Self {
        Self {
            version: VERSION,
            size: size_of::<Self>() as u16,
            category,
            colour_type: COLOUR_ARGB,
            colour,
            payload_type: 0,
            reserved: 0,
            payload: 0,
            message_type: 0,
            message: ptr::null(),
        }
    }

    /// Gives the range a number.
    #[inline]
    pub fn set_payload(&mut self, payload: u64) {
        self.payload_type = PAYLOAD_U64;
        self.payload = payload;
    }

    /// Gives the range a message, which ends with a zero.
    #[inline]
    pub fn set_text(&mut self, text: *const c_char) {
        self.message_type = MESSAGE_TEXT;
        self.message = text.cast();
    }

    /// Gives the range a message that the tool has registered.
    #[inline]
    pub fn set_registered(&mut self, string: StringHandle) {
        self.message_type = MESSAGE_REGISTERED;
        self.message = string;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_point_to_their_entries_between_two_nulls() {
        let (table, size) = module(5).expect("a module");
        // SAFETY: the table has one pointer more than there are entries.
        let table = unsafe { std::slice::from_raw_parts(table, size as usize + 1) };
        assert!(table[0].is_null() && table[16].is_null());
        assert_eq!(table[4], &raw const CORE2[4]);
        assert_eq!(table[15], &raw const CORE2[15]);
        assert!(module(0).is_none() && module(7).is_none());
    }

    #[test]
    fn an_entry_without_a_function_is_none() {
        assert!(core::name_os_thread().is_none() && core2::range_push().is_none());
    }
}
