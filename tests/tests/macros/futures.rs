//! Every form of asynchronous function is measured from its first poll to its end, and does what it
//! did: on, off, stripped.
#![allow(
    clippy::elidable_lifetime_names,
    clippy::manual_async_fn,
    clippy::unused_async,
    reason = "forms are what is tested"
)]

use std::cell::RefCell;
use std::fmt::Display;
use std::future::{Future, ready};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::{Pin, pin};

use profiler_runtime::{MeasureFuture, measure_execution_time};
use profiler_tests::counts;
use profiler_tests::counts::{assert_calls, column, expected};
use profiler_tests::poll::{poll_once, run, yields};

const HERE: &str = module_path!();

/// Calls that the summary knows to be futures; everything else would be the making of one.
#[track_caller]
fn assert_futures(name: &str, made: u64) {
    assert_calls(HERE, &[(name, made)]);
    let full = format!("{HERE}::{name}");
    assert_eq!(column(&full, |row| row.futures), expected(made), "{full}");
}

fn send<F: Future + Send>(future: F) -> F {
    future
}

#[test]
fn async_functions() {
    #[measure_execution_time]
    async fn question(
        text: &str,
        _unused: u8,
    ) -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
        yields(2).await;
        if text.is_empty() {
            return Ok(0);
        }
        Ok(text.parse()?)
    }

    #[measure_execution_time]
    async fn shown(value: u8) -> Result<impl std::fmt::Display, std::fmt::Error> {
        if value == 0 {
            return Err(std::fmt::Error);
        }
        Ok(value)
    }

    #[measure_execution_time]
    async fn countdown(mut from: u32) -> u32 {
        if from == 0 {
            return 0;
        }
        from -= 1;
        1 + Box::pin(countdown(from)).await
    }

    #[measure_execution_time]
    async unsafe fn careful((value, _): (u8, u8)) -> u8 {
        value
    }

    #[measure_execution_time]
    async fn opaque<'a>(value: &'a str) -> impl Display + use<'a> {
        value
    }

    #[measure_execution_time(bypass = value > 100, global_step = value)]
    async fn generic<T: Default + Send>(value: u8, given: Option<T>) -> T {
        given.unwrap_or_default()
    }

    #[measure_execution_time]
    async fn forever() -> ! {
        loop {
            std::future::pending::<()>().await;
        }
    }

    assert_eq!(run(send(question("7", 1))).ok(), Some(7));
    assert_eq!(run(question("", 1)).ok(), Some(0));
    assert!(run(question("x", 1)).is_err());
    assert_eq!(
        run(shown(1)).map(|shown| shown.to_string()),
        Ok("1".to_owned())
    );
    assert!(run(shown(0)).is_err());
    assert_eq!(run(countdown(3)), 3);
    // SAFETY: it is not unsafe at all.
    assert_eq!(run(unsafe { careful((1, 2)) }), 1);
    assert_eq!(run(opaque("a")).to_string(), "a");
    assert_eq!(run(send(generic(1, Some(5)))), 5);
    assert_eq!(run(generic::<u8>(101, None)), 0);
    assert!(poll_once(pin!(send(forever()))).is_pending());
    for (name, made) in [
        ("opaque", 1),
        ("generic", 1),
        ("question", 3),
        ("shown", 2),
        ("countdown", 4),
        ("careful", 1),
    ] {
        assert_futures(&format!("async_functions::{name}"), made);
    }
}

trait Source {
    fn next(&mut self) -> impl Future<Output = u8> + Send;

    #[allow(async_fn_in_trait, reason = "that is what is tested")]
    #[measure_execution_time]
    async fn two(&mut self) -> u8 {
        self.next().await + self.next().await
    }
}

struct Count(u8);

impl Source for Count {
    #[measure_execution_time]
    async fn next(&mut self) -> u8 {
        yields(1).await;
        self.0 += 1;
        self.0
    }
}

#[test]
fn async_functions_in_traits() {
    assert_eq!(run(Count(0).two()), 3);
    assert_futures("Source::two", 1);
    assert_futures("Count::Source::next", 2);
}

#[async_trait::async_trait]
trait Service: Sync {
    async fn inside(&self, add: u8) -> u8;

    async fn outside(&self, add: u8) -> Result<u8, std::num::TryFromIntError>;

    #[measure_execution_time]
    async fn given(&self) -> u8 {
        self.inside(1).await
    }
}

struct Inside(u8);

#[async_trait::async_trait]
impl Service for Inside {
    #[measure_execution_time(bypass = add == 9)]
    async fn inside(&self, add: u8) -> u8 {
        yields(1).await;
        self.0 + add
    }

