// Off by default. `let _ = …` drops the guard at once, and nothing else reports that.
#![deny(let_underscore_drop)]

use profiler_runtime::measure;

fn main() -> Result<(), profiler_runtime::InitError> {
    let _ = profiler_runtime::init()?;
    let _ = measure!("load");
    let _ = measure!("load", global_step = 1);
    Ok(())
}
