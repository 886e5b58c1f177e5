//! On an `impl` block or an inline module the attribute measures what can be measured, and leaves
//! the rest as it is: on, off, stripped.

use profiler_runtime::measure_execution_time;
use profiler_tests::counts::{assert_calls, calls, expected};

const HERE: &str = module_path!();

struct Model<T, const N: usize> {
    weights: [T; N],
}

macro_rules! made {
    () => {
        fn made() -> u8 {
            9
        }
    };
}

#[measure_execution_time(log_every = 10)]
impl<T: Copy + Into<f64>, const N: usize> Model<T, N>
where
    [T; N]: Sized,
{
    const LAYERS: usize = { 1 + 1 };

    const fn new(weights: [T; N]) -> Self {
        Self { weights }
    }

    fn forward(&self) -> f64 {
        self.weights.iter().copied().map(Into::into).sum()
    }

    #[measure_execution_time(skip)]
    fn left_out(&self) -> usize {
        self.weights.len()
    }

    #[measure_execution_time(name = "a name of its own", log_every = 5)]
    fn named() -> usize {
        Self::LAYERS
    }

    async fn later(&self) -> usize {
        std::future::ready(N).await
    }

    #[allow(clippy::unused_self, reason = "a method is what is tested")]
    unsafe fn careful(&self) {}

    #[inline]
    fn with<F: Fn(T) -> T>(&self, f: F) -> Model<T, { N }> {
        Model {
            weights: self.weights.map(f),
        }
    }

    made!();
}

#[measure_execution_time]
impl<T, const N: usize> std::ops::Index<usize> for Model<T, N> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.weights[at]
    }
}

#[test]
fn impl_blocks() {
    const MODEL: Model<f32, 2> = Model::new([1.0, 2.0]);
    assert!((MODEL.forward() - 3.0).abs() < 1e-9);
    assert_eq!(MODEL.left_out(), 2);
    assert_eq!(Model::<f32, 2>::named(), 2);
    assert!((MODEL.with(|weight| 2.0 * weight)[1] - 4.0).abs() < 1e-9);
    assert_eq!(Model::<f32, 2>::made(), 9);
    assert_eq!(profiler_tests::poll::run(MODEL.later()), 2);
    // SAFETY: it does nothing.
    unsafe { MODEL.careful() }
    assert_calls(
        HERE,
        &[
            ("Model::new", 0),
            ("Model::forward", 1),
            ("Model::left_out", 0),
            ("Model::later", 1),
            ("Model::careful", 1),
            ("Model::with", 1),
            ("Model::Index<usize>::index", 1),
        ],
    );
    assert_eq!(calls("a name of its own"), expected(1));
}

struct Shifts;

#[measure_execution_time]
impl Shifts {
    const BITS: u32 = 1 << 3;
    const LESS: bool = Self::BITS < 9;

    fn after_shift() -> u32 {
        Self::BITS
    }

    const AT_MOST: bool = Self::BITS <= 8 && 1 < 2;

    fn after_comparison(of: [u8; 1 << 3]) -> [bool; 1 << 1] {
        [Self::LESS, Self::AT_MOST && of.len() > 7]
    }
}

#[measure_execution_time]
mod shifts {
    pub(super) static BITS: u32 = 1 << 3;

    pub(super) fn after_static() -> u32 {
        BITS
    }

    pub(super) struct Wide<const N: usize>(pub(super) [u8; N]);

    impl Default for Wide<{ 1 << 3 }> {
        fn default() -> Self {
            Self([0; 1 << 3])
        }
    }
}

macro_rules! measured_module {
    ($name:ident { $($item:item)* }) => {
        #[measure_execution_time]
        mod $name {
            $($item)*
        }
    };
}

measured_module! {
    fragments {
        pub(super) fn first() -> u32 {
            BITS
        }
        const BITS: u32 = 1 << 3;
        #[inline]
        pub(super) fn last() -> u32 {
            first()
        }
    }
}

