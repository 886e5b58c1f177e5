use std::future::ready;

use profiler_runtime::measure;

fn spawn(_: impl Future + Send) {}

fn main() {
    spawn(async {
        let _guard = measure!("train");
        ready(()).await;
    });
}
