//! Raw identifiers as names of functions, arguments and types.
#![deny(warnings)]

use profiler_runtime::measure_execution_time;

#[allow(non_camel_case_types)]
struct r#struct;

impl r#struct {
    #[measure_execution_time]
    fn r#fn(&self, r#in: u8) -> u8 {
        r#in
    }
}

#[measure_execution_time(bypass = r#type == 1)]
fn r#async(r#type: u8) -> u8 {
    r#type
}

#[measure_execution_time]
mod r#mod {
    pub(crate) fn r#const() -> u8 {
        3
    }
}

fn main() {
    assert_eq!(r#struct.r#fn(1), 1);
    assert_eq!(r#async(2), 2);
    assert_eq!(r#mod::r#const(), 3);
}
