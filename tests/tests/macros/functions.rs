//! Every form of function does what it did, and is counted under its own path: on, off, stripped.
#![allow(
    clippy::elidable_lifetime_names,
    clippy::unused_self,
    reason = "forms are what is tested"
)]

mod no_prelude;

use std::fmt::{Debug, Display};
use std::panic::{Location, catch_unwind};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use profiler_runtime::measure_execution_time;
use profiler_tests::counts;
use profiler_tests::counts::{assert_calls, column, expected};
use profiler_tests::poll;

const HERE: &str = module_path!();

#[test]
fn free_functions() {
    #[measure_execution_time]
    fn plain(a: u8, (b, [_, d]): (u8, [u8; 2]), mut c: u8, _: u8) -> u8 {
        //! Documented inside.
        #![allow(clippy::missing_const_for_fn)]
        c += 1;
        a + b + c + d
    }

    #[measure_execution_time()]
    fn early(text: &str) -> Result<u8, std::num::ParseIntError> {
        if text.is_empty() {
            return Ok(0);
        }
        let number: u8 = text.parse()?;
        Ok(number)
    }

    assert_eq!(plain(1, (2, [0, 3]), 4, 5), 11);
    assert_eq!(early(""), Ok(0));
    assert_eq!(early("7"), Ok(7));
    assert!(early("x").is_err());
    assert_calls(
        HERE,
        &[("free_functions::plain", 1), ("free_functions::early", 3)],
    );
}

#[derive(Clone)]
struct Cell(u32);

impl Cell {
    #[measure_execution_time]
    fn new(value: u32) -> Self {
        Self(value)
    }

    #[measure_execution_time]
    fn by_value(mut self) -> u32 {
        self.0 += 1;
        self.0
    }

    #[measure_execution_time]
    fn by_reference(&self) -> &u32 {
        &self.0
    }

    #[measure_execution_time]
    fn by_mutable_reference(&mut self) -> &mut u32 {
        &mut self.0
    }

    #[measure_execution_time]
    #[allow(clippy::boxed_local, reason = "the receiver is what is tested")]
    fn by_box(self: Box<Self>) -> u32 {
        self.0
    }

    #[measure_execution_time]
    fn by_rc(self: Rc<Self>) -> u32 {
        self.0
    }

    #[measure_execution_time]
    fn by_arc(self: &Arc<Self>) -> u32 {
        self.0
    }

    #[measure_execution_time]
    fn by_pin(self: Pin<&mut Self>) -> u32 {
        self.0
    }
}

#[test]
fn methods_with_every_receiver() {
    let mut cell = Cell::new(1);
    *cell.by_mutable_reference() += *Cell(1).by_reference();
    assert_eq!(Pin::new(&mut cell).by_pin(), 2);
    assert_eq!(Box::new(cell.clone()).by_box(), 2);
    assert_eq!(Rc::new(cell.clone()).by_rc(), 2);
    assert_eq!(Arc::new(cell.clone()).by_arc(), 2);
    assert_eq!(cell.by_value(), 3);
    let names = [
        "new",
        "by_value",
        "by_reference",
        "by_mutable_reference",
        "by_box",
        "by_rc",
    ]
    .into_iter()
    .chain(["by_arc", "by_pin"]);
    for name in names {
        assert_calls(HERE, &[(&format!("Cell::{name}"), 1)]);
    }
}

trait Layer {
    fn width(&self) -> usize;

    #[measure_execution_time]
    fn double(&self) -> usize {
        2 * self.width()
    }

    #[measure_execution_time]
    fn fixed() -> usize
    where
        Self: Sized,
    {
        4
    }
}

struct Dense;

impl Layer for Dense {
    #[measure_execution_time]
    fn width(&self) -> usize {
        3
    }
}

impl<T: Layer> Layer for Vec<T> {
    #[measure_execution_time]
    fn width(&self) -> usize {
        self.iter().map(T::width).sum()
    }
}

#[test]
fn methods_of_traits() {
    let object: &dyn Layer = &vec![Dense, Dense];
    assert_eq!(object.double() + Dense.double(), 18);
    assert_eq!(Vec::<Dense>::fixed(), 4);
    assert_calls(
        HERE,
        &[
            ("Layer::double", 2),
            ("Layer::fixed", 1),
            ("Dense::Layer::width", 3),
            ("::alloc::vec::Vec::Layer::width", 1),
        ],
    );
}

