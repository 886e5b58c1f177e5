//! Functions that `macro_rules!` make, from fragments of every kind.
#![deny(warnings)]

use profiler_runtime::measure_execution_time;

macro_rules! from_parts {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block) => {
        #[measure_execution_time]
        $(#[$meta])*
        $vis fn $name($($arg: $ty),*) -> $ret $body
    };
}

macro_rules! from_item {
    ($item:item) => {
        #[measure_execution_time]
        $item
    };
}

macro_rules! from_tokens {
    ($($tokens:tt)*) => {
        #[measure_execution_time]
        $($tokens)*
    };
}

macro_rules! with_arguments {
    ($name:ident, $label:literal, $skip:expr, $value:expr) => {
        #[measure_execution_time(name = $label, bypass = $skip)]
        fn $name() -> u8 {
            $value
        }
    };
}

macro_rules! methods {
    ($type:ident { $($name:ident => $value:expr),* }) => {
        #[measure_execution_time]
        impl $type {
            $(fn $name(&self) -> u8 { $value })*
        }
    };
}

macro_rules! futures {
    ($name:ident, $ret:ty, $value:expr) => {
        #[measure_execution_time]
        async fn $name() -> $ret {
            $value
        }
    };
}

from_parts! {
    #[inline]
    pub(crate) fn parts(one: u8, other: u8) -> u8 {
        one + other
    }
}
from_parts!(
    fn private() -> Vec<u8> {
        Vec::new()
    }
);
from_item! {
    fn item() -> u8 { 1 }
}
from_item! {
    mod inside {
        pub(crate) fn item() -> u8 { 2 }
    }
}
from_tokens! {
    pub fn tokens() -> u8 { 3 }
}
with_arguments!(labelled, "a label", 1 > 2, 4);

struct Made;
methods!(Made { first => 5, second => 6 });
futures!(later, u8, 7);

fn main() {
    assert_eq!(parts(1, 2), 3);
    assert!(private().is_empty());
    assert_eq!(item() + inside::item() + tokens() + labelled(), 10);
    assert_eq!(Made.first() + Made.second(), 11);
    drop(later());
}
