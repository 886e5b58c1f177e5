//! The effects of a step on a session, after the table of `torch.profiler`.

use crate::config::Action;

/// One effect of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Starts recording, before any window needs it.
    StartRecording,
    /// Opens a window.
    Open,
    /// Ends the open window; the next effect says what becomes of it.
    Close,
    /// Delivers the window.
    Deliver,
    /// Discards the window.
    Discard,
    /// Stops recording.
    StopRecording,
    /// Warns: the schedule leaves a window without saving it, or a warm-up without ever opening a window.
    Warn,
}

/// Returns the effects of going from one action to the next; `None` is the end of the session.
pub(super) fn effects_of(before: Action, next: Option<Action>) -> &'static [Effect] {
    use Action::{None as Nothing, Record, RecordAndSave, Warmup};
    use Effect::{Close, Deliver, Discard, Open, StartRecording, StopRecording, Warn};
    match (before, next) {
        (Nothing, Some(Nothing) | None)
        | (Warmup, Some(Warmup))
        | (Record, Some(Record | RecordAndSave)) => &[],
        (Nothing, Some(Warmup)) => &[StartRecording],
        (Nothing, Some(Record | RecordAndSave)) => &[StartRecording, Open],
        (Warmup, Some(Nothing)) => &[Warn, Open, Close, Discard, StopRecording],
        (Warmup, Some(Record | RecordAndSave)) => &[Open],
        // The window has no records: deliver nothing.
        (Warmup, None) => &[Open, Close, Discard, StopRecording],
        (Record, Some(Nothing)) => &[Warn, Close, Discard, StopRecording],
        (Record, Some(Warmup)) => &[Warn, Close, Discard],
        // The window is shorter than scheduled, and is delivered.
        (Record | RecordAndSave, None) | (RecordAndSave, Some(Nothing)) => {
            &[Close, Deliver, StopRecording]
        }
        (RecordAndSave, Some(Warmup)) => &[Close, Deliver, StartRecording],
        (RecordAndSave, Some(Record | RecordAndSave)) => &[Close, Deliver, StartRecording, Open],
    }
}

#[cfg(test)]
mod tests {
    use super::Effect::{self, Close, Deliver, Discard, Open, StartRecording, StopRecording, Warn};
    use super::*;

    const ACTIONS: [Action; 4] = [
        Action::None,
        Action::Warmup,
        Action::Record,
        Action::RecordAndSave,
    ];

    /// A row for each previous action; a column for each next action, and one for the end.
    const TABLE: [[&[Effect]; 5]; 4] = [
        [
            &[],
            &[StartRecording],
            &[StartRecording, Open],
            &[StartRecording, Open],
            &[],
        ],
        [
            &[Warn, Open, Close, Discard, StopRecording],
            &[],
            &[Open],
            &[Open],
            &[Open, Close, Discard, StopRecording],
        ],
        [
            &[Warn, Close, Discard, StopRecording],
            &[Warn, Close, Discard],
            &[],
            &[],
            &[Close, Deliver, StopRecording],
        ],
        [
            &[Close, Deliver, StopRecording],
            &[Close, Deliver, StartRecording],
            &[Close, Deliver, StartRecording, Open],
            &[Close, Deliver, StartRecording, Open],
            &[Close, Deliver, StopRecording],
        ],
    ];

    #[test]
    fn the_table_is_torchs() {
        for (before, row) in ACTIONS.into_iter().zip(TABLE) {
            let nexts = ACTIONS.into_iter().map(Some).chain([None]);
            for (next, effects) in nexts.zip(row) {
                assert_eq!(effects_of(before, next), effects, "{before:?} to {next:?}");
            }
        }
    }

    #[test]
    fn windows_open_and_close_in_turn_under_any_schedule() {
        // Try every sequence of six actions and the end.
        for code in 0..4_usize.pow(6) {
            let actions: Vec<Action> = (0..6)
                .map(|place| ACTIONS[code / 4_usize.pow(place) % 4])
                .collect();
            let (mut recording, mut open, mut closed) = (false, false, false);
            let mut before = Action::None;
            for next in actions.into_iter().map(Some).chain([None]) {
                for effect in effects_of(before, next) {
                    match effect {
                        StartRecording => recording = true,
                        Open => {
                            assert!(recording && !open && !closed);
                            open = true;
                        }
                        Close => {
                            assert!(open);
                            (open, closed) = (false, true);
                        }
                        Deliver | Discard => {
                            assert!(closed);
                            closed = false;
                        }
                        StopRecording => recording = false,
                        Warn => {}
                    }
                }
                before = next.unwrap_or_default();
                assert_eq!(open, before.is_recording());
                assert_eq!(recording, before != Action::None);
                assert!(!closed);
            }
        }
    }
}
