//! Two functions are two names; one function is one name, unless it is asked to be more.
#![allow(
    clippy::unused_async,
    clippy::unused_self,
    reason = "forms are what is tested"
)]

use profiler_runtime::{measure_execution_time, measure_execution_time_context, scope, summary};
use profiler_tests::counts::{assert_calls, calls, expected};
use profiler_tests::poll::run;

const HERE: &str = module_path!();

struct One;
struct Other;

impl One {
    #[measure_execution_time]
    fn new() -> Self {
        Self
    }
}

#[measure_execution_time]
impl Other {
    fn new() -> Self {
        Self
    }

    fn run(&self) {}
}

trait Run {
    fn run(&self);
}

#[measure_execution_time]
mod third {
    pub(super) struct Third;

    impl Third {
        pub(super) fn new() -> Self {
            Self
        }

        pub(super) fn run(&self) {}
    }

    impl super::Run for Third {
        fn run(&self) {}
    }
}

use third::Third;

#[test]
fn functions_of_the_same_name_on_different_types() {
    let (_, third) = (One::new(), [Third::new(), Third::new()]);
    third[0].run();
    Run::run(&third[0]);
    Run::run(&third[1]);
    assert_calls(
        HERE,
        &[
            ("One::new", 1),
            ("third::Third::new", 2),
            ("third::Third::run", 1),
            ("third::Third::Run::run", 2),
        ],
    );
}

mod matrix {
    use std::fmt;

    use profiler_runtime::measured;

    pub(super) struct Matrix;

    #[measured]
    impl fmt::Display for Matrix {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("matrix")
        }
    }

    #[measured]
    impl fmt::Debug for Matrix {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("Matrix")
        }
    }

    #[measured]
    impl Matrix {
        pub(super) fn fmt(&self) -> &'static str {
            "inherent"
        }
    }

    #[measured]
    impl From<u8> for Matrix {
        fn from(_: u8) -> Self {
            Self
        }
    }

    #[measured]
    impl From<&str> for Matrix {
        fn from(_: &str) -> Self {
            Self
        }
    }
}

trait Sum {
    fn sum(&self) -> f32;
}

#[measure_execution_time]
impl Sum for [f32] {
    fn sum(&self) -> f32 {
        self.iter().sum()
    }
}

#[test]
fn methods_of_traits_are_named_after_the_type_and_the_trait() {
    use matrix::Matrix;

    let matrix = Matrix::from(1);
    let other = Matrix::from("text");
    assert_eq!(
        format!("{matrix} {other} {matrix:?}"),
        "matrix matrix Matrix"
    );
    assert_eq!(matrix.fmt(), "inherent");
    assert!(Sum::sum(&[1.0, 2.0][..]) > 2.0);
    assert_calls(
        HERE,
        &[
            ("matrix::Matrix::Display::fmt", 2),
            ("matrix::Matrix::Debug::fmt", 1),
            ("matrix::Matrix::fmt", 1),
            ("matrix::Matrix::From<u8>::from", 1),
            ("matrix::Matrix::From<&str>::from", 1),
            ("<[f32]>::Sum::sum", 1),
        ],
    );
}

mod other_run {
    pub(super) trait Run {
        fn run(&self);
    }

    impl Run for super::One {
        #[profiler_runtime::measured]
        fn run(&self) {}
    }
}

impl Run for One {
    #[measure_execution_time]
    fn run(&self) {}
}

#[test]
fn traits_of_the_same_name_are_told_apart_by_their_place() {
    Run::run(&One);
    other_run::Run::run(&One);
    other_run::Run::run(&One);
    let summary = summary();
    let rows = summary
        .rows
        .iter()
        .filter(|row| row.name.contains("One::Run::run"));
    let mut rows: Vec<_> = rows.map(|row| (row.calls, &*row.name, &*row.tag)).collect();
    rows.sort_unstable();
    let calls: Vec<u64> = rows
        .iter()
        .map(|row| row.0)
        .filter(|calls| *calls > 0)
        .collect();
    let separate: Vec<u64> = [1, 2].into_iter().filter(|_| expected(1) > 0).collect();
    assert_eq!(calls, separate, "{rows:?}");
    if let [first, second] = rows[..] {
        assert_eq!(
            first.1,
            format!("{HERE}::One::Run::run"),
            "the first to be called"
        );
        assert!(
            second.1.contains(" (") && second.1.contains("names.rs:"),
            "{second:?}"
        );
        assert_ne!(first.2, second.2, "tags, too");
    }
}

