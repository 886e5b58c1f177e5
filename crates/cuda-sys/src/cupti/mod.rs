//! CUPTI, NVIDIA's interface for profilers: its functions, found by name at run time, and the calls of CUDA that it reports.

pub mod calls;
pub mod kind;
pub mod record;
pub mod search;

use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::ptr;

use crate::declare::{c_struct, constants};
use crate::table::function_table;

/// The version of CUPTI 11.8, the first one whose functions and records are known to be as they are used here.
pub const MIN_VERSION: u32 = 18;

/// A result code of CUPTI. A plain integer, since a newer library may return codes that are unknown here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Code(pub u32);

impl Code {
    constants! {
        const OK: Self = CUPTI_SUCCESS(0);
        pub const OUT_OF_MEMORY: Self = CUPTI_ERROR_OUT_OF_MEMORY(8);
        pub const UNKNOWN: Self = CUPTI_ERROR_UNKNOWN(999);
        /// A buffer has no more records. Older libraries return it for a second subscriber too.
        const MAX_LIMIT_REACHED: Self = CUPTI_ERROR_MAX_LIMIT_REACHED(12);
        const MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED: Self =
            CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED(39);
    }

    /// Returns `true` if another tool has subscribed.
    pub fn means_taken(self) -> bool {
        [
            Self::MAX_LIMIT_REACHED,
            Self::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
        ]
        .contains(&self)
    }
}

/// A call that CUPTI refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The function of CUPTI.
    pub call: &'static str,
    /// What it returned.
    pub code: Code,
}

constants! {
    const DRIVER_API: u32 = CUPTI_CB_DOMAIN_DRIVER_API(1);
    const RUNTIME_API: u32 = CUPTI_CB_DOMAIN_RUNTIME_API(2);
    /// The [`site`](CallbackData::site) of a callback when the call begins.
    pub const CALL_BEGINS: u32 = CUPTI_API_ENTER(0);
    /// The [`site`](CallbackData::site) of a callback when the call ends.
    pub const CALL_ENDS: u32 = CUPTI_API_EXIT(1);
    /// The buffers that CUPTI gets hold zeros.
    const ZEROED_BUFFERS: u32 = CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER(5);
}

/// Which interface of CUDA a function belongs to: a `CUpti_CallbackDomain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Domain {
    /// The driver.
    Driver = DRIVER_API,
    /// The runtime.
    Runtime = RUNTIME_API,
}

/// A subscriber of callbacks; CUPTI has one at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Subscriber(*mut c_void);

c_struct! {
    /// The data that CUPTI passes to the callback.
    #[derive(Debug)]
    pub struct CallbackData = CUpti_CallbackData {
        /// [`CALL_BEGINS`] or [`CALL_ENDS`].
        pub site = callbackSite: u32,
        function_name = functionName: *const c_char,
        /// The parameters of the call, in one struct.
        pub parameters = functionParams: *const c_void,
        /// The call's result, if it has ended.
        pub result = functionReturnValue: *const u32,
        /// The name of the kernel as the compiler wrote it, if the call launches one; else null.
        pub kernel = symbolName: *const c_char,
        /// The context that the call runs in.
        pub context = context: *mut c_void,
        context_number = contextUid: u32,
        correlation_data = correlationData: *mut u64,
        /// The number of the call, which the records of its work have too.
        pub correlation = correlationId: u32,
    }
}

/// Called at both ends of a call of CUDA, with the domain and the number of its function: a `CUpti_CallbackFunc`.
pub type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const CallbackData);
/// Called when CUPTI needs a buffer: a `CUpti_BuffersCallbackRequestFunc`.
pub type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
/// Called when CUPTI gives a buffer back: a `CUpti_BuffersCallbackCompleteFunc`.
pub type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);
/// Returns the time in nanoseconds: a `CUpti_TimestampCallbackFunc`.
pub type Timestamp = extern "C" fn() -> u64;

c_struct! {
    /// The parameters of `cuptiSubscribe_v2`: those of CUPTI 13.0. Later ones have more fields, and take a shorter structure
    /// by the size that it states.
    struct SubscriberParameters = CUpti_SubscriberParams {
        size = structSize: usize,
        name = subscriberName: *const c_char,
        other_name = oldSubscriberName: *mut c_char,
        other_name_size = oldSubscriberSize: usize,
    }
}

