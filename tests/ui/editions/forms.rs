//! Functions that compile, run and pass the lints in every edition, as they do without the attribute.
#![deny(
    warnings,
    clippy::all,
    clippy::no_effect_underscore_binding,
    clippy::shadow_same,
    clippy::used_underscore_binding
)]

use std::cmp::Ordering;
use std::future::{Future, Ready, ready};
use std::panic::Location;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use profiler_runtime::measured;

fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        let context = &mut Context::from_waker(Waker::noop());
        if let Poll::Ready(value) = future.as_mut().poll(context) {
            return value;
        }
    }
}

/// The last expression has a temporary that borrows a parameter.
mod temporaries {
    use super::*;

    pub struct State {
        pub users: Mutex<Vec<u8>>,
    }

    #[measured]
    pub async fn ready_at_once(state: Arc<State>) -> usize {
        state.users.lock().unwrap().len()
    }

    #[measured]
    pub async fn after_a_wait(state: Arc<State>) -> usize {
        ready(()).await;
        state.users.lock().unwrap().len()
    }
}

/// Names of the return type that the body gives another meaning.
mod shadowed {
    use super::*;

    #[derive(Debug, PartialEq)]
    pub enum Event {
        Key(u8),
        Quit,
    }

    mod term {
        pub enum Event {
            Key(u8),
            Mouse,
        }

        pub async fn read(key: u8) -> Event {
            if key == 0 { Event::Mouse } else { Event::Key(key) }
        }
    }

    #[measured]
    pub async fn next(key: u8) -> Option<Event> {
        use self::term::Event;
        match term::read(key).await {
            Event::Key(key) => Some(super::shadowed::Event::Key(key)),
            Event::Mouse => Some(super::shadowed::Event::Quit),
        }
    }
}

/// Futures that are more than that: the function that makes them is measured.
mod more_than_futures {
    use super::*;

    pub trait Id {
        fn id(&self) -> u8;
    }

    impl<T> Id for Ready<T> {
        fn id(&self) -> u8 {
            9
        }
    }

    #[measured]
    pub fn cloned(x: u8) -> impl Future<Output = u8> + Clone {
        ready(x)
    }

    #[measured]
    pub fn own(x: u8) -> impl Future<Output = u8> + Id + Send {
        ready(x)
    }
}

/// Boxes that the caller pins.
mod boxes {
    use super::*;

    #[measured]
    pub fn erased(x: u8) -> Box<dyn Future<Output = u8> + Send> {
        Box::new(async move { x })
    }

    #[measured]
    pub fn known(x: u8) -> Box<impl Future<Output = u8>> {
        Box::new(async move { x })
    }
}

/// Types and traits of the program by the names of others.
mod named_as_others {
    use super::*;

    mod own {
        use super::*;

        pub struct BoxFuture<T>(pub Pin<Box<dyn super::Future<Output = T>>>);

        impl<T> super::Future for BoxFuture<T> {
            type Output = T;

            fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
                self.0.as_mut().poll(context)
            }
        }

        pub trait Future {
            type Item;

            fn wait(self) -> Self::Item;
        }

        impl Future for u8 {
            type Item = u8;

            fn wait(self) -> u8 {
                self
            }
        }
    }

    #[measured(bypass = x == 9)]
    pub fn newtype(x: u8) -> own::BoxFuture<u8> {
        own::BoxFuture(Box::pin(async move { x }))
    }

    #[measured]
    fn trait_of_the_program(x: u8) -> impl own::Future<Item = u8> {
        x
    }

    pub trait Call {
        type BoxFuture: Future<Output = u8>;

        fn call(&self) -> Self::BoxFuture;
    }

    pub struct Service;

    impl Call for Service {
        type BoxFuture = Ready<u8>;

        #[measured]
        fn call(&self) -> Self::BoxFuture {
            ready(1)
        }
    }

    pub fn waited() -> u8 {
        use self::own::Future;
        trait_of_the_program(1).wait()
    }
}

/// Bodies that never end.
#[allow(dead_code)]
mod endless {
    use super::*;

    #[measured]
    fn later() -> Pin<Box<dyn Future<Output = u8>>> {
        todo!()
    }

    #[measured]
    fn served(x: u8) -> Pin<Box<dyn Future<Output = u8>>> {
        if x == 0 {
            return Box::pin(ready(0));
        }
        loop {
            std::hint::spin_loop()
        }
    }

    #[measured]
    fn stop() -> Pin<Box<dyn Future<Output = u8> + Send>> {
        std::process::exit(3)
    }
}

/// Bodies that lints read.
mod judged {
    use super::*;

    #[derive(Copy, PartialEq, Eq)]
    pub struct Value(pub u8);

    #[allow(clippy::expl_impl_clone_on_copy)]
    impl Clone for Value {
        #[measured]
        fn clone(&self) -> Self {
            *self
        }
    }

    impl Ord for Value {
        #[measured]
        fn cmp(&self, other: &Self) -> Ordering {
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Value {
        #[measured]
        fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
            Some(self.cmp(other))
        }
    }

