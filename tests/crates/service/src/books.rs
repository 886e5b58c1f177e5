//! The shelf. Most handlers end with an expression that holds the lock, whose guard edition 2021
//! drops after the locals.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{header, StatusCode};
use axum::response::IntoResponse;
use axum::Json;
use futures_util::stream::{self, Stream};
use serde::Deserialize;

use crate::app::{App, Book};
use crate::error::Error;
use crate::extract::{Check, Checked, Page};

#[derive(Deserialize)]
pub(crate) struct NewBook {
    title: String,
    #[serde(default)]
    chapters: Vec<String>,
}

impl Check for NewBook {
    fn check(&self) -> Result<(), String> {
        match self.title.trim() {
            "" => Err("a book needs a title".to_owned()),
            _ => Ok(()),
        }
    }
}

pub(crate) async fn count(State(app): State<Arc<App>>) -> Json<usize> {
    Json(app.books.read().unwrap().len())
}

pub(crate) async fn list(
    Page { from, limit }: Page,
    State(app): State<Arc<App>>,
) -> Json<Vec<Book>> {
    let books = app.books.read().unwrap();
    Json(books.values().skip(from).take(limit).cloned().collect())
}

pub(crate) async fn add(
    State(app): State<Arc<App>>,
    Checked(NewBook { title, chapters }): Checked<NewBook>,
) -> Result<(StatusCode, Json<Book>), Error> {
    let chapters: Vec<&str> = chapters.iter().map(String::as_str).collect();
    let book = app.insert(&title, &chapters);
    Ok((StatusCode::CREATED, Json(book)))
}

pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Path(id): Path<u32>,
) -> Result<Json<Book>, Error> {
    let book = app.book(id)?;
    Ok(Json(book))
}

pub(crate) async fn rename(
    State(app): State<Arc<App>>,
    Path(id): Path<u32>,
    title: String,
) -> Result<StatusCode, Error> {
    match app.books.write().unwrap().get_mut(&id) {
        Some(book) => {
            book.title = title;
            Ok(StatusCode::NO_CONTENT)
        }
        None => Err(Error::NoBook(id)),
    }
}

pub(crate) async fn remove(
    State(app): State<Arc<App>>,
    Path(id): Path<u32>,
) -> Result<StatusCode, Error> {
    if app.lent(id) {
        return Err(Error::Lent);
    }
    app.books
        .write()
        .unwrap()
        .remove(&id)
        .map(|_| StatusCode::NO_CONTENT)
        .ok_or(Error::NoBook(id))
}

/// In edition 2021, the lock of an `if let` is held in its `else` branch too.
pub(crate) async fn first(State(app): State<Arc<App>>) -> String {
    if let Some(book) = app.books.read().unwrap().values().next() {
        book.title.clone()
    } else {
        let locked = app.books.try_write().is_err();
        format!("empty, locked: {locked}")
    }
}

pub(crate) async fn titles(State(app): State<Arc<App>>) -> impl IntoResponse {
    let shelf = app.shelf();
    let all: Vec<_> = sorted(shelf.values()).map(str::to_uppercase).collect();
    banner(&all.join(", "))
}

fn sorted<'a>(books: impl Iterator<Item = &'a Book>) -> impl Iterator<Item = &'a str> {
    let mut titles: Vec<_> = books.map(|book| book.title.as_str()).collect();
    titles.sort_unstable();
    titles.into_iter()
}

/// In edition 2021, the returned type does not capture the lifetime of the text.
fn banner(text: &str) -> impl IntoResponse {
    let line = format!("* {text} *");
    ([(header::CONTENT_TYPE, "text/x-banner")], line)
}

#[derive(Deserialize)]
pub(crate) struct Search {
    q: String,
}

pub(crate) async fn search(
    State(app): State<Arc<App>>,
    Query(Search { q }): Query<Search>,
) -> Result<Json<Vec<u32>>, (StatusCode, &'static str)> {
    if q.is_empty() {
        return Err((StatusCode::BAD_REQUEST, "an empty query"));
    }
    let matches = |book: &&Book| book.title.contains(&q);
    Ok(Json(
        app.books
            .read()
            .unwrap()
            .values()
            .filter(matches)
            .map(|book| book.id)
            .collect(),
    ))
}

pub(crate) async fn chapter(
    Path((id, chapter)): Path<(u32, String)>,
    State(app): State<Arc<App>>,
) -> Result<String, Error> {
    let number: usize = chapter.parse()?;
    let found = app.book(id)?.chapters.get(number.wrapping_sub(1)).cloned();
    found.ok_or_else(|| Error::NoChapter(chapter))
}

pub(crate) async fn cover(
    State(app): State<Arc<App>>,
    Path(id): Path<u32>,
) -> Result<impl IntoResponse, Error> {
    let Book { title, .. } = app.book(id)?;
    let drawn = format!("<svg><text>{title}</text></svg>");
    Ok(([(header::CONTENT_TYPE, "image/svg+xml")], drawn))
}

/// Streams one line for each book.
pub(crate) async fn export(State(app): State<Arc<App>>) -> impl IntoResponse {
    let books: Vec<Book> = app.shelf().values().cloned().collect();
    (
        [(header::CONTENT_TYPE, "text/csv")],
        Body::from_stream(csv(books)),
    )
}

fn csv(books: Vec<Book>) -> impl Stream<Item = Result<String, std::io::Error>> {
    let lines = books
        .into_iter()
        .map(|Book { id, title, .. }| Ok(format!("{id},{title}\n")));
    stream::iter(lines)
}

/// Returns the notices of the call: those of a local, of a temporary and of a parameter, in the
/// order of edition 2021.
pub(crate) async fn drops(State(app): State<Arc<App>>) -> Json<Vec<&'static str>> {
    let parameter = app.notice("async parameter");
    noted(&app, parameter).await;
    let parameter = app.notice("parameter");
    noted_at_once(&app, parameter);
    let notices = app.notices.lock().unwrap();
    Json(notices.clone())
}

async fn noted(app: &Arc<App>, _parameter: impl Sized) -> usize {
    let _local = app.notice("async local");
    tokio::task::yield_now().await;
    app.notice("async temporary").text().len()
}

fn noted_at_once(app: &Arc<App>, _: impl Sized) -> usize {
    let _local = app.notice("local");
    app.notice("temporary").text().len()
}
