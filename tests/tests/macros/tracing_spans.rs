//! `#[tracing::instrument]` enters its span at each poll of a future that a function boxes or returns,
//! whether the function is measured or not, in whatever order the attributes stand: on, off, stripped.
#![allow(
    clippy::manual_async_fn,
    reason = "such functions are what other attributes look into"
)]

use std::future::{Future, ready};
use std::pin::Pin;

use async_trait::async_trait;
use profiler_runtime::measure_execution_time;
use profiler_tests::counts::assert_calls;
use profiler_tests::poll::{run, yields};
use tracing::{Span, instrument};
use tracing_subscriber::Registry;

const HERE: &str = module_path!();

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The names of the spans that are entered before and after a pause.
type Spans = [Option<&'static str>; 2];

fn current() -> Option<&'static str> {
    Span::current().metadata().map(tracing::Metadata::name)
}

async fn spans() -> Spans {
    let before = current();
    yields(2).await;
    [before, current()]
}

#[track_caller]
fn assert_entered(name: &'static str, future: impl Future<Output = Spans>) {
    assert_eq!(run(future), [Some(name); 2], "{name}");
}

fn traced(test: impl FnOnce()) {
    tracing::subscriber::with_default(Registry::default(), test);
}

#[async_trait]
trait Service: Sync {
    async fn bare(&self, _text: String) -> Spans;
    async fn above(&self, text: String) -> Spans;
    async fn below(&self, text: String) -> Spans;
    async fn block(&mut self, text: String) -> Spans;
}

#[derive(Debug)]
struct Inside;

#[async_trait]
impl Service for Inside {
    #[instrument]
    async fn bare(&self, _text: String) -> Spans {
        spans().await
    }

    #[measure_execution_time]
    #[instrument]
    async fn above(&self, text: String) -> Spans {
        assert_eq!(text, "above");
        spans().await
    }

    #[instrument]
    #[measure_execution_time]
    async fn below(&self, text: String) -> Spans {
        assert_eq!(text, "below");
        spans().await
    }

    #[instrument(skip_all)]
    #[measure_execution_time]
    async fn block(&mut self, text: String) -> Spans {
        assert_eq!(text, "block");
        spans().await
    }
}

#[derive(Debug)]
struct Outside;

/// The attribute sees what `async_trait` made.
#[async_trait]
#[measure_execution_time]
impl Service for Outside {
    #[instrument]
    async fn bare(&self, _text: String) -> Spans {
        spans().await
    }

    #[instrument(skip(text))]
    async fn above(&self, text: String) -> Spans {
        assert_eq!(text, "above");
        spans().await
    }

    #[instrument(fields(length = text.len()))]
    async fn below(&self, text: String) -> Spans {
        assert_eq!(text, "below");
        spans().await
    }

    #[instrument(ret)]
    async fn block(&mut self, text: String) -> Spans {
        assert_eq!(text, "block");
        spans().await
    }
}

#[derive(Debug)]
struct Expanded;

#[measure_execution_time]
#[async_trait]
impl Service for Expanded {
    #[instrument]
    async fn bare(&self, _text: String) -> Spans {
        spans().await
    }

    #[instrument(skip(text))]
    async fn above(&self, text: String) -> Spans {
        assert_eq!(text, "above");
        spans().await
    }

    #[instrument(fields(length = text.len()))]
    async fn below(&self, text: String) -> Spans {
        assert_eq!(text, "below");
        spans().await
    }

    #[instrument(ret)]
    async fn block(&mut self, text: String) -> Spans {
        assert_eq!(text, "block");
        spans().await
    }
}

fn call_all(service: &mut dyn Service) {
    assert_entered("bare", service.bare("bare".to_owned()));
    assert_entered("above", service.above("above".to_owned()));
    assert_entered("below", service.below("below".to_owned()));
    assert_entered("block", service.block("block".to_owned()));
}

#[test]
fn methods_that_async_trait_boxes() {
    traced(|| {
        call_all(&mut Inside);
        call_all(&mut Outside);
        call_all(&mut Expanded);
    });
    for method in ["above", "below", "block"] {
        for service in ["Inside", "Outside", "Expanded"] {
            let name = format!("{service}::Service::{method}");
            assert_calls(HERE, &[(&name, 1)]);
        }
    }
}

#[test]
fn functions_that_box_or_return_an_async_block() {
    #[instrument]
    fn bare(text: String) -> BoxFuture<'static, Spans> {
        Box::pin(async move {
            drop(text);
            spans().await
        })
    }

    #[measure_execution_time]
    #[instrument]
    fn boxed_above(text: String) -> BoxFuture<'static, Spans> {
        let shown = format!("{text}.");
        Box::pin(async move {
            drop((text, shown));
            spans().await
        })
    }

    #[instrument]
    #[measure_execution_time]
    fn boxed_below(text: String) -> Pin<Box<dyn Future<Output = Spans>>> {
        std::boxed::Box::pin(async {
            drop(text);
            spans().await
        })
    }

    #[measure_execution_time]
    #[instrument]
    fn returned_above(text: String) -> impl Future<Output = Spans> {
        async move {
            drop(text);
            spans().await
        }
    }

    #[instrument]
    #[measure_execution_time]
    fn returned_below(text: &str) -> impl Future<Output = Spans> {
        async move {
            assert!(!text.is_empty());
            spans().await
        }
    }

    #[measure_execution_time]
    #[instrument]
    fn early_above(text: &str) -> BoxFuture<'_, Spans> {
        if text.is_empty() {
            return Box::pin(ready([None; 2]));
        }
        Box::pin(async move {
            assert!(!text.is_empty());
            spans().await
        })
    }

    #[instrument]
    #[measure_execution_time]
    fn early_below(text: String) -> BoxFuture<'static, Spans> {
        if text.is_empty() {
            return Box::pin(ready([None; 2]));
        }
        Box::pin(async move {
            drop(text);
            spans().await
        })
    }

    traced(|| {
        assert_entered("bare", bare("x".to_owned()));
        assert_entered("boxed_above", boxed_above("x".to_owned()));
        assert_entered("boxed_below", boxed_below("x".to_owned()));
        assert_entered("returned_above", returned_above("x".to_owned()));
        assert_entered("returned_below", returned_below("x"));
        assert_entered("early_above", early_above("x"));
        assert_entered("early_below", early_below("x".to_owned()));
        run(early_above(""));
        run(early_below(String::new()));
    });
    for (name, made) in [
        ("boxed_above", 1),
        ("boxed_below", 1),
        ("returned_above", 1),
        ("returned_below", 1),
        ("early_above", 2),
        ("early_below", 2),
    ] {
        let name = format!("functions_that_box_or_return_an_async_block::{name}");
        assert_calls(HERE, &[(&name, made)]);
    }
}

#[test]
fn async_functions() {
    #[measure_execution_time]
    #[instrument]
    async fn above(text: String) -> Spans {
        drop(text);
        spans().await
    }

    #[instrument]
    #[measure_execution_time]
    async fn below(text: String) -> Spans {
        drop(text);
        spans().await
    }

    traced(|| {
        assert_entered("above", above("x".to_owned()));
        assert_entered("below", below("x".to_owned()));
    });
    assert_calls(
        HERE,
        &[("async_functions::above", 1), ("async_functions::below", 1)],
    );
}
