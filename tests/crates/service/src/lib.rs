//! A lending library behind axum. It exists to be annotated: its handlers and helpers have the
//! shapes that people write in edition 2021, and `tests/` asserts what each of them answers.
//!
//! Nothing listens on a port: the tests call the router as a `tower::Service`.

mod app;
mod books;
mod error;
mod extract;
mod layers;
mod loans;
mod notes;
mod work;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{any, get, post};
use axum::{Json, Router};
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::set_header::SetResponseHeaderLayer;

pub use app::App;
pub use error::Error;
pub use notes::{Logged, Memory, Store};

/// Returns the routes of the whole service.
pub fn router(app: Arc<App>) -> Router {
    let notes = Arc::new(Logged::new(Memory::default()));
    let calls = layers::Calls::default();
    Router::new()
        .route("/", get(|| async { "library" }))
        .route("/calls", get(layers::calls).with_state(calls.clone()))
        .nest("/books", book_routes())
        .nest("/loans", loan_routes(&app))
        .nest("/work", work_routes())
        .with_state(app)
        .nest("/notes", note_routes(notes))
        .route("/echo", any(echo))
        .route("/panic", get(fails))
        .fallback(missing)
        .layer(RequestBodyLimitLayer::new(1024))
        .layer(
            ServiceBuilder::new()
                .layer(SetResponseHeaderLayer::if_not_present(
                    HeaderName::from_static("x-service"),
                    HeaderValue::from_static("library"),
                ))
                .layer(CatchPanicLayer::new())
                .layer(from_fn(layers::request_id))
                .layer(layers::CountLayer::new(calls))
                .layer(layers::StampLayer),
        )
}

fn book_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(books::list).post(books::add))
        .route("/count", get(books::count))
        .route("/first", get(books::first))
        .route("/titles", get(books::titles))
        .route("/search", get(books::search))
        .route("/export", get(books::export))
        .route("/drops", get(books::drops))
        .route(
            "/{id}",
            get(books::show).put(books::rename).delete(books::remove),
        )
        .route("/{id}/cover", get(books::cover))
        .route("/{id}/chapters/{chapter}", get(books::chapter))
}

fn loan_routes(app: &Arc<App>) -> Router<Arc<App>> {
    let open = Router::new()
        .route("/count", get(loans::count))
        .route("/desks", get(loans::free_desks))
        .route("/inside", get(loans::inside))
        .route("/queue", get(loans::queue))
        .route("/queue/{name}", post(loans::join))
        .route("/status", get(loans::status));
    let members = Router::new()
        .route("/", get(loans::of_member))
        .route("/{book}", post(loans::lend).delete(loans::give_back))
        .route("/desk", get(loans::at_desk))
        .route("/stats", get(loans::stats))
        .route_layer(from_fn_with_state(Arc::clone(app), layers::known_member));
    open.merge(members)
}

fn work_routes() -> Router<Arc<App>> {
    Router::new()
        .route("/sum", post(work::sum))
        .route("/race", get(work::race))
        .route("/late", get(work::late))
        .route("/spawned", get(work::spawned))
        .route("/lines", get(work::lines))
        .route("/ticks", get(work::ticks))
        .route("/lengths", post(work::lengths))
        .route("/document", post(work::document))
}

/// The handlers are generic over the store.
fn note_routes<S: Store>(store: Arc<S>) -> Router {
    Router::new()
        .route("/", get(notes::size::<S>))
        .route("/{key}", get(notes::read::<S>).put(notes::write::<S>))
        .with_state(store)
}

async fn echo(request: Request) -> impl IntoResponse {
    let method = request.method().to_string();
    let chunks = request.into_body().into_data_stream();
    ([("x-method", method)], Body::from_stream(chunks))
}

async fn fails() -> StatusCode {
    panic!("a handler that panics")
}

async fn missing(uri: Uri) -> (StatusCode, Json<serde_json::Value>) {
    let message = format!("nothing at {}", uri.path());
    (
        StatusCode::NOT_FOUND,
        Json(serde_json::json!({ "error": message })),
    )
}
