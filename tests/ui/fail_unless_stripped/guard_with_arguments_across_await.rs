use std::future::ready;

use profiler_runtime::measure;

fn spawn(_: impl Future + Send) {}

async fn train(step: u32) {
    let _guard = measure!("train", global_step = step);
    ready(()).await;
}

fn main() {
    spawn(train(1));
}
