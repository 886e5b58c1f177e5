//! A name: a literal, a constant, an associated constant, a concatenation.
#![deny(warnings)]

use profiler_runtime::measure_execution_time;

const NAME: &str = "a constant";

trait Named {
    const NAME: &'static str;

    #[measure_execution_time(name = Self::NAME)]
    fn run(&self) -> u8 {
        1
    }
}

struct First;
impl Named for First {
    const NAME: &'static str = "first";
}

struct Second<T>(T);
impl<T> Named for Second<T> {
    const NAME: &'static str = "second";
}

#[measure_execution_time(name = "a literal")]
fn literal() {}

#[measure_execution_time(name = NAME)]
fn constant() {}

#[measure_execution_time(name = concat!(module_path!(), "::joined"))]
fn joined() {}

#[measure_execution_time(name = r"raw")]
fn raw() {}

#[measure_execution_time(name = T::NAME)]
fn of_parameter<T: Named>(_: &T) {}

#[measure_execution_time(name = if cfg!(debug_assertions) { "debug" } else { "release" })]
async fn by_condition() {}

#[measure_execution_time(per_instance)]
fn instances<T: Default>() -> T {
    T::default()
}

#[measure_execution_time(per_instance = false)]
fn instances_together<T: Default>() -> T {
    T::default()
}

fn main() {
    assert_eq!(First.run() + Second(1).run(), 2);
    literal();
    constant();
    joined();
    raw();
    of_parameter(&First);
    drop(by_condition());
    assert_eq!(instances::<u8>(), 0);
    assert!(instances_together::<String>().is_empty());
}
