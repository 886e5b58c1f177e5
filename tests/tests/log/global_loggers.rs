//! A logger in a `static` is made by the first call that is logged, and has every call when the program ends.

#![cfg(not(feature = "strip"))]

use std::sync::{Arc, LazyLock};

use profiler_runtime::{TensorBoardLogger, measure_execution_time};
use profiler_tests::{child, event_files};

static BOARD: LazyLock<Arc<TensorBoardLogger>> = LazyLock::new(|| {
    let folder = child::dir().expect("a folder");
    Arc::new(TensorBoardLogger::new(folder.join("runs")).expect("a log"))
});

#[measure_execution_time(log = BOARD)]
fn by_name() {}

#[measure_execution_time(log = BOARD.clone())]
fn cloned() {}

#[measure_execution_time(log = &BOARD)]
fn by_reference() {}

#[test(measuring)]
fn all_calls_of_a_program_without_further_set_up_are_in_the_file() {
    if child::dir().is_some() {
        for _ in 0..3 {
            by_name();
            cloned();
            by_reference();
        }
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = child::again(folder.path()).output().expect("it runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let paths = event_files::paths(&folder.path().join("runs"));
    let [path] = &paths[..] else {
        panic!("one logger, one file: {paths:?}");
    };
    let scalars = event_files::read(path).scalars;
    for name in ["by_name", "cloned", "by_reference"] {
        // By the GPU, where there is one.
        let tags = ["cpu", "cuda"].map(|clock| format!("global_loggers/{name}/{clock}_ms"));
        let of_name = scalars.iter().filter(|scalar| tags.contains(&scalar.tag));
        let steps: Vec<i64> = of_name.map(|scalar| scalar.step).collect();
        assert_eq!(steps, [0, 1, 2], "{name}: {scalars:?}");
    }
}
