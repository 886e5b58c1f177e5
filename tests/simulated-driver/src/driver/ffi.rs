//! Arguments of C functions. Each type documents what its caller guarantees, and checks for null.
//!
//! These values cannot be created in this crate. They come only from the caller of an entry point,
//! who guarantees what the documentation of the CUDA driver requires. The `unsafe` blocks in this
//! module rely on that guarantee to read and write through the pointers.

use std::ffi::{CStr, c_char, c_void};

use super::code::{CudaResult, INVALID_VALUE};

/// A pointer to a result: null, or valid for one write.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Writes `value`. Null is an invalid argument.
    pub(crate) fn set(&self, value: T) -> CudaResult {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the pointer is not null, and so valid for a write of `T`, as the caller of the
        // entry point guarantees. The memory may be uninitialized, and `write` does not drop it.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Writes `value`, unless the pointer is null.
    pub(crate) fn set_if_wanted(&self, value: T) {
        // A caller that passes null does not want the value.
        let _ = self.set(value);
    }

    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

impl Out<c_char> {
    /// Writes `text`, truncated to `length` bytes including the terminating zero.
    pub(crate) fn set_text(&self, text: &str, length: i32) -> CudaResult {
        let length = usize::try_from(length).map_err(|_| INVALID_VALUE)?;
        if self.0.is_null() || length == 0 {
            return Err(INVALID_VALUE);
        }
        let text = &text.as_bytes()[..text.len().min(length - 1)];
        // SAFETY: the caller guarantees `length` writable bytes, and at most `text.len() + 1` are
        // written. `text` is memory of this crate, so the ranges do not overlap.
        unsafe {
            self.0
                .copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
            self.0.add(text.len()).write(0);
        }
        Ok(())
    }
}

/// A pointer to an argument: null, or valid for one read.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// Reads the value. Null is an invalid argument.
    pub(crate) fn get(&self) -> CudaResult<T> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the pointer is not null, and so valid for a read of `T`, as the caller
        // guarantees.
        Ok(unsafe { self.0.read() })
    }
}

/// A pointer to an argument that the result replaces: null, or valid for a read and a write.
#[repr(transparent)]
pub(crate) struct InOut<T>(*mut T);

impl<T: Copy> InOut<T> {
    pub(crate) fn get(&self) -> CudaResult<T> {
        In(self.0.cast_const()).get()
    }

    pub(crate) fn set(&self, value: T) -> CudaResult {
        Out(self.0).set(value)
    }

    /// Converts the pointer to the type that another argument of the call specifies.
    pub(crate) fn widen<U>(&self) -> InOut<U> {
        InOut(self.0.cast())
    }
}

/// A pointer to an array that the result replaces: null, or valid for reads and writes of as many elements as another
/// argument says.
#[repr(transparent)]
pub(crate) struct Array<T>(*mut T);

impl<T: Copy> Array<T> {
    /// Returns the element at `index`, which must be below the number of elements.
    pub(crate) fn element(&self, index: usize) -> InOut<T> {
        if self.0.is_null() {
            return InOut(self.0);
        }
        InOut(self.0.wrapping_add(index))
    }
}

/// A C string: null, or terminated by a zero byte and unchanged during the call.
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// Reads the text. Null or invalid UTF-8 is an invalid argument.
    pub(crate) fn get(&self) -> CudaResult<&str> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the pointer is not null, and so terminated by a zero byte, as the caller
        // guarantees. The borrow ends before the call does, since `self` is on the stack of the
        // entry point.
        unsafe { CStr::from_ptr(self.0) }
            .to_str()
            .map_err(|_| INVALID_VALUE)
    }
}

/// An image of device code: PTX as a C string, or a binary that begins with a magic number.
#[repr(transparent)]
pub(crate) struct Image(*const u8);

impl Image {
    const BINARIES: [[u8; 4]; 2] = [*b"\x7fELF", [0x50, 0xed, 0x55, 0xba]];

    /// Returns the PTX, or `None` for a binary, which contains no text to read.
    pub(crate) fn ptx(&self) -> CudaResult<Option<&str>> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        for binary in Self::BINARIES {
            // SAFETY: an image is a C string or a binary of more than four bytes. The comparison
            // stops at the first byte that differs, which is at the latest the zero byte of a
            // shorter string.
            if (0..4).all(|at| unsafe { self.0.add(at).read() } == binary[at]) {
                return Ok(None);
            }
        }
        // SAFETY: the image is no binary, and so a C string, as the caller guarantees. The borrow
        // ends before the call does.
        let text = unsafe { CStr::from_ptr(self.0.cast()) };
        text.to_str()
            .map(Some)
            .map_err(|_| super::code::INVALID_PTX)
    }
}

/// The parameters of a kernel: an array with a pointer to each parameter.
#[repr(transparent)]
pub(crate) struct Parameters(*const *const c_void);

impl Parameters {
    /// Reads the parameter at `index`, which the kernel declares as an integer of `bytes` bytes (4
    /// or 8).
    pub(crate) fn integer(&self, index: usize, bytes: usize) -> CudaResult<u64> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller guarantees one pointer per parameter that the kernel declares, each to
        // a value of the declared size. Packed values may be unaligned.
        unsafe {
            let value = self.0.add(index).read();
            match (value.is_null(), bytes) {
                (true, _) => Err(INVALID_VALUE),
                (false, 4) => Ok(u64::from(value.cast::<u32>().read_unaligned())),
                (false, _) => Ok(value.cast::<u64>().read_unaligned()),
            }
        }
    }
}

