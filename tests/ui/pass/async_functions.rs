//! `async fn`: free, in impls, in traits, generic, with `?`, `!` and `impl Trait`.
#![deny(warnings)]

use std::fmt::Display;
use std::future::{Future, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use profiler_runtime::measure_execution_time;

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

fn is_send<F: Future + Send>(future: F) -> F {
    future
}

#[measure_execution_time]
async fn nothing() {}

#[measure_execution_time]
async fn sum(one: u32, mut other: u32) -> u32 {
    other += ready(one).await;
    other
}

#[measure_execution_time]
async fn question(text: &str) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
    if text.is_empty() {
        return Ok(0);
    }
    let number: u32 = ready(text).await.parse()?;
    Ok(number)
}

#[measure_execution_time]
async fn opaque<'a>(value: &'a str) -> impl Display + 'a {
    value
}

#[measure_execution_time]
async fn half_opaque(value: u8) -> Result<impl Display, std::fmt::Error> {
    if value == 0 {
        return Err(std::fmt::Error);
    }
    Ok(value)
}

#[measure_execution_time]
async fn forever() -> ! {
    loop {
        std::future::pending::<()>().await;
    }
}

#[measure_execution_time]
async fn a_future() -> std::future::Ready<u8> {
    ready(1)
}

#[measure_execution_time]
async unsafe fn careful(pointer: &u8) -> u8 {
    // SAFETY: it was a reference.
    unsafe { *std::ptr::from_ref(pointer) }
}

#[measure_execution_time]
async fn countdown(from: u32) -> u32 {
    if from == 0 {
        0
    } else {
        1 + Box::pin(countdown(from - 1)).await
    }
}

trait Source {
    fn next(&mut self) -> impl Future<Output = u8> + Send;
}

struct Count(u8);

impl Source for Count {
    #[measure_execution_time]
    async fn next(&mut self) -> u8 {
        self.0 += ready(1).await;
        self.0
    }
}

#[allow(async_fn_in_trait)]
trait Local {
    #[measure_execution_time]
    async fn twice(&self, value: u8) -> u8 {
        2 * value
    }
}

impl Local for Count {}

impl Count {
    #[measure_execution_time(bypass = self.0 > 100, global_step = self.0)]
    async fn generic<T: Default + Send>(&self, value: Option<T>) -> T {
        value.unwrap_or_default()
    }
}

fn main() {
    run(nothing());
    assert_eq!(run(is_send(sum(1, 2))), 3);
    assert_eq!(run(is_send(question("7"))).ok(), Some(7));
    assert_eq!(run(question("")).ok(), Some(0));
    assert!(run(question("x")).is_err());
    assert_eq!(run(opaque("a")).to_string(), "a");
    assert_eq!(
        run(half_opaque(1)).map(|shown| shown.to_string()),
        Ok("1".to_owned())
    );
    let mut endless = pin!(is_send(forever()));
    assert!(
        endless
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    assert_eq!(run(run(a_future())), 1);
    // SAFETY: it is not unsafe at all.
    assert_eq!(run(unsafe { careful(&3) }), 3);
    assert_eq!(run(countdown(3)), 3);
    let mut count = Count(0);
    assert_eq!(run(is_send(count.next())), 1);
    assert_eq!(run(count.twice(4)), 8);
    assert_eq!(run(is_send(count.generic(Some(5_u8)))), 5);
}
