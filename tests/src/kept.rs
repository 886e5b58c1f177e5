//! A logger that keeps what it gets.

use std::sync::{Mutex, PoisonError};
use std::thread::ThreadId;

use profiler_runtime::ScalarLogger;
use profiler_runtime::log::{CudaSpan, LogError, Scalar};

/// One value that a logger got.
#[derive(Clone, Debug)]
pub struct Got {
    pub tag: String,
    pub value: f64,
    pub step: u64,
    pub cpu_ms: f64,
    pub cuda: Option<CudaSpan>,
    pub thread: ThreadId,
}

/// Keeps what it gets, in order.
#[derive(Debug, Default)]
pub struct Kept(Mutex<Vec<Got>>);

impl Kept {
    pub fn all(&self) -> Vec<Got> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Its values of the name that has this tag, by their steps. Their own tags end with the time and its unit.
    pub fn of(&self, tag: &str) -> Vec<Got> {
        let mut got = self.all();
        got.retain(|got| without_unit(&got.tag) == Some(tag));
        got.sort_by_key(|got| got.step);
        got
    }

    pub fn steps(&self, tag: &str) -> Vec<u64> {
        self.of(tag).iter().map(|got| got.step).collect()
    }
}

/// The tag of a name, of the tag under which one of its calls is logged.
pub fn without_unit(tag: &str) -> Option<&str> {
    let (tag, unit) = tag.rsplit_once('/')?;
    ["cpu_ms", "cuda_ms"].contains(&unit).then_some(tag)
}

impl ScalarLogger for Kept {
    fn add_scalar(&self, tag: &str, _: f64, _: u64) -> Result<(), LogError> {
        Err(LogError::other(format!("{tag} without its times")))
    }

    fn add(&self, scalar: &Scalar<'_>) -> Result<(), LogError> {
        let got = Got {
            tag: scalar.tag.to_owned(),
            value: scalar.value,
            step: scalar.step,
            cpu_ms: scalar.cpu_ms,
            cuda: scalar.cuda,
            thread: std::thread::current().id(),
        };
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(got);
        Ok(())
    }
}