    async fn outside(&self, add: u8) -> Result<u8, std::num::TryFromIntError> {
        Ok(add)
    }
}

struct Outside(u8);

#[measure_execution_time]
#[async_trait::async_trait]
impl Service for Outside {
    async fn inside(&self, add: u8) -> u8 {
        self.0 + add
    }

    async fn outside(&self, add: u8) -> Result<u8, std::num::TryFromIntError> {
        if add == 0 {
            return Ok(0);
        }
        yields(1).await;
        u8::try_from(i32::from(self.0) - i32::from(add))
    }
}

#[test]
fn async_trait_above_and_below() {
    let services: [Box<dyn Service>; 2] = [Box::new(Inside(1)), Box::new(Outside(2))];
    assert_eq!(
        services
            .iter()
            .map(|service| run(service.given()))
            .sum::<u8>(),
        5
    );
    assert_eq!(run(services[0].inside(9)), 10);
    assert_eq!(run(services[1].outside(0)), Ok(0));
    assert!(run(services[1].outside(3)).is_err());
    assert_futures("Service::given", 2);
    assert_futures("Inside::Service::inside", 1);
    assert_futures("Outside::Service::inside", 1);
    assert_futures("Outside::Service::outside", 2);
}

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[test]
fn functions_that_return_a_future() {
    #[measure_execution_time]
    fn in_place(values: &[u8]) -> std::pin::Pin<std::boxed::Box<dyn Future<Output = u8> + '_>> {
        let sum = values.iter().sum();
        if sum > 100 {
            println!("many");
        }
        std::boxed::Box::pin(async move {
            yields(1).await;
            sum
        })
    }

    #[measure_execution_time]
    fn early(value: u8) -> BoxFuture<'static, u8> {
        if value == 0 {
            return Box::pin(ready(100));
        }
        Box::pin(async move { value })
    }

    #[measure_execution_time(bypass = value == 9, global_step = value)]
    fn branches(value: u8) -> BoxFuture<'static, Result<u8, std::num::ParseIntError>> {
        match value {
            0 => Box::pin(ready(Ok(100))),
            other => Box::pin(async move {
                if other == 7 {
                    return Ok(0);
                }
                other.to_string().parse()
            }),
        }
    }

    #[measure_execution_time]
    fn opaque<'a>(value: &'a u8) -> impl Future<Output = u8> + use<'a> {
        async move { *value }
    }

    #[measure_execution_time]
    fn opaque_early(value: u8) -> impl Future<Output = u8> {
        if value == 0 {
            return ready(1);
        }
        ready(value)
    }

    #[measure_execution_time]
    fn unpinned(value: u8) -> Box<dyn Future<Output = u8> + Unpin> {
        Box::new(ready(value))
    }

    #[measure_execution_time]
    fn no_future() -> Pin<Box<u8>> {
        Box::pin(1)
    }

    assert_eq!(run(in_place(&[1, 2])), 3);
    assert_eq!(run(early(0)) + run(early(1)), 101);
    assert_eq!(
        [0, 1, 7, 9].map(|value| run(branches(value))),
        [100, 1, 0, 9].map(Ok)
    );
    assert_eq!(*no_future(), 1);
    assert_calls(HERE, &[("functions_that_return_a_future::no_future", 1)]);
    assert_eq!(run(opaque(&1)), 1);
    assert_eq!(run(opaque_early(0)) + run(opaque_early(2)), 3);
    assert_eq!(run(unpinned(1)), 1);
    let made = [
        ("in_place", 1),
        ("early", 2),
        ("branches", 3),
        ("opaque", 1),
        ("opaque_early", 2),
    ];
    for (name, made) in made.into_iter().chain([("unpinned", 1)]) {
        assert_futures(&format!("functions_that_return_a_future::{name}"), made);
    }
}

macro_rules! ensure {
    ($condition:expr, $otherwise:expr) => {
        if !$condition {
            return $otherwise;
        }
    };
}

/// Lends itself to the futures that its methods return.
struct Sum(u8);

impl Sum {
    fn add(&mut self, value: u8) -> impl Future<Output = u8> + Send {
        async move {
            yields(1).await;
            self.0 += value;
            self.0
        }
    }

