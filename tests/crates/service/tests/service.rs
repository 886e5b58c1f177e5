//! What the service answers: each test calls it without a network.

use std::sync::Arc;

use axum::body::{to_bytes, Body};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::Router;
use serde_json::{json, Value};
use service::{router, App, Logged, Memory, Store};
use tower::{Service, ServiceExt};

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

fn service() -> Router {
    router(App::new())
}

async fn send(service: &Router, request: Request<Body>) -> Answer {
    let response = service.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    Answer {
        status: parts.status,
        headers: parts.headers,
        body: String::from_utf8(body.into()).unwrap(),
    }
}

async fn get(service: &Router, path: &str) -> Answer {
    send(service, Request::get(path).body(Body::empty()).unwrap()).await
}

async fn call(service: &Router, method: Method, path: &str, body: impl Into<Body>) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json");
    send(service, request.body(body.into()).unwrap()).await
}

async fn call_as(service: &Router, member: &str, method: Method, path: &str) -> Answer {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("x-member", member);
    send(service, request.body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn the_root_answers() {
    let answer = get(&service(), "/").await;
    assert_eq!((answer.status, &*answer.body), (StatusCode::OK, "library"));
}

#[tokio::test]
async fn an_unknown_path_is_answered_by_the_fallback() {
    let answer = get(&service(), "/attic").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.json(), json!({ "error": "nothing at /attic" }));
}

#[tokio::test]
async fn books_are_counted_and_listed_in_part() {
    let service = service();
    assert_eq!(get(&service, "/books/count").await.json(), json!(2));
    assert_eq!(
        get(&service, "/books?from=1&limit=5").await.json(),
        json!([{ "id": 2, "title": "Dracula", "chapters": [] }])
    );
    assert_eq!(get(&service, "/books?limit=0").await.json(), json!([]));
}

#[tokio::test]
async fn a_page_that_is_no_number_is_an_error_of_the_service() {
    let answer = get(&service(), "/books?from=x").await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(
        answer.json(),
        json!({ "error": "invalid: invalid digit found in string" })
    );
}

#[tokio::test]
async fn a_book_is_added_and_shown() {
    let service = service();
    let new = json!({ "title": "Kim", "chapters": ["I"] });
    let answer = call(&service, Method::POST, "/books", new.to_string()).await;
    assert_eq!(answer.status, StatusCode::CREATED);
    let expected = json!({ "id": 3, "title": "Kim", "chapters": ["I"] });
    assert_eq!(answer.json(), expected);
    assert_eq!(get(&service, "/books/3").await.json(), expected);
}

#[tokio::test]
async fn a_book_without_a_title_is_refused() {
    let answer = call(&service(), Method::POST, "/books", r#"{ "title": " " }"#).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(
        answer.json(),
        json!({ "error": "invalid: a book needs a title" })
    );
    let answer = call(&service(), Method::POST, "/books", "{").await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused() {
    let answer = call(&service(), Method::POST, "/work/sum", "1 ".repeat(1000)).await;
    assert_eq!(answer.status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_book_that_is_not_there_is_an_error() {
    let answer = get(&service(), "/books/9").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert_eq!(answer.json(), json!({ "error": "no book 9" }));
}

#[tokio::test]
async fn a_book_is_renamed_and_removed() {
    let service = service();
    let answer = call(&service, Method::PUT, "/books/1", "Persuasion").await;
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
    assert_eq!(get(&service, "/books/first").await.body, "Persuasion");
    let answer = call(&service, Method::PUT, "/books/7", "Ulysses").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    for status in [StatusCode::NO_CONTENT, StatusCode::NOT_FOUND] {
        let answer = call(&service, Method::DELETE, "/books/1", "").await;
        assert_eq!(answer.status, status);
    }
}

#[tokio::test]
async fn the_lock_is_held_where_there_is_no_first_book() {
    let service = service();
    for id in 1..=2 {
        call(&service, Method::DELETE, &format!("/books/{id}"), "").await;
    }
    assert_eq!(
        get(&service, "/books/first").await.body,
        "empty, locked: true"
    );
}

#[tokio::test]
async fn titles_are_sorted_in_a_banner() {
    let answer = get(&service(), "/books/titles").await;
    assert_eq!(answer.body, "* DRACULA, EMMA *");
    assert_eq!(answer.header("content-type"), "text/x-banner");
}

#[tokio::test]
async fn a_search_finds_titles_and_refuses_an_empty_query() {
    let service = service();
    assert_eq!(
        get(&service, "/books/search?q=rac").await.json(),
        json!([2])
    );
    let answer = get(&service, "/books/search?q=").await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST);
    assert_eq!(answer.body, "an empty query");
}

#[tokio::test]
async fn a_chapter_is_found_by_its_number() {
    let service = service();
    assert_eq!(get(&service, "/books/1/chapters/2").await.body, "Two");
    for (path, status) in [
        ("/books/1/chapters/3", StatusCode::NOT_FOUND),
        ("/books/9/chapters/1", StatusCode::NOT_FOUND),
        ("/books/1/chapters/one", StatusCode::UNPROCESSABLE_ENTITY),
    ] {
        assert_eq!(get(&service, path).await.status, status, "{path}");
    }
}

#[tokio::test]
async fn a_cover_is_drawn() {
    let answer = get(&service(), "/books/1/cover").await;
    assert_eq!(answer.body, "<svg><text>Emma</text></svg>");
    assert_eq!(answer.header("content-type"), "image/svg+xml");
}

#[tokio::test]
async fn books_are_exported_as_a_stream() {
    let answer = get(&service(), "/books/export").await;
    assert_eq!(answer.body, "1,Emma\n2,Dracula\n");
}

#[tokio::test]
async fn locals_are_dropped_before_temporaries_and_those_before_parameters() {
    assert_eq!(
        get(&service(), "/books/drops").await.json(),
        json!([
            "async local",
            "async temporary",
            "async parameter",
            "local",
            "temporary",
            "parameter",
        ])
    );
}

#[tokio::test]
async fn a_book_is_lent_once_and_given_back_by_its_borrower() {
    let service = service();
    let answer = call_as(&service, "ada", Method::POST, "/loans/1").await;
    assert_eq!(answer.status, StatusCode::CREATED);
    assert_eq!(answer.json(), json!({ "book": 1, "member": "ada" }));
    for (member, method, path, status) in [
        ("ben", Method::POST, "/loans/1", StatusCode::CONFLICT),
        ("ben", Method::DELETE, "/loans/1", StatusCode::FORBIDDEN),
        ("ada", Method::DELETE, "/books/1", StatusCode::CONFLICT),
        ("ada", Method::DELETE, "/loans/1", StatusCode::NO_CONTENT),
        ("ada", Method::DELETE, "/loans/1", StatusCode::NOT_FOUND),
    ] {
        let answer = call_as(&service, member, method, path).await;
        assert_eq!(answer.status, status, "{member} {path}");
    }
}

#[tokio::test]
async fn loans_are_counted_for_all_and_listed_for_a_member() {
    let service = service();
    call_as(&service, "ada", Method::POST, "/loans/2").await;
    assert_eq!(get(&service, "/loans/count").await.json(), json!(1));
    for (member, books) in [("ada", json!([2])), ("ben", json!([]))] {
        let answer = call_as(&service, member, Method::GET, "/loans").await;
        assert_eq!(answer.json(), books, "{member}");
    }
}

#[tokio::test]
async fn only_members_may_borrow() {
    let service = service();
    let answer = call_as(&service, "eve", Method::POST, "/loans/1").await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    let answer = call(&service, Method::POST, "/loans/1", "").await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(answer.json(), json!({ "error": "not a member" }));
}

#[tokio::test]
async fn a_desk_is_taken_until_the_handler_ends() {
    let service = service();
    let answer = call_as(&service, "ada", Method::GET, "/loans/desk").await;
    assert_eq!(answer.body, "1, then 0");
    assert_eq!(get(&service, "/loans/desks").await.body, "both");
}

#[tokio::test]
async fn a_visit_counts_until_the_handler_ends() {
    let service = service();
    let answer = call_as(&service, "ada", Method::GET, "/loans/stats").await;
    assert_eq!(answer.json(), json!({ "visitors": 1, "members": 2 }));
    assert_eq!(
        get(&service, "/loans/status").await.body,
        "2 books, 0 loans, 0 visitors"
    );
    assert_eq!(get(&service, "/loans/inside").await.json(), json!(1));
}

#[tokio::test]
async fn those_who_wait_stay_in_their_order() {
    let service = service();
    let answer = call(&service, Method::POST, "/loans/queue/di", "").await;
    assert_eq!(answer.body, "place 2, 1 desk");
    assert_eq!(get(&service, "/loans/queue").await.body, "cy");
}

#[tokio::test]
async fn numbers_are_parsed_by_tasks() {
    let service = service();
    let answer = call(&service, Method::POST, "/work/sum", "1, 2, 39").await;
    assert_eq!(answer.body, "42");
    let answer = call(&service, Method::POST, "/work/sum", "1, two").await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn tasks_and_races_end() {
    let service = service();
    assert_eq!(get(&service, "/work/race").await.body, "the desk");
    assert_eq!(
        get(&service, "/work/spawned").await.body,
        "Emma, no book 99"
    );
}

#[tokio::test]
async fn a_future_that_never_ends_is_late() {
    let answer = get(&service(), "/work/late").await;
    assert_eq!(answer.status, StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(answer.json(), json!({ "error": "too late" }));
}

#[tokio::test]
async fn bodies_are_streamed() {
    let service = service();
    assert_eq!(
        get(&service, "/work/lines").await.body,
        "line 1\nline 2\nline 3\n"
    );
    assert_eq!(get(&service, "/work/ticks").await.body, "10;20;30;");
    let answer = call(&service, Method::POST, "/work/lengths", "a,bc,").await;
    assert_eq!(answer.json(), json!([1, 2, 0]));
    let answer = call(&service, Method::PATCH, "/echo", "back").await;
    assert_eq!(
        (&*answer.body, answer.header("x-method")),
        ("back", "PATCH")
    );
}

#[tokio::test]
async fn a_document_is_walked_recursively() {
    let document = json!(["a", ["b", { "c": [] }], 1]).to_string();
    let answer = call(&service(), Method::POST, "/work/document", document).await;
    assert_eq!(answer.json(), json!([4, ["a", "b"]]));
}

#[tokio::test]
async fn a_panic_is_an_internal_error_and_the_next_call_works() {
    let service = service();
    let answer = get(&service, "/panic").await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(get(&service, "/").await.status, StatusCode::OK);
}

#[tokio::test]
async fn middleware_adds_headers_and_counts_answers() {
    let mut service = service();
    let request = Request::get("/books/1").header("x-request-id", "r1");
    let request = request.body(Body::empty()).unwrap();
    let response = service.as_service().ready().await.unwrap().call(request);
    let headers = response.await.unwrap().headers().clone();
    assert_eq!(headers["x-request-id"], "r1");
    assert_eq!(headers["x-path"], "/books/1");
    assert_eq!(headers["x-service"], "library");
    let answer = get(&service, "/calls").await;
    assert_eq!(
        (&*answer.body, answer.header("x-request-id")),
        ("1", "none")
    );
}

#[tokio::test]
async fn notes_are_kept() {
    let service = service();
    assert_eq!(get(&service, "/notes").await.json(), json!(null));
    for (note, status) in [
        ("", StatusCode::UNPROCESSABLE_ENTITY),
        ("one", StatusCode::CREATED),
        ("two", StatusCode::OK),
    ] {
        let answer = call(&service, Method::PUT, "/notes/k", note).await;
        assert_eq!(answer.status, status, "{note}");
    }
    assert_eq!(get(&service, "/notes/k").await.body, "two");
    assert_eq!(get(&service, "/notes").await.json(), json!(1));
    let answer = get(&service, "/notes/other").await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_logged_store_keeps_the_keys() {
    let store = Arc::new(Logged::new(Memory::default()));
    let shared: Arc<dyn Store> = store.clone();
    assert!(shared.put("a".into(), "note".into()).await.unwrap());
    assert_eq!(shared.get("a").await.as_deref(), Some("note"));
    assert_eq!(shared.get("b").await, None);
    assert_eq!(store.asked().await, ["a", "b"]);
}
