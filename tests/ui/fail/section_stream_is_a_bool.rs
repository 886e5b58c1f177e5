use profiler_runtime::scope;

fn main() {
    let _scope = scope!("launch", stream = true);
}
