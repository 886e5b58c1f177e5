//! The desk: permits, guards, and locks that are held across an await.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::Json;
use serde_json::{json, Value};

use crate::app::{App, Loan};
use crate::error::Error;
use crate::extract::{Desk, Member, Visit};

pub(crate) async fn count(State(app): State<Arc<App>>) -> Json<usize> {
    Json(lent(app))
}

/// The guard is a temporary of the last expression, and borrows from a parameter.
fn lent(app: Arc<App>) -> usize {
    app.loans.lock().unwrap().len()
}

async fn lent_to(app: Arc<App>, member: String) -> Vec<u32> {
    app.loans
        .lock()
        .unwrap()
        .iter()
        .filter(|loan| loan.member == member)
        .map(|loan| loan.book)
        .collect()
}

async fn members(app: Arc<App>) -> usize {
    app.members.read().await.len()
}

async fn waiting(app: Arc<App>) -> Option<String> {
    app.queue.lock().await.first().cloned()
}

fn visitors(app: Arc<App>) -> usize {
    *app.visits.lock().unwrap()
}

async fn borrower(app: Arc<App>, book: u32) -> Result<String, Error> {
    match app
        .loans
        .lock()
        .unwrap()
        .iter()
        .find(|loan| loan.book == book)
    {
        Some(loan) => Ok(loan.member.clone()),
        None => Err(Error::NoBook(book)),
    }
}

/// Without a semicolon, the guard is a temporary of the last expression here too.
async fn enqueue(app: Arc<App>, name: String) {
    app.queue.lock().await.push(name)
}

async fn place((app, word): (Arc<App>, &str)) -> String {
    format!("{word} {}", app.queue.lock().await.len())
}

async fn one_desk(app: Arc<App>) -> Result<usize, Error> {
    Ok(app.desks.acquire().await?.num_permits())
}

pub(crate) async fn join(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<String, Error> {
    enqueue(app.clone(), name).await;
    let place = place((app.clone(), "place")).await;
    let desks = one_desk(app).await?;
    Ok(format!("{place}, {desks} desk"))
}

pub(crate) async fn inside(visit: Visit) -> Json<usize> {
    Json(visit.inside())
}

pub(crate) async fn of_member(
    Member { name }: Member,
    State(app): State<Arc<App>>,
) -> Json<Vec<u32>> {
    Json(lent_to(app, name).await)
}

pub(crate) async fn lend(
    State(app): State<Arc<App>>,
    Member { name: member }: Member,
    Path(book): Path<u32>,
) -> Result<impl IntoResponse, Error> {
    let book = app.book(book)?.id;
    let mut loans = app.loans.lock().unwrap();
    if loans.iter().any(|loan| loan.book == book) {
        return Err(Error::Lent);
    }
    let loan = Loan { book, member };
    loans.push(loan.clone());
    Ok((StatusCode::CREATED, Json(loan)))
}

pub(crate) async fn give_back(
    State(app): State<Arc<App>>,
    member: Member,
    Path(book): Path<u32>,
) -> Result<StatusCode, Error> {
    if borrower(app.clone(), book).await? != member.name {
        return Err(Error::NotAMember);
    }
    app.loans.lock().unwrap().retain(|loan| loan.book != book);
    Ok(StatusCode::NO_CONTENT)
}

/// Holds one permit as a parameter, and one as a local.
pub(crate) async fn at_desk(
    State(app): State<Arc<App>>,
    Desk(_permit): Desk,
) -> Result<String, Error> {
    let free = app.desks.available_permits();
    let _second = app.desks.acquire().await?;
    tokio::task::yield_now().await;
    Ok(format!("{free}, then {}", app.desks.available_permits()))
}

pub(crate) async fn free_desks(State(app): State<Arc<App>>) -> Response {
    match app.desks.try_acquire_many(2) {
        Ok(_permits) => "both".into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()).into_response(),
    }
}

pub(crate) async fn queue(State(app): State<Arc<App>>) -> Result<String, StatusCode> {
    waiting(app).await.ok_or(StatusCode::NO_CONTENT)
}

/// The visit is never read: it counts until the handler ends.
pub(crate) async fn stats(_guard: Visit, State(app): State<Arc<App>>) -> Json<Value> {
    let inside = visitors(Arc::clone(&app));
    Json(json!({ "visitors": inside, "members": members(app).await }))
}

/// Three locks in one expression.
pub(crate) async fn status(State(app): State<Arc<App>>) -> String {
    format!(
        "{} books, {} loans, {} visitors",
        app.books.read().unwrap().len(),
        app.loans.lock().unwrap().len(),
        app.visits.lock().unwrap(),
    )
}
