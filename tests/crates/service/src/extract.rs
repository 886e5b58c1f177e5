//! Extractors of this service.

use std::sync::Arc;

use axum::extract::{FromRef, FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::Json;
use serde::de::DeserializeOwned;
use serde::Deserialize;
use tokio::sync::OwnedSemaphorePermit;

use crate::app::App;
use crate::error::Error;

/// The member who asks, from a header.
pub(crate) struct Member {
    pub(crate) name: String,
}

impl<S> FromRequestParts<S> for Member
where
    S: Send + Sync,
{
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let value = parts.headers.get("x-member").ok_or(Error::NotAMember)?;
        let name = value.to_str().map_err(|_| Error::NotAMember)?;
        Ok(Self {
            name: name.to_owned(),
        })
    }
}

/// A desk that is taken until the handler ends.
pub(crate) struct Desk(pub(crate) OwnedSemaphorePermit);

impl<S> FromRequestParts<S> for Desk
where
    Arc<App>: FromRef<S>,
    S: Send + Sync,
{
    type Rejection = Error;

    async fn from_request_parts(_: &mut Parts, state: &S) -> Result<Self, Self::Rejection> {
        let app = Arc::<App>::from_ref(state);
        app.desk().await.map(Self)
    }
}

/// Counts the visitor until it is dropped.
pub(crate) struct Visit(Arc<App>);

impl Visit {
    /// The guard of the lock has to be dropped before `self`, which takes the same lock.
    pub(crate) fn inside(self) -> usize {
        *self.0.visits.lock().unwrap()
    }
}

impl FromRequestParts<Arc<App>> for Visit {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(
        _: &mut Parts,
        app: &Arc<App>,
    ) -> Result<Self, std::convert::Infallible> {
        *app.visits.lock().unwrap() += 1;
        Ok(Visit(app.clone()))
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        *self.0.visits.lock().unwrap() -= 1;
    }
}

#[derive(Deserialize)]
struct RawPage {
    from: Option<String>,
    limit: Option<String>,
}

/// A part of a list. Invalid numbers are answered with an error of this service.
pub(crate) struct Page {
    pub(crate) from: usize,
    pub(crate) limit: usize,
}

impl<S: Send + Sync> FromRequestParts<S> for Page {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Error> {
        let Query(RawPage { from, limit }) = Query::from_request_parts(parts, state)
            .await
            .map_err(|rejection| Error::Invalid(rejection.body_text()))?;
        Ok(Self {
            from: from.as_deref().unwrap_or("0").parse()?,
            limit: limit.as_deref().unwrap_or("10").parse()?,
        })
    }
}

pub(crate) trait Check {
    fn check(&self) -> Result<(), String>;
}

/// A body that is JSON and passes its own check.
pub(crate) struct Checked<T>(pub(crate) T);

impl<T, S> FromRequest<S> for Checked<T>
where
    T: DeserializeOwned + Check,
    S: Send + Sync,
{
    type Rejection = Error;

    async fn from_request(request: Request, state: &S) -> Result<Self, Error> {
        let Json(value) = Json::<T>::from_request(request, state)
            .await
            .map_err(|rejection| Error::Invalid(rejection.body_text()))?;
        value.check().map_err(Error::Invalid)?;
        Ok(Checked(value))
    }
}
