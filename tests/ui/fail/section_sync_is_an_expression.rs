use profiler_runtime::scope;

fn main() {
    let wait = true;
    let _scope = scope!("launch", sync = wait);
}
