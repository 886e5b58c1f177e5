use profiler_runtime::scope;

fn main() {
    let _scope = scope!("load", global_stpe = 1);
}
