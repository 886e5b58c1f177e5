//! The device time of each function, with CUPTI and without, and what is said of operations for which no policy chooses a
//! stream. No function names a stream.

use check::{Program, Ran};

/// What each function launches, in nanoseconds: kernels of a millisecond.
const LAUNCHED: [(&str, f64); 2] = [("layer", 24e6), ("sample", 4e6)];

/// What is launched on an explicit stream.
const EXPLICIT: (&str, f64) = ("sample_on", 1e6);

fn program() -> Program {
    let mut program = Program::new(env!("CARGO_BIN_EXE_cuda-async"), "default-kernel 1ms");
    // The window waits for CUPTI.
    program.command.env("PROFILER_KERNELS", "1");
    program
}

/// The program with an operation on an explicit stream.
fn explicit() -> Program {
    let mut program = program();
    program.command.arg("--explicit");
    program
}

/// Returns the GPU times of a function, in total and its own, if it has any.
fn gpu_ns(ran: &Ran, name: &str) -> Option<(f64, f64)> {
    let averages = ran.timeline.key_averages();
    let row = averages.rows.iter().find(|row| row.name == name);
    let row = row.expect("it ran");
    let times = row.cuda.as_ref()?;
    assert_eq!(times.calls, row.calls, "each call of {name} has a GPU time");
    Some((times.total_ns, times.self_ns))
}

/// Returns the functions that a note below the table names, since they have no stream.
fn without_stream(ran: &Ran) -> Vec<&str> {
    let note = "no GPU time, since no stream is named: ";
    let names = ran.stdout.split_once(note).map(|(_, rest)| rest);
    let names = names.and_then(|rest| rest.split_once(": if they launch"));
    names.map_or_else(Vec::new, |(names, _)| names.split(", ").collect())
}

#[test]
fn kernels_stand_at_the_functions_that_asked_for_them() {
    let ran = explicit().run();
    let all = ran.device_ns();
    for (name, launched) in LAUNCHED.into_iter().chain([EXPLICIT]) {
        assert!((all[name] - launched).abs() < 1.0, "{all:?}");
    }
    assert!(
        ran.share_of(&["layer", "sample", "sample_on"]) >= 0.99,
        "{all:?}"
    );
}

#[test]
fn without_cupti_the_streams_of_the_policy_are_measured() {
    let ran = program().without_cupti().run();
    let mut own = 0.0;
    for (name, launched) in LAUNCHED {
        let (total, self_ns) = gpu_ns(&ran, name).expect("a GPU time");
        // As long as the work, and the moments in which the device waited for the launch.
        assert!(self_ns >= 0.99 * launched, "{name}: {self_ns} ns");
        assert!(
            (total - self_ns).abs() <= 0.001 * total,
            "{name}: {total} {self_ns}"
        );
        own += self_ns;
    }
    assert!(own >= 0.99 * ran.truth_ns());
    // It launches nothing itself, so no stream is bound to it.
    assert_eq!(gpu_ns(&ran, "forward"), None);
    let named = without_stream(&ran);
    assert!(named.iter().all(|name| *name == "forward"), "{named:?}");
}

#[test]
fn without_cupti_an_operation_on_an_explicit_stream_is_noted() {
    let ran = explicit().without_cupti().run();
    assert_eq!(gpu_ns(&ran, "sample_on"), None);
    let named = without_stream(&ran);
    assert!(named.contains(&"sample_on"), "{}", ran.stdout);
    let own = LAUNCHED.map(|(name, _)| gpu_ns(&ran, name).map_or(0.0, |(_, own)| own));
    assert!(own.iter().sum::<f64>() >= 0.99 * 28e6, "{own:?}");
}
