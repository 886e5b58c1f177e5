//! The values of a function are dropped in the same order as without the attribute: at its end, where it is cancelled, and
//! where it panics.
#![deny(warnings)]

use std::cell::RefCell;
use std::future::{Future, ready};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

thread_local!(static LOG: RefCell<Vec<&'static str>> = const { RefCell::new(Vec::new()) });

pub struct D(&'static str);

impl Drop for D {
    fn drop(&mut self) {
        LOG.with(|log| log.borrow_mut().push(self.0));
    }
}

impl D {
    fn len(&self) -> usize {
        self.0.len()
    }
}

/// Is pending once.
struct Wait(bool);

impl Future for Wait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if mem::replace(&mut self.0, true) { Poll::Ready(()) } else { Poll::Pending }
    }
}

fn wait() -> Wait {
    Wait(false)
}

/// A macro of the program, which might leave the function for all that the attribute knows.
macro_rules! both {
    ($one:expr, $other:expr) => {
        $one + $other
    };
}

macro_rules! functions {
    ($($function:item)*) => {
        #[allow(dead_code)]
        mod bare {
            use super::*;
            $($function)*
        }

        mod measured {
            use super::*;
            $(#[profiler_runtime::measured] $function)*
        }
    };
}

functions! {
    pub async fn captured(a: D, b: D, c: Box<(D, D)>) -> usize {
        let _local = D("local");
        wait().await;
        let _moved = c.0;
        wait().await;
        drop(a);
        D("temporary").len() + b.len()
    }

    pub async fn every_kind(_a: D, b: D, mut c: D, (d, _): (D, D), _: D, e: D) -> usize {
        let _local = D("local");
        c.0 = "changed";
        wait().await;
        let _used = (&b, &c, &d);
        wait().await;
        drop(e);
        wait().await;
        D("temporary").len()
    }

    pub async fn mentioned_later(_a: D, b: D, c: D) -> usize {
        wait().await;
        let _used = &c;
        wait().await;
        b.len()
    }

    pub async fn panics(a: D, _b: D, (c, _d): (D, D)) -> usize {
        let _local = D("local");
        wait().await;
        if a.len() + c.len() > 0 {
            std::panic::resume_unwind(Box::new(()));
        }
        0
    }

    pub async fn never_waits(a: D, _b: D, (_c, d): (D, D)) -> usize {
        let _local = D("local");
        D("temporary").len() + a.len() + d.len()
    }

    pub fn early(a: D, _b: D, (c, d): (D, D)) -> Pin<Box<dyn Future<Output = usize>>> {
        let _local = D("local");
        if a.len() == 7 || c.len() == 1 {
            return Box::pin(ready(D("temporary").len()));
        }
        Box::pin(ready(d.len()))
    }

    pub fn early_or_by_a_macro(a: D, _b: D, (c, d): (D, D)) -> Pin<Box<dyn Future<Output = usize>>> {
        let _local = D("local");
        if both!(a.len(), c.len()) == 2 {
            return Box::pin(ready(D("temporary").len()));
        }
        Box::pin(ready(d.len()))
    }

    pub fn late(_a: D, b: D, c: D) -> impl Future<Output = usize> {
        let _local = (D("local"), b);
        ready(D("temporary").len() + c.len())
    }
}

pub struct Two {
    #[allow(dead_code)]
    first: D,
    second: D,
}

impl Two {
    fn new() -> Self {
        Self {
            first: D("first"),
            second: D("second"),
        }
    }

    async fn bare(mut self) -> usize {
        self.second.0 = "changed";
        wait().await;
        self.second.len()
    }

    #[profiler_runtime::measured]
    async fn measured(mut self) -> usize {
        self.second.0 = "changed";
        wait().await;
        self.second.len()
    }
}

/// Returns what is dropped by a future that is dropped after some polls, and `true` if it was ready by then.
fn dropped<F: Future>(make: &dyn Fn() -> F, polls: usize) -> (Vec<&'static str>, bool) {
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let mut future = Box::pin(make());
        let mut poll = |_| {
            let context = &mut Context::from_waker(Waker::noop());
            future.as_mut().poll(context).is_ready()
        };
        (0..polls).any(&mut poll)
    }));
    (LOG.with(RefCell::take), ended.unwrap_or(true))
}

macro_rules! compare {
    ($($name:ident($($argument:expr),*);)*) => {$(
        for polls in 0.. {
            let bare = dropped(&|| bare::$name($($argument),*), polls);
            let measured = dropped(&|| measured::$name($($argument),*), polls);
            assert_eq!(bare, measured, "{} after {polls} polls", stringify!($name));
            assert!(!bare.0.is_empty());
            if bare.1 {
                break;
            }
        }
    )*};
}

fn main() {
    for polls in 0..3 {
        let measured = dropped(&|| Two::new().measured(), polls);
        assert_eq!(dropped(&|| Two::new().bare(), polls), measured, "after {polls} polls");
    }
    compare! {
        captured(D("a"), D("b"), Box::new((D("c0"), D("c1"))));
        every_kind(D("a"), D("b"), D("c"), (D("d"), D("rest")), D("unnamed"), D("e"));
        mentioned_later(D("a"), D("b"), D("c"));
        panics(D("a"), D("b"), (D("c"), D("d")));
        never_waits(D("a"), D("b"), (D("c"), D("d")));
        early(D("a"), D("b"), (D("c"), D("d")));
        early_or_by_a_macro(D("a"), D("b"), (D("c"), D("d")));
        late(D("a"), D("b"), D("c"));
    }
}
