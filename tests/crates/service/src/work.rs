//! Handlers that start tasks, race futures and stream their answers.

use std::future::{pending, ready, Future};
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::Json;
use futures_util::future::{join_all, BoxFuture};
use futures_util::stream::{self, StreamExt};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::app::App;
use crate::error::Error;

/// Sums the numbers in a body, each parsed by a task of its own.
pub(crate) async fn sum(body: String) -> Result<String, Error> {
    let tasks: Vec<_> = body
        .split_whitespace()
        .map(|word| tokio::spawn(parse(word.to_owned())))
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await??;
    }
    Ok(sum.to_string())
}

async fn parse(word: String) -> Result<i64, Error> {
    tokio::task::yield_now().await;
    Ok(word.trim_matches(',').parse()?)
}

pub(crate) async fn race(State(app): State<Arc<App>>) -> &'static str {
    let (sender, receiver) = oneshot::channel();
    tokio::spawn(async move {
        let _permit = app.desks.acquire().await;
        let _ = sender.send("the desk");
    });
    tokio::select! {
        biased;
        () = pending() => "nothing",
        winner = receiver => winner.unwrap_or("nobody"),
    }
}

/// Gives up on a future that never ends.
pub(crate) async fn late() -> Result<String, Error> {
    let soon = within(ready("soon")).await?;
    let never = within(pending::<String>()).await?;
    Ok(format!("{soon} and {never}"))
}

async fn within<F>(future: F) -> Result<F::Output, Error>
where
    F: Future,
{
    Ok(timeout(Duration::from_millis(5), future).await?)
}

pub(crate) async fn spawned(State(app): State<Arc<App>>) -> Result<String, Error> {
    let handle = tokio::spawn({
        let app = Arc::clone(&app);
        async move { app.book(1).map(|book| book.title) }
    });
    let missing = tokio::spawn(async move { app.book(99).map(|book| book.title) });
    let (found, missing) = tokio::try_join!(handle, missing)?;
    Ok(format!("{}, {}", found?, missing.unwrap_err()))
}

/// Streams lines from a task through a channel.
pub(crate) async fn lines() -> Response {
    let (sender, receiver) = mpsc::channel::<String>(1);
    tokio::spawn(async move {
        for number in 1..=3 {
            if sender.send(format!("line {number}\n")).await.is_err() {
                return;
            }
        }
    });
    let stream = stream::unfold(receiver, |mut receiver| async move {
        let line = receiver.recv().await?;
        Some((Ok::<_, Error>(line), receiver))
    });
    Body::from_stream(stream).into_response()
}

/// Streams what an asynchronous closure makes of each number.
pub(crate) async fn ticks() -> impl IntoResponse {
    let scale = 10;
    let stream = stream::iter(1..=3)
        .then(move |number| async move {
            tokio::task::yield_now().await;
            number * scale
        })
        .map(|number| Ok::<_, std::convert::Infallible>(format!("{number};")));
    Body::from_stream(stream)
}

pub(crate) async fn lengths(body: Bytes) -> Json<Vec<usize>> {
    let parts = body.split(|&byte| byte == b',').map(<[u8]>::to_vec);
    let length = |part: Vec<u8>| async move { part.len() };
    Json(join_all(parts.map(length)).await)
}

/// Walks a document twice, each time recursively.
pub(crate) async fn document(Json(document): Json<Value>) -> Json<(usize, Vec<String>)> {
    let depth = depth(&document);
    let words = words(document).await;
    Json((depth, words))
}

fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(values) => values.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    1 + below.unwrap_or(0)
}

/// A future that awaits its own kind has to be boxed.
fn words(value: Value) -> BoxFuture<'static, Vec<String>> {
    Box::pin(async move {
        match value {
            Value::String(word) => vec![word],
            Value::Array(values) => join_all(values.into_iter().map(words)).await.concat(),
            _ => Vec::new(),
        }
    })
}