struct Wrap<T, const N: usize>([T; N]);

impl<T, const N: usize> Wrap<T, N>
where
    T: Copy,
{
    #[measure_execution_time]
    fn last(&self) -> T {
        self.0[N - 1]
    }

    #[measure_execution_time]
    fn map<U, F: Fn(T) -> U>(&self, f: F) -> Wrap<U, { N }> {
        Wrap(self.0.map(f))
    }
}

#[test]
fn generics_and_impl_trait() {
    #[measure_execution_time]
    fn longest<'a, 'b: 'a>(one: &'a str, other: &'b str) -> &'a str {
        if one.len() > other.len() { one } else { other }
    }

    #[measure_execution_time]
    fn show(value: impl Display, many: &[impl Debug]) -> impl Display {
        format!("<{value}{many:?}>")
    }

    #[measure_execution_time]
    fn adder(add: u32) -> impl Fn(u32) -> u32 {
        move |to| to + add
    }

    #[measure_execution_time]
    fn each<'a, T>(all: &'a [T]) -> impl Iterator<Item = &'a T> + use<'a, T> {
        all.iter()
    }

    #[measure_execution_time]
    fn apply<F>(f: F) -> Box<dyn Fn(u32) -> u32>
    where
        F: for<'x> Fn(&'x u32) -> u32 + 'static,
    {
        Box::new(move |number| f(&number))
    }

    assert_eq!(Wrap([1, 2]).last(), 2);
    assert_eq!(Wrap(['a']).last(), 'a');
    assert_eq!(Wrap([1_u8]).map(u32::from).0, [1]);
    assert_eq!(longest("ab", "c"), "ab");
    let shown = show(1, &["a"]).to_string() + &show("x", &[2]).to_string();
    assert_eq!(shown, "<1[\"a\"]><x[2]>");
    assert_eq!(each(&[1, 2]).count(), 2);
    assert_eq!(apply(|number| number + 1)(1), 2);
    assert_eq!(adder(1)(2), 3);
    assert_calls(
        HERE,
        &[
            ("Wrap::last", 2),
            ("Wrap::map", 1),
            ("generics_and_impl_trait::longest", 1),
            ("generics_and_impl_trait::show", 2),
            ("generics_and_impl_trait::adder", 1),
            ("generics_and_impl_trait::each", 1),
            ("generics_and_impl_trait::apply", 1),
        ],
    );
}

#[test]
fn unsafe_and_foreign_functions() {
    #[measure_execution_time]
    unsafe fn read(pointer: *const u8) -> u8 {
        // SAFETY: the caller gives a pointer that is good to read.
        unsafe { *pointer }
    }

    #[measure_execution_time]
    extern "C" fn exported(value: u8) -> u8 {
        value + 1
    }

    #[measure_execution_time]
    #[unsafe(no_mangle)]
    unsafe extern "C-unwind" fn both(value: u8) -> u8 {
        value + 2
    }

    // SAFETY: a reference is good to read, and `both` only adds.
    assert_eq!(unsafe { read(&1) + both(1) }, 4);
    let pointer: extern "C" fn(u8) -> u8 = exported;
    assert_eq!(pointer(1), 2);
    for name in ["read", "exported", "both"] {
        assert_calls(
            HERE,
            &[(&format!("unsafe_and_foreign_functions::{name}"), 1)],
        );
    }
}

#[test]
fn recursive_functions() {
    #[measure_execution_time]
    fn fib(n: u32) -> u32 {
        if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
    }

    assert_eq!(fib(10), 55);
    assert_calls(HERE, &[("recursive_functions::fib", 177)]);
    let name = format!("{HERE}::recursive_functions::fib");
    assert_eq!(column(&name, |row| row.primitive_calls), expected(1));
}

