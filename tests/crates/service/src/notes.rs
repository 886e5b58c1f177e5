//! Notes in a store that is behind a trait: handlers that are generic over it.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::Json;
use tokio::sync::{Mutex, RwLock};

use crate::error::Error;

/// Keeps notes.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Returns a note.
    async fn get(&self, key: &str) -> Option<String>;

    /// Adds or replaces a note.
    ///
    /// # Errors
    ///
    /// Returns an error if the note is empty.
    async fn put(&self, key: String, note: String) -> Result<bool, Error>;

    /// Returns the number of notes.
    async fn len(&self) -> usize;

    /// Returns `true` if there are no notes.
    async fn is_empty(&self) -> bool {
        self.len().await == 0
    }
}

/// Keeps notes in memory.
#[derive(Default)]
pub struct Memory {
    notes: RwLock<HashMap<String, String>>,
}

#[async_trait]
impl Store for Memory {
    async fn get(&self, key: &str) -> Option<String> {
        self.notes.read().await.get(key).cloned()
    }

    async fn put(&self, key: String, note: String) -> Result<bool, Error> {
        if note.is_empty() {
            return Err(Error::Invalid("an empty note".into()));
        }
        Ok(self.notes.write().await.insert(key, note).is_none())
    }

    async fn len(&self) -> usize {
        self.notes.read().await.len()
    }
}

/// Passes calls to another store, and keeps the keys that were asked for.
pub struct Logged<S> {
    inner: S,
    asked: Mutex<Vec<String>>,
}

impl<S> Logged<S> {
    /// Wraps a store.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            asked: Mutex::const_new(Vec::new()),
        }
    }

    /// Returns the keys that were asked for.
    pub async fn asked(self: Arc<Self>) -> Vec<String> {
        self.asked.lock().await.clone()
    }
}

#[async_trait]
impl<S: Store> Store for Logged<S> {
    async fn get(&self, key: &str) -> Option<String> {
        self.asked.lock().await.push(key.to_owned());
        self.inner.get(key).await
    }

    async fn put(&self, key: String, note: String) -> Result<bool, Error> {
        self.inner.put(key, note).await
    }

    async fn len(&self) -> usize {
        self.inner.len().await
    }
}

pub(crate) async fn size<S: Store>(State(store): State<Arc<S>>) -> Json<Option<usize>> {
    if store.is_empty().await {
        return Json(None);
    }
    Json(Some(store.len().await))
}

pub(crate) async fn read<S>(
    State(store): State<Arc<S>>,
    Path(key): Path<String>,
) -> Result<String, StatusCode>
where
    S: Store,
{
    store.get(&key).await.ok_or(StatusCode::NOT_FOUND)
}

pub(crate) async fn write<S: Store>(
    Path(key): Path<String>,
    State(store): State<Arc<S>>,
    note: String,
) -> Result<StatusCode, Error> {
    Ok(if store.put(key, note).await? {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    })
}