function_table! {
    /// CUPTI's functions, with the types of its headers from 11.8 to 13 and integers for their enums.
    struct Table: extern "C" fn -> Code;
    required {
        version = cuptiGetVersion: fn(*mut u32);
        subscribe = cuptiSubscribe: fn(*mut Subscriber, Callback, *mut c_void);
        unsubscribe = cuptiUnsubscribe: fn(Subscriber);
        enable_callback = cuptiEnableCallback: fn(u32, Subscriber, u32, u32);
        register_buffers = cuptiActivityRegisterCallbacks: fn(Requested, Completed);
        enable = cuptiActivityEnable: fn(u32);
        disable = cuptiActivityDisable: fn(u32);
        flush = cuptiActivityFlushAll: fn(u32);
        next = cuptiActivityGetNextRecord: fn(*mut u8, usize, *mut *mut c_void);
        dropped = cuptiActivityGetNumDroppedRecords: fn(*mut c_void, u32, *mut usize);
    }
    optional {
        /// From CUPTI 13.0 on. It tells who has subscribed.
        subscribe_v2 = cuptiSubscribe_v2: fn(*mut Subscriber, Callback, *mut c_void, *mut SubscriberParameters);
        set_attribute = cuptiActivitySetAttribute: fn(u32, *mut usize, *mut c_void);
        /// From CUPTI 11.6 on.
        register_clock = cuptiActivityRegisterTimestampCallback: fn(Timestamp);
        timestamp = cuptiGetTimestamp: fn(*mut u64);
        result_string = cuptiGetResultString: fn(Code, *mut *const c_char);
    }
}

/// A library of CUPTI whose functions have been found.
pub struct Cupti {
    table: Table,
    /// Where it was found.
    pub library: String,
}

