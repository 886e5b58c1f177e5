//! Result codes as plain integers, with the names and texts of the CUDA driver.

/// The result of an entry point.
pub(crate) type Code = u32;

/// The result of a function inside the driver.
pub(crate) type CudaResult<T = ()> = Result<T, Code>;

macro_rules! codes {
    ($($name:ident = $code:literal, $text:literal;)*) => {
        $(
            #[allow(dead_code, reason = "scripts return codes that the driver itself never does")]
            pub(crate) const $name: Code = $code;
        )*

        /// Returns the name and the text of a code, each with a terminating zero byte, or `None`
        /// for an unknown code.
        pub(crate) fn describe(code: Code) -> Option<(&'static str, &'static str)> {
            match code {
                $($code => Some((
                    concat!("CUDA_", codes!(@prefix $name), stringify!($name), "\0"),
                    concat!($text, "\0"),
                )),)*
                _ => None,
            }
        }

        /// Returns the codes as they are declared here.
        #[cfg(test)]
        pub(crate) fn declared() -> Vec<header_check::Item> {
            vec![$(header_check::Item::constant(
                concat!("CUDA_", codes!(@prefix $name), stringify!($name)),
                &$code,
            )),*]
        }
    };
    (@prefix SUCCESS) => { "" };
    (@prefix $name:ident) => { "ERROR_" };
}

codes! {
    SUCCESS = 0, "no error";
    INVALID_VALUE = 1, "invalid argument";
    OUT_OF_MEMORY = 2, "out of memory";
    NOT_INITIALIZED = 3, "initialization error";
    DEINITIALIZED = 4, "driver shutting down";
    STUB_LIBRARY = 34, "CUDA driver is a stub library";
    DEVICE_UNAVAILABLE = 46, "CUDA-capable device(s) is/are busy or unavailable";
    NO_DEVICE = 100, "no CUDA-capable device is detected";
    INVALID_DEVICE = 101, "invalid device ordinal";
    INVALID_IMAGE = 200, "device kernel image is invalid";
    INVALID_CONTEXT = 201, "invalid device context";
    ECC_UNCORRECTABLE = 214, "uncorrectable ECC error encountered";
    INVALID_PTX = 218, "a PTX JIT compilation failed";
    FILE_NOT_FOUND = 301, "file not found";
    OPERATING_SYSTEM = 304, "OS call failed or operation not supported on this OS";
    INVALID_HANDLE = 400, "invalid resource handle";
    ILLEGAL_STATE = 401, "the operation cannot be performed in the present state";
    NOT_FOUND = 500, "named symbol not found";
    NOT_READY = 600, "device not ready";
    ILLEGAL_ADDRESS = 700, "an illegal memory access was encountered";
    LAUNCH_OUT_OF_RESOURCES = 701, "too many resources requested for launch";
    LAUNCH_TIMEOUT = 702, "the launch timed out and was terminated";
    PRIMARY_CONTEXT_ACTIVE = 708, "cannot set while device is active in this process";
    CONTEXT_IS_DESTROYED = 709, "context is destroyed";
    ASSERT = 710, "device-side assert triggered";
    HARDWARE_STACK_ERROR = 714, "hardware stack error";
    ILLEGAL_INSTRUCTION = 715, "an illegal instruction was encountered";
    MISALIGNED_ADDRESS = 716, "misaligned address";
    LAUNCH_FAILED = 719, "unspecified launch failure";
    NOT_PERMITTED = 800, "operation not permitted";
    NOT_SUPPORTED = 801, "operation not supported";
    SYSTEM_DRIVER_MISMATCH = 803, "system has unsupported display driver / cuda driver combination";
    STREAM_CAPTURE_UNSUPPORTED = 900, "operation not permitted when stream is capturing";
    STREAM_CAPTURE_INVALIDATED = 901, "operation failed due to a previous error during capture";
    STREAM_CAPTURE_MERGE = 902, "operation would result in a merge of separate capture sequences";
    STREAM_CAPTURE_UNMATCHED = 903, "capture was not ended in the same stream as it began";
    STREAM_CAPTURE_UNJOINED = 904, "capturing stream has unjoined work";
    STREAM_CAPTURE_ISOLATION = 905, "dependency created on uncaptured work in another stream";
    STREAM_CAPTURE_IMPLICIT = 906, "operation would make the legacy stream depend on a capturing blocking stream";
    CAPTURED_EVENT = 907, "operation not permitted on an event last recorded in a capturing stream";
    STREAM_CAPTURE_WRONG_THREAD = 908, "attempt to terminate a thread-local capture sequence from another thread";
    TIMEOUT = 909, "wait operation timed out";
    UNKNOWN = 999, "unknown error";
}
