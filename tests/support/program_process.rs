//! What a process does to itself that its profiler must neither be harmed by nor pass on: signals, limits, pipes
//! without a reader.

use profiler_runtime::measure_execution_time_context;

fn measured() {
    for number in 0..100_u64 {
        measure_execution_time_context!("train/step", { std::hint::black_box(number) });
    }
}

/// The mode's name, where it is one of these.
pub(crate) fn run(mode: &str, _count: u64) -> bool {
    match mode {
        "privileges" => show_privileges(),
        _ => return false,
    }
    true
}

/// Whether the system says that the process may do more than who started it.
fn show_privileges() {
    // SAFETY: asks for a number that the kernel has given the process.
    let is_raised = unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    println!("raised {is_raised}");
    measured();
}