#[test]
fn functions_that_diverge_or_panic() {
    #[measure_execution_time]
    fn diverges() -> ! {
        std::panic::resume_unwind(Box::new("on purpose"))
    }

    #[measure_execution_time]
    fn panics(now: bool) -> u8 {
        if now {
            std::panic::resume_unwind(Box::new("on purpose"));
        }
        1
    }

    assert!(catch_unwind(|| diverges()).is_err());
    assert!(catch_unwind(|| panics(true)).is_err());
    assert_eq!(panics(false), 1);
    for (name, made) in [("diverges", 1), ("panics", 2)] {
        let name = format!("functions_that_diverge_or_panic::{name}");
        assert_calls(HERE, &[(&name, made)]);
        assert_eq!(
            column(&format!("{HERE}::{name}"), |row| row.panicked),
            expected(1)
        );
    }
}

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
        pub(super) fn $name() -> u8 {
            $value
        }
    };
}

macro_rules! methods {
    ($type:ident { $($name:ident => $ret:ty, $value:expr);* }) => {
        #[measure_execution_time]
        impl $type {
            $(pub(super) async fn $name(&self) -> $ret { $value })*
        }
    };
}

mod made {
    use super::measure_execution_time;

    from_parts! {
        #[inline]
        pub(super) fn parts(one: u8, other: u8) -> u8 {
            one + other
        }
    }
    from_item! {
        pub(super) fn item() -> u8 { 1 }
    }
    from_item! {
        pub(super) mod module {
            pub(crate) fn item() -> u8 { 2 }
        }
    }
    from_tokens! {
        pub(super) fn tokens() -> u8 { 3 }
    }
    with_arguments!(labelled, "made with a label", 1 > 2, 4);

    pub(super) struct Made;
    methods!(Made { first => u8, 5; second => Vec<u8>, vec![6] });
}

#[test]
fn functions_that_macros_make() {
    assert_eq!(made::parts(1, 2) + made::item() + made::module::item(), 6);
    assert_eq!(made::tokens() + made::labelled(), 7);
    assert_eq!(poll::run(made::Made.first()), 5);
    assert_eq!(poll::run(made::Made.second()), [6]);
    assert_calls(
        HERE,
        &[
            ("made::parts", 1),
            ("made::item", 1),
            ("made::module::item", 1),
            ("made::tokens", 1),
            ("made::Made::first", 1),
            ("made::Made::second", 1),
        ],
    );
    assert_eq!(counts::calls("made with a label"), expected(1));
}

#[allow(non_camel_case_types, reason = "a keyword is what is tested")]
struct r#struct;

#[measure_execution_time]
impl r#struct {
    fn r#fn(&self) -> u8 {
        2
    }
}

#[test]
fn raw_identifiers() {
    #[measure_execution_time(bypass = r#type == 2)]
    fn r#match(r#type: u8) -> u8 {
        r#type
    }

    #[measure_execution_time]
    mod r#mod {
        pub(super) fn r#const() -> u8 {
            3
        }
    }

    assert_eq!([1, 2].map(r#match), [1, 2]);
    assert_eq!(r#struct.r#fn() + r#mod::r#const(), 5);
    for spellings in [
        ["raw_identifiers::match", "raw_identifiers::r#match"],
        ["struct::fn", "r#struct::r#fn"],
        ["mod::const", "r#mod::r#const"],
    ] {
        let rows = spellings
            .into_iter()
            .flat_map(profiler_tests::rows_ending_in);
        let calls: u64 = rows.map(|row| row.calls).sum();
        assert_eq!(calls, expected(1), "{spellings:?}");
    }
}

#[measure_execution_time]
#[test]
fn a_test_with_the_attribute_above() {}

#[test]
#[measure_execution_time]
fn a_test_with_the_attribute_below() {}

#[test]
fn tests() {
    a_test_with_the_attribute_above();
    a_test_with_the_attribute_below();
    for name in [
        "a_test_with_the_attribute_above",
        "a_test_with_the_attribute_below",
    ] {
        let calls = counts::calls(&format!("{HERE}::{name}"));
        assert_eq!(calls, expected(1), "{name}");
    }
}

#[test]
fn other_attributes_keep_their_meaning() {
    #[track_caller]
    #[measure_execution_time]
    fn caller_above() -> u32 {
        Location::caller().line()
    }

    #[measure_execution_time]
    #[track_caller]
    fn caller_below() -> u32 {
        Location::caller().line()
    }

    #[measure_execution_time]
    #[cfg(any())]
    fn left_out() -> NoSuchType {}

    #[cfg_attr(all(), measure_execution_time)]
    #[must_use]
    #[inline(never)]
    fn on_condition() -> u8 {
        1
    }

    #[profiler_runtime::measure_execution_time]
    #[doc = "Documented."]
    #[must_use = "it is a number"]
    #[cold]
    #[deprecated]
    fn by_path() -> u8 {
        2
    }

    assert_eq!((caller_above(), caller_below()), (line!(), line!()));
    #[allow(deprecated, reason = "the attribute is what is tested")]
    let by_path = by_path();
    assert_eq!(on_condition() + by_path, 3);
    for name in ["caller_above", "caller_below", "on_condition", "by_path"] {
        assert_calls(
            HERE,
            &[(&format!("other_attributes_keep_their_meaning::{name}"), 1)],
        );
    }
}

/// No local variable can have the name of a static or a unit struct.
#[allow(
    non_upper_case_globals,
    non_camel_case_types,
    dead_code,
    reason = "words that a macro might use for its own variables"
)]
mod taken_names {
    use std::future::{Future, ready};

