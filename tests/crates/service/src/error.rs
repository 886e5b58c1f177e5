//! What goes wrong, and how it is answered.

use std::fmt;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::Json;
use tokio::sync::AcquireError;
use tokio::task::JoinError;
use tokio::time::error::Elapsed;

/// An error that is answered with a status of its own.
#[derive(Debug)]
pub enum Error {
    NoBook(u32),
    NoChapter(String),
    NotAMember,
    Lent,
    Invalid(String),
    Late,
    Internal(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::NoBook(id) => write!(f, "no book {id}"),
            Error::NoChapter(name) => write!(f, "no chapter {name}"),
            Error::NotAMember => f.write_str("not a member"),
            Error::Lent => f.write_str("the book is lent"),
            Error::Invalid(why) => write!(f, "invalid: {why}"),
            Error::Late => f.write_str("too late"),
            Error::Internal(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Error {}

impl From<std::num::ParseIntError> for Error {
    fn from(error: std::num::ParseIntError) -> Self {
        Error::Invalid(error.to_string())
    }
}

impl From<AcquireError> for Error {
    fn from(error: AcquireError) -> Self {
        Error::Internal(error.to_string())
    }
}

impl From<JoinError> for Error {
    fn from(error: JoinError) -> Self {
        Error::Internal(error.to_string())
    }
}

impl From<Elapsed> for Error {
    fn from(_: Elapsed) -> Self {
        Error::Late
    }
}

impl IntoResponse for Error {
    fn into_response(self) -> Response {
        let status = match &self {
            Error::NoBook(_) | Error::NoChapter(_) => StatusCode::NOT_FOUND,
            Error::NotAMember => StatusCode::FORBIDDEN,
            Error::Lent => StatusCode::CONFLICT,
            Error::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Error::Late => StatusCode::GATEWAY_TIMEOUT,
            Error::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        (
            status,
            Json(serde_json::json!({ "error": self.to_string() })),
        )
            .into_response()
    }
}
