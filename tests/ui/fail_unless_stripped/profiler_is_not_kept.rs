#![deny(warnings)]

fn main() -> Result<(), profiler_runtime::InitError> {
    profiler_runtime::init();
    profiler_runtime::init()?;
    profiler_runtime::builder().init();
    profiler_runtime::builder();
    Ok(())
}
