//! The state that the handlers share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};

use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Error;

#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Book {
    pub(crate) id: u32,
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) chapters: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Loan {
    pub(crate) book: u32,
    pub(crate) member: String,
}

/// The library.
pub struct App {
    pub(crate) books: RwLock<BTreeMap<u32, Book>>,
    pub(crate) loans: Mutex<Vec<Loan>>,
    /// Behind a lock that may be held across an await.
    pub(crate) members: tokio::sync::RwLock<Vec<String>>,
    pub(crate) queue: tokio::sync::Mutex<Vec<String>>,
    pub(crate) desks: Arc<Semaphore>,
    pub(crate) visits: Mutex<usize>,
    pub(crate) notices: Mutex<Vec<&'static str>>,
    ids: AtomicU32,
}

impl App {
    /// Returns a library with two books, two desks, and the members Ada and Ben.
    pub fn new() -> Arc<Self> {
        let app = Arc::new(Self {
            books: RwLock::default(),
            loans: Mutex::default(),
            members: tokio::sync::RwLock::new(vec!["ada".into(), "ben".into()]),
            queue: tokio::sync::Mutex::new(vec!["cy".into()]),
            desks: Arc::new(Semaphore::new(2)),
            visits: Mutex::default(),
            notices: Mutex::default(),
            ids: AtomicU32::new(1),
        });
        app.insert("Emma", &["One", "Two"]);
        app.insert("Dracula", &[]);
        app
    }

    /// A name that only edition 2024 reserves.
    fn gen(&self) -> u32 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn insert(&self, title: &str, chapters: &[&str]) -> Book {
        let book = Book {
            id: self.gen(),
            title: title.to_owned(),
            chapters: chapters.iter().map(|&name| name.to_owned()).collect(),
        };
        self.books.write().unwrap().insert(book.id, book.clone());
        book
    }

    pub(crate) fn book(&self, id: u32) -> Result<Book, Error> {
        self.books
            .read()
            .unwrap()
            .get(&id)
            .cloned()
            .ok_or(Error::NoBook(id))
    }

    /// The guard is returned, and its lifetime elided.
    pub(crate) fn shelf(&self) -> RwLockReadGuard<'_, BTreeMap<u32, Book>> {
        self.books.read().unwrap()
    }

    pub(crate) fn lent(&self, id: u32) -> bool {
        self.loans.lock().unwrap().iter().any(|one| one.book == id)
    }

    pub(crate) async fn is_member(&self, name: &str) -> bool {
        self.members.read().await.iter().any(|one| one == name)
    }

    pub(crate) async fn desk(self: Arc<Self>) -> Result<OwnedSemaphorePermit, Error> {
        Ok(Arc::clone(&self.desks).acquire_owned().await?)
    }

    /// Returns a value that adds a notice when it is dropped.
    pub(crate) fn notice(self: &Arc<Self>, text: &'static str) -> Notice {
        Notice {
            app: Arc::clone(self),
            text,
        }
    }
}

/// Adds a notice when it is dropped: this makes the order of drops visible.
pub(crate) struct Notice {
    app: Arc<App>,
    text: &'static str,
}

impl Notice {
    pub(crate) fn text(&self) -> &str {
        self.text
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        self.app.notices.lock().unwrap().push(self.text);
    }
}
