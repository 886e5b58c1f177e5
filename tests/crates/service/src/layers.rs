//! Middleware: functions, and services written by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::future::BoxFuture;
use tower::{Layer, Service};

use crate::app::App;
use crate::error::Error;

/// Copies the identifier of a request to its response.
pub(crate) async fn request_id(mut request: Request, next: Next) -> Response {
    let id = request
        .headers_mut()
        .remove("x-request-id")
        .unwrap_or_else(|| HeaderValue::from_static("none"));
    let mut response = next.run(request).await;
    response.headers_mut().insert("x-request-id", id);
    response
}

pub(crate) async fn known_member(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Result<Response, Error> {
    match name(&headers) {
        Some(name) if app.is_member(name).await => Ok(next.run(request).await),
        _ => Err(Error::NotAMember),
    }
}

fn name(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-member")?.to_str().ok()
}

/// The number of calls that were answered.
#[derive(Clone, Default)]
pub(crate) struct Calls(Arc<AtomicUsize>);

impl Calls {
    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) async fn calls(State(Calls(count)): State<Calls>) -> String {
    count.load(Ordering::Relaxed).to_string()
}

#[derive(Clone)]
pub(crate) struct CountLayer {
    calls: Calls,
}

impl CountLayer {
    pub(crate) fn new(calls: Calls) -> Self {
        Self { calls }
    }
}

impl<S> Layer<S> for CountLayer {
    type Service = Count<S>;

    fn layer(&self, inner: S) -> Count<S> {
        Count {
            inner,
            calls: self.calls.clone(),
        }
    }
}

/// Counts the answers. Its future is boxed, as by hand.
#[derive(Clone)]
pub(crate) struct Count<S> {
    inner: S,
    calls: Calls,
}

impl<S, B> Service<Request<B>> for Count<S>
where
    S: Service<Request<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let calls = self.calls.clone();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            calls.add();
            Ok(answer)
        })
    }
}

#[derive(Clone)]
pub(crate) struct StampLayer;

impl<S> Layer<S> for StampLayer {
    type Service = Stamp<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Stamp { inner }
    }
}

/// Stamps each response with the path of its request.
#[derive(Clone)]
pub(crate) struct Stamp<S> {
    inner: S,
}

impl<S, B> Service<Request<B>> for Stamp<S>
where
    S: Service<Request<B>, Response = Response> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // The service that is ready is the one to call.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let stamp = HeaderValue::from_str(request.uri().path());
        let future = async move {
            let mut response = inner.call(request).await?;
            if let Ok(stamp) = stamp {
                response.headers_mut().insert("x-path", stamp);
            }
            Ok(response)
        };
        Box::pin(future)
    }
}
