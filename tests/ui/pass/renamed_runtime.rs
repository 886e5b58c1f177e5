//! The runtime at another path, as where a crate re-exports it.
#![deny(warnings)]

mod facade {
    pub use profiler_runtime as inner;
}

macro_rules! measured {
    ($name:ident) => {
        #[facade::inner::measure_execution_time(crate = $crate::facade::inner)]
        fn $name() {}
    };
}

#[facade::inner::measure_execution_time(crate = facade::inner)]
fn relative() {}

#[facade::inner::measure_execution_time(crate = crate::facade::inner, name = "absolute")]
async fn absolute() {}

#[facade::inner::measure_execution_time(crate = ::profiler_runtime)]
mod inside {
    pub(crate) fn free() {}
}

measured!(made);

fn main() {
    relative();
    drop(absolute());
    inside::free();
    made();
    facade::inner::measure_execution_time_context!("section", {});
}
