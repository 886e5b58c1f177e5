//! Type, const and lifetime parameters, `impl Trait` in and out, where clauses.
#![deny(warnings)]

use std::fmt::{Debug, Display};

use profiler_runtime::measure_execution_time;

struct Wrap<T, const N: usize>([T; N]);

impl<T, const N: usize> Wrap<T, N>
where
    T: Copy,
{
    #[measure_execution_time]
    fn get(&self) -> T {
        self.0[N - 1]
    }

    #[measure_execution_time]
    fn map<U, F: Fn(T) -> U>(&self, f: F) -> Wrap<U, { N }> {
        Wrap(self.0.map(f))
    }
}

#[measure_execution_time]
fn longest<'a, 'b: 'a>(one: &'a str, other: &'b str) -> &'a str {
    if one.len() > other.len() { one } else { other }
}

#[measure_execution_time]
fn show(value: impl Display, many: &[impl Debug]) -> impl Display {
    format!("{value}{many:?}")
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
fn apply<F>(f: F) -> u32
where
    F: for<'x> Fn(&'x u32) -> u32,
{
    f(&1)
}

#[measure_execution_time]
fn object(number: u8) -> Box<dyn Fn(u8) -> u8> {
    Box::new(move |other| other + number)
}

// Names that the expansion could be thought to use itself.
#[measure_execution_time(log_every = 2)]
fn borrowed_names<Here, const SITE: usize>(_scope: Here, site: u8, entry: u8, scope: u8) -> usize {
    let guard = site + entry + scope;
    SITE + usize::from(guard)
}

fn main() {
    assert_eq!(Wrap([1, 2, 3]).get(), 3);
    assert_eq!(Wrap([1_u8, 2]).map(u32::from).0, [1, 2]);
    assert_eq!(longest("ab", "c"), "ab");
    assert_eq!(show(1, &["a"]).to_string(), "1[\"a\"]");
    assert_eq!(adder(1)(2), 3);
    assert_eq!(each(&[1, 2]).count(), 2);
    assert_eq!(apply(|number| number + 1), 2);
    assert_eq!(object(1)(2), 3);
    assert_eq!(borrowed_names::<_, 4>((), 1, 2, 3), 10);
}
