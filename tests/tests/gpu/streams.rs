//! A scope is measured on the stream it names, else on its thread's current one, else, where that is asked for, on the
//! default stream of the current context; where none of them can be it has no GPU time, and it is said when that is a
//! loss.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::Arc;

use cudarc::driver::CudaStream;
use profiler_runtime::cuda::{
    Stream, clear_current_stream, current_stream, set_current_stream, with_stream,
};
use profiler_runtime::{init, scope, summary};
use profiler_tests::gpu::{Gpu, cuda, driver, exact, name_of, on_a_thread, on_threads, settle};

/// The other name of the legacy default stream, which has none as well.
const LEGACY: *mut c_void = std::ptr::dangling_mut();
const PER_THREAD: *mut c_void = 2 as *mut c_void;

/// Opens a scope that names no stream, and says nothing of one.
fn measure(name: &str) {
    let _scope = scope!(name);
}

/// The streams that a name was measured on.
fn streams(name: &str) -> Vec<String> {
    cuda(name).streams
}

/// A stream by its handle, in the context that is current when it is used.
fn raw(stream: *mut c_void, context: *mut c_void) -> Stream {
    // SAFETY: the tests keep their streams and contexts for as long as they measure.
    unsafe { Stream::from_raw(stream, context) }
}

#[test(on = driver().legacy_stream())]
fn an_argument_comes_before_the_current_stream_and_that_before_the_default_one() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (argument, current, default) = (gpu.stream(), gpu.stream(), gpu.context.default_stream());
    let launch = || {
        gpu.spin(&argument, 10_000);
        gpu.spin(&current, 20_000);
        gpu.spin(&default, 40_000);
    };
    with_stream(&current, || {
        {
            let _scope = scope!("argument", stream = &argument);
            launch();
        }
        let _scope = scope!("current");
        launch();
    });
    {
        let _scope = scope!("default");
        launch();
    }
    gpu.finish();
    exact(cuda("argument").total_ns, 10_000.0);
    exact(cuda("current").total_ns, 20_000.0);
    exact(cuda("default").total_ns, 40_000.0);
    assert_eq!(streams("argument"), [name_of(&argument)]);
    assert_eq!(streams("current"), [name_of(&current)]);
    assert_eq!(streams("default"), ["default"]);
}

#[test(on = driver().legacy_stream())]
fn the_current_stream_nests_and_is_put_back() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let [first, second, third] = [(); 3].map(|()| gpu.stream());
    measure("none");
    assert!(set_current_stream(&first).is_none() && current_stream().is_some());
    measure("set");
    with_stream(&second, || {
        measure("inside");
        with_stream(third.clone(), || measure("deeper"));
        measure("inside again");
        // A stream set inside applies until the inner closure ends.
        set_current_stream(&third);
        measure("set inside");
    });
    measure("put back");
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        with_stream(&second, || {
            let _scope = scope!("panics");
            panic!("as asked");
        })
    }));
    assert!(panicked.is_err());
    measure("put back after a panic");
    on_a_thread(|| {
        assert!(current_stream().is_none(), "it is a thread's own");
        gpu.context.bind_to_thread().expect("nothing failed");
        measure("other thread");
    });
    let before = set_current_stream(&second).expect("the first");
    with_stream(&before, || measure("handed back"));
    assert!(clear_current_stream().is_some() && current_stream().is_none());
    measure("cleared");
    gpu.finish();
    for name in ["set", "put back", "put back after a panic", "handed back"] {
        assert_eq!(streams(name), [name_of(&first)], "{name}");
    }
    for name in ["inside", "inside again", "panics"] {
        assert_eq!(streams(name), [name_of(&second)], "{name}");
    }
    for name in ["deeper", "set inside"] {
        assert_eq!(streams(name), [name_of(&third)], "{name}");
    }
    for name in ["none", "other thread", "cleared"] {
        assert_eq!(streams(name), ["default"], "{name}");
    }
    assert_eq!(summary().cuda.lost, []);
}

