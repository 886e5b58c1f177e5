//! What the generated functions use: values that log their destructors, futures that log their
//! polls. `run` runs each function bare and measured, and compares the logs.

use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, Waker};

pub use std::fmt::Debug;
pub use std::future::Future;
pub use std::pin::Pin;
pub use std::rc::Rc;
pub use std::sync::Arc;

thread_local!(static LOG: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) });

pub fn log(entry: impl fmt::Display) {
    LOG.with_borrow_mut(|log| log.push(entry.to_string()));
}

pub fn show(value: &impl Debug) {
    log(format_args!("{value:?}"));
}

/// Returns a constant that the compiler cannot see.
pub fn flip(name: &str, value: bool) -> bool {
    log(format_args!("{name}: {value}"));
    value
}

/// A value with a destructor.
pub struct D(pub &'static str);

impl D {
    pub fn new(name: &'static str) -> Self {
        log(format_args!("new {name}"));
        Self(name)
    }

    pub fn name(&self) -> &'static str {
        self.0
    }

    pub fn size(&self) -> usize {
        self.0.len()
    }

    pub fn touch(&self) {
        log(format_args!("touch {}", self.0));
    }

    pub fn change(&mut self) {
        log(format_args!("change {}", self.0));
    }

    pub fn child(&self, name: &'static str) -> Self {
        Self::new(name)
    }

    pub fn optional(&self, name: &'static str, some: bool) -> Option<Self> {
        some.then(|| Self::new(name))
    }

    /// Borrows the value until the guard is dropped.
    pub fn lock(&self) -> Guard<'_> {
        log(format_args!("lock {}", self.0));
        Guard(self)
    }

    #[track_caller]
    pub fn fail(&self) -> usize {
        panic!("{} fails", self.0)
    }

    pub async fn work(&self, name: &'static str, pending: usize) -> usize {
        let local = Self::new(name);
        later(local.0, pending).await + self.size()
    }
}

impl Drop for D {
    fn drop(&mut self) {
        log(format_args!("drop {}", self.0));
    }
}

impl Debug for D {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

pub struct Guard<'a>(&'a D);

impl Deref for Guard<'_> {
    type Target = D;

    fn deref(&self) -> &D {
        self.0
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        log(format_args!("unlock {}", self.0.0));
    }
}

/// Declares the type of the methods in a module.
#[macro_export]
macro_rules! own {
    () => {
        pub struct Own {
            pub d: D,
            pub e: D,
        }

        impl Own {
            pub fn new(d: &'static str, e: &'static str) -> Self {
                Self { d: D::new(d), e: D::new(e) }
            }
        }

        impl Thing for Own {
            fn d(&self) -> &D {
                &self.d
            }
        }
    };
}

pub struct Pair {
    pub left: D,
    pub right: D,
}

/// Anything that holds a `D`.
pub trait Thing {
    fn d(&self) -> &D;
}

impl Thing for D {
    fn d(&self) -> &D {
        self
    }
}

impl Thing for Guard<'_> {
    fn d(&self) -> &D {
        self.0
    }
}

impl<T: Thing> Thing for Box<T> {
    fn d(&self) -> &D {
        (**self).d()
    }
}

impl<T: Thing> Thing for Rc<T> {
    fn d(&self) -> &D {
        (**self).d()
    }
}

impl<T: Thing> Thing for Arc<T> {
    fn d(&self) -> &D {
        (**self).d()
    }
}

pub fn take(thing: impl Thing) -> usize {
    log(format_args!("take {}", thing.d().0));
    thing.d().size()
}

pub fn pass<T: Thing>(thing: T) -> T {
    log(format_args!("pass {}", thing.d().0));
    thing
}

pub async fn consume(thing: impl Thing, pending: usize) -> usize {
    thing.d().work("work", pending).await
}

pub async fn echo<T>(value: T) -> T {
    log("echo");
    value
}

#[derive(Debug)]
pub struct Fault(pub D);

