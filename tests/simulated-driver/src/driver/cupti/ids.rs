//! The numbers of CUPTI: results, callbacks and kinds of records.

use std::ffi::CStr;

/// The result of a CUPTI function.
pub(super) type CuptiResult<T = ()> = Result<T, u32>;

macro_rules! results {
    ($($name:ident = $code:literal;)*) => {
        $(
            #[allow(dead_code, reason = "scripts return codes that the library itself never does")]
            pub(super) const $name: u32 = $code;
        )*

        /// Returns the text of a code, which for CUPTI is its name.
        pub(super) fn describe(code: u32) -> Option<&'static CStr> {
            let text = match code {
                $($code => concat!("CUPTI_", results!(@prefix $name), stringify!($name), "\0"),)*
                _ => return None,
            };
            CStr::from_bytes_with_nul(text.as_bytes()).ok()
        }

        /// Returns the codes as they are declared here.
        #[cfg(test)]
        fn codes() -> Vec<header_check::Item> {
            vec![$(header_check::Item::constant(
                concat!("CUPTI_", results!(@prefix $name), stringify!($name)),
                &$code,
            )),*]
        }
    };
    (@prefix SUCCESS) => { "" };
    (@prefix $name:ident) => { "ERROR_" };
}

results! {
    SUCCESS = 0;
    INVALID_PARAMETER = 1;
    INVALID_DEVICE = 2;
    INVALID_CONTEXT = 3;
    INVALID_OPERATION = 7;
    OUT_OF_MEMORY = 8;
    HARDWARE = 9;
    PARAMETER_SIZE_NOT_SUFFICIENT = 10;
    API_NOT_IMPLEMENTED = 11;
    MAX_LIMIT_REACHED = 12;
    NOT_READY = 13;
    NOT_COMPATIBLE = 14;
    NOT_INITIALIZED = 15;
    INVALID_HANDLE = 19;
    INVALID_STREAM = 20;
    INVALID_KIND = 21;
    NOT_SUPPORTED = 27;
    VIRTUALIZED_DEVICE_NOT_SUPPORTED = 33;
    INSUFFICIENT_PRIVILEGES = 35;
    MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39;
    CONFIDENTIAL_COMPUTING_NOT_SUPPORTED = 41;
    MIG_DEVICE_NOT_SUPPORTED = 43;
    UNKNOWN = 999;
}

/// The domain of the driver's functions.
pub(super) const DRIVER_API: u32 = 1;
/// The domain of the runtime's functions.
pub(super) const RUNTIME_API: u32 = 2;
/// The number of domains.
pub(super) const DOMAINS: u32 = 7;

/// The callbacks of the functions that the simulated driver models.
const CALLBACKS: [(&CStr, u32); 50] = [
    (c"cuInit", 1),
    (c"cuDeviceGet", 3),
    (c"cuCtxSynchronize", 17),
    (c"cuModuleLoadData", 19),
    (c"cuModuleGetFunction", 23),
    (c"cuEventCreate", 118),
    (c"cuEventRecord", 119),
    (c"cuEventQuery", 120),
    (c"cuEventSynchronize", 121),
    (c"cuEventElapsedTime", 123),
    (c"cuStreamCreate", 124),
    (c"cuStreamQuery", 125),
    (c"cuStreamSynchronize", 126),
    (c"cuMemsetD8Async", 216),
    (c"cuMemsetD16Async", 218),
    (c"cuMemsetD32Async", 220),
    (c"cuMemAlloc_v2", 243),
    (c"cuMemFree_v2", 245),
    (c"cuMemsetD8_v2", 249),
    (c"cuMemsetD16_v2", 250),
    (c"cuMemsetD32_v2", 251),
    (c"cuMemcpyHtoD_v2", 276),
    (c"cuMemcpyHtoDAsync_v2", 277),
    (c"cuMemcpyDtoH_v2", 278),
    (c"cuMemcpyDtoHAsync_v2", 279),
    (c"cuMemcpyDtoD_v2", 280),
    (c"cuMemcpyDtoDAsync_v2", 281),
    (c"cuStreamWaitEvent", 295),
    (c"cuCtxSetCurrent", 303),
    (c"cuCtxGetCurrent", 304),
    (c"cuMemcpy", 305),
    (c"cuMemcpyAsync", 306),
    (c"cuLaunchKernel", 307),
    (c"cuMemcpyPeerAsync", 319),
    (c"cuEventDestroy_v2", 325),
    (c"cuStreamDestroy_v2", 326),
    (c"cuStreamAddCallback", 346),
    (c"cuLaunchCooperativeKernel", 477),
    (c"cuStreamEndCapture", 497),
    (c"cuStreamIsCapturing", 499),
    (c"cuGraphLaunch", 514),
    (c"cuLaunchHostFunc", 527),
    (c"cuStreamBeginCapture_v2", 539),
    (c"cuGraphUpload", 580),
    (c"cuEventRecordWithFlags", 587),
    (c"cuMemAllocAsync", 598),
    (c"cuMemFreeAsync", 600),
    (c"cuGraphInstantiateWithFlags", 643),
    (c"cuLaunchKernelEx", 652),
    (c"cuMemcpyBatchAsync", 776),
];

