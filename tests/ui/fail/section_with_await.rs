use profiler_runtime::measure_execution_time_context;

async fn load() -> u8 {
    measure_execution_time_context!("load", {
        let later = async { std::future::ready(1).await };
        [std::future::ready(2).await][0] + later.await
    })
}

fn main() {
    drop(load());
}