/// Two functions of one name in two blocks: the compiler spells their paths alike.
fn alike(first: bool) -> u32 {
    if first {
        #[measure_execution_time]
        fn in_a_block() -> u32 {
            1
        }
        in_a_block()
    } else {
        #[measure_execution_time]
        fn in_a_block() -> u32 {
            2
        }
        in_a_block()
    }
}

#[test]
fn functions_whose_paths_are_spelled_alike() {
    assert_eq!([true, false, false].map(alike), [1, 2, 2]);
    let mut calls: Vec<u64> = summary()
        .rows
        .iter()
        .filter(|row| row.name.contains("alike::in_a_block"))
        .map(|row| row.calls)
        .collect();
    calls.sort_unstable();
    calls.retain(|calls| *calls > 0);
    let told_apart: Vec<u64> = [1, 2].into_iter().filter(|_| expected(1) > 0).collect();
    assert_eq!(calls, told_apart);
}

#[test]
fn functions_of_a_measured_block_say_where_they_stand() {
    let located = |name: &str| {
        summary()
            .row(&format!("{HERE}::{name}"))
            .map(|row| row.location.clone())
    };
    let _ = Other::new();
    Other.run();
    let (new, run) = (located("Other::new"), located("Other::run"));
    assert_eq!(new.is_some(), expected(1) > 0);
    assert_eq!(new == run, expected(1) == 0, "{new:?} {run:?}");
}

#[test]
fn instances_share_a_name_or_have_their_own() {
    #[measure_execution_time]
    fn together<T>(_: T) {}

    #[measure_execution_time(per_instance)]
    fn apart<T>(_: T) {}

    struct Wrap<T>(T);

    #[measure_execution_time(per_instance)]
    impl<T: Copy> Wrap<T> {
        fn get(&self) -> T {
            self.0
        }

        #[measure_execution_time(per_instance = false)]
        fn get_together(&self) -> T {
            self.0
        }
    }

    together(1_u8);
    together("x");
    apart(1_u8);
    apart(2_u8);
    apart("x");
    assert_eq!(Wrap(1_u8).get() + Wrap(1_u8).get_together(), 2);
    assert_eq!(Wrap('a').get(), Wrap('a').get_together());
    let at = "instances_share_a_name_or_have_their_own";
    for (name, made) in [
        ("together", 2),
        ("apart<u8>", 2),
        ("apart<&str>", 1),
        ("Wrap<u8>::get", 1),
        ("Wrap<char>::get", 1),
        ("Wrap::get_together", 2),
    ] {
        assert_calls(HERE, &[(&format!("{at}::{name}"), made)]);
    }
}

trait Named {
    const NAME: &'static str;

    #[measure_execution_time(name = Self::NAME)]
    fn run(&self) {}
}

impl Named for One {
    const NAME: &'static str = "named one";
}

impl Named for Other {
    const NAME: &'static str = "named other";
}

#[test]
fn names_that_are_given() {
    #[measure_execution_time(name = "given twice")]
    fn first() {}

    #[measure_execution_time(name = "given twice")]
    fn second() {}

    #[measure_execution_time(name = concat!("given ", "joined"))]
    fn joined() {}

    const CONSTANT: &str = "given by a constant";

    #[measure_execution_time(name = CONSTANT)]
    fn constant() {}

    #[measure_execution_time(name = r"given raw")]
    fn raw() {}

    #[measure_execution_time(name = if N > 1 { "given many" } else { T::NAME })]
    async fn by_condition<T: Named, const N: usize>(_: &[T; N]) {}

    assert_ne!(One::NAME, Other::NAME);
    Named::run(&One);
    Named::run(&Other);
    Named::run(&Other);
    first();
    second();
    joined();
    constant();
    raw();
    run(by_condition(&[One]));
    run(by_condition(&[One, One]));
    for (name, made) in [
        ("named one", 2),
        ("named other", 2),
        ("given by a constant", 1),
        ("given raw", 1),
        ("given many", 1),
        ("given twice", 2),
        ("given joined", 1),
    ] {
        assert_eq!(calls(name), expected(made), "{name}");
    }
}

