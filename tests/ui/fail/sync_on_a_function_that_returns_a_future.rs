use profiler_runtime::measure_execution_time;

#[measure_execution_time(sync)]
fn train() -> impl Future<Output = ()> {
    async {}
}

fn main() {}
