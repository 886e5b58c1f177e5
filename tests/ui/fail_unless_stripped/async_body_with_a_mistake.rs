use profiler_runtime::measure_execution_time;

#[measure_execution_time]
async fn number() -> u32 {
    "one"
}

#[measure_execution_time]
async fn waits() -> u32 {
    std::future::ready(()).await;
    "one"
}

#[measure_execution_time]
async fn parsed(text: &str) -> Result<u32, std::fmt::Error> {
    std::future::ready(()).await;
    Ok(text.parse::<u32>()?)
}

fn main() {}
