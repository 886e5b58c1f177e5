use profiler_runtime::measure;

fn main() {
    measure!("chunk", parent = "outer", {});
}