#[test]
fn sections_have_the_names_they_are_given() {
    fn early(number: i32) -> Option<i32> {
        let _whole = scope!("section guard");
        let half = measure_execution_time_context!("section block", {
            u32::try_from(number).ok()?;
            if number == 0 {
                return None;
            }
            number / 2
        });
        Some(half)
    }

    assert_eq!([4, 0, -1].map(early), [Some(2), None, None]);
    let mut sum = 0;
    'outer: for step in 0..10_u32 {
        let name = format!("section {}", step % 3);
        let _built = scope!(&name, global_step = step, bypass = step == 3,);
        sum += measure_execution_time_context!(format!("{name}, again"), {
            if step == 6 {
                break 'outer;
            }
            step
        },);
    }
    assert_eq!(sum, 15);
    let future = measure_execution_time_context!("section of a future", {
        measure_execution_time_context!("section inside", { async { 1 } })
    });
    let closure = measure_execution_time_context!("section of a closure", {
        async |number: u8| std::future::ready(number).await
    });
    assert_eq!(run(future) + run(closure(1)), 2);
    for (name, made) in [
        ("section of a future", 1),
        ("section inside", 1),
        ("section of a closure", 1),
        ("section guard", 3),
        ("section block", 3),
        ("section 0", 2),
        ("section 1", 2),
        ("section 2", 2),
        ("section 0, again", 3),
    ] {
        assert_eq!(calls(name), expected(made), "{name}");
    }
}

/// The longest name, in bytes, as the guide has it.
const LONGEST: usize = 1024;

#[test]
fn names_that_differ_far_behind_stay_two() {
    let long = format!("long: {}", "é".repeat(1 << 19));
    let [one, other] = ["one", "other"].map(|end| format!("{long}{end}"));
    for name in [&one, &other, &other] {
        let _scope = scope!(name);
    }
    let rows: Vec<_> = summary()
        .rows
        .into_iter()
        .filter(|row| row.name.starts_with("long: é"))
        .collect();
    let mut calls: Vec<u64> = rows.iter().map(|row| row.calls).collect();
    calls.sort_unstable();
    let told_apart: Vec<u64> = [1, 2].into_iter().filter(|_| expected(1) > 0).collect();
    assert_eq!(calls, told_apart);
    for row in &rows {
        assert!(
            row.name.len() <= LONGEST && row.tag.len() <= LONGEST,
            "{row:?}"
        );
        assert!(row.name.contains('…'), "it says that it was cut: {row:?}");
    }
    // Found by the name that was given, too.
    assert_eq!(self::calls(&one), expected(1));
    assert_eq!(self::calls(&other), expected(2));
}

#[test]
fn a_name_of_the_longest_length_is_whole() {
    let name = "y".repeat(LONGEST);
    {
        let _scope = scope!(&name);
    }
    assert_eq!(calls(&name), expected(1));
    let whole = summary().rows.into_iter().any(|row| row.name == name);
    assert_eq!(whole, expected(1) > 0);
}

/// One constant may begin where another does.
#[cfg(not(feature = "strip"))]
#[test]
fn constants_at_one_address_are_two_names() {
    const BOTH: &str = "constants: layer10";
    const ONE: &str = BOTH.split_at(17).0;

    trait Named {
        const NAME: &'static str;
        #[measure_execution_time(name = Self::NAME)]
        fn run() {}
    }
    struct First;
    struct Second;
    impl Named for First {
        const NAME: &'static str = ONE;
    }
    impl Named for Second {
        const NAME: &'static str = BOTH;
    }
    First::run();
    Second::run();
    Second::run();
    let calls = |name| profiler_tests::row(name).calls;
    assert_eq!(calls("constants: layer1"), profiler_tests::if_measuring(1));
    assert_eq!(calls("constants: layer10"), profiler_tests::if_measuring(2));
}