impl Cupti {
    /// Resolves CUPTI's functions with `find`.
    ///
    /// # Errors
    ///
    /// Returns the name of the first required function that the library lacks.
    ///
    /// # Safety
    ///
    /// Each address that `find` returns must be that of CUPTI's function of that name, and must stay valid until the
    /// process ends.
    pub unsafe fn read(
        library: String,
        find: impl Fn(&CStr) -> Option<*mut c_void>,
    ) -> Result<Self, &'static str> {
        // SAFETY: the caller promises the addresses. The table's types are those of CUPTI's headers.
        let table = unsafe { Table::read(find) }?;
        Ok(Self { table, library })
    }

    /// Returns the number that the library gives as its version: 18 for 11.8 and 12.0, up to 28 for 12.9, and from
    /// 130000 on for 13.0 and later.
    ///
    /// # Errors
    ///
    /// Returns CUPTI's code: 13.5 answers with 999 where there is no driver.
    pub fn version(&self) -> Result<u32, Refused> {
        let mut version = 0;
        // SAFETY: writes one integer, which outlives the call.
        let code = unsafe { (self.table.version)(&raw mut version) };
        check("cuptiGetVersion", code).map(|()| version)
    }

    /// Subscribes. From now on no other tool in the process can.
    ///
    /// # Errors
    ///
    /// Returns CUPTI's code: see [`Code::means_taken`].
    ///
    /// # Safety
    ///
    /// `callback` must be sound to call on any thread with what CUPTI passes to it, at any time until the process ends.
    pub unsafe fn subscribe(&self, callback: Callback) -> Result<Subscriber, Refused> {
        let mut subscriber = Subscriber(ptr::null_mut());
        // SAFETY: writes one handle, which outlives the call. The callback is as the caller promises, and gets no data of
        // the user.
        let code =
            unsafe { (self.table.subscribe)(&raw mut subscriber, callback, ptr::null_mut()) };
        check("cuptiSubscribe", code).map(|()| subscriber)
    }

    /// Returns the name of the tool that has subscribed, if the library tells. No subscription remains. `own_name` is what
    /// another tool would be told meanwhile.
    ///
    /// # Safety
    ///
    /// As for [`subscribe`](Self::subscribe).
    pub unsafe fn subscribed_tool(&self, own_name: &CStr, callback: Callback) -> Option<String> {
        let subscribe = self.table.subscribe_v2?;
        let mut name: [u8; 128] = [0; 128];
        let mut parameters = SubscriberParameters {
            size: size_of::<SubscriberParameters>(),
            name: own_name.as_ptr(),
            other_name: name.as_mut_ptr().cast(),
            other_name_size: name.len(),
        };
        let mut subscriber = Subscriber(ptr::null_mut());
        // SAFETY: as in `subscribe`. The parameters and both texts outlive the call, and CUPTI writes at most as many
        // bytes as they say.
        let code = unsafe {
            subscribe(
                &raw mut subscriber,
                callback,
                ptr::null_mut(),
                &raw mut parameters,
            )
        };
        if code == Code::OK {
            // The other tool has gone in the meantime.
            let _ = self.unsubscribe(subscriber);
            return None;
        }
        let name = CStr::from_bytes_until_nul(&name).ok()?.to_string_lossy();
        (!name.is_empty()).then(|| name.into_owned())
    }

    /// Ends a subscription.
    ///
    /// # Errors
    ///
    /// Returns CUPTI's code.
    pub fn unsubscribe(&self, subscriber: Subscriber) -> Result<(), Refused> {
        // SAFETY: the handle comes from `subscribe`.
        check("cuptiUnsubscribe", unsafe {
            (self.table.unsubscribe)(subscriber)
        })
    }

    /// Enables or disables the callbacks of one function.
    ///
    /// # Errors
    ///
    /// Returns CUPTI's code, such as that of a function that the library does not know.
    pub fn set_callback(
        &self,
        enable: bool,
        subscriber: Subscriber,
        domain: Domain,
        number: u32,
    ) -> Result<(), Refused> {
        // SAFETY: the handle comes from `subscribe`. CUPTI answers an unknown number with an error.
        let code = unsafe {
            (self.table.enable_callback)(enable.into(), subscriber, domain as u32, number)
        };
        check("cuptiEnableCallback", code)
    }

    /// Names the functions that hand out buffers and take them back.
    ///
    /// # Errors
    ///
    /// Returns CUPTI's code.
    ///
    /// # Safety
    ///
    /// Both must be sound to call on any thread with what CUPTI passes to them, at any time until the process ends, and
    /// `requested` must hand out buffers that CUPTI may write to until it has given them back.
    pub unsafe fn register_buffers(
        &self,
        requested: Requested,
        completed: Completed,
    ) -> Result<(), Refused> {
        // SAFETY: both are as the caller promises.
        check("cuptiActivityRegisterCallbacks", unsafe {
            (self.table.register_buffers)(requested, completed)
        })
    }

    /// Has CUPTI record a kind of activity: a `CUpti_ActivityKind`.
    ///
    /// # Errors
    ///
    /// Returns CUPTI's code, such as that of a kind that the library does not know.
    pub fn enable(&self, kind: u32) -> Result<(), Refused> {
        // SAFETY: CUPTI answers an unknown kind with an error.
        check("cuptiActivityEnable", unsafe { (self.table.enable)(kind) })
    }

    /// Has CUPTI record a kind of activity no more.
    ///
    /// # Errors
    ///
    /// As for [`enable`](Self::enable).
    pub fn disable(&self, kind: u32) -> Result<(), Refused> {
        // SAFETY: as above.
        check("cuptiActivityDisable", unsafe {
            (self.table.disable)(kind)
        })
    }

    /// Has CUPTI give back buffers: those whose records are complete, or all of them. Records that are incomplete then are
    /// never given again. Must not be called in a callback.
    ///
    /// # Errors
    ///
    /// Returns CUPTI's code.
    pub fn flush(&self, is_forced: bool) -> Result<(), Refused> {
        // SAFETY: takes a flag.
        check("cuptiActivityFlushAll", unsafe {
            (self.table.flush)(is_forced.into())
        })
    }

    /// Returns how many records CUPTI has dropped since the last call.
    pub fn take_dropped(&self) -> u64 {
        let mut dropped = 0;
        // SAFETY: writes one integer, which outlives the call. Null and zero are the process-wide queue.
        let code = unsafe { (self.table.dropped)(ptr::null_mut(), 0, &raw mut dropped) };
        check("cuptiActivityGetNumDroppedRecords", code).map_or(0, |()| dropped as u64)
    }

    /// Tells CUPTI that the buffers that it gets hold zeros, so that it does not clear them on the launching thread.
    pub fn buffers_are_zeroed(&self) {
        if let Some(set) = self.table.set_attribute {
            let (mut size, mut value) = (1, 1_u8);
            // SAFETY: the attribute is one byte, and both outlive the call. A library that does not know it answers with
            // an error, and clears the buffers.
            let _ = unsafe { set(ZEROED_BUFFERS, &raw mut size, (&raw mut value).cast()) };
        }
    }

    /// Has CUPTI take its times from `clock`. Only once in a process: each further time spoils records.
    pub fn register_clock(&self, clock: Timestamp) {
        if let Some(register) = self.table.register_clock {
            // SAFETY: the function has the type that CUPTI calls, and is never unloaded.
            let _ = unsafe { register(clock) };
        }
    }

    /// Returns the time by the clock of CUPTI's records, in nanoseconds, if it tells.
    pub fn timestamp(&self) -> Option<u64> {
        let mut now = 0;
        // SAFETY: writes one integer, which outlives the call.
        let code = unsafe { (self.table.timestamp?)(&raw mut now) };
        (code == Code::OK).then_some(now)
    }

    /// Returns CUPTI's name of a code.
    pub fn name_of(&self, code: Code) -> String {
        let mut name = ptr::null();
        let told = self.table.result_string.is_some_and(|result_string| {
            // SAFETY: writes one pointer, which outlives the call.
            unsafe { result_string(code, &raw mut name) == Code::OK }
        });
        if !told || name.is_null() {
            return "unknown".to_owned();
        }
        // SAFETY: on success, a terminated string in the library's constant data.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_string_lossy().into_owned()
    }

    /// Returns the record after `record` in a buffer, or the first one for null. Returns null after the last one.
    ///
    /// # Errors
    ///
    /// Returns CUPTI's code if it cannot read what follows, such as a record of a kind that it does not know: 21 from CUDA
    /// 12.4 on, 999 before. It does not reach the records after that one, since only it knows how long they are.
    ///
    /// # Safety
    ///
    /// CUPTI must have given the buffer back with this number of valid bytes, and `record` must come from it.
    pub unsafe fn next(
        &self,
        buffer: *mut u8,
        valid: usize,
        record: *mut u8,
    ) -> Result<*mut u8, Refused> {
        let mut next = record.cast();
        // SAFETY: as the caller promises; writes one pointer, which outlives the call.
        let code = unsafe { (self.table.next)(buffer, valid, &raw mut next) };
        if code == Code::MAX_LIMIT_REACHED {
            return Ok(ptr::null_mut());
        }
        check("cuptiActivityGetNextRecord", code).map(|()| next.cast())
    }
}

/// Returns the functions, structures and constants as they are declared here.
#[cfg(test)]
pub(crate) fn declared() -> Vec<header_check::Item> {
    use header_check::Item;

    let mut items = vec![
        Item::function_type::<Callback>("CUpti_CallbackFunc"),
        Item::function_type::<Requested>("CUpti_BuffersCallbackRequestFunc"),
        Item::function_type::<Completed>("CUpti_BuffersCallbackCompleteFunc"),
        Item::function_type::<Timestamp>("CUpti_TimestampCallbackFunc"),
    ];
    items.extend(Table::declared());
    items.extend(CallbackData::declared());
    items.extend(SubscriberParameters::declared());
    items.extend(Code::constants());
    items.extend(constants());
    items
}

fn check(call: &'static str, code: Code) -> Result<(), Refused> {
    if code == Code::OK {
        Ok(())
    } else {
        Err(Refused { call, code })
    }
}

impl fmt::Debug for Cupti {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cupti")
            .field("library", &self.library)
            .finish_non_exhaustive()
    }
}
