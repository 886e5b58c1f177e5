//! Functions with every kind of annotation. `bare.rs` holds the same functions without any.

use std::future::Future;
use std::num::ParseIntError;
use std::pin::Pin;

use profiler_runtime::{measure_execution_time, measure_execution_time_context, scope};

/// A plain function.
#[inline(never)]
#[measure_execution_time]
pub fn checksum(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .fold(7, |sum, &byte| sum.rotate_left(5) ^ u32::from(byte))
}

/// Leaves early by `?`.
///
/// # Errors
///
/// Where a word is no number.
#[inline(never)]
#[measure_execution_time]
pub fn sum_of_words(text: &str) -> Result<u32, ParseIntError> {
    let mut sum = 0_u32;
    for word in text.split_whitespace() {
        sum = sum.wrapping_add(word.parse::<u32>()?);
    }
    Ok(sum)
}

/// Leaves early by `return`, and may panic.
#[inline(never)]
#[measure_execution_time(name = "the first difference")]
pub fn first_difference(a: &[u32], b: &[u32]) -> Option<usize> {
    for (at, value) in a.iter().enumerate() {
        if *value != b[at] {
            return Some(at);
        }
    }
    None
}

/// Generic: each instance is a function of its own.
#[inline(never)]
#[measure_execution_time(per_instance)]
pub fn largest<T: PartialOrd + Copy, const N: usize>(values: &[T; N]) -> Option<T> {
    let mut values = values.iter().copied();
    let first = values.next()?;
    Some(values.fold(
        first,
        |largest, value| {
            if value > largest { value } else { largest }
        },
    ))
}

/// Changes what it is given.
#[inline(never)]
#[measure_execution_time(
    name = "scaled",
    log = |tag: &str, milliseconds: f64, step: u64| println!("{tag} {milliseconds} {step}"),
    global_step = values.len(),
    bypass = factor == 0.0,
    every = 10
)]
pub fn scale(values: &mut [f64], factor: f64) {
    for value in values {
        *value = *value * factor + 0.125;
    }
}

/// Calls itself.
#[inline(never)]
#[measure_execution_time]
pub fn depth(nodes: &[(usize, usize)], at: usize) -> usize {
    match nodes.get(at) {
        Some(&(left, right)) => 1 + depth(nodes, left).max(depth(nodes, right)),
        None => 0,
    }
}

/// Never returns.
///
/// # Panics
///
/// Always.
#[inline(never)]
#[track_caller]
#[measure_execution_time]
pub fn refuse(reason: &str) -> ! {
    panic!("refused: {reason}")
}

/// With another calling convention.
#[inline(never)]
#[measure_execution_time]
pub extern "C" fn halve(value: i32) -> i32 {
    value / 2
}

/// What the methods belong to.
pub struct Counter {
    counts: Vec<u64>,
}

#[measure_execution_time(every = 100)]
impl Counter {
    /// Without a receiver.
    #[inline(never)]
    pub fn with_room(room: usize) -> Self {
        Self {
            counts: vec![0; room],
        }
    }

    /// By reference.
    #[inline(never)]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// By mutable reference.
    #[inline(never)]
    #[measure_execution_time(global_step = self.counts.len(), bypass = at > 100)]
    pub fn add(&mut self, at: usize) -> Option<u64> {
        let count = self.counts.get_mut(at)?;
        *count += 1;
        Some(*count)
    }

    /// By value.
    #[inline(never)]
    pub fn into_largest(self) -> Option<u64> {
        self.counts.into_iter().max()
    }
}

/// A trait with a default method.
pub trait Shape {
    /// Without a body.
    fn area(&self) -> f64;

    /// With a body.
    #[inline(never)]
    #[measure_execution_time]
    fn cost(&self) -> f64 {
        self.area() * 3.5 + 1.25
    }
}

impl Shape for Counter {
    #[inline(never)]
    #[measure_execution_time]
    fn area(&self) -> f64 {
        f64::from(u32::try_from(self.counts.len()).unwrap_or(u32::MAX))
    }
}

/// A module.
#[measure_execution_time]
pub mod inner {
    /// A function in a module.
    #[inline(never)]
    pub fn mean(values: &[f32]) -> f32 {
        let count = values.iter().fold(0.0_f32, |count, _| count + 1.0);
        values.iter().sum::<f32>() / count
    }
}

/// Made by a macro.
macro_rules! powers {
    ($($name:ident $exponent:literal),*) => {$(
        /// A power.
        #[inline(never)]
        #[measure_execution_time]
        pub fn $name(value: u64) -> u64 {
            value.wrapping_pow($exponent)
        }
    )*};
}

powers!(square 2, cube 3);

/// A future whose code is elsewhere.
pub type Part = Pin<Box<dyn Future<Output = u32> + Send>>;

/// Asynchronous.
#[measure_execution_time(log = |_: &str, _: f64, _: u64| ())]
pub async fn sum_of_parts(parts: Vec<Part>) -> u32 {
    let mut sum = 0_u32;
    for part in parts {
        sum = sum.wrapping_add(part.await);
    }
    sum
}

/// Returns a future in a box.
#[inline(never)]
#[measure_execution_time]
pub fn boxed(part: Part, factor: u32) -> Part {
    Box::pin(async move { part.await.wrapping_mul(factor) })
}

/// A section to the end of the function.
#[inline(never)]
pub fn guarded(values: &mut Vec<u32>) -> usize {
    let _scope = scope!("sorting", global_step = values.len());
    values.sort_unstable();
    values.dedup();
    values.len()
}

/// A section whose name is built at run time.
#[inline(never)]
pub fn guarded_by_number(values: &[u32], number: u32) -> u32 {
    let _scope = scope!(format!("part {number}"));
    values.iter().copied().fold(number, u32::wrapping_add)
}

/// A section with a value and two ways out.
#[inline(never)]
pub fn in_context(values: &[i64], limit: i64) -> Option<i64> {
    let mut rounds = 0;
    let sum = measure_execution_time_context!("summing", global_step = rounds, {
        let mut sum = 0_i64;
        for value in values {
            sum = sum.checked_add(*value)?;
            rounds += 1;
            if sum > limit {
                break;
            }
        }
        sum
    });
    Some(sum * rounds)
}

/// Annotated in neither: makes the instances of what is generic, and boxes what is asynchronous.
pub mod callers {
    /// One instance.
    #[inline(never)]
    pub fn largest_of_four(values: &[u32; 4]) -> Option<u32> {
        crate::largest(values)
    }

    /// Another instance.
    #[inline(never)]
    pub fn largest_of_three(values: &[f64; 3]) -> Option<f64> {
        crate::largest(values)
    }

    /// A default method.
    #[inline(never)]
    pub fn cost_of(counter: &crate::Counter) -> f64 {
        crate::Shape::cost(counter)
    }

    /// An asynchronous function, where nothing is known of who polls it.
    #[inline(never)]
    pub fn sum_of_parts(parts: Vec<crate::Part>) -> crate::Part {
        Box::pin(crate::sum_of_parts(parts))
    }
}
