//! What was so while a device waited.

use super::tests::Drawn;
use super::{Drained, Meanwhile};

/// What the sentences say of the thread, and of others, by samples of its time on a processor.
fn said(samples: &[(i64, i64, i64)]) -> String {
    let (mut drawn, main) = drawn();
    drawn.scope(main, "next_batch", (18, 39), None);
    let loader = drawn.thread(2);
    drawn.scope(loader, "decode", (0, 60), None);
    drawn.processor(main, samples);
    drawn.0.gpu_idle().devices[0].verdict()
}

#[test]
fn a_thread_that_works_is_told_from_one_that_waits() {
    let waited = "While the GPU waited for `next_batch`, the thread ";
    let meanwhile = "Meanwhile, another thread was in `decode` for 100 % of that time.";
    // It kept the device waiting from 20 to 39 µs.
    for (samples, expected, has_meanwhile) in [
        (
            &[(0, 0, 0), (50, 50, 0)][..],
            Some("computed for at least 100 % of the time."),
            false,
        ),
        (
            &[(0, 0, 0), (50, 3, 1)],
            Some(
                "was off the processor for at least 79 % of the time: it slept, or waited, as for a lock or for I/O.",
            ),
            true,
        ),
        (
            &[(0, 0, 0), (50, 3, 46)],
            Some(
                "was ready to run for at least 79 % of the time, and no processor was free for it.",
            ),
            true,
        ),
        // It may have done any of it at another time.
        (&[(0, 0, 0), (50, 30, 0)], None, true),
        (&[(0, 0, 0), (20, 0, 0)], None, true),
        (&[], None, true),
    ] {
        let text = said(samples);
        match expected {
            Some(expected) => assert!(text.contains(&format!("{waited}{expected}")), "{text}"),
            None => assert!(!text.contains(waited), "{text}"),
        }
        assert_eq!(text.contains(meanwhile), has_meanwhile, "{text}");
    }
}

/// Two kernels, from 10 to 20 µs and from 42 to 50 µs; the second one is launched at 40 µs.
fn drawn() -> (Drawn, u32) {
    let mut drawn = Drawn::new(60);
    let (main, stream) = (drawn.thread(1), drawn.stream(0, 7));
    let [first, second] = [1, 40].map(|at| drawn.launch(main, (at, at + 1)));
    drawn.work(stream, (10, 20), Some(first));
    drawn.work(stream, (42, 50), Some(second));
    let name = drawn.name("cuLaunchKernel");
    for launch in &mut drawn.0.launches {
        launch.name = name;
    }
    (drawn, main)
}

fn drained(drawn: &Drawn) -> Vec<Drained> {
    drawn.0.gpu_idle().devices[0].drained.clone()
}

fn of(call: &str, scope: Option<&str>) -> Vec<Drained> {
    vec![Drained {
        call: call.to_owned(),
        scope: scope.map(str::to_owned),
        idle_ns: 21_000,
        times: 1,
        ..Drained::default()
    }]
}

#[test]
fn a_thread_that_waited_as_the_device_ran_out_drained_it_and_is_charged_as_before() {
    let (mut drawn, main) = drawn();
    drawn.scope(main, "log_loss", (28, 60), None);
    let optimizer = drawn.scope(main, "optimizer", (0, 28), None);
    let wait = drawn.launch(main, (5, 28));
    let name = drawn.name("cuStreamSynchronize");
    let call = &mut drawn.0.launches[wait as usize];
    (call.name, call.parent) = (name, Some(optimizer));
    assert_eq!(
        drained(&drawn),
        of("cuStreamSynchronize", Some("optimizer"))
    );
    let idle = drawn.0.gpu_idle();
    let charges = idle.devices[0].charges.iter();
    let charges: Vec<_> = charges
        .map(|charge| (charge.name.as_deref(), charge.idle_ns))
        .collect();
    assert_eq!(
        charges,
        [(Some("log_loss"), 13_000), (Some("optimizer"), 8_000)]
    );
    // A thread that came back earlier, or launched the work later, had not waited.
    for span in [(5, 19), (21, 28)] {
        let call = &mut drawn.0.launches[wait as usize];
        (call.start_ns, call.duration_ns) = (span.0 * 1000, (span.1 - span.0) * 1000);
        assert_eq!(drained(&drawn), []);
    }
}

#[test]
fn calls_of_cuda_that_are_slices_drain_too_and_the_function_around_them_is_named() {
    let (mut drawn, main) = drawn();
    let step = drawn.scope(main, "step", (0, 60), None);
    let outer = drawn.scope(main, "cudaStreamSynchronize", (5, 28), Some(step));
    drawn.scope(main, "cuStreamSynchronize", (6, 27), Some(outer));
    assert_eq!(drained(&drawn), of("cuStreamSynchronize", Some("step")));
}

#[test]
fn only_functions_of_cuda_that_wait_drain() {
    for name in [
        "customMemcpy",
        "cuLaunchKernel",
        "synchronize",
        "cudaGraphLaunch",
        "cudaFreeAsync",
        "cuMemFreeAsync",
    ] {
        let (mut drawn, main) = drawn();
        drawn.scope(main, name, (5, 28), None);
        assert_eq!(drained(&drawn), [], "{name}");
    }
    for name in [
        "cudaMemcpy",
        "hipDeviceSynchronize",
        "cuEventSynchronize",
        "cudaFree",
    ] {
        let (mut drawn, main) = drawn();
        drawn.scope(main, name, (5, 28), None);
        assert_eq!(drained(&drawn), of(name, None), "{name}");
    }
}

#[test]
fn an_asynchronous_copy_drains_only_if_it_lasted_as_one_that_waits() {
    for (begin, expected) in [
        (10, of("cudaMemcpyAsync", None)),
        // As fast as a launch: the device ran out by chance.
        (11, Vec::new()),
    ] {
        let (mut drawn, main) = drawn();
        drawn.scope(main, "cudaMemcpyAsync", (begin, 28), None);
        assert_eq!(drained(&drawn), expected);
    }
}

#[test]
fn what_other_threads_ran_is_listed_and_moves_no_charge() {
    let (mut drawn, main) = drawn();
    drawn.scope(main, "next_batch", (18, 39), None);
    let loaders = [drawn.thread(2), drawn.thread(3)];
    drawn.scope(loaders[0], "decode", (0, 30), None);
    drawn.scope(loaders[1], "decode", (25, 35), None);
    drawn.scope(loaders[1], "read", (37, 60), None);
    let other = drawn.thread(4);
    drawn.0.tracks[other as usize].process = 9;
    drawn.scope(other, "elsewhere", (0, 60), None);
    let idle = drawn.0.gpu_idle();
    let device = &idle.devices[0];
    let charges = device.charges.iter();
    let charges: Vec<_> = charges
        .map(|charge| (charge.name.as_deref(), charge.idle_ns))
        .collect();
    assert_eq!(charges, [(Some("next_batch"), 19_000), (None, 2_000)]);
    let named = device.named.as_ref().expect("a function is named");
    assert_eq!((named.half_in, named.of), (1, 1));
    let meanwhile = |name: &str, ns| Meanwhile {
        name: name.to_owned(),
        ns,
        ..Meanwhile::default()
    };
    assert_eq!(
        named.meanwhile,
        [meanwhile("decode", 15_000), meanwhile("read", 2_000)]
    );
    assert!(
        device
            .verdict()
            .contains("Meanwhile, another thread was in `decode` for 79 % of that time."),
        "{}",
        device.verdict()
    );
}