#[test(on = driver())]
fn an_open_scope_keeps_its_stream_alive() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    for _ in 0..3 {
        let [argument, current] = [(); 2].map(|()| gpu.stream());
        set_current_stream(current.clone());
        let on_current = scope!("current");
        gpu.spin(&current, 3_000);
        let on_argument = scope!("argument", stream = argument.clone());
        gpu.spin(&argument, 4_000);
        let weak = [Arc::downgrade(&argument), Arc::downgrade(&current)];
        drop((argument, current));
        clear_current_stream();
        assert!(
            weak.iter().all(|stream| stream.upgrade().is_some()),
            "its scope is open"
        );
        drop((on_argument, on_current));
        assert!(
            weak.iter().all(|stream| stream.upgrade().is_none()),
            "nobody needs it"
        );
    }
    gpu.finish();
    exact(cuda("current").total_ns, 9_000.0);
    exact(cuda("argument").total_ns, 12_000.0);
}

#[test(on = driver())]
fn the_per_thread_default_stream_is_another_one_on_each_thread() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let own = gpu.context.per_thread_stream();
    on_threads([5, 50, 500], |microseconds| {
        let _outer = scope!("outer", stream = &own);
        gpu.spin(&own, microseconds * 1_000);
        let _inner = scope!("inner", stream = raw(PER_THREAD, null_mut()));
        gpu.spin(&own, microseconds * 2_000);
    });
    gpu.finish();
    let (outer, inner) = (cuda("outer"), cuda("inner"));
    assert_eq!((outer.calls, inner.calls), (3, 3));
    exact(outer.min_ns, 15_000.0);
    exact(outer.max_ns, 1_500_000.0);
    exact(outer.total_ns, 1_665_000.0);
    exact(outer.self_ns, 555_000.0);
    exact(inner.total_ns, 1_110_000.0);
    exact(outer.other_streams_ns, 0.0);
    assert_eq!(outer.streams.len(), 3, "{:?}", outer.streams);
    assert!(
        outer
            .streams
            .iter()
            .all(|stream| stream.starts_with("per-thread default of thread "))
    );
}

#[test(on = driver())]
fn every_type_that_names_a_stream_is_accepted() {
    let _profiler = init().expect("set up");
    let gpu = Gpu::new(0);
    let (stream, context) = (gpu.stream(), &gpu.context);
    let handles = (stream.cu_stream().cast(), context.cu_ctx().cast());
    macro_rules! measured {
        ($($of:expr => $length:literal on $stream:expr,)*) => {$(
            {
                let _scope = scope!(stringify!($of), stream = $of);
                gpu.spin($stream, $length);
            }
            with_stream($of, || {
                let _scope = scope!(stringify!($of));
                gpu.spin($stream, $length);
            });
            context.synchronize().expect("nothing failed");
            settle();
            exact(cuda(stringify!($of)).total_ns, 2.0 * f64::from($length as u32));
        )*};
    }
    let own = Stream::from(stream.clone());
    let default = context.default_stream();
    measured! {
        &stream => 1_000 on &stream,
        stream.clone() => 2_000 on &stream,
        &own => 4_000 on &stream,
        own.clone() => 5_000 on &stream,
        context => 6_000 on &default,
        context.clone() => 7_000 on &default,
        Stream::from(context.clone()) => 8_000 on &default,
        default.clone() => 9_000 on &default,
        raw(handles.0, handles.1) => 10_000 on &stream,
        raw(handles.0, null_mut()) => 11_000 on &stream,
        raw(null_mut(), handles.1) => 12_000 on &default,
        raw(null_mut(), null_mut()) => 13_000 on &default,
        raw(LEGACY, handles.1) => 14_000 on &default,
    }
    {
        let (lent, of): (&CudaStream, &cudarc::driver::CudaContext) = (&stream, context);
        let _stream = scope!("&CudaStream", stream = lent);
        gpu.spin(&stream, 15_000);
        let _context = scope!("&CudaContext", stream = of);
        gpu.spin(&default, 16_000);
    }
    context.synchronize().expect("nothing failed");
    settle();
    exact(cuda("&CudaStream").total_ns, 15_000.0);
    exact(cuda("&CudaContext").total_ns, 16_000.0);
    assert_eq!(summary().cuda.lost, []);
}
