use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use profiler_runtime::{TensorBoardLogger, measured};

static SET_LATER: OnceLock<Arc<TensorBoardLogger>> = OnceLock::new();
static NOT_SHARED: LazyLock<TensorBoardLogger> =
    LazyLock::new(|| TensorBoardLogger::new("runs/today").expect("a log"));
static LOCKED: Mutex<Option<TensorBoardLogger>> = Mutex::new(None);

#[measured(log = SET_LATER)]
fn set_later() {}

#[measured(log = NOT_SHARED)]
fn not_shared() {}

#[measured(log = LOCKED)]
fn locked() {}

fn main() {}