pub fn fallible(name: &'static str, succeeds: bool) -> Result<D, Fault> {
    if succeeds { Ok(D::new(name)) } else { Err(Fault(D::new(name))) }
}

pub fn maybe(name: &'static str, some: bool) -> Option<D> {
    some.then(|| D::new(name))
}

#[derive(Debug)]
pub enum Event {
    Key(usize),
    Quit,
}

/// Items with names that also exist outside.
pub mod other {
    #[derive(Debug)]
    pub enum Event {
        Mouse,
    }

    #[derive(Debug)]
    pub struct Fault;
}

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
pub type LocalBoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A future that is pending some times.
pub struct Later {
    name: D,
    pending: usize,
}

pub fn later(name: &'static str, pending: usize) -> Later {
    Later { name: D::new(name), pending }
}

impl Future for Later {
    type Output = usize;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<usize> {
        log(format_args!("poll {}", self.name.0));
        if self.pending == 0 {
            return Poll::Ready(self.name.size());
        }
        self.pending -= 1;
        Poll::Pending
    }
}

pub fn sent<T: Send>(value: T) -> T {
    value
}

#[macro_export]
macro_rules! leave_if {
    ($leaves:expr, $value:expr) => {
        if $leaves {
            return $value;
        }
    };
}

/// Leaves the function, unlike the macro of this name that loggers have.
#[macro_export]
macro_rules! info {
    ($leaves:expr, $value:expr) => {
        if $leaves {
            return $value;
        }
    };
}

#[macro_export]
macro_rules! wait {
    ($future:expr) => {
        $future.await
    };
}

pub enum Case {
    Call(fn()),
    Future(fn() -> Pin<Box<dyn Future<Output = ()>>>),
}

/// More polls than any generated future needs.
const ENDLESS: usize = 200;

pub fn run(cases: &[(usize, fn() -> Case, fn() -> Case)]) {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|place| (place.line(), place.column()));
        let payload = panic.payload();
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or(payload.downcast_ref::<&str>().copied());
        log(format_args!("panic at {place:?}: {text:?}"));
    }));
    for (index, bare, measured) in cases {
        match (bare(), measured()) {
            (Case::Call(bare), Case::Call(measured)) => {
                compare(*index, "called", &record(bare), &record(measured));
            }
            (Case::Future(bare), Case::Future(measured)) => {
                for polls in 0..ENDLESS {
                    let (expected, bare_ended) = polled(bare, polls);
                    let (actual, measured_ended) = polled(measured, polls);
                    let how = format!("at most {polls} polls, then dropped");
                    compare(*index, &how, &expected, &actual);
                    if bare_ended && measured_ended {
                        break;
                    }
                }
            }
            _ => unreachable!("both are the same function"),
        }
        println!("ran {index}");
    }
}

fn record(run: impl FnOnce()) -> Vec<String> {
    LOG.take();
    if catch_unwind(AssertUnwindSafe(run)).is_err() {
        log("unwound");
    }
    LOG.take()
}

/// Polls a new future and drops it. Returns the log, and `true` if the future ended.
fn polled(make: fn() -> Pin<Box<dyn Future<Output = ()>>>, polls: usize) -> (Vec<String>, bool) {
    // A panic leaves it as it is.
    let mut ended = true;
    let log = record(|| {
        let mut future = make();
        let mut context = Context::from_waker(Waker::noop());
        let ready = (0..polls).any(|poll| {
            log(format_args!("-- poll {poll}"));
            future.as_mut().poll(&mut context).is_ready()
        });
        ended = ready;
        log("-- end");
        drop(future);
    });
    (log, ended)
}

fn compare(index: usize, how: &str, bare: &[String], measured: &[String]) {
    if bare == measured {
        return;
    }
    println!("differs {index} {how}");
    println!("  {:<40} measured", "bare");
    for line in 0..bare.len().max(measured.len()) {
        let [left, right] = [bare, measured].map(|log| log.get(line).map_or("", String::as_str));
        let mark = if left == right { ' ' } else { '|' };
        println!("  {left:<38} {mark} {right}");
    }
}
