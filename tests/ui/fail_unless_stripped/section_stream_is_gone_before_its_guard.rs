use cudarc::driver::{CudaContext, CudaStream};
use profiler_runtime::scope;

fn launch(context: &std::sync::Arc<CudaContext>) {
    let _scope = {
        let stream = context.default_stream();
        let stream: &CudaStream = &stream;
        scope!("launch", stream = stream)
    };
}

fn main() {
    let _ = launch;
}