/// A function of the program that the driver calls in stream order, with its argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostFunction {
    /// The form that `cuLaunchHostFunc` takes.
    Plain {
        function: extern "C" fn(usize),
        data: usize,
    },
    /// The form that `cuStreamAddCallback` takes, with its stream.
    Callback {
        function: extern "C" fn(usize, u32, usize),
        stream: usize,
        data: usize,
    },
}

impl HostFunction {
    /// Calls the function. `status` is the code of the context at that time.
    pub(crate) fn call(self, status: u32) {
        match self {
            Self::Plain { function, data } => function(data),
            Self::Callback {
                function,
                stream,
                data,
            } => function(stream, status, data),
        }
    }
}

/// Copies memory that the caller of an entry point passed. The two ranges may overlap.
pub(crate) fn copy(to: usize, from: usize, bytes: usize) {
    if bytes > 0 {
        // SAFETY: device addresses were checked to be inside a live allocation of at least `bytes`
        // bytes. Host addresses are valid for `bytes` bytes, as the caller of the entry point
        // guarantees.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
    }
}

/// Fills memory with a pattern of 1, 2 or 4 bytes. `to` is inside a live allocation.
pub(crate) fn fill(to: usize, pattern: u32, width: usize, count: usize) {
    let pattern = pattern.to_ne_bytes();
    for at in 0..count {
        copy(to + at * width, pattern.as_ptr() as usize, width);
    }
}

/// Returns a copy of host memory, for a transfer that happens after the call has returned.
pub(crate) fn keep(from: usize, bytes: usize) -> Vec<u8> {
    let mut kept = vec![0; bytes];
    copy(kept.as_mut_ptr() as usize, from, bytes);
    kept
}

/// The data of a CUPTI callback around a driver call, `CUpti_CallbackData`. Pointers are addresses.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct CallbackData {
    /// 0 before the call, 1 after it.
    pub(crate) site: u32,
    pub(crate) function_name: usize,
    pub(crate) arguments: usize,
    pub(crate) return_value: usize,
    pub(crate) symbol_name: usize,
    pub(crate) context: usize,
    pub(crate) context_id: u32,
    pub(crate) correlation_data: usize,
    pub(crate) correlation: u32,
}

/// The client's function around driver calls: its data, the domain, the callback, and its data.
pub(crate) type CuptiCallback = extern "C" fn(usize, u32, u32, *const CallbackData);

/// The client's function that hands out a buffer: its address, its size, and the most records.
pub(crate) type BufferRequested = extern "C" fn(*mut usize, *mut usize, *mut usize);

/// The client's function that takes a buffer back: context, stream, address, size, and used bytes.
pub(crate) type BufferCompleted = extern "C" fn(usize, u32, usize, usize, usize);

/// The client's clock.
pub(crate) type TimestampCallback = extern "C" fn() -> u64;

/// Returns the bytes of an argument without taking it from its owner.
pub(crate) fn shadow<T>(argument: &T) -> std::mem::MaybeUninit<T> {
    // SAFETY: a reference is valid for a read, and `MaybeUninit` neither drops nor uses the copy.
    unsafe {
        std::ptr::from_ref(argument)
            .cast::<std::mem::MaybeUninit<T>>()
            .read()
    }
}

/// Reads the word at `offset` bytes from `arguments`, the arguments of a call in progress.
pub(crate) fn word(arguments: usize, offset: usize) -> usize {
    let mut word = [0; size_of::<usize>()];
    copy(word.as_mut_ptr() as usize, arguments + offset, word.len());
    usize::from_ne_bytes(word)
}

/// Lists a structure with its fields and their names in the header, for the comparison with it.
macro_rules! compared {
    ($name:ident = $record:ident { $($field:ident = $($theirs:ident).+,)* }) => {
        #[cfg(test)]
        impl $name {
            pub(crate) fn declared() -> Vec<header_check::Item> {
                let record = stringify!($record);
                vec![
                    header_check::Item::size(record, size_of::<Self>()),
                    $(header_check::Item::field_of(
                        record,
                        stringify!($($theirs).+),
                        std::mem::offset_of!(Self, $field),
                        |of: &Self| &of.$field,
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
pub(crate) use compared;

compared! {
    CallbackData = CUpti_CallbackData {
        site = callbackSite,
        function_name = functionName,
        arguments = functionParams,
        return_value = functionReturnValue,
        symbol_name = symbolName,
        context = context,
        context_id = contextUid,
        correlation_data = correlationData,
        correlation = correlationId,
    }
}

/// The arguments as C sees them, for the comparison with NVIDIA's headers.
#[cfg(test)]
mod shapes {
    use header_check::Shape;

    use super::{Array, Image, In, InOut, Out, Parameters, Text};
    use std::ffi::c_char;

    macro_rules! pointers {
        ($($name:ident)*) => {
            $(impl<T: Shape> Shape for $name<T> {
                fn shape() -> String {
                    <*mut T>::shape()
                }
            })*
        };
    }

    pointers! { Out In InOut Array }

    impl Shape for Text {
        fn shape() -> String {
            <*const c_char>::shape()
        }
    }

    macro_rules! plain {
        ($($name:ty: $shape:literal;)*) => {
            $(impl Shape for $name {
                fn shape() -> String {
                    $shape.to_owned()
                }
            })*
        };
    }

    plain! {
        Image: "*void";
        Parameters: "**void";
    }
}
