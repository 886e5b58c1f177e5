//! A service with two handlers. No line of it knows of the profiler.

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use tracing::instrument;

/// The routes of the service.
pub fn routes() -> Router {
    Router::new()
        .route("/hello", get(hello))
        .route("/square/{number}", get(square))
}

#[instrument]
async fn hello() -> &'static str {
    "hello"
}

#[instrument]
async fn square(Path(number): Path<u64>) -> String {
    // A span of its own, and a wait: the handler is polled more than once.
    tokio::task::yield_now().await;
    multiply(number).to_string()
}

#[instrument]
fn multiply(number: u64) -> u64 {
    number.wrapping_mul(number)
}