    #[measured]
    pub fn empty<T>() {}

    #[measured]
    #[expect(clippy::unused_async)]
    pub async fn without_await(_unused: u8, (x, _): (u8, u8)) -> u8 {
        x
    }

    #[measured]
    pub async fn all_kinds_of_parameters(a: String, _b: String, mut c: u8, (d, _): (u8, u8)) -> u8 {
        c += d;
        ready(a.len() as u8 + c).await
    }
}

/// What looks like the end of something else.
mod punctuation {
    use super::*;

    type Boxed = Pin<Box<dyn Future<Output = u32>>>;

    #[rustfmt::skip]
    #[measured]
    pub async fn without_spaces(x:&str, y:&mut u8, z: ::std::vec::Vec<u8>) -> usize {
        *y += 1;
        ready(()).await;
        x.len() + usize::from(*y) + z.len()
    }

    #[measured]
    pub async fn conditional(n: u32, #[cfg(any())] (a, b): (u32, u32), #[allow(unused)] c: u8) -> u32 {
        ready(n).await
    }

    #[measured]
    pub fn closures(n: u32) -> Pin<Box<dyn Future<Output = u32>>> {
        let pointer: fn(u32) -> u32 = |x| {
            if x > 1 {
                return 0;
            }
            x
        };
        let arm = match n {
            0 => |x: u32| {
                if x > 1 {
                    return 0;
                }
                x
            },
            _ => |x| x,
        };
        if n == 7 || n == 8 {
            return Box::pin(ready(7));
        }
        let made: Boxed = Box::pin(ready(pointer(1) + arm(1) + n));
        made
    }

    pub struct Wide<const N: usize>;

    #[measured]
    pub fn inner_function(n: u32) -> Pin<Box<dyn Future<Output = u32>>> {
        fn wide(n: u32) -> Wide<{ 1 + 2 }> {
            if n > 3 {
                return Wide;
            }
            Wide
        }
        let Wide = wide(n);
        let made: Boxed = Box::pin(ready(n));
        made
    }

    type BoxFuture<T> = Pin<Box<dyn Future<Output = T>>>;

    #[measured]
    pub fn alias_of_an_opaque_type(n: u32) -> BoxFuture<impl std::fmt::Debug> {
        let made: BoxFuture<u32> = Box::pin(ready(n));
        made
    }
}

/// A closure whose parameters have the types that the return type says.
#[measured]
async fn closure() -> impl Fn(&str) -> usize {
    |text| text.len()
}

#[track_caller]
#[measured]
fn caller(early: bool) -> Pin<Box<dyn Future<Output = u32>>> {
    let line = Location::caller().line();
    if early {
        return Box::pin(ready(line));
    }
    Box::pin(ready(line))
}

macro_rules! vec {
    ($x:expr) => {
        if $x == 0 {
            return ready(7);
        }
    };
}

#[measured]
fn left_by_a_macro_of_the_program(x: u8) -> impl Future<Output = u8> {
    vec!(x);
    ready(x)
}

fn main() {
    let state = || {
        Arc::new(temporaries::State {
            users: Mutex::new([1].to_vec()),
        })
    };
    assert_eq!(run(temporaries::ready_at_once(state())), 1);
    assert_eq!(run(temporaries::after_a_wait(state())), 1);
    assert_eq!(run(shadowed::next(3)), Some(shadowed::Event::Key(3)));
    assert_eq!(run(shadowed::next(0)), Some(shadowed::Event::Quit));
    assert_eq!(run(more_than_futures::cloned(1).clone()), 1);
    assert_eq!(more_than_futures::Id::id(&more_than_futures::own(1)), 9);
    assert_eq!(run(Box::into_pin(boxes::erased(1))), 1);
    assert_eq!(run(Box::into_pin(boxes::known(1))), 1);
    assert_eq!(run(named_as_others::newtype(1)), 1);
    assert_eq!(named_as_others::waited(), 1);
    assert_eq!(run(named_as_others::Call::call(&named_as_others::Service)), 1);
    assert!(Clone::clone(&judged::Value(1)) < judged::Value(2));
    judged::empty::<u8>();
    assert_eq!(run(judged::without_await(1, (2, 3))), 2);
    assert_eq!(run(judged::all_kinds_of_parameters("a".into(), "b".into(), 1, (2, 3))), 4);
    let mut one = 1;
    assert_eq!(run(punctuation::without_spaces("a", &mut one, [1].to_vec())), 4);
    assert_eq!(run(punctuation::conditional(1, 2)), 1);
    assert_eq!(run(punctuation::closures(1)) + run(punctuation::closures(7)), 3 + 7);
    assert_eq!(run(punctuation::inner_function(1)), 1);
    assert_eq!(format!("{:?}", run(punctuation::alias_of_an_opaque_type(1))), "1");
    assert_eq!(run(closure())("two"), 3);
    for early in [true, false] {
        assert_eq!(run(caller(early)), line!());
    }
    assert_eq!(run(left_by_a_macro_of_the_program(0)), 7);
    assert_eq!(run(left_by_a_macro_of_the_program(1)), 1);
}
