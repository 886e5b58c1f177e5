//! Kernels of Burn stand at the functions that asked for them, or, fused, in a row of their own.

use check::{Program, Ran};

/// As for CubeCL: CUPTI has time to start, and the profiler's crates must not wait for a device.
const SCRIPT: &str = "default-kernel 30us; fault cuModuleLoadData nth 1 delay 2s; \
                      fault cuModuleLoadDataEx nth 1 delay 2s; synchronise abort-from profiler_";

fn ran() -> Ran {
    Program::new(env!("CARGO_BIN_EXE_with-burn"), SCRIPT).run()
}

/// Returns what Burn says of `scale`, which asks for one kernel or two.
fn time_by_burn(ran: &Ran) -> f64 {
    let mut lines = ran.stdout.lines();
    let time = lines.find_map(|line| line.strip_prefix("scale: ")?.strip_suffix(" ns by Burn"));
    time.expect("a time").parse().expect("a number")
}

#[cfg(not(feature = "fusion"))]
#[test]
fn kernels_stand_at_the_functions_that_asked() {
    let ran = ran();
    let at = ran.device_ns();
    // The ten steps, and one that Burn times. Both functions ask for two kernels.
    for (function, kernels) in [("load", 1), ("scale", 22), ("activate", 20)] {
        let ns = at.get(&format!("with_burn::{function}"));
        assert_eq!(
            ns,
            Some(&(f64::from(kernels) * 30_000.0)),
            "{function}: {at:?}"
        );
    }
    let share = ran.share_of(&["with_burn::load", "with_burn::scale", "with_burn::activate"]);
    assert!(share >= 0.99, "{share}: {at:?}");
    assert!(time_by_burn(&ran) >= 60_000.0, "{}", ran.stdout);
}

#[cfg(feature = "fusion")]
#[test]
fn fused_kernels_stand_in_a_row_of_their_own() {
    let ran = ran();
    let at = ran.device_ns();
    let share = ran.share_of(&["fused by Burn"]);
    assert!(share >= 0.99, "{share}: {at:?}");
    for function in ["scale", "activate"] {
        assert_eq!(at.get(&format!("with_burn::{function}")), None, "{at:?}");
    }
    assert!(ran.report.kernels().count() < 43, "nothing was fused");
    assert!(time_by_burn(&ran) >= 30_000.0, "{}", ran.stdout);
}
