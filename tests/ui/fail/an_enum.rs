use profiler_runtime::measure_execution_time;

#[measure_execution_time]
pub(crate) enum Mode {
    Train,
    Test,
}

fn main() {}
