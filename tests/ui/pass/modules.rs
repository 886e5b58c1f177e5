//! An inline module with one of everything that a module can hold.
#![deny(warnings)]
#![allow(dead_code, unused_braces)]

use profiler_runtime::measure_execution_time;

#[measure_execution_time]
mod everything {
    #![allow(unused_imports)]
    //! Documented inside.

    use std::{fmt, fmt::Write as _};
    extern crate std as other;

    pub const LIMIT: usize = { 2 * 3 };
    static NAME: &str = { "name" };
    type Pair<T> = (T, T);

    pub struct Unit;
    pub struct Tuple<T>(pub T)
    where
        T: Copy;
    #[derive(Debug, Clone)]
    pub struct Fields<const N: usize = { 1 + 2 }> {
        values: [u8; N],
    }
    pub enum Choice {
        One,
        Two { field: u8 },
    }
    pub union Either {
        one: u8,
        other: i8,
    }

    unsafe extern "C" {
        fn abs(value: i32) -> i32;
    }

    macro_rules! local {
        () => {
            1
        };
    }
    std::thread_local! {
        static COUNT: std::cell::Cell<u8> = const { std::cell::Cell::new(0) };
    }

    pub const fn constant() -> usize {
        LIMIT
    }

    pub fn free() -> usize {
        local!() + constant()
    }

    pub extern "C" fn exported() -> i32 {
        // SAFETY: every `i32` but the least has an absolute value.
        unsafe { abs(-4) }
    }

    pub trait Shape {
        fn area(&self) -> u32;

        fn double(&self) -> u32 {
            2 * self.area()
        }

        #[measure_execution_time(skip)]
        fn half(&self) -> u32 {
            self.area() / 2
        }
    }

    impl Shape for Unit {
        fn area(&self) -> u32 {
            1
        }
    }

    #[measure_execution_time(skip)]
    impl Unit {
        pub fn left_out(&self) {}
    }

    pub mod nested {
        pub fn deep() -> &'static str {
            super::NAME
        }
    }

    const _: () = {
        const fn inside() {}
        inside();
    };

    #[cfg(test)]
    mod tests {
        #[test]
        fn tested() {}
    }
}

fn main() {
    use everything::Shape as _;

    assert_eq!(everything::free(), 7);
    assert_eq!(everything::exported(), 4);
    assert_eq!(everything::Unit.double(), 2);
    assert_eq!(everything::Unit.half(), 0);
    everything::Unit.left_out();
    assert_eq!(everything::nested::deep(), "name");
}
