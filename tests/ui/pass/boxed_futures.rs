//! Functions that return a future without being `async`.
#![deny(warnings)]

use std::future::{Future, ready};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use profiler_runtime::measure_execution_time;

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

fn run<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return output;
        }
    }
}

#[measure_execution_time]
fn pinned(value: u8) -> Pin<Box<dyn Future<Output = u8>>> {
    Box::pin(async move { ready(value).await })
}

#[measure_execution_time]
fn after_statements(values: &[u8]) -> std::pin::Pin<std::boxed::Box<dyn Future<Output = u8> + '_>> {
    let sum = values.iter().sum::<u8>();
    if sum > 100 {
        println!("many");
    }
    std::boxed::Box::pin(async move { sum })
}

#[measure_execution_time]
fn early(value: u8) -> BoxFuture<'static, u8> {
    if value == 0 {
        return Box::pin(ready(100));
    }
    Box::pin(async move { value })
}

#[measure_execution_time]
fn chosen(value: u8) -> BoxFuture<'static, Result<u8, std::num::ParseIntError>> {
    match value {
        0 => Box::pin(ready(Ok(0))),
        other => Box::pin(async move { other.to_string().parse() }),
    }
}

#[measure_execution_time]
fn opaque<'a>(value: &'a u8) -> impl Future<Output = u8> + use<'a> {
    async move { *value }
}

#[measure_execution_time]
fn opaque_early(value: u8) -> impl Future<Output = u8> + Send {
    if value == 0 {
        return ready(1);
    }
    ready(value)
}

#[measure_execution_time]
fn unpinned(value: u8) -> Box<dyn Future<Output = u8> + Unpin> {
    Box::new(ready(value))
}

struct Service(u8);

trait Call {
    fn call(&self, with: u8) -> BoxFuture<'_, u8>;
}

impl Call for Service {
    #[measure_execution_time(bypass = with == 9, global_step = self.0)]
    fn call(&self, with: u8) -> BoxFuture<'_, u8> {
        Box::pin(async move {
            if with == 7 {
                return 0;
            }
            self.0 + with
        })
    }
}

// Not a future: made with `Box::pin` all the same.
#[measure_execution_time]
fn pinned_value() -> Pin<Box<u8>> {
    Box::pin(1)
}

fn main() {
    assert_eq!(run(pinned(1)), 1);
    assert_eq!(run(after_statements(&[1, 2])), 3);
    assert_eq!(run(early(0)), 100);
    assert_eq!(run(early(1)), 1);
    assert_eq!(run(chosen(0)), Ok(0));
    assert_eq!(run(chosen(5)), Ok(5));
    assert_eq!(run(opaque(&2)), 2);
    assert_eq!(run(opaque_early(0)), 1);
    assert_eq!(run(unpinned(4)), 4);
    assert_eq!(run(Service(1).call(2)), 3);
    assert_eq!(run(Service(1).call(7)), 0);
    assert_eq!(*pinned_value(), 1);
}
