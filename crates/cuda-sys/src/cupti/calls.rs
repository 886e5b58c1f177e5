//! The calls of CUDA that launch kernels, copy, fill or wait, and are watched: their numbers in CUPTI, their names, their
//! streams and their sizes. Work of other calls, such as copies of CUDA arrays, is recorded too, outside of all scopes.

#[cfg(test)]
mod declared;

use std::ffi::c_void;

use super::Domain;
use crate::driver::{RawContext, RawStream};

/// The effect of a call that succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It launches work, of which there is a record.
    Work,
    /// It launches work of which there may be no record: a graph may be empty.
    MaybeWork,
    /// When it returns, all work has finished that was launched on its stream before.
    StreamFinished,
    /// When it returns, all work has finished that was launched in its context before: see [`Call::context`].
    ContextFinished,
    /// Neither: it waits for an event, or copies no bytes.
    Nothing,
}

impl Effect {
    /// Returns `true` if the call may launch work.
    #[inline]
    pub fn is_work(self) -> bool {
        matches!(self, Self::Work | Self::MaybeWork)
    }
}

/// A call that is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The interface that its function belongs to.
    pub domain: Domain,
    /// CUPTI's number of the function: a `CUpti_CallbackId`.
    pub number: u32,
    /// The name of its function, without the suffix of a version.
    pub name: &'static str,
    /// Where its stream is.
    place: StreamPlace,
    /// `true` if the null stream means the per-thread default stream: the function's second form, which programs get
    /// that are compiled with per-thread default streams.
    is_per_thread: bool,
    effect: Effect,
    extent: Extent,
}

