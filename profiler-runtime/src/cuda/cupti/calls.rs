//! The calls of CUDA that launch kernels, copy, fill or wait, and are watched: their numbers in CUPTI, their names and
//! their streams. Work of other calls, such as copies of CUDA arrays, is recorded too, outside of all scopes.

use std::ffi::c_void;

use super::table::Domain;
use crate::stream_key::RawStream;

/// A call that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) domain: Domain,
    /// CUPTI's number of the function: a `CUpti_CallbackId`.
    pub(super) number: u32,
    pub(super) name: &'static str,
    /// Where its stream is.
    place: StreamPlace,
    /// `true` if the null stream means the per-thread default stream: the function's second form, which programs get
    /// that are compiled with per-thread default streams.
    is_per_thread: bool,
    pub(super) role: Role,
}

/// The kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The device records work for it.
    Work,
    /// It waits.
    Wait,
}

/// Where a function's parameters have the stream. Parameters stand in one struct, in the order of the function's
/// arguments, with the alignment of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StreamPlace {
    /// It has none, or the calls of the driver inside of it have it.
    Unknown,
    /// The default stream.
    Default,
    /// At this offset.
    At(usize),
    /// In the struct that the first parameter points to, at this offset.
    Inside(usize),
}

use StreamPlace::{At, Default, Inside, Unknown};

/// Calls: CUPTI's number, the number of the second form (0 if it has none), the name, the stream, the role.
type Row = (u32, u32, &'static str, StreamPlace, Role);

const DRIVER: [Row; 38] = [
    (307, 442, "cuLaunchKernel", At(40), Role::Work),
    // `CUlaunchConfig`: seven numbers of 32 bits, then the stream.
    (652, 653, "cuLaunchKernelEx", Inside(32), Role::Work),
    (477, 478, "cuLaunchCooperativeKernel", At(40), Role::Work),
    (514, 515, "cuGraphLaunch", At(8), Role::Work),
    (276, 397, "cuMemcpyHtoD", Default, Role::Work),
    (278, 398, "cuMemcpyDtoH", Default, Role::Work),
    (280, 399, "cuMemcpyDtoD", Default, Role::Work),
    (305, 408, "cuMemcpy", Default, Role::Work),
    (318, 409, "cuMemcpyPeer", Default, Role::Work),
    (287, 405, "cuMemcpy2D", Default, Role::Work),
    (288, 406, "cuMemcpy2DUnaligned", Default, Role::Work),
    (290, 407, "cuMemcpy3D", Default, Role::Work),
    (320, 410, "cuMemcpy3DPeer", Default, Role::Work),
    (277, 421, "cuMemcpyHtoDAsync", At(24), Role::Work),
    (279, 422, "cuMemcpyDtoHAsync", At(24), Role::Work),
    (281, 423, "cuMemcpyDtoDAsync", At(24), Role::Work),
    (306, 418, "cuMemcpyAsync", At(24), Role::Work),
    (319, 426, "cuMemcpyPeerAsync", At(40), Role::Work),
    (289, 424, "cuMemcpy2DAsync", At(8), Role::Work),
    (291, 425, "cuMemcpy3DAsync", At(8), Role::Work),
    (321, 427, "cuMemcpy3DPeerAsync", At(8), Role::Work),
    (776, 777, "cuMemcpyBatchAsync", Unknown, Role::Work),
    (249, 411, "cuMemsetD8", Default, Role::Work),
    (250, 412, "cuMemsetD16", Default, Role::Work),
    (251, 413, "cuMemsetD32", Default, Role::Work),
    (216, 428, "cuMemsetD8Async", At(24), Role::Work),
    (218, 429, "cuMemsetD16Async", At(24), Role::Work),
    (220, 430, "cuMemsetD32Async", At(24), Role::Work),
    (252, 414, "cuMemsetD2D8", Default, Role::Work),
    (253, 415, "cuMemsetD2D16", Default, Role::Work),
    (254, 416, "cuMemsetD2D32", Default, Role::Work),
    (222, 431, "cuMemsetD2D8Async", At(40), Role::Work),
    (224, 432, "cuMemsetD2D16Async", At(40), Role::Work),
    (226, 433, "cuMemsetD2D32Async", At(40), Role::Work),
    (126, 440, "cuStreamSynchronize", At(0), Role::Wait),
    (295, 436, "cuStreamWaitEvent", At(0), Role::Wait),
    (121, 0, "cuEventSynchronize", Unknown, Role::Wait),
    (17, 0, "cuCtxSynchronize", Unknown, Role::Wait),
];

/// Calls of the runtime, which call the driver inside.
const RUNTIME: [Row; 10] = [
    (211, 214, "cudaLaunchKernel", Unknown, Role::Work),
    (430, 431, "cudaLaunchKernelExC", Unknown, Role::Work),
    // The form that programs compiled with CUDA 13 call.
    (505, 506, "cudaLaunchKernel", Unknown, Role::Work),
    (31, 215, "cudaMemcpy", Unknown, Role::Work),
    (41, 225, "cudaMemcpyAsync", Unknown, Role::Work),
    (51, 235, "cudaMemsetAsync", Unknown, Role::Work),
    (311, 312, "cudaGraphLaunch", Unknown, Role::Work),
    (131, 239, "cudaStreamSynchronize", Unknown, Role::Wait),
    (137, 0, "cudaEventSynchronize", Unknown, Role::Wait),
    (165, 0, "cudaDeviceSynchronize", Unknown, Role::Wait),
];

/// Above all numbers.
const NUMBERS: usize = 1024;

/// For each number, the place of its call in the rows, twice, plus one if it is the second form; [`NONE`] for others.
const NONE: u8 = u8::MAX;
static DRIVER_PLACES: [u8; NUMBERS] = places(&DRIVER);
static RUNTIME_PLACES: [u8; NUMBERS] = places(&RUNTIME);

#[allow(
    clippy::cast_possible_truncation,
    reason = "there are fewer than a hundred rows"
)]
const fn places(rows: &[Row]) -> [u8; NUMBERS] {
    let mut places = [NONE; NUMBERS];
    let mut row = 0;
    while row < rows.len() {
        places[rows[row].0 as usize] = 2 * row as u8;
        if rows[row].1 != 0 {
            places[rows[row].1 as usize] = 2 * row as u8 + 1;
        }
        row += 1;
    }
    places
}