    use super::measure_execution_time;

    static future: u8 = 1;
    static entry: u8 = 1;
    static name: u8 = 1;
    static task: u8 = 1;
    static guard: u8 = 1;
    struct _scope;
    struct scope;
    struct bypassed;
    const NAME: &str = "taken names";

    #[measure_execution_time]
    pub(super) fn plain() -> u8 {
        // Neither may it be called misplaced.
        fn inside() -> u8 {
            future
        }
        inside() + entry
    }

    #[measure_execution_time(name = NAME, bypass = entry == 2, log_every = 2)]
    pub(super) fn full() -> u8 {
        name
    }

    #[measure_execution_time]
    pub(super) async fn later() -> u8 {
        fn inside() -> u8 {
            task
        }
        inside() + ready(guard).await
    }

    #[measure_execution_time]
    pub(super) async fn of_a_future() -> impl Future<Output = u8> {
        ready(()).await;
        ready(future)
    }

    #[measure_execution_time]
    pub(super) fn boxed(early: bool) -> std::pin::Pin<Box<dyn Future<Output = u8>>> {
        fn inside() -> u8 {
            future
        }
        if early {
            return Box::pin(ready(inside()));
        }
        Box::pin(async { entry })
    }

    #[measure_execution_time]
    pub(super) fn block() -> impl Future<Output = u8> {
        fn inside() -> u8 {
            future
        }
        async { inside() }
    }
}

#[test]
fn names_of_statics_and_structs_where_the_attribute_is() {
    assert_eq!(taken_names::plain() + taken_names::full(), 3);
    assert_eq!(poll::run(taken_names::later()), 2);
    assert_eq!(poll::run(poll::run(taken_names::of_a_future())), 1);
    assert_eq!(poll::run(taken_names::boxed(true)), 1);
    assert_eq!(poll::run(taken_names::boxed(false)), 1);
    assert_eq!(poll::run(taken_names::block()), 1);
    for (function, made) in [
        ("plain", 1),
        ("later", 1),
        ("of_a_future", 1),
        ("boxed", 2),
        ("block", 1),
    ] {
        assert_calls(HERE, &[(&format!("taken_names::{function}"), made)]);
    }
    assert_eq!(counts::calls("taken names"), expected(1));
}

#[test]
fn names_that_mean_something_else_where_the_attribute_is() {
    assert_eq!(no_prelude::plain(1), 2);
    assert_eq!(no_prelude::full(1, 2, 3, 4), 10);
    assert_eq!(poll::run(no_prelude::later(1)), 1);
    assert_eq!(poll::run(no_prelude::future(2)), 2);
    assert_eq!(no_prelude::each::<_, 3>(()), 3);
    assert_eq!(no_prelude::sections(), 2);
    for name in ["plain", "later", "future", "each<(), 3>"] {
        assert_calls(HERE, &[(&format!("no_prelude::{name}"), 1)]);
    }
    for name in ["no_prelude full", "no_prelude guard", "no_prelude block"] {
        assert_eq!(counts::calls(name), expected(1));
    }
}
