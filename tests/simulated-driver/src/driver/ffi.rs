//! Arguments of C functions: each type holds what its caller promises, and checks for null.
//!
//! None of them can be made inside this crate: a value comes from the caller of an entry point
//! only, who promises what the documentation of the CUDA driver asks. That promise is the ground
//! on which the `unsafe` blocks here, and only here, read and write through these pointers.

use std::ffi::{CStr, c_char, c_void};

use super::code::{Answer, INVALID_VALUE};

/// Where a result goes; null, or valid for one write.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Writes `value`; null is an invalid argument.
    pub(crate) fn set(&self, value: T) -> Answer {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: not null, and so valid for a write of `T`, as the caller of the entry point
        // promises; what is there before may be uninitialised, and `write` does not drop it.
        unsafe { self.0.write(value) };
        Ok(())
    }

    /// Writes `value` where the caller wants it.
    pub(crate) fn set_if_wanted(&self, value: T) {
        // Null means that the caller does not want it.
        let _ = self.set(value);
    }

    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

impl Out<u8> {
    /// Writes `text`, cut to `length` bytes with the zero at its end.
    pub(crate) fn set_text(&self, text: &str, length: i32) -> Answer {
        let length = usize::try_from(length).map_err(|_| INVALID_VALUE)?;
        if self.0.is_null() || length == 0 {
            return Err(INVALID_VALUE);
        }
        let text = &text.as_bytes()[..text.len().min(length - 1)];
        // SAFETY: the caller promises `length` writable bytes, of which `text.len() + 1` at most
        // are written; `text` is our own memory.
        unsafe {
            self.0.copy_from_nonoverlapping(text.as_ptr(), text.len());
            self.0.add(text.len()).write(0);
        }
        Ok(())
    }
}

/// An argument behind a pointer; null, or valid for one read.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

impl<T: Copy> In<T> {
    /// The value; null is an invalid argument.
    pub(crate) fn get(&self) -> Answer<T> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: not null, and so valid for a read of `T`, as the caller promises.
        Ok(unsafe { self.0.read() })
    }
}

/// An argument that a result takes the place of; null, or valid for a read and a write.
#[repr(transparent)]
pub(crate) struct InOut<T>(*mut T);

impl<T: Copy> InOut<T> {
    pub(crate) fn get(&self) -> Answer<T> {
        In(self.0.cast_const()).get()
    }

    pub(crate) fn set(&self, value: T) -> Answer {
        Out(self.0).set(value)
    }

    /// The same place, as what another argument of the call says that lies there.
    pub(crate) fn widen<U>(&self) -> InOut<U> {
        InOut(self.0.cast())
    }
}

/// A C string; null, or ended by a zero byte and left alone during the call.
#[repr(transparent)]
pub(crate) struct Text(*const c_char);

impl Text {
    /// The text; null or no UTF-8 is an invalid argument.
    pub(crate) fn get(&self) -> Answer<&str> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: not null, and so ended by a zero byte, as the caller promises; the borrow ends
        // with the call, since `self` lives on the stack of the entry point.
        unsafe { CStr::from_ptr(self.0) }
            .to_str()
            .map_err(|_| INVALID_VALUE)
    }
}

/// An image of device code: PTX as a C string, or a binary that begins with its own magic.
#[repr(transparent)]
pub(crate) struct Image(*const u8);

impl Image {
    const BINARIES: [[u8; 4]; 2] = [*b"\x7fELF", [0x50, 0xed, 0x55, 0xba]];

    /// The PTX; `None` where the image is a binary, which holds no text to read.
    pub(crate) fn ptx(&self) -> Answer<Option<&str>> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        for binary in Self::BINARIES {
            // SAFETY: an image is a C string or a binary of more than four bytes; the comparison
            // stops at the first byte that differs, thus at the zero byte of a shorter string.
            if (0..4).all(|at| unsafe { self.0.add(at).read() } == binary[at]) {
                return Ok(None);
            }
        }
        // SAFETY: no binary, so a C string, as the caller promises; the borrow ends with the call.
        let text = unsafe { CStr::from_ptr(self.0.cast()) };
        text.to_str()
            .map(Some)
            .map_err(|_| super::code::INVALID_PTX)
    }
}

/// The parameters of a kernel: an array with a pointer to each.
#[repr(transparent)]
pub(crate) struct Parameters(*const *const c_void);

impl Parameters {
    /// The parameter at `index`, an integer of `bytes` bytes (4 or 8), which the kernel declares.
    pub(crate) fn integer(&self, index: usize, bytes: usize) -> Answer<u64> {
        if self.0.is_null() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller promises one pointer per parameter that the kernel declares, and
        // that each leads to a value of the declared size; packed values may be unaligned.
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
    /// As `cuLaunchHostFunc` takes it.
    Plain {
        function: extern "C" fn(usize),
        data: usize,
    },
    /// As `cuStreamAddCallback` takes it, with the stream.
    Callback {
        function: extern "C" fn(usize, u32, usize),
        stream: usize,
        data: usize,
    },
}

impl HostFunction {
    /// Calls it; `status` is the code of the context at that time.
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

/// Copies memory that the caller of an entry point named; the two ranges may overlap.
pub(crate) fn copy(to: usize, from: usize, bytes: usize) {
    if bytes > 0 {
        // SAFETY: device addresses were found inside a live allocation of `bytes` bytes or more
        // before; host addresses are valid for as many, as the caller of the entry point promises.
        unsafe { std::ptr::copy(from as *const u8, to as *mut u8, bytes) };
    }
}

/// Fills memory with a pattern of 1, 2 or 4 bytes; `to` lies inside a live allocation.
pub(crate) fn fill(to: usize, pattern: u32, width: usize, count: usize) {
    let pattern = pattern.to_ne_bytes();
    for at in 0..count {
        copy(to + at * width, pattern.as_ptr() as usize, width);
    }
}

/// Copies host memory aside, for a copy that happens after the call returned.
pub(crate) fn keep(from: usize, bytes: usize) -> Vec<u8> {
    let mut kept = vec![0; bytes];
    copy(kept.as_mut_ptr() as usize, from, bytes);
    kept
}
