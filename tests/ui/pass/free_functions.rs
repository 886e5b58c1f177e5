//! Free functions: with and without arguments, values, attributes and documentation.
#![deny(warnings)]

use profiler_runtime::measure_execution_time;

#[measure_execution_time]
fn nothing() {}

/// Documented.
#[measure_execution_time]
pub(crate) fn sum(one: u32, other: u32) -> u32 {
    one + other
}

#[measure_execution_time()]
fn early(number: i32) -> Result<i32, std::num::TryFromIntError> {
    if number == 0 {
        return Ok(-1);
    }
    let narrow = u8::try_from(number)?;
    Ok(i32::from(narrow))
}

#[measure_execution_time]
fn patterns((one, [_, other]): (u8, [u8; 2]), mut third: u8, _: u8) -> u8 {
    third += 1;
    one + other + third
}

#[measure_execution_time]
fn with_inner_attribute() -> u8 {
    //! Documented inside.
    #![allow(unused_variables)]
    let unused = 1;
    2
}

fn main() {
    #[measure_execution_time]
    fn nested() -> &'static str {
        "nested"
    }

    nothing();
    assert_eq!(sum(1, 2), 3);
    assert_eq!(early(0).ok(), Some(-1));
    assert!(early(256).is_err());
    assert_eq!(patterns((1, [0, 2]), 3, 4), 7);
    assert_eq!(with_inner_attribute(), 2);
    assert_eq!(nested(), "nested");
}
