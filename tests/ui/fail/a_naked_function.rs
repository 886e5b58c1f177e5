use profiler_runtime::measure_execution_time;

#[measure_execution_time]
#[unsafe(naked)]
extern "C" fn nothing() {
    core::arch::naked_asm!("ret")
}

fn main() {}