#[test]
fn functions_after_an_operator_that_looks_like_a_bracket() {
    assert_eq!(Shifts::after_shift(), 8);
    assert_eq!(Shifts::after_comparison([0; 8]), [true; 2]);
    assert_eq!(shifts::after_static(), 8);
    assert_eq!(shifts::Wide::default().0.len(), 8);
    assert_eq!(fragments::last(), 8);
    let wide = "shifts::Wide<{ 1 << 3 }>::Default::default";
    assert_calls(
        HERE,
        &[
            ("Shifts::after_shift", 1),
            ("Shifts::after_comparison", 1),
            ("shifts::after_static", 1),
            (wide, 1),
            ("fragments::first", 1),
            ("fragments::last", 1),
        ],
    );
}

#[measure_execution_time(bypass = crate::blocks::BYPASSED.get())]
mod everything {
    #![allow(
        unused_braces,
        dead_code,
        unused_imports,
        reason = "one of everything is what is to be left alone"
    )]
    //! Documented inside.

    extern crate std as other;
    use std::{fmt, fmt::Write as _};

    pub(crate) const LIMIT: usize = { 2 * 3 };
    static NAME: &str = { "name" };
    type Pair<T> = (T, T);

    pub(crate) struct Unit;
    pub(crate) struct Tuple<T>(pub(crate) T)
    where
        T: Copy;
    pub(crate) enum Choice {
        One,
        Two { field: u8 },
    }
    pub(crate) union Either {
        one: u8,
        other: i8,
    }

    #[derive(Debug)]
    pub(crate) struct Fields<const N: usize = { 1 + 2 }> {
        pub(crate) values: [u8; N],
    }

    unsafe extern "C" {
        fn abs(value: i32) -> i32;
    }

    macro_rules! local {
        () => {
            constant()
        };
    }
    std::thread_local! {
        static COUNT: std::cell::Cell<u8> = const { std::cell::Cell::new(0) };
    }
    const _: () = {
        const fn inside() {}
        inside();
    };
    #[cfg(any())]
    mod left_out {
        fn unknown() -> NoSuchType {}
    }

    pub(crate) const fn constant() -> usize {
        LIMIT
    }

    pub(crate) fn free() -> Result<String, fmt::Error> {
        let mut text = String::new();
        write!(text, "{}", local!())?;
        Ok(text)
    }

    pub(crate) extern "C" fn exported() -> i32 {
        // SAFETY: every `i32` but the least has an absolute value.
        unsafe { abs(-4) }
    }

    pub(crate) trait Shape {
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
        #[allow(clippy::unused_self, reason = "a method is what is tested")]
        pub(crate) fn left_out(&self) -> u8 {
            7
        }
    }

    impl Unit {
        #[allow(clippy::unused_self, reason = "a method is what is tested")]
        pub(crate) fn static_name(&self) -> &'static str {
            nested::deep()
        }
    }

    mod nested {
        pub(super) fn deep() -> &'static str {
            super::NAME
        }
    }
}

thread_local! {
    static BYPASSED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn call_everything() {
    use everything::Shape as _;

    assert_eq!(everything::free().as_deref(), Ok("6"));
    assert_eq!(everything::exported(), 4);
    assert_eq!((everything::Unit.double(), everything::Unit.half()), (2, 0));
    assert_eq!(everything::Unit.left_out(), 7);
    assert_eq!(everything::Unit.static_name(), "name");
    assert_eq!(everything::Fields { values: [1, 2, 3] }.values.len(), 3);
}

#[test]
fn inline_modules() {
    call_everything();
    BYPASSED.set(true);
    call_everything();
    assert_calls(
        HERE,
        &[
            ("everything::free", 1),
            ("everything::exported", 1),
            ("everything::Shape::double", 1),
            ("everything::Unit::Shape::area", 2),
            ("everything::Unit::static_name", 1),
            ("everything::nested::deep", 1),
            ("everything::constant", 0),
            ("everything::Shape::half", 0),
            ("everything::Unit::left_out", 0),
        ],
    );
}