    #[measure_execution_time]
    fn boxed(&mut self, value: Option<u8>) -> BoxFuture<'_, u8> {
        let Some(value) = value else {
            return Box::pin(ready(self.0));
        };
        let this = &mut *self;
        Box::pin(async move { this.add(value).await })
    }

    #[measure_execution_time]
    fn opaque(&mut self, value: u8) -> impl Future<Output = u8> {
        if value == 0 {
            return self.add(100);
        }
        self.add(value)
    }

    #[measure_execution_time]
    fn boxed_macro(&mut self, value: u8) -> BoxFuture<'_, u8> {
        ensure!(value != 0, Box::pin(ready(self.0)));
        Box::pin(self.add(value))
    }

    #[measure_execution_time]
    fn opaque_macro(&mut self, value: u8) -> impl Future<Output = u8> {
        ensure!(value != 0, self.add(100));
        self.add(value)
    }

    #[measure_execution_time]
    fn named_macro(&mut self, value: u8) -> Pin<Box<impl Future<Output = u8>>> {
        ensure!(value != 0, Box::pin(self.add(100)));
        Box::pin(self.add(value))
    }
}

#[test]
fn functions_that_leave_early_and_lend_what_they_borrow() {
    let mut sum = Sum(0);
    assert_eq!(run(sum.boxed(None)) + run(sum.boxed(Some(1))), 1);
    assert_eq!(run(sum.opaque(0)) + run(sum.opaque(1)), 101 + 102);
    assert_eq!(run(sum.boxed_macro(0)) + run(sum.boxed_macro(1)), 102 + 103);
    sum = Sum(0);
    assert_eq!(run(sum.opaque_macro(0)) + run(sum.opaque_macro(1)), 201);
    sum = Sum(0);
    assert_eq!(run(sum.named_macro(0)) + run(sum.named_macro(1)), 201);
    for name in [
        "boxed",
        "opaque",
        "boxed_macro",
        "opaque_macro",
        "named_macro",
    ] {
        assert_futures(&format!("Sum::{name}"), 2);
    }
}

/// As `BoxService` of tower: what it passes on may hold values that do not live as long as the future
/// says.
struct Passes<U>(Vec<BoxFuture<'static, U>>);

impl<U> Passes<U> {
    #[measure_execution_time]
    fn call(&mut self) -> BoxFuture<'static, U> {
        self.0.remove(0)
    }

    #[measure_execution_time]
    fn call_early(&mut self) -> BoxFuture<'static, U> {
        if self.0.len() > 1 {
            return self.0.remove(1);
        }
        self.0.remove(0)
    }
}

#[test]
fn boxed_futures_that_are_passed_on() {
    type BoxFuture<'a, T> =
        Pin<Box<dyn Future<Output = T> + Send + Sync + UnwindSafe + RefUnwindSafe + 'a>>;

    #[measure_execution_time]
    fn shared(inner: BoxFuture<'_, u8>) -> BoxFuture<'_, u8> {
        inner
    }

    #[measure_execution_time]
    fn unpinned<'a>(
        mut inner: Vec<Box<dyn Future<Output = u8> + Unpin + Send + 'a>>,
    ) -> Box<dyn Future<Output = u8> + Unpin + Send + 'a> {
        inner.remove(0)
    }

    let mut passes = Passes(Vec::new());
    for value in 1..4 {
        passes.0.push(Box::pin(ready(value)));
    }
    assert_eq!(run(passes.call_early()), 2);
    assert_eq!([run(passes.call()), run(passes.call_early())], [1, 3]);
    assert_eq!(run(shared(Box::pin(ready(1)))), 1);
    assert_eq!(run(unpinned(vec![Box::new(ready(1))])), 1);
    assert_futures("Passes::call", 1);
    assert_futures("Passes::call_early", 2);
    assert_futures("boxed_futures_that_are_passed_on::shared", 1);
    assert_futures("boxed_futures_that_are_passed_on::unpinned", 1);
}

#[test]
fn futures_keep_their_auto_traits() {
    fn all_of_them<T: Send + Sync + UnwindSafe + RefUnwindSafe>(_: &T) {}
    fn and_unpin<T: Unpin>(_: &T) {}

    #[measure_execution_time]
    async fn declared(value: u8) -> u8 {
        ready(value).await
    }

    #[measure_execution_time]
    fn block(value: u8) -> impl Future<Output = u8> {
        async move { ready(value).await }
    }

    #[measure_execution_time]
    fn opaque(value: u8) -> impl Future<Output = u8> {
        ready(value)
    }

    let named = ready(4).measure_execution_time("auto traits");
    all_of_them(&declared(1));
    all_of_them(&block(2));
    all_of_them(&opaque(3));
    all_of_them(&named);
    and_unpin(&opaque(3));
    and_unpin(&named);
    assert_eq!(run(named), 4);
    assert_eq!(run(declared(1)) + run(block(2)) + run(opaque(3)), 6);
}