const fn rows(domain: Domain) -> (&'static [Row], &'static [u8; NUMBERS]) {
    match domain {
        Domain::Driver => (&DRIVER, &DRIVER_PLACES),
        Domain::Runtime => (&RUNTIME, &RUNTIME_PLACES),
    }
}

/// Returns the call with a number.
#[inline]
pub(super) fn find(domain: Domain, number: u32) -> Option<Call> {
    let (rows, places) = rows(domain);
    let place = *places.get(number as usize)?;
    let (_, _, name, stream, role) = *rows.get(usize::from(place / 2))?;
    Some(Call {
        domain,
        number,
        name,
        place: stream,
        is_per_thread: place % 2 == 1,
        role,
    })
}

/// Returns all calls that are watched.
pub(super) fn all() -> impl Iterator<Item = Call> {
    let numbers = |domain| {
        let numbers = 0..u32::try_from(NUMBERS).unwrap_or_default();
        numbers.filter_map(move |number| find(domain, number))
    };
    numbers(Domain::Driver).chain(numbers(Domain::Runtime))
}

impl Call {
    /// Returns `true` for the call that all versions of CUPTI know.
    pub(super) fn is_essential(&self) -> bool {
        self.name == "cuLaunchKernel"
    }

    /// Returns the stream that a call of the driver was given.
    ///
    /// # Safety
    ///
    /// `parameters` must be null or point to the parameters of this call, while it runs.
    #[inline]
    pub(super) unsafe fn stream(&self, parameters: *const c_void) -> Option<RawStream> {
        if parameters.is_null() {
            return None;
        }
        let read = |start: *const c_void, offset: usize| {
            // SAFETY: a struct of C has a pointer there, as the rows above say.
            unsafe {
                start
                    .byte_add(offset)
                    .cast::<*mut c_void>()
                    .read_unaligned()
            }
        };
        let stream = match self.place {
            Unknown => return None,
            Default => RawStream::LEGACY,
            At(offset) => RawStream(read(parameters, offset)),
            Inside(offset) => {
                let inside = read(parameters, 0);
                if inside.is_null() {
                    return None;
                }
                RawStream(read(inside, offset))
            }
        };
        Some(if stream.0.is_null() && self.is_per_thread {
            RawStream::PER_THREAD
        } else {
            stream.canonical()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn each_number_has_one_call() {
        let calls: Vec<Call> = all().collect();
        let named = DRIVER.iter().chain(&RUNTIME);
        let expected: usize = named.map(|row| 1 + usize::from(row.1 != 0)).sum();
        assert_eq!(calls.len(), expected, "no number stands twice");
        for call in calls {
            assert_eq!(find(call.domain, call.number), Some(call));
        }
        assert_eq!(find(Domain::Driver, 308), None);
        assert_eq!(find(Domain::Driver, 1 << 20), None);
    }

    #[test]
    fn a_stream_is_read_from_the_parameters() {
        let handle = |number: usize| ptr::without_provenance_mut::<c_void>(number);
        // `cuLaunchKernel`: the function, six extents and the shared memory in 32 bits each, the stream.
        let mut parameters = [handle(0); 8];
        parameters[5] = handle(0x70);
        let launch = find(Domain::Driver, 307).expect("it is watched");
        let stream = |call: Call, parameters: *const c_void| {
            // SAFETY: the parameters are alive and as long as those of the call.
            unsafe { call.stream(parameters) }
        };
        let start = parameters.as_ptr().cast();
        assert_eq!(stream(launch, start), Some(RawStream(handle(0x70))));
        parameters[5] = handle(0);
        let start = parameters.as_ptr().cast();
        assert_eq!(stream(launch, start), Some(RawStream::LEGACY));
        let second = find(Domain::Driver, 442).expect("it is watched");
        assert_eq!(stream(second, start), Some(RawStream::PER_THREAD));
        // `cuLaunchKernelEx`: the stream is in the struct that the first parameter points to.
        let mut config = [handle(0); 6];
        config[4] = handle(0x80);
        let parameters = [config.as_ptr().cast::<c_void>().cast_mut(), handle(0)];
        let extended = find(Domain::Driver, 652).expect("it is watched");
        let read = stream(extended, parameters.as_ptr().cast());
        assert_eq!(read, Some(RawStream(handle(0x80))));
        let copy = find(Domain::Driver, 276).expect("it is watched");
        assert_eq!(stream(copy, start), Some(RawStream::LEGACY));
        for number in [408, 411, 412, 413] {
            let of_thread = find(Domain::Driver, number).expect("it is watched");
            assert_eq!(stream(of_thread, start), Some(RawStream::PER_THREAD));
        }
        // `cuMemsetD2D8Async`: the address, the pitch, the value, two extents, the stream.
        let mut parameters = [handle(1); 6];
        parameters[5] = handle(0x90);
        let fill = find(Domain::Driver, 222).expect("it is watched");
        let read = stream(fill, parameters.as_ptr().cast());
        assert_eq!(read, Some(RawStream(handle(0x90))));
        assert_eq!(stream(launch, ptr::null()), None);
    }
}