/// Returns the number of a driver function's callback, or 0 if it has none here.
pub(crate) const fn callback_of(name: &str) -> u32 {
    let mut at = 0;
    while at < CALLBACKS.len() {
        if is_same(CALLBACKS[at].0.to_bytes(), name.as_bytes()) {
            return CALLBACKS[at].1;
        }
        at += 1;
    }
    0
}

const fn is_same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Returns the name of a callback of the driver's functions.
pub(super) fn name_of(callback: u32) -> Option<&'static CStr> {
    if callback == 0 {
        return Some(c"INVALID");
    }
    let known = CALLBACKS.iter().find(|(_, id)| *id == callback);
    known.map(|(name, _)| *name)
}

/// Returns the numbers as they are declared here.
#[cfg(test)]
pub(crate) fn declared() -> Vec<header_check::Item> {
    use header_check::Item;

    let kinds = [
        ("MEMCPY", kind::MEMCPY),
        ("MEMSET", kind::MEMSET),
        ("KERNEL", kind::KERNEL),
        ("CONCURRENT_KERNEL", kind::CONCURRENT_KERNEL),
        ("OVERHEAD", kind::OVERHEAD),
        ("MEMCPY2", kind::MEMCPY2),
        ("SYNCHRONIZATION", kind::SYNCHRONIZATION),
    ];
    let kinds = kinds.map(|(name, kind)| (format!("CUPTI_ACTIVITY_KIND_{name}"), kind));
    let domains = [("DRIVER", DRIVER_API), ("RUNTIME", RUNTIME_API)];
    let domains = domains.map(|(name, id)| (format!("CUPTI_CB_DOMAIN_{name}_API"), id));
    let constants = kinds.into_iter().chain(domains);
    let mut items: Vec<Item> = constants
        .map(|(name, number)| Item::constant(&name, &number))
        .collect();
    items.extend(CALLBACKS.iter().map(|(name, number)| {
        let name = name.to_string_lossy();
        Item::callback(&format!("CUPTI_DRIVER_TRACE_CBID_{name}"), *number)
    }));
    items.extend(codes());
    items
}

/// The kinds of records.
pub(super) mod kind {
    pub(in crate::driver::cupti) const MEMCPY: u32 = 1;
    pub(in crate::driver::cupti) const MEMSET: u32 = 2;
    pub(in crate::driver::cupti) const KERNEL: u32 = 3;
    pub(in crate::driver::cupti) const CONCURRENT_KERNEL: u32 = 10;
    pub(in crate::driver::cupti) const OVERHEAD: u32 = 17;
    pub(in crate::driver::cupti) const MEMCPY2: u32 = 22;
    pub(in crate::driver::cupti) const SYNCHRONIZATION: u32 = 38;
    /// The last kind that any version has.
    pub(in crate::driver::cupti) const LAST: u32 = 64;
    /// A kind that no version has.
    pub(in crate::driver::cupti) const UNKNOWN: u32 = 9_999;
}