#[test]
fn opaque_types_inside_of_others() {
    #[measure_execution_time]
    async fn declared(value: u8) -> Box<dyn Iterator<Item = impl Display>> {
        if value == 0 {
            return Box::new(std::iter::empty::<u8>());
        }
        Box::new([value, 2].into_iter())
    }

    #[measure_execution_time]
    fn boxed(value: u8) -> Pin<Box<dyn Future<Output = impl Display>>> {
        if value == 0 {
            return Box::pin(ready(100));
        }
        Box::pin(async move { value })
    }

    assert_eq!(
        run(declared(1)).map(|it| it.to_string()).max().unwrap(),
        "2"
    );
    assert!(run(declared(0)).next().is_none());
    assert_eq!(
        run(boxed(0)).to_string() + &run(boxed(1)).to_string(),
        "1001"
    );
    assert_futures("opaque_types_inside_of_others::declared", 2);
    assert_futures("opaque_types_inside_of_others::boxed", 2);
}

#[test]
fn a_future_that_is_only_made_is_not_a_call() {
    #[measure_execution_time]
    fn made() -> BoxFuture<'static, u8> {
        Box::pin(async { 1 })
    }

    #[measure_execution_time]
    async fn declared() {}

    drop((made(), declared()));
    assert_futures("a_future_that_is_only_made_is_not_a_call::made", 0);
    assert_futures("a_future_that_is_only_made_is_not_a_call::declared", 0);
}

#[test]
fn dropped_and_panicking_futures_are_flagged() {
    #[measure_execution_time]
    async fn pending() {
        std::future::pending::<()>().await;
    }

    #[measure_execution_time]
    async fn panics() {
        yields(1).await;
        std::panic::resume_unwind(Box::new("on purpose"));
    }

    {
        let mut pending = pin!(pending());
        assert!(poll_once(pending.as_mut()).is_pending());
    }
    assert!(std::panic::catch_unwind(|| run(panics())).is_err());
    let name = |name: &str| format!("{HERE}::dropped_and_panicking_futures_are_flagged::{name}");
    assert_eq!(
        column(&name("pending"), |row| row.dropped_futures),
        expected(1)
    );
    assert_eq!(column(&name("panics"), |row| row.panicked), expected(1));
}

#[test]
fn any_future_under_a_name_of_its_own() {
    let future = async {
        yields(3).await;
        7
    };
    assert_eq!(run(future.measure_execution_time("any future")), 7);
    assert_eq!(counts::calls("any future"), expected(1));
}

/// Says in which order it and others were dropped.
struct Told<'a>(&'a RefCell<Vec<&'static str>>, &'static str);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.borrow_mut().push(self.1);
    }
}

#[test]
fn arguments_are_dropped_in_the_order_they_would_be() {
    #[measure_execution_time]
    async fn measured(one: Told<'_>, mut two: Told<'_>, three: Told<'_>) {
        let _local = Told(two.0, "local");
        yields(1).await;
        (two.1, _) = ("two", (&one, &three));
    }

    async fn bare(one: Told<'_>, mut two: Told<'_>, three: Told<'_>) {
        let _local = Told(two.0, "local");
        yields(1).await;
        (two.1, _) = ("two", (&one, &three));
    }

    let orders = [RefCell::default(), RefCell::default()];
    let told = |at: usize, name| Told(&orders[at], name);
    run(measured(told(0, "one"), told(0, "2"), told(0, "three")));
    run(bare(told(1, "one"), told(1, "2"), told(1, "three")));
    let [measured, bare] = orders.map(RefCell::into_inner);
    assert_eq!(measured, bare);
}

#[tokio::test]
#[measure_execution_time]
async fn a_tokio_test_with_the_attribute_below() {
    yields(1).await;
}

#[measure_execution_time]
#[tokio::test]
async fn a_tokio_test_with_the_attribute_above() {
    yields(1).await;
}

#[test]
fn tokio_tests() {
    a_tokio_test_with_the_attribute_below();
    a_tokio_test_with_the_attribute_above();
    for name in ["below", "above"] {
        // Once from here, and perhaps once as a test already.
        let calls = counts::calls(&format!("{HERE}::a_tokio_test_with_the_attribute_{name}"));
        assert!(
            (expected(1)..=expected(2)).contains(&calls),
            "{name}: {calls}"
        );
    }
}

#[test]
fn tokio_entry_points() {
    #[measure_execution_time]
    #[tokio::main(flavor = "current_thread")]
    async fn above() -> u8 {
        yields(1).await;
        1
    }

    #[tokio::main(flavor = "current_thread")]
    #[measure_execution_time]
    async fn below() -> u8 {
        yields(1).await;
        2
    }

    assert_eq!(above() + below(), 3);
    assert_calls(
        HERE,
        &[
            ("tokio_entry_points::above", 1),
            ("tokio_entry_points::below", 1),
        ],
    );
}
