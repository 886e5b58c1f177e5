use profiler_runtime::scope;

fn main() {
    let _scope = scope!("linear", shapes = (2, 3));
}
