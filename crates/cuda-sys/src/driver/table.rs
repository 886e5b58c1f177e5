//! The table of driver functions, filled by name from the driver's library.

use std::ffi::{c_char, c_int, c_uint, c_void};

use super::{Code, Event, RawContext, RawStream};
use crate::table::function_table;

function_table! {
    /// The driver's functions, with the types of `cuda.h` since CUDA 11 and integers for its enums.
    pub struct Table: extern "system" fn -> Code;
    required {
        init = cuInit: fn(c_uint);
        driver_version = cuDriverGetVersion: fn(*mut c_int);
        error_name = cuGetErrorName: fn(Code, *mut *const c_char);
        device_count = cuDeviceGetCount: fn(*mut c_int);
        device_get = cuDeviceGet: fn(*mut c_int, c_int);
        device_name = cuDeviceGetName: fn(*mut c_char, c_int, c_int);
        context_current = cuCtxGetCurrent: fn(*mut RawContext);
        context_set = cuCtxSetCurrent: fn(RawContext);
        context_device = cuCtxGetDevice: fn(*mut c_int);
        primary_state = cuDevicePrimaryCtxGetState: fn(c_int, *mut c_uint, *mut c_int);
        primary_retain = cuDevicePrimaryCtxRetain: fn(*mut RawContext, c_int);
        primary_release = cuDevicePrimaryCtxRelease_v2: fn(c_int);
        stream_create = cuStreamCreate: fn(*mut RawStream, c_uint);
        stream_destroy = cuStreamDestroy_v2: fn(RawStream);
        stream_context = cuStreamGetCtx: fn(RawStream, *mut RawContext);
        stream_capturing = cuStreamIsCapturing: fn(RawStream, *mut c_uint);
        capture_mode = cuThreadExchangeStreamCaptureMode: fn(*mut c_uint);
        event_create = cuEventCreate: fn(*mut Event, c_uint);
        event_destroy = cuEventDestroy_v2: fn(Event);
        event_record = cuEventRecord: fn(Event, RawStream);
        event_query = cuEventQuery: fn(Event);
        event_synchronize = cuEventSynchronize: fn(Event);
    }
    optional {
        /// In every driver so far. A driver that drops it has `elapsed_v2`.
        elapsed_v1 = cuEventElapsedTime: fn(*mut f32, Event, Event);
        /// From driver 570 on.
        elapsed_v2 = cuEventElapsedTime_v2: fn(*mut f32, Event, Event);
        /// From driver 470 on.
        record_with_flags = cuEventRecordWithFlags: fn(Event, RawStream, c_uint);
        /// From driver 535 on.
        context_id = cuCtxGetId: fn(RawContext, *mut u64);
        capture_info = cuStreamGetCaptureInfo: fn(RawStream, *mut c_uint, *mut u64);
        device_attribute = cuDeviceGetAttribute: fn(*mut c_int, c_uint, c_int);
        device_total = cuDeviceTotalMem_v2: fn(*mut usize, c_int);
        /// From driver 470 on.
        device_uuid_v2 = cuDeviceGetUuid_v2: fn(*mut [u8; 16], c_int);
        device_uuid = cuDeviceGetUuid: fn(*mut [u8; 16], c_int);
        memory_info = cuMemGetInfo_v2: fn(*mut usize, *mut usize);
        /// From driver 460 on.
        default_pool = cuDeviceGetDefaultMemPool: fn(*mut *mut c_void, c_int);
        /// From driver 460 on.
        pool_attribute = cuMemPoolGetAttribute: fn(*mut c_void, c_uint, *mut c_void);
    }
}
