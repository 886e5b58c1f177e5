//! The kernels, copies and fills that functions launched, for their opened rows.

use super::numbers::time;
use crate::kernels::{KernelRow, Kernels, ScopeKernels};
use crate::text::json::{array, lines, string};

/// How many kernels of a function the page holds: those that took longest.
const MAX_ROWS: usize = 50;

/// Returns for each function what it launched itself: its name, how many kernels the page leaves out, and for each other one
/// its name, a short name, how often it ran, and its total and mean time. `None` if nothing was launched.
pub(super) fn json(kernels: &Kernels) -> Option<String> {
    let scopes = kernels.scopes.iter();
    let mut scopes = scopes.filter_map(of_scope).peekable();
    scopes.peek()?;
    Some(lines(scopes))
}

fn of_scope(scope: &ScopeKernels) -> Option<String> {
    let name = scope.scope.as_ref()?;
    let shown = scope.rows.iter().take(MAX_ROWS);
    Some(array([
        string(name),
        scope.rows.len().saturating_sub(MAX_ROWS).to_string(),
        array(shown.map(of_row)),
    ]))
}

fn of_row(row: &KernelRow) -> String {
    array([
        string(&row.name),
        string(&row.short),
        row.times.calls.to_string(),
        time(row.times.total_ns),
        time(row.times.mean_ns),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::{Slice, SliceKind, SliceName, Timeline, Track, TrackKind};

    #[test]
    fn work_is_that_of_the_function_that_launched_it() {
        let name = |text: &str| SliceName {
            text: text.into(),
            ..SliceName::default()
        };
        let slice = |track, name, kind, parent| Slice {
            track,
            name,
            kind,
            parent,
            duration_ns: 40,
            self_ns: 40,
            ..Slice::default()
        };
        let mut timeline = Timeline {
            names: vec![name("forward"), name("sgemm")],
            tracks: vec![
                Track::default(),
                Track {
                    kind: TrackKind::GpuStream,
                    ..Track::default()
                },
            ],
            slices: vec![slice(0, 0, SliceKind::Call, None)],
            ..Timeline::default()
        };
        let json = |timeline: &Timeline| json(&timeline.key_averages().kernels());
        assert_eq!(json(&timeline), None);
        timeline
            .slices
            .push(slice(1, 1, SliceKind::GpuWork, Some(0)));
        let read: serde_json::Value =
            serde_json::from_str(&json(&timeline).expect("work")).expect("JSON");
        assert_eq!(
            read,
            serde_json::json!([["forward", 0, [["sgemm", "sgemm", 1, 40, 40]]]])
        );
    }
}
