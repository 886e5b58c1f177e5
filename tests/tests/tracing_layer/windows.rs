//! Spans in the windows of a session.

use profiler_runtime::session::Event;
use profiler_runtime::{Profile, scope};
use profiler_tests::measuring;
use tracing::{info_span, instrument};

use crate::support::install;

#[instrument]
fn forward() {
    info_span!("layer").in_scope(|| drop(scope!("windows: kernel")));
}

#[test]
fn a_window_has_the_spans_between_its_other_scopes() {
    install();
    let ((), trace) = Profile::builder().run(|_| {
        for _ in 0..3 {
            let _step = scope!("windows: step");
            forward();
        }
    });
    if !measuring() {
        return;
    }
    let trace = trace.expect("a window");
    let paths: Vec<String> = trace
        .events()
        .filter(|event| event.name() == "windows: kernel")
        .map(|event| {
            let around: Vec<&str> = event.stack().map(|frame| frame.name).collect();
            around.join(" < ")
        })
        .collect();
    let path = "tracing_layer::windows::layer < tracing_layer::windows::forward < windows: step";
    assert_eq!(paths, [path; 3]);
    let spans = trace
        .events()
        .filter(|event| event.name().ends_with("forward"));
    let locations: Vec<_> = spans.filter_map(Event::location).collect();
    assert_eq!(locations.len(), 3);
    assert!(
        locations
            .iter()
            .all(|at| at.file().ends_with("windows.rs") && at.line() > 0)
    );
}
