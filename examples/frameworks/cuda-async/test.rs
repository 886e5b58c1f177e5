//! The kernels of each function with CUPTI, and what is said without it. No function names a stream.

use check::Program;

/// What each function launches, in nanoseconds: kernels of a millisecond.
const LAUNCHED: [(&str, f64); 3] = [("layer", 24e6), ("sample", 4e6), ("sample_on", 1e6)];

fn program() -> Program {
    let mut program = Program::new(env!("CARGO_BIN_EXE_cuda-async"), "default-kernel 1ms");
    // The window waits for CUPTI.
    program.command.env("PROFILER_KERNELS", "1");
    program
}

#[test]
fn kernels_stand_at_the_functions_that_asked_for_them() {
    let ran = program().run();
    let all = ran.device_ns();
    for (name, launched) in LAUNCHED {
        assert!((all[name] - launched).abs() < 1.0, "{all:?}");
    }
    assert!(
        ran.share_of(&LAUNCHED.map(|(name, _)| name)) >= 0.99,
        "{all:?}"
    );
}

#[test]
fn without_cupti_a_note_names_the_functions_that_have_no_gpu_time() {
    let ran = program().without_cupti().run();
    let averages = ran.timeline.key_averages();
    assert!(averages.rows.iter().all(|row| row.cuda.is_none()));
    let (_, note) = (ran.stdout)
        .split_once("no GPU time, since no stream is named: ")
        .expect("a note");
    let note = note.lines().next().unwrap_or_default();
    assert!(
        LAUNCHED.iter().all(|(name, _)| note.contains(name)),
        "{note}"
    );
}
