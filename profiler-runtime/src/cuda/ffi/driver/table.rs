//! The table of driver functions, filled by name from the driver's library.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::{Event, RawContext};
use crate::cuda::ffi::code::Code;
use crate::cuda::ffi::table::function_table;
use crate::stream_key::RawStream;

function_table! {
    /// The driver's functions, with the types of `cuda.h` since CUDA 11 and integers for its enums.
    pub(super) struct Table: extern "system" fn -> Code;
    required {
        init = c"cuInit": fn(c_uint);
        driver_version = c"cuDriverGetVersion": fn(*mut c_int);
        error_name = c"cuGetErrorName": fn(Code, *mut *const c_char);
        device_count = c"cuDeviceGetCount": fn(*mut c_int);
        device_get = c"cuDeviceGet": fn(*mut c_int, c_int);
        device_name = c"cuDeviceGetName": fn(*mut c_char, c_int, c_int);
        context_current = c"cuCtxGetCurrent": fn(*mut RawContext);
        context_set = c"cuCtxSetCurrent": fn(RawContext);
        context_device = c"cuCtxGetDevice": fn(*mut c_int);
        primary_state = c"cuDevicePrimaryCtxGetState": fn(c_int, *mut c_uint, *mut c_int);
        primary_retain = c"cuDevicePrimaryCtxRetain": fn(*mut RawContext, c_int);
        primary_release = c"cuDevicePrimaryCtxRelease_v2": fn(c_int);
        stream_create = c"cuStreamCreate": fn(*mut RawStream, c_uint);
        stream_destroy = c"cuStreamDestroy_v2": fn(RawStream);
        stream_context = c"cuStreamGetCtx": fn(RawStream, *mut RawContext);
        stream_capturing = c"cuStreamIsCapturing": fn(RawStream, *mut c_uint);
        capture_mode = c"cuThreadExchangeStreamCaptureMode": fn(*mut c_uint);
        event_create = c"cuEventCreate": fn(*mut Event, c_uint);
        event_destroy = c"cuEventDestroy_v2": fn(Event);
        event_record = c"cuEventRecord": fn(Event, RawStream);
        event_query = c"cuEventQuery": fn(Event);
        event_synchronize = c"cuEventSynchronize": fn(Event);
    }
    optional {
        /// In every driver so far. A driver that drops it has `elapsed_v2`.
        elapsed_v1 = c"cuEventElapsedTime": fn(*mut f32, Event, Event);
        /// From driver 570 on.
        elapsed_v2 = c"cuEventElapsedTime_v2": fn(*mut f32, Event, Event);
        /// From driver 470 on.
        record_with_flags = c"cuEventRecordWithFlags": fn(Event, RawStream, c_uint);
        /// From driver 535 on.
        context_id = c"cuCtxGetId": fn(RawContext, *mut u64);
        capture_info = c"cuStreamGetCaptureInfo": fn(RawStream, *mut c_uint, *mut u64);
        device_attribute = c"cuDeviceGetAttribute": fn(*mut c_int, c_int, c_int);
        device_total = c"cuDeviceTotalMem_v2": fn(*mut usize, c_int);
        /// From driver 470 on.
        device_uuid_v2 = c"cuDeviceGetUuid_v2": fn(*mut [u8; 16], c_int);
        device_uuid = c"cuDeviceGetUuid": fn(*mut [u8; 16], c_int);
        memory_info = c"cuMemGetInfo_v2": fn(*mut usize, *mut usize);
        /// From driver 460 on.
        default_pool = c"cuDeviceGetDefaultMemPool": fn(*mut *mut c_void, c_int);
        /// From driver 460 on.
        pool_attribute = c"cuMemPoolGetAttribute": fn(*mut c_void, c_uint, *mut c_void);
    }
}