/// Where a function's parameters have the size of a copy or a fill: numbers of 64 bits, of which none is zero if there is
/// anything to do. CUPTI has no record of a copy of no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// It has none.
    Unknown,
    /// At these offsets.
    Given(&'static [usize]),
    /// In the struct that the first parameter points to, at these offsets.
    Pointed(&'static [usize]),
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
    /// It has none, and has the context that it waits for at this offset.
    Context(usize),
}

use StreamPlace::{At, Context, Default, Inside, Unknown};

#[cfg(test)]
pub(crate) use self::declared::declared;

/// Calls: CUPTI's number, the number of the second form (0 if it has none), the name, the stream, the effect.
type Row = (u32, u32, &'static str, StreamPlace, Effect);

/// After an address.
const PREFETCHED_BYTES: Extent = Extent::Given(&[8]);
/// After two addresses, or an address and a value.
const BYTES: Extent = Extent::Given(&[16]);
/// After two addresses with their contexts.
const PEER_BYTES: Extent = Extent::Given(&[32]);
/// The width and the height of a fill, after the address, the pitch and the value.
const FILL_2D: Extent = Extent::Given(&[24, 32]);
/// `CUDA_MEMCPY2D`: the width in bytes and the height.
const COPY_2D: Extent = Extent::Pointed(&[112, 120]);
/// `CUDA_MEMCPY3D` and `CUDA_MEMCPY3D_PEER`: the width in bytes, the height and the depth.
const COPY_3D: Extent = Extent::Pointed(&[176, 184, 192]);

/// Returns the size of a call, by its name.
#[inline]
const fn extent_of(name: &str) -> Extent {
    match name.as_bytes() {
        b"cuMemcpyPeer" | b"cuMemcpyPeerAsync" => PEER_BYTES,
        b"cuMemcpy2D" | b"cuMemcpy2DUnaligned" | b"cuMemcpy2DAsync" => COPY_2D,
        b"cuMemcpy3D" | b"cuMemcpy3DPeer" | b"cuMemcpy3DAsync" | b"cuMemcpy3DPeerAsync" => COPY_3D,
        b"cuMemPrefetchAsync" => PREFETCHED_BYTES,
        // Several copies, or a struct of several forms.
        b"cuMemcpyBatchAsync"
        | b"cuMemcpy3DBatchAsync"
        | b"cuMemcpy3DWithAttributesAsync"
        | b"cuMemPrefetchBatchAsync"
        | b"cuMemDiscardAndPrefetchBatchAsync" => Extent::Unknown,
        [
            b'c',
            b'u',
            b'M',
            b'e',
            b'm',
            b's',
            b'e',
            b't',
            b'D',
            b'2',
            b'D',
            ..,
        ] => FILL_2D,
        [b'c', b'u', b'M', b'e', b'm', ..] | [b'c', b'u', b'd', b'a', b'M', b'e', b'm', ..] => {
            BYTES
        }
        _ => Extent::Unknown,
    }
}

const DRIVER: [Row; 48] = [
    (307, 442, "cuLaunchKernel", At(40), Effect::Work),
    // `CUlaunchConfig`: seven numbers of 32 bits, then the stream.
    (652, 653, "cuLaunchKernelEx", Inside(32), Effect::Work),
    (477, 478, "cuLaunchCooperativeKernel", At(40), Effect::Work),
    (514, 515, "cuGraphLaunch", At(8), Effect::MaybeWork),
    (276, 397, "cuMemcpyHtoD", Default, Effect::Work),
    (278, 398, "cuMemcpyDtoH", Default, Effect::Work),
    (280, 399, "cuMemcpyDtoD", Default, Effect::Work),
    (305, 408, "cuMemcpy", Default, Effect::Work),
    (318, 409, "cuMemcpyPeer", Default, Effect::Work),
    (287, 405, "cuMemcpy2D", Default, Effect::Work),
    (288, 406, "cuMemcpy2DUnaligned", Default, Effect::Work),
    (290, 407, "cuMemcpy3D", Default, Effect::Work),
    (320, 410, "cuMemcpy3DPeer", Default, Effect::Work),
    (277, 421, "cuMemcpyHtoDAsync", At(24), Effect::Work),
    (279, 422, "cuMemcpyDtoHAsync", At(24), Effect::Work),
    (281, 423, "cuMemcpyDtoDAsync", At(24), Effect::Work),
    (306, 418, "cuMemcpyAsync", At(24), Effect::Work),
    (319, 426, "cuMemcpyPeerAsync", At(40), Effect::Work),
    (289, 424, "cuMemcpy2DAsync", At(8), Effect::Work),
    (291, 425, "cuMemcpy3DAsync", At(8), Effect::Work),
    (321, 427, "cuMemcpy3DPeerAsync", At(8), Effect::Work),
    (776, 777, "cuMemcpyBatchAsync", At(64), Effect::MaybeWork),
    // The second versions, from CUDA 13.0 on.
    (796, 797, "cuMemcpyBatchAsync", At(56), Effect::MaybeWork),
    (778, 779, "cuMemcpy3DBatchAsync", At(32), Effect::MaybeWork),
    (798, 799, "cuMemcpy3DBatchAsync", At(24), Effect::MaybeWork),
    // Newer than CUDA 13.0.
    (
        837,
        838,
        "cuMemcpyWithAttributesAsync",
        At(32),
        Effect::Work,
    ),
    (
        839,
        840,
        "cuMemcpy3DWithAttributesAsync",
        At(16),
        Effect::MaybeWork,
    ),
    // CUPTI may record what they move as counters of managed memory alone.
    (467, 468, "cuMemPrefetchAsync", At(24), Effect::MaybeWork),
    (716, 717, "cuMemPrefetchAsync", At(32), Effect::MaybeWork),
    (
        784,
        785,
        "cuMemPrefetchBatchAsync",
        At(56),
        Effect::MaybeWork,
    ),
    (
        791,
        792,
        "cuMemDiscardAndPrefetchBatchAsync",
        At(56),
        Effect::MaybeWork,
    ),
    (249, 411, "cuMemsetD8", Default, Effect::Work),
    (250, 412, "cuMemsetD16", Default, Effect::Work),
    (251, 413, "cuMemsetD32", Default, Effect::Work),
    (216, 428, "cuMemsetD8Async", At(24), Effect::Work),
    (218, 429, "cuMemsetD16Async", At(24), Effect::Work),
    (220, 430, "cuMemsetD32Async", At(24), Effect::Work),
    (252, 414, "cuMemsetD2D8", Default, Effect::Work),
    (253, 415, "cuMemsetD2D16", Default, Effect::Work),
    (254, 416, "cuMemsetD2D32", Default, Effect::Work),
    (222, 431, "cuMemsetD2D8Async", At(40), Effect::Work),
    (224, 432, "cuMemsetD2D16Async", At(40), Effect::Work),
    (226, 433, "cuMemsetD2D32Async", At(40), Effect::Work),
    (
        126,
        440,
        "cuStreamSynchronize",
        At(0),
        Effect::StreamFinished,
    ),
    (295, 436, "cuStreamWaitEvent", At(0), Effect::Nothing),
    (121, 0, "cuEventSynchronize", Unknown, Effect::Nothing),
    (17, 0, "cuCtxSynchronize", Unknown, Effect::ContextFinished),
    // From CUDA 13.0 on, with the context.
    (
        800,
        0,
        "cuCtxSynchronize",
        Context(0),
        Effect::ContextFinished,
    ),
];

/// Calls of the runtime, which call the driver inside.
const RUNTIME: [Row; 10] = [
    (211, 214, "cudaLaunchKernel", Unknown, Effect::Work),
    (430, 431, "cudaLaunchKernelExC", Unknown, Effect::Work),
    // The form that programs compiled with CUDA 13 call.
    (505, 506, "cudaLaunchKernel", Unknown, Effect::Work),
    (31, 215, "cudaMemcpy", Unknown, Effect::Work),
    (41, 225, "cudaMemcpyAsync", Unknown, Effect::Work),
    (51, 235, "cudaMemsetAsync", Unknown, Effect::Work),
    (311, 312, "cudaGraphLaunch", Unknown, Effect::MaybeWork),
    (131, 239, "cudaStreamSynchronize", Unknown, Effect::Nothing),
    (137, 0, "cudaEventSynchronize", Unknown, Effect::Nothing),
    (
        165,
        0,
        "cudaDeviceSynchronize",
        Unknown,
        Effect::ContextFinished,
    ),
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

#[inline]
const fn rows(domain: Domain) -> (&'static [Row], &'static [u8; NUMBERS]) {
    match domain {
        Domain::Driver => (&DRIVER, &DRIVER_PLACES),
        Domain::Runtime => (&RUNTIME, &RUNTIME_PLACES),
    }
}

/// Returns the call with a number.
#[inline]
pub fn find(domain: Domain, number: u32) -> Option<Call> {
    let (rows, places) = rows(domain);
    let place = *places.get(number as usize)?;
    let (_, _, name, stream, effect) = *rows.get(usize::from(place / 2))?;
    Some(Call {
        domain,
        number,
        name,
        place: stream,
        is_per_thread: place % 2 == 1,
        effect,
        extent: extent_of(name),
    })
}

/// Returns all calls that are watched.
pub fn all() -> impl Iterator<Item = Call> {
    let numbers = |domain| {
        let numbers = 0..u32::try_from(NUMBERS).unwrap_or_default();
        numbers.filter_map(move |number| find(domain, number))
    };
    numbers(Domain::Driver).chain(numbers(Domain::Runtime))
}

impl Call {
    /// Returns `true` for the call that all versions of CUPTI know.
    pub fn is_essential(&self) -> bool {
        self.name == "cuLaunchKernel"
    }

    /// Returns `true` if the call launches work, if there is any to do.
    #[inline]
    pub fn is_work(&self) -> bool {
        self.effect.is_work()
    }

    /// Returns the effect of the call: nothing for a copy or a fill of no bytes.
    ///
    /// # Safety
    ///
    /// `parameters` must be null or point to the parameters of this call, while it runs.
    #[inline]
    pub unsafe fn effect(&self, parameters: *const c_void) -> Effect {
        let (start, places) = match self.extent {
            Extent::Unknown => return self.effect,
            Extent::Given(places) => (parameters, places),
            // SAFETY: as the caller promises; the first parameter is a pointer.
            Extent::Pointed(places) => (unsafe { pointer_at(parameters, 0) }.cast_const(), places),
        };
        let is_empty = |place: &usize| {
            // SAFETY: a struct of C has a `size_t` there, as the rows above say. The first parameter points to one.
            !start.is_null()
                && unsafe { start.byte_add(*place).cast::<usize>().read_unaligned() } == 0
        };
        if places.iter().any(is_empty) {
            Effect::Nothing
        } else {
            self.effect
        }
    }

    /// Returns the stream that a call of the driver was given.
    ///
    /// # Safety
    ///
    /// As for [`effect`](Self::effect).
    #[inline]
    pub unsafe fn stream(&self, parameters: *const c_void) -> Option<RawStream> {
        if parameters.is_null() {
            return None;
        }
        let stream = match self.place {
            Unknown | Context(_) => return None,
            Default => RawStream::LEGACY,
            // SAFETY: as the caller promises; the rows above say where.
            At(offset) => RawStream(unsafe { pointer_at(parameters, offset) }),
            Inside(offset) => {
                // SAFETY: as above.
                let inside = unsafe { pointer_at(parameters, 0) };
                if inside.is_null() {
                    return None;
                }
                // SAFETY: the first parameter points to a struct that has the stream there.
                RawStream(unsafe { pointer_at(inside, offset) })
            }
        };
        Some(if stream.0.is_null() && self.is_per_thread {
            RawStream::PER_THREAD
        } else {
            stream.canonical()
        })
    }

    /// Returns the context that a call of the driver was given to wait for; `None` for all other calls, which run in the
    /// current one.
    ///
    /// # Safety
    ///
    /// As for [`effect`](Self::effect).
    #[inline]
    pub unsafe fn context(&self, parameters: *const c_void) -> Option<RawContext> {
        let Context(offset) = self.place else {
            return None;
        };
        // SAFETY: as the caller promises; the rows above say where.
        let context = RawContext(unsafe { pointer_at(parameters, offset) });
        (context != RawContext::NONE).then_some(context)
    }
}

/// Reads a pointer from a struct of C; null if the struct is.
///
/// # Safety
///
/// `start` must be null, or a pointer must stand at this offset.
#[inline]
unsafe fn pointer_at(start: *const c_void, offset: usize) -> *mut c_void {
    if start.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: as the caller promises.
    unsafe {
        start
            .byte_add(offset)
            .cast::<*mut c_void>()
            .read_unaligned()
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

    #[test]
    fn a_wait_for_another_context_says_which() {
        let handle = ptr::without_provenance_mut::<c_void>(0x70);
        let context = |number, given: *mut c_void| {
            let call = find(Domain::Driver, number).expect("it is watched");
            let parameters = [given];
            // SAFETY: the parameters are alive and as long as those of the call.
            unsafe { call.context(parameters.as_ptr().cast()) }
        };
        assert_eq!(context(800, handle), Some(RawContext(handle)));
        assert_eq!(context(800, ptr::null_mut()), None);
        assert_eq!(context(17, handle), None, "it has no parameter");
    }

    #[test]
    fn calls_of_cuda_13_have_their_streams_and_contexts() {
        let handle = |number: usize| ptr::without_provenance_mut::<c_void>(number);
        // `cuMemcpyBatchAsync` of CUDA 12.8 and 13.0, `cuMemcpy3DBatchAsync` of both, the copies with attributes, and
        // prefetches: the number, the place of the stream among eight bytes each.
        for (number, place) in [
            (776, 8),
            (797, 7),
            (779, 4),
            (798, 3),
            (837, 4),
            (840, 2),
            (467, 3),
            (717, 4),
            (784, 7),
            (792, 7),
        ] {
            let mut parameters = [handle(1); 9];
            parameters[place] = handle(0x70);
            let call = find(Domain::Driver, number).expect("it is watched");
            // SAFETY: the parameters are alive and as long as those of the call.
            let (stream, effect) = unsafe {
                let start = parameters.as_ptr().cast();
                (call.stream(start), call.effect(start))
            };
            assert_eq!(stream, Some(RawStream(handle(0x70))), "{}", call.name);
            assert!(effect.is_work(), "{}", call.name);
        }
        // `cuMemPrefetchAsync`: the bytes follow the address.
        let call = find(Domain::Driver, 716).expect("it is watched");
        let parameters = [1_usize, 0, 0, 0, 2];
        // SAFETY: as above.
        let effect = unsafe { call.effect(parameters.as_ptr().cast()) };
        assert_eq!(effect, Effect::Nothing);
        // `cuCtxSynchronize_v2` waits for the context that it is given.
        let call = find(Domain::Driver, 800).expect("it is watched");
        let parameters = [handle(0x90)];
        let start = parameters.as_ptr().cast();
        // SAFETY: as above.
        let read = unsafe { (call.effect(start), call.context(start), call.stream(start)) };
        assert_eq!(
            read,
            (
                Effect::ContextFinished,
                Some(RawContext(handle(0x90))),
                None
            )
        );
        let current = find(Domain::Driver, 17).expect("it is watched");
        // SAFETY: this call has no parameters.
        assert_eq!(unsafe { current.context(ptr::null()) }, None);
    }

    #[test]
    fn copies_and_fills_of_no_bytes_have_no_effect() {
        let effect = |number: u32, parameters: &[usize]| {
            let call = find(Domain::Driver, number).expect("it is watched");
            // SAFETY: the parameters are alive and as long as those of the call.
            unsafe { call.effect(parameters.as_ptr().cast()) }
        };
        // `cuMemcpyHtoD`, `cuMemcpyPeer`, `cuMemsetD8`, `cuMemsetD2D8Async`: where they have their sizes.
        let sized: [(u32, &[usize]); 4] = [(276, &[2]), (318, &[4]), (249, &[2]), (222, &[3, 4])];
        for (number, places) in sized {
            for place in places {
                let mut parameters = [1; 6];
                assert_eq!(effect(number, &parameters), Effect::Work, "{number}");
                parameters[*place] = 0;
                assert_eq!(effect(number, &parameters), Effect::Nothing, "{number}");
            }
        }
        // `cuMemcpy3DAsync`: the depth is the last number of its struct.
        let mut copy = [1_usize; 25];
        let of = |copy: &[usize; 25]| effect(291, &[copy.as_ptr().addr(), 0]);
        copy[..22].fill(0);
        assert_eq!(of(&copy), Effect::Work);
        copy[24] = 0;
        assert_eq!(of(&copy), Effect::Nothing);
        let call = find(Domain::Runtime, 41).expect("it is watched");
        // SAFETY: there are no parameters.
        let unknown = unsafe { call.effect(ptr::null()) };
        assert_eq!(unknown, Effect::Work);
        assert_eq!(effect(307, &[0; 8]), Effect::Work);
        assert_eq!(effect(514, &[0; 2]), Effect::MaybeWork);
        assert_eq!(effect(126, &[0]), Effect::StreamFinished);
    }
}
