use profiler_runtime::measure_execution_time;

struct Shape;

#[measure_execution_time]
impl Shape {
    #[measure_execution_time(log_every = 2)]
    pub const fn sides(&self) -> u32 {
        4
    }
}

fn main() {}
